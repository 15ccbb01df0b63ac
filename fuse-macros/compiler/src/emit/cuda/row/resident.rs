//! A block keeps a long row in shared memory, and fetches the next one while it computes.
//!
//! A thread reads no other points than its own, those it has fetched itself. So behind its last look at a point it can
//! already send for that point of the next row, and memory is busy while exponentials are computed, without a barrier.

use super::super::finish;
use super::super::map::elem_leaves;
use super::super::params::parameters;
use super::super::scope::Scope;
use super::super::signature;
use super::streamed::{Shared, blocks, declare_blocks, recomputed};
use super::{Element, prologue, row_operands, row_results, total};
use crate::emit::writer::Writer;
use crate::plan::abi::resident_leaves;

/// Whether a row is looked at more than once, so that keeping it pays.
pub(super) fn is_possible(scope: &Scope<'_>) -> bool {
    scope.phases.walks.len() > 1 && !resident_leaves(scope.kernel).is_empty()
}

/// Writes the kernel. Blocks take rows in turn, `gridDim.x` apart.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    let resident = resident_leaves(scope.kernel);
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        prologue(w, scope);
        rooms(w, scope, &resident);
        w.block("if (blockIdx.x < outer.points)", |w| first_row(w, scope, &resident));
        w.block("for (IDX row = (IDX)blockIdx.x; row < (IDX)outer.points; row += (IDX)gridDim.x)", |w| {
            row_operands(w, scope);
            w.line("const IDX next_row = row + (IDX)gridDim.x;");
            w.line("const bool more = next_row < (IDX)outer.points;");
            next_row(w, scope, &resident, "more ? next_row : row");
            for walk in 0..scope.phases.walks.len() {
                one_walk(w, scope, walk, &resident);
            }
            row_results(w, scope);
        });
        finish::write(w, scope, "gridDim.x");
    });
}

/// Where the rows lie in shared memory.
fn rooms(w: &mut Writer, scope: &Scope<'_>, resident: &[usize]) {
    w.line("extern __shared__ uint4 fuse_shared[];");
    w.line("const IDX room = (len + 15) / 16 * 16;");
    let mut before = "fuse_shared".to_owned();
    for &leaf in resident {
        let (ty, name) = (scope.leaf_type(leaf), &scope.leaves[leaf]);
        w.line(format!("{ty}* const {name}_shared = ({ty}*)({before});"));
        before = format!("{name}_shared + room");
    }
}

/// Sends for the first row of the block.
fn first_row(w: &mut Writer, scope: &Scope<'_>, resident: &[usize]) {
    next_row(w, scope, resident, "(IDX)blockIdx.x");
    w.block("for (IDX block = 0; block < len; block += 16384)", |w| {
        w.block("for (IDX e = block + lane * VEC; e < min(len, block + 16384); e += TEAM * VEC)", |w| {
            fetch(w, scope, resident);
        });
        w.line("fuse_end_fetches();");
    });
}

/// The addresses of the row that is fetched.
fn next_row(w: &mut Writer, scope: &Scope<'_>, resident: &[usize], row: &str) {
    w.line(format!("const fuse_at<RANK> next = fuse_unravel({row}, outer);"));
    for &leaf in resident {
        let (ty, name) = (scope.leaf_type(leaf), &scope.leaves[leaf]);
        w.line(format!("const {ty}* {name}_next = {name}_ptr + fuse_offset(next, {name}_strides);"));
    }
}

/// Sends for one access of the next row.
pub(super) fn fetch(w: &mut Writer, scope: &Scope<'_>, leaves: &[usize]) {
    for &leaf in leaves {
        let (ty, name) = (scope.leaf_type(leaf), &scope.leaves[leaf]);
        w.line(format!("fuse_fetch<sizeof({ty}) * VEC>({name}_shared + e, {name}_next + e);"));
    }
}

fn one_walk(w: &mut Writer, scope: &Scope<'_>, k: usize, resident: &[usize]) {
    let walks = &scope.phases.walks;
    let reads = |k: usize| elem_leaves(scope, &recomputed(scope, &walks[k]));
    let last_reader = |leaf: usize| (0..walks.len()).rev().find(|k| reads(*k).contains(&leaf));
    let fetched: Vec<usize> = resident.iter().copied().filter(|leaf| last_reader(*leaf) == Some(k)).collect();
    let shared = Shared { resident, awaited: k == 0, fetched: &fetched, ends: k == walks.len() - 1 };
    let walk = &walks[k];
    w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
    declare_blocks(w, scope, walk, true);
    blocks(w, scope, walk, ["0", "len"], &shared);
    for s in &walk.reduces {
        total(w, scope, *s, &format!("{}_blocks.total()", scope.name(*s)));
    }
}
