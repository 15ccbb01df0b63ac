//! One thing that a plan runs: a generated kernel or a product of matrices.

use super::{BufId, Kernel, Operand, Plan};
use crate::types::{DType, Dim};
use serde::{Deserialize, Serialize};

/// One thing that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
// A plan has few steps, and they are read in place.
#[allow(clippy::large_enum_variant)]
pub enum Step {
    /// A generated kernel.
    Kernel(Kernel),
    /// A product of matrices, by a library or by our own template.
    Matmul(Matmul),
}

/// A step that copies a tensor argument as a whole, behind which a part of the copy is written. Where the caller gives the argument up,
/// the part is written over it instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartWrite {
    /// The number of the step that copies; the next one writes.
    pub copy: u32,
    /// The argument.
    pub from: BufId,
    /// Its new value.
    pub to: BufId,
    /// Whether it may be done on a GPU, which goes on behind a fault: nothing behind the write finds one that was not found before.
    pub on_gpu: bool,
}

impl PartWrite {
    /// Whether the plan ends with the write.
    pub fn comes_last(&self, plan: &Plan) -> bool {
        self.copy as usize + 2 == plan.steps.len()
    }
}

impl Step {
    /// The kernel, if it is one.
    pub fn kernel(&self) -> Option<&Kernel> {
        match self {
            Step::Kernel(kernel) => Some(kernel),
            Step::Matmul(_) => None,
        }
    }

    /// The product, if it is one.
    pub fn matmul(&self) -> Option<&Matmul> {
        match self {
            Step::Matmul(matmul) => Some(matmul),
            Step::Kernel(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn matmul_mut(&mut self) -> Option<&mut Matmul> {
        match self {
            Step::Matmul(matmul) => Some(matmul),
            Step::Kernel(_) => None,
        }
    }

    /// What it computes: its kernel, or all that is done with a product.
    pub fn program(&self) -> &Kernel {
        match self {
            Step::Kernel(kernel) => kernel,
            Step::Matmul(matmul) => &matmul.epilogue,
        }
    }

    /// The kernel that is launched where a library multiplies: of a product what is left of its epilogue.
    pub fn rest(&self) -> Option<&Kernel> {
        match self {
            Step::Kernel(kernel) => Some(kernel),
            Step::Matmul(matmul) => matmul.lib.rest.as_ref(),
        }
    }

    /// All its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let rest = self.matmul().and_then(|matmul| matmul.lib.rest.as_ref());
        std::iter::once(self.program()).chain(rest)
    }

    /// The same, to be changed.
    pub fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        let (program, rest) = match self {
            Step::Kernel(kernel) => (kernel, None),
            Step::Matmul(matmul) => (&mut matmul.epilogue, matmul.lib.rest.as_mut()),
        };
        std::iter::once(program).chain(rest)
    }
}

/// A product of matrices with an epilogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matmul {
    /// The left operand, viewed as `[batch.., m, k]`.
    pub a: Operand,
    /// The right operand, viewed as `[batch.., k, n]`.
    pub b: Operand,
    /// Extents of the batch axes.
    pub batch: Vec<Dim>,
    /// Rows of the product.
    pub m: Dim,
    /// Columns of the product.
    pub n: Dim,
    /// The inner extent.
    pub k: Dim,
    /// Element type of both operands.
    pub dtype: DType,
    /// Whether f32 products may use TF32 (`precision = "high"`).
    pub tf32: bool,
    /// What is done with each element of the product, as a `Map` kernel over `[batch.., m, n]`.
    pub epilogue: Kernel,
    /// How a library does the same.
    pub lib: LibForm,
}

impl Matmul {
    /// What it reads beside its epilogue: both matrices, and the bias that a library adds.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        [&self.a, &self.b].into_iter().chain(&self.lib.bias)
    }
}

/// A matmul as a library does it: the product with at most a bias and a relu, then the rest as a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LibForm {
    /// A bias along n that the library adds before it rounds; only where strict rounding allows it.
    pub bias: Option<Operand>,
    /// Whether the library applies relu after the bias.
    pub relu: bool,
    /// Where the library writes, viewed as `[batch.., m, n]`: all in order, or with whole rows at other places.
    pub product: Operand,
    /// What is left of the epilogue, reading `product`.
    pub rest: Option<Kernel>,
}
