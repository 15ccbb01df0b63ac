//! What a generated CUDA kernel is called with, and how it is specialised.
//!
//! The emitter writes parameter lists from [`arguments`], the launcher fills them in the same order, so the two cannot
//! disagree. What depends on the layouts of a call is a [`Variant`]: it becomes defines when the text is compiled.

mod ahead;
mod apart;
mod attention;
mod candidates;
mod ends;
mod geometry;
mod hopper;
pub mod list;
mod pack;
mod product;
mod resident;
#[cfg(test)]
mod samples;
mod share;
pub mod small;
mod texts;
mod variant;
mod walk;
mod warps;

pub use ahead::{MOST_AHEAD, ahead, ahead_of_product};
pub use apart::Apart;
pub use attention::{Part, attention_arguments, attention_shape, drops, is_given, is_given_value, may_walk_back};
pub use candidates::{Candidate, Way};
pub use ends::ends;
pub use geometry::{Access, Geometry, is_turnable};
pub use hopper::{pays_in_halves, pays_in_thirds};
pub use pack::{inner, outer, strides};
pub use product::{Lie, has_few_rows, pays_in_slim};
pub use resident::{Target, resident_leaves};
pub use texts::{Choice, Texts, Wish};
pub use variant::{Launch, Step, Variant, c_type};
pub use walk::Walk;

use super::{Expr, Kernel, Kind, LeafSource, Level, Phases, StmtId};
use crate::op::Reduction;
use crate::types::DType;
use std::collections::BTreeSet;

/// Threads of a block, where the walk does not say otherwise.
pub const THREADS: u32 = 256;

/// Accesses each thread of a map keeps in flight.
pub const UNROLL: u32 = 2;

/// Columns a block of a `Column` kernel takes, in accesses; its threads are these times the 8 lanes.
pub const TILE_COLUMNS: u32 = 32;

/// Batch axes of the matmul template; fewer are padded with extent 1 in front.
pub const BATCH_AXES: usize = 3;

/// The code of an index out of range in the fault record; its op is an index into [`super::Plan::places`].
pub const FAULT_INDEX: u32 = 1;

/// The code of an integer division by zero in the fault record.
pub const FAULT_DIVISION: u32 = 2;

/// One argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// The address of the first element of a leaf; for an index leaf, the first position as i64.
    Leaf(u32),
    /// The strides of a leaf over the collapsed domain (`Elem`) or its outer axes (`Row`), see [`strides`].
    LeafStrides(u32),
    /// The extent and the stride of the axis a gather moves along, two i64.
    LeafAxis(u32),
    /// The address of the first element of a store.
    Store(u32),
    /// The strides of a store, as of a leaf.
    StoreStrides(u32),
    /// The extent and the stride of the axis a scatter moves along, two i64.
    StoreAxis(u32),
    /// The n-th host scalar in this type.
    Scalar(u32, DType),
    /// The value of a [`Expr::Size`] statement, an i64.
    Size(StmtId),
    /// The seed of the device, a u64.
    Seed,
    /// The first counter of a random draw, a u64.
    Offset(u32),
    /// The address of the fault record.
    Fault,
    /// The number of the call, a u64 that the fault record notes.
    Call,
    /// The address at which kernels find which calls have failed, by number.
    Failed,
    /// The address of one value a row, for reductions over all rows.
    Stage(StmtId),
    /// The address of one value a row and chunk, for reductions that several blocks share.
    Partial(StmtId),
    /// The address of counters that are 0 before and after the launch.
    Counters,
    /// The outer extents, see [`outer`].
    Outer,
    /// The reduced or sequential extents, see [`inner`].
    Inner,
    /// The left matrix.
    LeftMatrix,
    /// The right matrix of the n-th product.
    RightMatrix(u32),
    /// Strides of the left matrix, i64: batch axes, m, k.
    LeftStrides,
    /// Strides of every right matrix, i64: batch axes, k, n.
    RightStrides,
    /// Extents of the product, i64: batch axes, m, n, k.
    Product,
    /// The n-th matrix of a kernel of attention, see [`Part::matrices`], which it reads.
    Matrix(u32),
    /// The same of one that it writes.
    MatrixTo(u32),
    /// Strides of the n-th matrix of attention, i64: batch axes, rows.
    Heads(u32),
    /// For every row of attention the logarithm of its exponentials' sum, see [`super::FusedBack::logs`].
    Logs,
    /// The same, to be written.
    LogsTo,
    /// For every row of attention the sum of its weights times their gradients, see [`super::FusedBack::sums`].
    Sums,
    /// The same, to be written.
    SumsTo,
    /// Which weights of attention are kept, see [`super::FusedDrops::bits`].
    Kept,
    /// The same, to be written.
    KeptTo,
    /// Extents and tiles of attention, see [`attention_shape`].
    Attention,
    /// The address of a bool that says whether there is anything to do, or null where there is.
    Asked,
}

/// The arguments of a kernel in order.
pub fn arguments(kernel: &Kernel) -> Vec<Arg> {
    let phases = Phases::of(kernel);
    let mut args = vec![];
    for (k, leaf) in (0..).zip(&kernel.leaves) {
        args.push(Arg::Leaf(k));
        args.extend((leaf.level != Level::All).then_some(Arg::LeafStrides(k)));
        args.extend(leaf.indexed.map(|_| Arg::LeafAxis(k)));
    }
    for (k, store) in (0..).zip(&kernel.stores) {
        args.push(Arg::Store(k));
        args.extend((kernel.store_level(store) != Level::All).then_some(Arg::StoreStrides(k)));
        args.extend(store.scatter.as_ref().map(|_| Arg::StoreAxis(k)));
    }
    args.extend(scalars(kernel));
    args.extend(kernel.ids().filter(|s| matches!(kernel.stmt(*s).expr, Expr::Size(_))).map(Arg::Size));
    let draws = draws(kernel);
    args.extend((!draws.is_empty()).then_some(Arg::Seed));
    args.extend(draws.into_iter().map(Arg::Offset));
    if may_fault(kernel) || kernel.heeds {
        args.extend([Arg::Fault, Arg::Call]);
        args.extend(kernel.heeds.then_some(Arg::Failed));
    }
    args.extend(phases.staged.iter().map(|s| Arg::Stage(*s)));
    let partials = partials(kernel, &phases);
    let counted = phases.has_finish() || !partials.is_empty();
    args.extend(partials.into_iter().map(Arg::Partial));
    args.extend(counted.then_some(Arg::Counters));
    args.push(Arg::Outer);
    args.extend((kernel.kind != Kind::Map).then_some(Arg::Inner));
    args.extend(kernel.asks.then_some(Arg::Asked));
    args
}

/// What blocks leave for the last of them: those of a strip in a matmul template, whose epilogue has no reductions, and those of a
/// tile in attention.
pub const PARTS: Arg = Arg::Partial(StmtId(0));

/// The arguments of a matmul template for so many products: the matrices, then those of its epilogue, whose outer extents are the
/// batch axes, m and n, and what blocks exchange.
pub fn matmul_arguments(epilogue: &Kernel, products: u32) -> Vec<Arg> {
    let rights = (0..products).map(Arg::RightMatrix);
    let matrices = [Arg::LeftMatrix, Arg::LeftStrides].into_iter().chain(rights);
    let rest = arguments(epilogue).into_iter().filter(|a| *a != Arg::Outer);
    matrices.chain([Arg::RightStrides, Arg::Product]).chain(rest).chain([PARTS, Arg::Counters]).collect()
}

/// Whether a kernel may meet an index out of range or an integer division by zero.
pub fn may_fault(kernel: &Kernel) -> bool {
    let divides = |s: &super::Stmt| match &s.expr {
        Expr::Gather { .. } => true,
        Expr::Apply(op, args) => divides_integers(*op, kernel.stmt(args[0]).dtype),
        _ => false,
    };
    kernel.stmts.iter().any(divides) || kernel.stores.iter().any(|s| s.scatter.is_some())
}

/// Whether an op on this element type faults where its second operand is 0.
pub fn divides_integers(op: crate::op::Op, dtype: DType) -> bool {
    op.scalar.as_ref().is_some_and(|s| s.zero_fault) && dtype.is_int()
}

/// Bytes of what a reduction carries from lane to lane: the value in its compute type, with the index for `argmax` and `argmin`.
///
/// Generic types count as the widest.
pub fn accumulator_bytes(kernel: &Kernel, reduce: StmtId) -> usize {
    match &kernel.stmt(reduce).expr {
        Expr::Reduce(Reduction::ArgMax | Reduction::ArgMin, _) => 16,
        _ => value_bytes(kernel, reduce),
    }
}

/// Bytes of a value in its compute type; generic types count as the widest.
pub fn value_bytes(kernel: &Kernel, stmt: StmtId) -> usize {
    match kernel.stmt(stmt).dtype.compute().bytes() {
        0 => 8,
        bytes => bytes,
    }
}

/// The elements of a row that are a block's, where several blocks share it and it has so many of them at most 1024 times:
/// those of a block of the canonical order, and fewer where the order does not matter.
pub fn least_chunk(kernel: &Kernel) -> i64 {
    use Reduction::{ArgMax, ArgMin, Max, Min};
    let is_free = |expr: &Expr| !matches!(expr, Expr::Reduce(kind, _) if !matches!(kind, Max | Min | ArgMax | ArgMin));
    if kernel.stmts.iter().all(|stmt| is_free(&stmt.expr)) { walk::BLOCK / 4 } else { walk::BLOCK }
}

/// Whether the blocks of several chunks may share a row.
pub(super) fn splittable(phases: &Phases) -> bool {
    phases.single_pass()
}

fn partials(kernel: &Kernel, phases: &Phases) -> Vec<StmtId> {
    match kernel.kind {
        Kind::Row if splittable(phases) => phases.walks[0].reduces.clone(),
        Kind::Column => phases.walks.iter().flat_map(|w| w.reduces.clone()).collect(),
        _ => vec![],
    }
}

fn scalars(kernel: &Kernel) -> Vec<Arg> {
    let mut args = vec![];
    for stmt in &kernel.stmts {
        if let Expr::Scalar(k) = stmt.expr {
            let arg = Arg::Scalar(k, stmt.dtype.compute());
            if !args.contains(&arg) {
                args.push(arg);
            }
        }
    }
    args
}

/// The random draws of a kernel, ascending.
pub fn draws(kernel: &Kernel) -> Vec<u32> {
    let draws: BTreeSet<u32> = kernel.stmts.iter().filter_map(|stmt| Some(stmt.expr.draw()?.0)).collect();
    draws.into_iter().collect()
}

/// The element type a leaf is read as.
pub fn leaf_dtype(plan: &super::Plan, leaf: &super::Leaf) -> DType {
    match &leaf.source {
        LeafSource::Buf(buf) => plan.bufs[buf.0 as usize].ty.dtype,
        LeafSource::Index(_) => DType::I64,
    }
}

/// The element type a store writes.
pub fn store_dtype(plan: &super::Plan, store: &super::Store) -> DType {
    plan.bufs[store.to.buf.0 as usize].ty.dtype
}

fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}
