//! Rows that a block keeps in shared memory.

use super::geometry::Geometry;
use super::walk::{BLOCK, LANES, Walk};
use super::{Step, accumulator_bytes, ceil_div};
use crate::plan::{Expr, Kernel, LeafSource, Level, Phases};

/// Threads of a block: a barrier is cheap among them, and each may have many registers.
const TEAM: u32 = 512;
/// Blocks of the canonical order whose values wait to be joined, see the helper `fuse_blocks`.
const PENDING: usize = 16;
/// Shared memory a block needs beside its rows and what reductions leave there.
const ASIDE: usize = 2048;

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
        leaf.level == Level::Elem && leaf.indexed.is_none() && matches!(leaf.source, LeafSource::Buf(_))
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
    let copied = |leaf: &usize| steps[*leaf] == Step::Next && axes.operands[*leaf].bytes * vec as usize >= 4;
    let pays = axes.len() > BLOCK && Phases::of(kernel).walks.len() > 1 && !leaves.is_empty();
    let can = target.capability >= 80 && axes.inner.len() == 1 && leaves.iter().all(copied);
    let fits = || shared(kernel, axes) + aside(kernel) <= target.shared_per_block;
    (pays && can && fits()).then_some((Walk::Resident { team: TEAM }, vec))
}

/// Bytes of the rows of a block.
pub(super) fn shared(kernel: &Kernel, axes: &Geometry) -> usize {
    let room = ceil_div(axes.len(), 16) as usize * 16;
    resident_leaves(kernel).iter().map(|leaf| room * axes.operands[*leaf].bytes).sum()
}

/// Bytes of shared memory beside the rows.
fn aside(kernel: &Kernel) -> usize {
    let phases = Phases::of(kernel);
    let reductions = phases.walks.iter().flat_map(|walk| &walk.reduces);
    ASIDE + reductions.map(|s| PENDING * 32 * accumulator_bytes(kernel, *s)).sum::<usize>()
}

/// So many blocks that each has a multiprocessor, or its share of one.
pub(super) fn blocks(kernel: &Kernel, axes: &Geometry, target: &Target) -> i64 {
    let each = shared(kernel, axes) + aside(kernel);
    let at_once = (target.shared_per_multiprocessor / each.max(1)).clamp(1, 4) as i64;
    axes.rows().min(at_once * i64::from(target.multiprocessors))
}
