//! One thing that a plan runs: a generated kernel or a product of matrices.

use super::{Kernel, Operand};
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
