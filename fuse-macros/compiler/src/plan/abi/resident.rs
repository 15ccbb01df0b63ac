//! Rows that a block keeps in shared memory.

use super::geometry::Geometry;
use super::walk::{BLOCK, LANES, Walk};
use super::{Step, accumulator_bytes, ceil_div, draws};
use crate::plan::{Expr, Kernel, Level, Phase, Phases};

/// Threads of a block: a barrier is cheap among them, and each may have many registers.
const TEAM: u32 = 512;
/// Blocks of the canonical order a row may have, see the helper `fuse_few_blocks`.
const FEW: i64 = 16;
/// Shared memory a block needs beside its rows and what reductions leave there.
const ASIDE: usize = 2048;
/// Registers of a thread that may keep elements of its row, whose other blocks stay in shared memory; half of them where a row is
/// walked more than twice, and more has to be in registers beside them.
const KEPT: i64 = 64;

/// What the choice of a variant wants to know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The compute capability: 90 for 9.0.
    pub capability: u32,
    /// How many multiprocessors there are.
    pub multiprocessors: u32,
    /// The most shared memory a block can have, in bytes.
    pub shared_per_block: usize,
    /// The shared memory of a multiprocessor, in bytes.
    pub shared_per_multiprocessor: usize,
}

/// The leaves whose rows are kept: those the first walk reads from memory at every point.
pub fn resident_leaves(kernel: &Kernel) -> Vec<usize> {
    let phases = Phases::of(kernel);
    let first = phases.walks.first().map_or(&[][..], |walk| &walk.fresh);
    let kept = |leaf: usize| {
        let leaf = &kernel.leaves[leaf];
        leaf.level == Level::Elem && leaf.indexed.is_none() && leaf.buf().is_some()
    };
    let read = first.iter().filter_map(|s| match kernel.stmt(*s).expr {
        Expr::Load(leaf) => Some(leaf as usize).filter(|leaf| kept(*leaf)),
        _ => None,
    });
    let mut leaves: Vec<usize> = read.collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// The walk that keeps rows of this length, if there is room for one and it is read more than once.
pub(super) fn resident(
    kernel: &Kernel,
    axes: &Geometry,
    (steps, widest): (&[Step], u32),
    target: &Target,
) -> Option<(Walk, u32)> {
    let leaves = resident_leaves(kernel);
    let vec = widest.min(LANES as u32 / TEAM);
    // From Hopper on, copies are of whole legs of a row; before, of accesses of at least 4 bytes.
    let large = |leaf: &usize| target.capability >= 90 || axes.operands[*leaf].bytes * vec as usize >= 4;
    let copied = |leaf: &usize| steps[*leaf] == Step::Next && large(leaf);
    let walks = Phases::of(kernel).walks.len();
    let pays = axes.len() > BLOCK && walks > 1 && !leaves.is_empty();
    let few = axes.len() <= FEW * BLOCK;
    let can = target.capability >= 80 && axes.inner.len() == 1 && leaves.iter().all(copied);
    let fits = || shared(kernel, axes) + aside(kernel) <= target.shared_per_block;
    // The copies of Philox in four walks of a leg take NVRTC 8 to 14 seconds, and 2 without these registers.
    let room = match walks {
        _ if !draws(kernel).is_empty() => 0,
        3.. => KEPT / 2,
        _ => KEPT,
    };
    let kept = || (axes.len() / BLOCK).min(room / registers(kernel, axes, vec)) as u32;
    (pays && few && can && fits()).then(|| (Walk::Resident { team: TEAM, kept: kept() }, vec))
}

/// Registers in which a thread keeps its elements of a block of the canonical order.
fn registers(kernel: &Kernel, axes: &Geometry, vec: u32) -> i64 {
    let packs = BLOCK / i64::from(TEAM * vec);
    let words = |leaf: &usize| (axes.operands[*leaf].bytes * vec as usize).div_ceil(4) as i64;
    resident_leaves(kernel).iter().map(|leaf| packs * words(leaf)).sum()
}

/// Bytes of the rows of a block, each of which may begin anywhere in an access of 16 bytes, and of the lanes of its reductions.
pub(super) fn shared(kernel: &Kernel, axes: &Geometry) -> usize {
    let room = ceil_div(axes.len(), 16) as usize * 16;
    let rows: usize = resident_leaves(kernel).iter().map(|leaf| room * axes.operands[*leaf].bytes + 16).sum();
    let phases = Phases::of(kernel);
    let lanes = |walk: &Phase| walk.reduces.iter().map(|s| accumulator_bytes(kernel, *s)).sum::<usize>();
    let blocks = ceil_div(axes.len(), BLOCK) as usize;
    rows + blocks * LANES as usize * phases.walks.iter().map(lanes).max().unwrap_or(0)
}

/// Bytes of shared memory beside the rows.
fn aside(kernel: &Kernel) -> usize {
    let phases = Phases::of(kernel);
    let reductions = phases.walks.iter().flat_map(|walk| &walk.reduces);
    ASIDE + reductions.map(|s| FEW as usize * 4 * accumulator_bytes(kernel, *s)).sum::<usize>()
}

/// So many blocks that each has a multiprocessor, or its share of one.
pub(super) fn blocks(kernel: &Kernel, axes: &Geometry, target: &Target) -> i64 {
    let each = shared(kernel, axes) + aside(kernel);
    let at_once = (target.shared_per_multiprocessor / each.max(1)).clamp(1, 4) as i64;
    axes.rows().min(at_once * i64::from(target.multiprocessors))
}
