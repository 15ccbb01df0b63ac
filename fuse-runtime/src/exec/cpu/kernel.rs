//! Binding kernels to tensors, and sharing their rows and runs between threads.

use super::access::Access;
use super::columns::drive_columns;
use super::launch::{Launch, Walk};
use super::share::share;
use super::tiles::Tiles;
use super::worker::Worker;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::operands::{Operand, levels, operands, outer_axes};
use crate::exec::symbols::Sizes;
use crate::rt::{CallFacts, DynBody, Ins, LeafRun, Outs, StageRun, StoreRun};
use fuse_compiler::plan::{Kernel, Kind, Level};
use fuse_compiler::types::DType;

/// Points of a run of a `Map` kernel: a few operands of this length fit into the first cache together.
pub(super) const RUN: usize = 2048;
/// A launch with less than this to do stays on the calling thread, in points of a kernel without heavy functions.
pub(super) const PARALLEL: usize = 1 << 15;
/// Parts of runs hold at least this many points, so that vectors are full.
const LEAST_RUN: usize = 64;

/// Runs a generated kernel; faults are left in `facts`.
pub(crate) fn run_kernel(
    kernel: &Kernel,
    body: &dyn DynBody,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    facts: &CallFacts<'_>,
) -> Result<()> {
    drive(&bind(kernel, buffers, sizes, facts, true)?, body);
    Ok(())
}

/// A kernel with its operands found and viewed. A map may be walked in tiles where nobody counts its points.
pub(super) fn bind<'a>(
    kernel: &Kernel,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    facts: &'a CallFacts<'a>,
    may_tile: bool,
) -> Result<Launch<'a>> {
    let domain = sizes.extents(&kernel.domain)?;
    let mut found = operands(kernel, &domain, buffers, sizes)?;
    // A map has one row, its whole domain, which is cut into runs.
    let outer = if kernel.kind == Kind::Map { 0 } else { outer_axes(kernel) };
    let (rows, points) = (domain[..outer].iter().product(), domain[outer..].iter().product());
    let weight = weight(kernel);
    let mut run = if kernel.kind == Kind::Map { RUN.min(points) } else { points };
    if kernel.kind == Kind::Map && may_tile && points * weight >= PARALLEL {
        // Few points that have much done to them are for all threads.
        run = run.min(points.div_ceil(2 * rayon::current_num_threads()).next_multiple_of(LEAST_RUN));
    }
    let mut tile = None;
    if let (Kind::Map, true, Some(tiles)) = (kernel.kind, may_tile, Tiles::for_operands(&domain, found.iter())) {
        (run, tile) = (tiles.row(), Some(tiles.points()));
        let arrange = |(operand, level): (Operand, Level)| match level {
            Level::Elem => operand.arranged(|layout| tiles.arrange(layout)),
            Level::Row | Level::All => operand,
        };
        found = found.into_iter().zip(levels(kernel)).map(arrange).collect();
    }
    let access = |(operand, level): (Operand, Level)| Access::of(operand, level, outer);
    let mut leaves: Vec<Access> = found.into_iter().zip(levels(kernel)).map(access).collect();
    let stores = leaves.split_off(kernel.leaves.len());
    Ok(Launch::new(kernel, Walk { rows, points, run, tile, weight }, leaves, stores, facts))
}

/// How much there is to do at a point: a heavy function takes about as long as two passes over memory that is in the cache.
fn weight(kernel: &Kernel) -> usize {
    1 + 2 * kernel.stmts.iter().filter(|stmt| stmt.level == Level::Elem && stmt.expr.is_heavy()).count()
}

/// Runs every row or run of a launch, then the end of the kernel.
fn drive(launch: &Launch<'_>, body: &dyn DynBody) {
    let mut memory: Vec<Vec<u64>> = launch.staged.iter().map(|_| vec![0u64; launch.walk.rows]).collect();
    let stages: Vec<StageRun> = std::iter::zip(&launch.staged, &mut memory)
        .map(|(&(stmt, dtype), values)| StageRun {
            stmt,
            dtype,
            start: values.as_mut_ptr().cast(),
            rows: launch.walk.rows,
        })
        .collect();
    // SAFETY of sharing: rows write their own values only, see `Worker::run`.
    let stages = Stages(&stages);
    match launch.kind {
        Kind::Map => drive_runs(launch, body, stages),
        Kind::Column if drive_columns(launch, body, stages) => {}
        Kind::Row | Kind::Line | Kind::Column => drive_rows(launch, body, stages),
    }
    finish(launch, body, stages);
}

/// Stages that threads share.
#[derive(Clone, Copy)]
pub(super) struct Stages<'a>(&'a [StageRun]);

// SAFETY: each row writes its own place, and nobody reads before all rows are done.
unsafe impl Sync for Stages<'_> {}
// SAFETY: as above.
unsafe impl Send for Stages<'_> {}

impl<'a> Stages<'a> {
    /// Through a method, so that closures capture the whole and not the slice inside.
    pub(super) fn get(self) -> &'a [StageRun] {
        self.0
    }
}

fn drive_runs(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) {
    let worker = || Worker::new(launch, body, stages.get());
    let Walk { points, weight, .. } = launch.walk;
    let piece = launch.walk.piece();
    let pieces = points.div_ceil(piece);
    let run = |worker: &mut Worker<'_>, k: usize| worker.run_piece(k * piece..points.min((k + 1) * piece));
    if points * weight < PARALLEL {
        let mut worker = worker();
        (0..pieces).for_each(|k| run(&mut worker, k));
    } else {
        share(pieces, bite(pieces, PARALLEL / weight / piece / 2), worker, run);
    }
}

fn drive_rows(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) {
    let columns = launch.kind == Kind::Column;
    let worker = || Worker::new(launch, body, stages.get());
    let Walk { rows, weight, .. } = launch.walk;
    let points = launch.walk.points.max(1);
    if rows < 2 || rows * points * weight < PARALLEL {
        return worker().run_rows(0..rows);
    }
    // Rows go to threads in groups, which are whole tiles for columns and large enough to be worth handing out.
    let group = (PARALLEL / 2 / weight / points).max(1).next_multiple_of(if columns { 16 } else { 1 });
    let groups = rows.div_ceil(group);
    share(groups, bite(groups, 1), worker, |worker, k| {
        worker.run_rows(k * group..((k + 1) * group).min(rows));
    });
}

/// How many consecutive pieces a thread takes at once: memory is read faster in one go, and every thread wants a few turns.
fn bite(pieces: usize, least: usize) -> usize {
    (pieces / (8 * rayon::current_num_threads())).max(least).max(1)
}

/// The statements of level `All`.
fn finish(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) {
    if launch.stores.iter().all(|store| store.level != Level::All) {
        return;
    }
    let mut stores: Vec<StoreRun> =
        launch.stores.iter().map(|store| StoreRun::Single { place: store.start, dtype: store.dtype }).collect();
    let leaves: Vec<LeafRun> = launch.leaves.iter().map(at_the_end).collect();
    let faults = launch.facts.faults;
    // SAFETY: every row has left its values, of the leaves only those of level `All` are read, and the stores of level `All` are single values of
    // tensors made for this call; the others are not touched at the end.
    unsafe {
        let ins = Ins::new(launch.walk.rows, launch.facts, &leaves).with_staged(stages.get());
        let mut outs = Outs::new(launch.walk.rows, 0, &mut stores, &[], faults);
        body.finish_widest(&ins, &mut outs);
    }
}

/// What the statements of level `All` see of a leaf: its one value, if it is of that level.
fn at_the_end(leaf: &Access) -> LeafRun {
    let value = if leaf.tensor.is_some() { leaf.start.cast_const() } else { (&raw const leaf.first).cast() };
    match leaf.level {
        Level::All => LeafRun::Row { value, dtype: leaf.dtype },
        // No body asks for this type.
        Level::Row | Level::Elem => LeafRun::Elem { start: value, dtype: DType::Param(0) },
    }
}
