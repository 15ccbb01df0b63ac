//! The kernel plan: what the scheduler decides and both back ends and the runtime read.
//!
//! A plan is plain data. The macro embeds it as text beside the CUDA source and the Rust loops; the runtime reads it
//! back once and executes its steps. A kernel is a small program in single assignment form over an iteration domain;
//! every operand is a buffer and a chain of views that brings the buffer's layout, as it is at run time, onto the
//! domain. So kernel text holds no index arithmetic beyond strides, and transposes, slices and broadcasts are free.

pub mod abi;
mod attention;
mod instantiate;
mod kernel;
mod phases;
pub mod print;
mod products;
mod small;
mod step;
pub mod verify;

pub use attention::{Attention, Fused, FusedBack, FusedDrops};
pub use instantiate::instantiate;
pub use kernel::{Expr, Kernel, Kind, Leaf, LeafSource, Level, Lookup, Scatter, Stmt, Store};
pub use phases::{Phase, Phases};
pub use products::Products;
pub use small::SmallKernels;
pub use step::{LibForm, Matmul, PartWrite, Step};

use crate::graph::{Place, SymDef};
use crate::op::Check;
use crate::types::{DType, Dim, Ty};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A buffer of a plan, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BufId(pub u32);

/// A statement of a kernel, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StmtId(pub u32);

/// What runs for one graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The name of the function and segment.
    pub name: String,
    /// What each symbol of the formulas stands for. Sources name buffers of class `In` and host integers.
    pub syms: Vec<SymDef>,
    /// What must hold before the first step.
    pub checks: Vec<PlanCheck>,
    /// Equalities the plan was specialised for; where one does not hold, the more general plan runs instead.
    pub guards: Vec<PlanCheck>,
    /// Buffers; those of class `In` come first, in argument order.
    pub bufs: Vec<Buf>,
    /// The element types of the host scalars, in argument order.
    pub scalars: Vec<DType>,
    /// For every random draw, in program order, how many counters it uses up.
    pub draws: Vec<Dim>,
    /// Whether a product and the sum it goes into may be one fused multiply-add, as `numerics = "fast"` allows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub contract: bool,
    /// What runs, in order.
    pub steps: Vec<Step>,
    /// Steps that are better run together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<Attention>,
    /// Those of them that one kernel of a GPU may do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fused: Vec<Fused>,
    /// Products that one kernel of a GPU may make together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub products: Vec<Products>,
    /// Small kernels that one launch of a GPU may run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub small: Vec<SmallKernels>,
    /// Writes that may be done in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<PartWrite>,
    /// The results, in order.
    pub outs: Vec<Operand>,
    /// Source places, by [`Stmt::place`].
    pub places: Vec<Place>,
    /// Why ops were fused or kept apart, for the report.
    pub decisions: Vec<Decision>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A check with the op it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanCheck {
    /// The equality.
    pub check: Check,
    /// The name of the op that needs it.
    pub op: String,
    /// Where it was written.
    pub place: u32,
}

/// A reason the scheduler had, for the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether the two were fused.
    pub fused: bool,
    /// The reason in one sentence.
    pub reason: String,
    /// The op that was or was not fused.
    pub place: u32,
}

/// A buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buf {
    /// A name from the user's variables.
    pub name: String,
    /// Element type and extents. All buffers but inputs are contiguous.
    pub ty: Ty,
    /// Who owns it.
    pub class: BufClass,
    /// First and last step that touches it; results live to the end.
    pub live: (u32, u32),
    /// A buffer that is dead when this one is first written, has its size, and may give its memory.
    pub donor: Option<BufId>,
}

/// Who owns a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BufClass {
    /// The n-th tensor argument, with any strides.
    In(u32),
    /// A result.
    Out,
    /// Lives within the call.
    Temp,
}

/// A buffer under a chain of views, applied first to last to its layout at run time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operand {
    /// The buffer.
    pub buf: BufId,
    /// The chain.
    pub views: Vec<View>,
}

/// One view of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum View {
    /// Axis `k` of the result is axis `order[k]` of the operand.
    Permute(Vec<u32>),
    /// Other extents with the same number of elements in row-major order. Where strides do not allow a view, the
    /// runtime copies the operand first.
    Reshape(Vec<Dim>),
    /// NumPy broadcasting to these extents; may add leading axes.
    Expand(Vec<Dim>),
    /// `len` positions of one axis from `start` on, `step` apart.
    Slice {
        /// The axis.
        axis: u32,
        /// First position.
        start: Dim,
        /// Number of positions.
        len: Dim,
        /// Distance, at least 1.
        step: i64,
    },
    /// Inserts an axis of extent 1.
    Unsqueeze(u32),
    /// Removes an axis of extent 1.
    Squeeze(u32),
    /// Reverses axes.
    Flip(Vec<u32>),
}

impl Plan {
    /// Kernels in launch order as the library form would launch them: generated kernels, and for a matmul what is left of its epilogue.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.steps.iter().filter_map(Step::rest)
    }

    /// Adds a buffer that lives within the call, from a step to another.
    pub fn temporary(&mut self, name: &str, ty: Ty, live: (u32, u32)) -> BufId {
        self.bufs.push(Buf { name: name.to_owned(), ty, class: BufClass::Temp, live, donor: None });
        BufId(self.bufs.len() as u32 - 1)
    }

    /// Whether every launch can be left out by a kernel that finds it has nothing to do; a product by the library cannot.
    pub fn can_be_left_out(&self) -> bool {
        self.steps.iter().all(|step| step.kernel().is_some())
    }

    /// Whether every launch asks whether it has anything to do.
    pub fn asks(&self) -> bool {
        self.can_be_left_out() && self.kernels().all(|kernel| kernel.asks)
    }

    /// The places of products with which attention begins that a GPU may walk back through in kernels, and of what is done with them.
    pub fn attended(&self) -> BTreeSet<u32> {
        let back = self.fused.iter().filter(|fused| abi::may_walk_back(self, fused));
        back.flat_map(|fused| fused.parts(self).0.epilogue.ops.clone()).collect()
    }

    /// The steps better run together that begin with one.
    pub fn attention_at(&self, step: usize) -> Option<&Attention> {
        self.attention.iter().find(|attention| attention.first as usize == step)
    }

    /// The attention in one kernel that begins with a step.
    pub fn fused_at(&self, step: usize) -> Option<&Fused> {
        self.fused.iter().find(|fused| fused.steps.first as usize == step)
    }

    /// The way back through attention that begins with a step.
    pub fn back_at(&self, step: usize) -> Option<(&Fused, &FusedBack)> {
        let mut all = self.fused.iter().filter_map(|fused| Some((fused, fused.back.as_ref()?)));
        all.find(|(_, back)| back.first as usize == step)
    }

    /// The products in one kernel that begin with a step.
    pub fn products_at(&self, step: usize) -> Option<&Products> {
        self.products.iter().find(|products| products.first as usize == step)
    }

    /// The small kernels in one launch that begin with a step.
    pub fn small_at(&self, step: usize) -> Option<&SmallKernels> {
        self.small.iter().find(|small| small.first as usize == step)
    }

    /// The write that may be done in place whose copy is a step.
    pub fn write_at(&self, step: usize) -> Option<&PartWrite> {
        self.writes.iter().find(|write| write.copy as usize == step)
    }

    /// How many launches one call takes where a matmul library is present.
    pub fn launches(&self) -> usize {
        self.steps.iter().filter_map(Step::matmul).count() + self.kernels().count()
    }

    /// The same where all attention that may be one kernel is.
    pub fn launches_where_fused(&self) -> usize {
        let saved = |fused: &Fused| {
            let (scores, ..) = fused.parts(self);
            let forward = fused.count() - 1 + usize::from(scores.lib.rest.is_some());
            forward + if fused.back.is_some() { FusedBack::STEPS - 2 } else { 0 }
        };
        self.launches() - self.fused.iter().map(saved).sum::<usize>()
    }

    /// The same where, beside that, all products that one kernel may make together are, and all small kernels that one launch may run.
    pub fn launches_where_together(&self) -> usize {
        let of_products = self.products.iter().map(|products| products.saved(self)).sum::<usize>();
        let of_small = self.small.iter().map(|small| small.count as usize - 1).sum::<usize>();
        self.launches_where_fused() - of_products - of_small
    }

    /// All its kernels, to be changed: those of steps, and the programs of those that do several steps.
    pub fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        let of_steps = self.steps.iter_mut().flat_map(Step::kernels_mut);
        let together = self.products.iter_mut().map(|products| &mut products.program);
        of_steps.chain(self.fused.iter_mut().flat_map(Fused::programs_mut)).chain(together)
    }
}
