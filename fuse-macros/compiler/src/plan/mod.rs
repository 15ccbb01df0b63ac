//! The kernel plan: what the scheduler decides and both back ends and the runtime read.
//!
//! A plan is plain data. The macro embeds it as text beside the CUDA source and the Rust loops; the runtime reads it
//! back once and executes its steps. A kernel is a small program in single assignment form over an iteration domain;
//! every operand is a buffer and a chain of views that brings the buffer's layout, as it is at run time, onto the
//! domain. So kernel text holds no index arithmetic beyond strides, and transposes, slices and broadcasts are free.

pub mod abi;
mod instantiate;
mod maps;
mod phases;
pub mod print;
mod products;
pub mod verify;

pub use instantiate::instantiate;
pub use maps::Maps;
pub use phases::{Phase, Phases};
pub use products::Products;

use crate::graph::{Place, SymDef};
use crate::op::{Check, Literal, Op, Reduction};
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
    /// Maps that one launch of a GPU may run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<Maps>,
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

/// Three steps whose values in between nobody else reads: a product, rows over it, and their product with something else,
/// as in `softmax(q k^T) v`. Each step is complete, so whoever does not know better runs one after the other.
///
/// A row of the first product is needed for one row of the result alone. So some rows at a time can go through all three
/// steps, and neither matrix ever lies in memory as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// The number of the first step.
    pub first: u32,
    /// The first product, dense: of queries and keys.
    pub scores: BufId,
    /// What the rows make of it, dense: the left operand of the second product.
    pub weights: BufId,
}

impl Attention {
    /// The parts of the three steps: the products, and the rows between them.
    pub fn steps<'p>(&self, plan: &'p Plan) -> (&'p Matmul, &'p Kernel, &'p Matmul) {
        match &plan.steps[self.first as usize..][..3] {
            [Step::Matmul(scores), Step::Kernel(weights), Step::Matmul(values)] => (scores, weights, values),
            _ => unreachable!("the scheduler lists attention only where there are such steps"),
        }
    }

    /// Those of the first two.
    pub fn weights_of<'p>(&self, plan: &'p Plan) -> (&'p Matmul, &'p Kernel) {
        match &plan.steps[self.first as usize..][..2] {
            [Step::Matmul(scores), Step::Kernel(weights)] => (scores, weights),
            _ => unreachable!("the scheduler lists attention only where there are such steps"),
        }
    }
}

/// [`Attention`] as one kernel of a GPU, where it is a softmax of scores that follow from the product and the positions of a
/// query and a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fused {
    /// The three steps it does, or the first two of them.
    pub steps: Attention,
    /// The second product, where the plan only walks back and no step makes it. The kernel does, for the logarithms of the rows and
    /// because the way back reads its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<Matmul>>,
    /// What happens to every score, as a `Map` over `[batch.., m, n]` that reads the product. It stores the score in the place
    /// of the weights, where nothing is ever written, and then, where the second product multiplies not the weights
    /// but a multiple of each, as dropout makes it, that multiple, from a weight that it reads in the same place.
    pub score: Kernel,
    /// What every score is multiplied by behind that, a positive value of the same program that is one for the whole kernel.
    pub factor: Option<StmtId>,
    /// Whether a query attends to no key behind its own position.
    pub is_causal: bool,
    /// Whether the result of a query that attends to no key is 0; after a plain softmax it is NaN.
    pub empty_is_zero: bool,
    /// The way back, where the plan has one. Then the weights are not only read by the second product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<FusedBack>,
}

impl Fused {
    /// The products, and the rows between them.
    pub fn parts<'p>(&'p self, plan: &'p Plan) -> (&'p Matmul, &'p Kernel, &'p Matmul) {
        match &self.values {
            Some(values) => {
                let (scores, weights) = self.steps.weights_of(plan);
                (scores, weights, values)
            }
            None => self.steps.steps(plan),
        }
    }

    /// How many steps the kernel does.
    pub fn count(&self) -> usize {
        if self.values.is_some() { 2 } else { 3 }
    }

    /// What a weight becomes before the second product, if it does not stay as it is.
    pub fn weight(&self) -> Option<StmtId> {
        self.score.stores.get(1).map(|store| store.value)
    }

    /// Its programs: of the kernel forward and of those back.
    pub fn programs(&self) -> impl Iterator<Item = &Kernel> {
        let back = self.back.iter().flat_map(|back| [&back.of_queries, &back.of_keys]);
        let drops = self.drops().map(|drops| &drops.program);
        [&self.score].into_iter().chain(back).chain(drops)
    }

    /// The same, to be changed.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        let back = self.back.iter_mut().flat_map(|back| {
            let drops = back.drops.as_mut().map(|drops| &mut drops.program);
            [&mut back.of_queries, &mut back.of_keys].into_iter().chain(drops)
        });
        [&mut self.score].into_iter().chain(back)
    }

    /// What is drawn before any of it, if weights are dropped and there is a way back.
    pub fn drops(&self) -> Option<&FusedDrops> {
        self.back.as_ref()?.drops.as_ref()
    }
}

/// The way back through [`Fused`] attention as two kernels, one for the gradient of the queries and one for those of keys and
/// values. They compute the weights again, from the scores and the logarithms that the kernel forward stores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedBack {
    /// The number of the first of the five steps they do: gradients of the values, the weights, the scores, the queries, the keys.
    pub first: u32,
    /// For every row the logarithm of the sum of its scores' exponentials, which the kernel forward stores; behind all of them what a
    /// float does not hold of large ones.
    pub logs: BufId,
    /// For every row the sum of its weights times their gradients, which the kernel for the queries stores.
    pub sums: BufId,
    /// The gradient of the scores, where nothing is ever written.
    pub of_scores: BufId,
    /// What happens to every score and back, as [`Fused::score`], with one more store, to [`FusedBack::of_scores`]: the gradient of
    /// the product, from that of the score, which is read in the same place.
    pub of_queries: Kernel,
    /// The same under the name of the other kernel.
    pub of_keys: Kernel,
    /// What every score, and the gradient of every product, is multiplied by.
    pub factor: Option<StmtId>,
    /// Which weights are dropped, where some are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<FusedDrops>,
}

/// Which weights of attention are kept, drawn once for the kernels forward and back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedDrops {
    /// A bit for every weight: `[batch.., n / 32, m]` words of 32 keys, rounded up to whole words and an even number of queries.
    pub bits: BufId,
    /// [`Fused::score`] under the name of the kernel that draws.
    pub program: Kernel,
}

impl FusedBack {
    /// How many steps the kernels do.
    pub const STEPS: usize = 5;

    /// The five steps: the products that give the gradients of values and weights, the rows, those of queries and keys.
    pub fn steps<'p>(&self, plan: &'p Plan) -> (&'p Matmul, &'p Matmul, &'p Kernel, &'p Matmul, &'p Matmul) {
        match &plan.steps[self.first as usize..][..Self::STEPS] {
            [Step::Matmul(v), Step::Matmul(w), Step::Kernel(rows), Step::Matmul(q), Step::Matmul(k)] => {
                (v, w, rows, q, k)
            }
            _ => unreachable!("the scheduler lists a way back only where there are such steps"),
        }
    }

    /// What a weight becomes before the second product, if it does not stay as it is.
    pub fn weight(&self) -> Option<StmtId> {
        let [_, weight, _] = &self.of_keys.stores[..] else { return None };
        Some(weight.value)
    }

    /// The gradient of the product.
    pub fn of_product(&self) -> StmtId {
        self.of_keys.stores.last().expect("it is always stored").value
    }
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

/// A generated kernel: a program over a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its entry point.
    pub name: String,
    /// How the domain is walked.
    pub kind: Kind,
    /// The extents it iterates over; reduced axes last.
    pub domain: Vec<Dim>,
    /// How many of the last axes are reduced (`Row`, `Column`) or sequential (`Line`: 1); 0 for `Map`.
    pub reduced: u32,
    /// What it reads.
    pub leaves: Vec<Leaf>,
    /// Its program; operands come before their users.
    pub stmts: Vec<Stmt>,
    /// What it writes.
    pub stores: Vec<Store>,
    /// The places of the ops fused in it, in program order.
    pub ops: Vec<u32>,
    /// Whether it is part of a turn that may be left out: it is told where to find whether it has anything to do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub asks: bool,
    /// Whether it may write over a tensor of the caller, see [`PartWrite`]: on a GPU it does nothing in a call that has failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub heeds: bool,
}

/// How a kernel walks its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Every point on its own.
    Map,
    /// Rows along the reduced axes, in the canonical row order; any number of reductions, one after the other.
    Row,
    /// Columns along the reduced axes, in the canonical column order; reductions of elementwise values only.
    Column,
    /// Along the last axis point after point: scans and scatters.
    Line,
}

/// What one iteration of a value stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// One value for the whole kernel: a reduction over all rows, done by the last block to finish.
    All,
    /// One value a row (or column).
    Row,
    /// One value a point.
    Elem,
}

/// Something a kernel reads by position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// Where values come from.
    pub source: LeafSource,
    /// Views that bring the source onto the domain (`Elem`) or onto its outer axes (`Row`).
    pub views: Vec<View>,
    /// Whether it is read at every point or once a row.
    pub level: Level,
    /// The source axis a [`Expr::Gather`] indexes. Before the views, that axis is cut down to extent 1.
    pub indexed: Option<u32>,
}

/// Where the values of a leaf come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LeafSource {
    /// A buffer.
    Buf(BufId),
    /// A virtual contiguous i64 tensor of these extents whose elements are their own row-major positions.
    Index(Vec<Dim>),
}

/// One statement: a value and how it comes about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stmt {
    /// How the value comes about.
    pub expr: Expr,
    /// Its element type. Halves are held in f32.
    pub dtype: DType,
    /// Whether it is rounded to its element type; false where it stays in the compute type.
    pub round: bool,
    /// One value a point, a row, or for the whole kernel.
    pub level: Level,
    /// The user's variable, if it has one.
    pub name: Option<String>,
    /// Index into [`Plan::places`].
    pub place: u32,
}

/// How a value comes about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// The leaf at the current point or row.
    Load(u32),
    /// The leaf at the current point, moved along its indexed axis to a computed position. Out of range is a fault.
    Gather {
        /// The leaf.
        leaf: u32,
        /// The position, an i64 or i32 value.
        index: StmtId,
    },
    /// A constant, rounded to the statement's compute type.
    Const(Literal),
    /// The n-th host scalar.
    Scalar(u32),
    /// A size, converted to the statement's type.
    Size(Dim),
    /// An elementwise op of the table.
    Apply(Op, Vec<StmtId>),
    /// A conversion to the statement's element type, as Rust's `as`.
    Cast(StmtId),
    /// A reduction over the reduced axes (`Row` level), or over all rows (`All` level).
    Reduce(Reduction, StmtId),
    /// A running sum along the last axis (`Line` kernels).
    Scan(Reduction, StmtId),
    /// A uniform f32 in [0, 1) of the n-th draw at this position of the draw.
    Uniform(u32, StmtId),
    /// A standard normal f32 of the n-th draw at this position of the draw.
    Normal(u32, StmtId),
    /// The element of the n-th product, in the program that follows one or several.
    Product(u32),
}

/// Something a kernel writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Store {
    /// The buffer, under views that bring it onto the domain (`Elem`), its outer axes (`Row`) or rank 0 (`All`).
    pub to: Operand,
    /// The value.
    pub value: StmtId,
    /// For scatters (`Line`): the buffer's axis (before the views, cut down to extent 1), the position along it, and whether to add.
    pub scatter: Option<Scatter>,
}

/// A write at a computed position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// The axis of the buffer.
    pub axis: u32,
    /// The position, an i64 or i32 value. Out of range is a fault.
    pub index: StmtId,
    /// Add to what is there, or replace it.
    pub add: bool,
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

impl Plan {
    /// Kernels in launch order as the library form would launch them: generated kernels, and for a matmul what is left of its epilogue.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.steps.iter().filter_map(|step| match step {
            Step::Kernel(kernel) => Some(kernel),
            Step::Matmul(matmul) => matmul.lib.rest.as_ref(),
        })
    }

    /// Whether every launch can be left out by a kernel that finds it has nothing to do; a product by the library cannot.
    pub fn can_be_left_out(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Kernel(_)))
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

    /// How many launches one call takes where a matmul library is present.
    pub fn launches(&self) -> usize {
        let matmuls = self.steps.iter().filter(|s| matches!(s, Step::Matmul(_))).count();
        matmuls + self.kernels().count()
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

    /// The same where, beside that, all products that one kernel may make together are, and all maps that one launch may run.
    pub fn launches_where_together(&self) -> usize {
        let of_products = self.products.iter().map(|products| products.saved(self)).sum::<usize>();
        let of_maps = self.maps.iter().map(|maps| maps.count as usize - 1).sum::<usize>();
        self.launches_where_fused() - of_products - of_maps
    }

    /// The programs of kernels that do several steps.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        let together = self.products.iter_mut().map(|products| &mut products.program);
        self.fused.iter_mut().flat_map(Fused::programs_mut).chain(together)
    }
}
