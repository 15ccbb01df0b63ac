//! Binding kernels to tensors, and sharing their rows and runs between threads.

use super::access::Access;
use super::launch::Launch;
use super::worker::Worker;
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::exec::symbols::Sizes;
use crate::exec::views::{cut, view, view_layout};
use crate::layout::Layout;
use crate::raw::RawTensor;
use crate::rt::{CallFacts, DynBody, Ins, Outs, StageRun, StoreRun};
use fuse_compiler::plan::{Kernel, Kind, Leaf, LeafSource, Level, Store};
use rayon::prelude::*;

/// Points of a run of a `Map` kernel: a few operands of this length fit into the first cache together.
pub(super) const RUN: usize = 2048;
/// A launch with fewer points than this stays on the calling thread.
const PARALLEL: usize = 1 << 15;

/// Runs a generated kernel; faults are left in `facts`.
pub(crate) fn run_kernel(
    kernel: &Kernel,
    body: &dyn DynBody,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    facts: &CallFacts<'_>,
) -> Result<()> {
    drive(&bind(kernel, buffers, sizes, facts)?, body);
    Ok(())
}

/// A kernel with its operands found and viewed.
pub(super) fn bind<'a>(
    kernel: &Kernel,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    facts: &'a CallFacts<'a>,
) -> Result<Launch<'a>> {
    let domain = sizes.extents(&kernel.domain)?;
    let outer = domain.len() - kernel.reduced as usize;
    // A map has one row, its whole domain, which is cut into runs.
    let rows_of = if kernel.kind == Kind::Map { 0 } else { outer };
    let (rows, points) = (domain[..rows_of].iter().product(), domain[rows_of..].iter().product());
    let mut leaves = Vec::with_capacity(kernel.leaves.len());
    for leaf in &kernel.leaves {
        leaves.push(bind_leaf(leaf, &domain, rows_of, buffers, sizes)?);
    }
    let mut stores = Vec::with_capacity(kernel.stores.len());
    for store in &kernel.stores {
        let level = kernel.stmts[store.value.0 as usize].level;
        stores.push(bind_store(store, level, &domain, rows_of, buffers, sizes)?);
    }
    Ok(Launch::new(kernel, rows, points, leaves, stores, facts))
}

fn bind_leaf(leaf: &Leaf, domain: &[usize], outer: usize, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Access> {
    let onto = onto(leaf.level, domain, outer);
    match &leaf.source {
        LeafSource::Buf(buf) if leaf.indexed.is_some() => {
            let axis = leaf.indexed.unwrap_or_default() as usize;
            bind_indexed(buffers.get(*buf)?, axis, &leaf.views, leaf.level, onto, outer, sizes)
        }
        LeafSource::Buf(buf) => {
            let tensor = view(&buffers.get(*buf)?, &leaf.views, sizes)?;
            expect_shape(tensor.shape(), onto);
            Ok(Access::of_tensor(tensor, leaf.level, outer))
        }
        LeafSource::Index(dims) => {
            let positions = Layout::contiguous(&sizes.extents(dims)?);
            match view_layout(positions, &leaf.views, sizes)? {
                Some(layout) => {
                    expect_shape(layout.shape(), onto);
                    Ok(Access::of_positions(&layout, leaf.level, outer))
                }
                // Positions that cannot be told by strides are written down.
                None => {
                    let values: Vec<i64> = (0..positions.numel() as i64).collect();
                    let tensor = view(&RawTensor::from_slice(&values, positions.shape())?, &leaf.views, sizes)?;
                    Ok(Access::of_tensor(tensor, leaf.level, outer))
                }
            }
        }
    }
}

fn bind_store(
    store: &Store,
    level: Level,
    domain: &[usize],
    outer: usize,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
) -> Result<Access> {
    let onto = onto(level, domain, outer);
    let tensor = buffers.get(store.to.buf)?;
    if let Some(scatter) = &store.scatter {
        return bind_indexed(tensor, scatter.axis as usize, &store.to.views, level, onto, outer, sizes);
    }
    let layout = view_layout(*tensor.layout(), &store.to.views, sizes)?;
    let layout = layout.expect("a kernel writes to its buffer and not to a copy");
    expect_shape(layout.shape(), onto);
    Ok(Access::of_tensor(tensor.with_layout(layout), level, outer))
}

fn bind_indexed(
    tensor: RawTensor,
    axis: usize,
    views: &[fuse_compiler::plan::View],
    level: Level,
    onto: &[usize],
    outer: usize,
    sizes: &Sizes,
) -> Result<Access> {
    let base = cut(tensor.layout(), axis);
    let layout = match view_layout(base, views, sizes)? {
        Some(layout) => layout,
        None => return Err(Error::shape("gather", "the layout of the indexed tensor cannot be walked")),
    };
    expect_shape(layout.shape(), onto);
    Ok(Access::of_indexed(tensor, axis, &layout, level, outer))
}

/// The extents that an operand of a level spans.
fn onto(level: Level, domain: &[usize], outer: usize) -> &[usize] {
    match level {
        Level::Elem => domain,
        Level::Row => &domain[..outer],
        Level::All => &[],
    }
}

/// Views and domain come from one scheduler, so a difference is a mistake of ours; it would lead out of the tensor.
fn expect_shape(shape: &[usize], domain: &[usize]) {
    assert_eq!(shape, domain, "an operand spans the domain of its kernel");
}

/// Runs every row or run of a launch, then the end of the kernel.
fn drive(launch: &Launch<'_>, body: &dyn DynBody) {
    let mut memory: Vec<Vec<u64>> = launch.staged.iter().map(|_| vec![0u64; launch.rows]).collect();
    let stages: Vec<StageRun> = std::iter::zip(&launch.staged, &mut memory)
        .map(|(&(stmt, dtype), values)| StageRun { stmt, dtype, start: values.as_mut_ptr().cast(), rows: launch.rows })
        .collect();
    // SAFETY of sharing: rows write their own values only, see `Worker::run`.
    let stages = Stages(&stages);
    match launch.kind {
        Kind::Map => drive_runs(launch, body, stages),
        Kind::Row | Kind::Line | Kind::Column => drive_rows(launch, body, stages),
    }
    finish(launch, body, stages);
}

/// Stages that threads share.
#[derive(Clone, Copy)]
struct Stages<'a>(&'a [StageRun]);

// SAFETY: each row writes its own place, and nobody reads before all rows are done.
unsafe impl Sync for Stages<'_> {}
// SAFETY: as above.
unsafe impl Send for Stages<'_> {}

impl<'a> Stages<'a> {
    /// Through a method, so that closures capture the whole and not the slice inside.
    fn get(self) -> &'a [StageRun] {
        self.0
    }
}

fn drive_runs(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) {
    let worker = || Worker::new(launch, body, stages.get(), RUN.min(launch.points), false);
    let runs = launch.points.div_ceil(RUN);
    let run = |worker: &mut Worker<'_>, k: usize| worker.run(0, k * RUN, RUN.min(launch.points - k * RUN));
    if launch.points < PARALLEL {
        let mut worker = worker();
        (0..runs).for_each(|k| run(&mut worker, k));
    } else {
        let least = (PARALLEL / RUN / 2).max(1);
        (0..runs).into_par_iter().with_min_len(least).for_each_init(worker, run);
    }
}

fn drive_rows(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) {
    let columns = launch.kind == Kind::Column;
    let worker = || Worker::new(launch, body, stages.get(), launch.points, columns);
    let points = launch.points.max(1);
    if launch.rows < 2 || launch.rows * points < PARALLEL {
        return worker().run_rows(0..launch.rows);
    }
    // Rows go to threads in groups, which are whole tiles for columns and large enough to be worth handing out.
    let group = (PARALLEL / 2 / points).max(1).next_multiple_of(if columns { 16 } else { 1 });
    let rows = launch.rows;
    (0..rows.div_ceil(group)).into_par_iter().for_each_init(worker, |worker, k| {
        worker.run_rows(k * group..((k + 1) * group).min(rows));
    });
}

/// The statements of level `All`.
fn finish(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) {
    if launch.stores.iter().all(|store| store.level != Level::All) {
        return;
    }
    let mut stores: Vec<StoreRun> =
        launch.stores.iter().map(|store| StoreRun::Single { place: store.start, dtype: store.dtype }).collect();
    let faults = launch.facts.faults;
    // SAFETY: every row has left its values, nothing else is read, and the stores of level `All` are single values of
    // tensors made for this call; the others are not touched at the end.
    unsafe {
        let ins = Ins::new(launch.rows, launch.facts, &[]).with_staged(stages.get());
        let mut outs = Outs::new(launch.rows, 0, &mut stores, &[], faults);
        body.finish_widest(&ins, &mut outs);
    }
}
