//! A block keeps a long row, and sends for the next one while it computes.
//!
//! Rows arrive in shared memory leg by leg. The first blocks of the canonical order move on into registers as they arrive, the
//! others stay; so the next row can be sent for from the first walk on, behind every look at a leg that is the last one in
//! shared memory. How the copies are made is the helper's matter, see `resident.cuh`.

use super::super::finish;
use super::super::map::{elem_leaves, loaded};
use super::super::params::{parameters, policy};
use super::super::scope::Scope;
use super::super::signature;
use super::streamed::{declare_step, recomputed};
use super::{
    Batch, Element, Held, Reads, batch, declare_groups, declare_lanes, groups, prologue, row_operands, row_results,
    total,
};
use crate::emit::writer::Writer;
use crate::plan::abi::resident_leaves;
use crate::plan::{Level, Phase};
use std::collections::BTreeSet;

/// Whether a row is looked at more than once, so that keeping it pays.
pub(super) fn is_possible(scope: &Scope<'_>) -> bool {
    scope.phases.walks.len() > 1 && !resident_leaves(scope.kernel).is_empty()
}

/// Writes the kernel. Blocks take rows in turn, `gridDim.x` apart.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    let resident = resident_leaves(scope.kernel);
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        prologue(w, scope);
        declare_rooms(w, scope, &resident);
        let ahead = one_of_a_row(scope);
        w.lines(ahead.iter().map(|leaf| format!("{} {}_next = {{}};", scope.leaf_type(*leaf), scope.leaves[*leaf])));
        w.block("if (blockIdx.x < outer.points)", |w| {
            aim(w, scope, (&resident, &ahead), "(IDX)blockIdx.x");
            w.line(format!("arrivals.send_all({});", rooms(scope, &resident)));
        });
        w.block("for (IDX row = (IDX)blockIdx.x; row < (IDX)outer.points; row += (IDX)gridDim.x)", |w| {
            row_operands(w, scope, &ahead);
            w.lines(resident.iter().map(|leaf| format!("{}_room.open();", scope.leaves[*leaf])));
            w.line("arrivals.open();");
            w.line("const bool more = row + (IDX)gridDim.x < (IDX)outer.points;");
            w.block("if (more)", |w| aim(w, scope, (&resident, &ahead), "row + (IDX)gridDim.x"));
            for leaf in &resident {
                let (ty, name) = (scope.leaf_type(*leaf), &scope.leaves[*leaf]);
                w.line(format!("fuse_pack<{ty}, VEC> {name}_kept[KEPT > 0 ? KEPT * LEGS : 1][ITEMS];"));
            }
            for walk in 0..scope.phases.walks.len() {
                one_walk(w, scope, walk, &resident);
            }
            row_results(w, scope);
        });
        finish::write(w, scope, "gridDim.x");
    });
}

/// Where rows lie in shared memory, and behind them the lanes of reductions.
fn declare_rooms(w: &mut Writer, scope: &Scope<'_>, resident: &[usize]) {
    w.line("extern __shared__ uint4 fuse_shared[];");
    let mut before = "fuse_shared".to_owned();
    for &leaf in resident {
        let (ty, name) = (scope.leaf_type(leaf), &scope.leaves[leaf]);
        w.line(format!("fuse_room<{ty}> {name}_room({before});"));
        before = format!("{name}_room.end(len)");
    }
    w.line(format!("void* const lanes_room = {before};"));
    w.line("const int blocks = (int)((len + 16383) / 16384);");
    w.line("fuse_arrivals<TEAM, VEC> arrivals((int)len);");
}

/// The leaves of which a row has one element that is loaded as it is. It is read with the row before: nothing else of a row could
/// begin as long as it was on its way (P8 238 us, so 227).
fn one_of_a_row(scope: &Scope<'_>) -> BTreeSet<usize> {
    scope.kernel.stmts.iter().filter_map(|stmt| loaded(scope, &stmt.expr, Level::Row)).collect()
}

/// The rows that are sent for next, and what is read of them ahead.
fn aim(w: &mut Writer, scope: &Scope<'_>, (resident, ahead): (&[usize], &BTreeSet<usize>), row: &str) {
    w.line(format!("const fuse_at<RANK> next = fuse_unravel({row}, outer);"));
    for &leaf in resident {
        let name = &scope.leaves[leaf];
        w.line(format!("{name}_room.aim({name}_ptr + fuse_offset(next, {name}_strides));"));
    }
    for &leaf in ahead {
        let name = &scope.leaves[leaf];
        w.line(format!("{name}_next = {name}_ptr[fuse_offset(next, {name}_strides)];"));
    }
}

/// The rooms of leaves, as arguments.
fn rooms(scope: &Scope<'_>, resident: &[usize]) -> String {
    resident.iter().map(|leaf| format!("{}_room", scope.leaves[*leaf])).collect::<Vec<_>>().join(", ")
}

/// One look at the row. The first takes what is kept in registers first, as it arrives; the others what is in shared memory,
/// to make room.
fn one_walk(w: &mut Writer, scope: &Scope<'_>, k: usize, resident: &[usize]) {
    let walks = &scope.phases.walks;
    let reads = |k: usize| elem_leaves(scope, &recomputed(scope, &walks[k]));
    let last = (0..walks.len()).rev().find(|k| reads(*k).iter().any(|leaf| resident.contains(leaf)));
    let walk = &walks[k];
    w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
    declare_blocks(w, scope, walk);
    if k == 0 {
        in_registers(w, scope, walk, resident, Held::Arriving);
    }
    in_shared(w, scope, walk, resident, [k == 0, last == Some(k)]);
    if k > 0 {
        in_registers(w, scope, walk, resident, Held::Registers);
    }
    for s in &walk.reduces {
        total(w, scope, *s, &format!("{}_blocks.total(blocks)", scope.name(*s)));
    }
}

/// Declares what joins the values of blocks.
fn declare_blocks(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    declare_groups(w, walk);
    let mut room = "lanes_room".to_owned();
    for s in &walk.reduces {
        let (name, groups, id) = (scope.name(*s), groups(walk), s.0);
        w.line(format!("fuse_few_blocks<{id}, {}, TEAM, VEC, {groups}> {name}_blocks({room});", policy(scope, *s)));
        room = format!("{name}_blocks.end(blocks)");
    }
}

/// The blocks that are kept in registers, all of which are whole.
fn in_registers(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, resident: &[usize], held: Held) {
    let values = recomputed(scope, walk);
    let arriving = held == Held::Arriving;
    w.unrolled("block", "KEPT", |w| {
        declare_lanes(w, scope, walk);
        w.unrolled("leg", "LEGS", |w| {
            w.line("constexpr bool WHOLE = true;");
            w.line("const IDX base = block * 16384 + leg * fuse_leg;");
            if arriving {
                w.line("arrivals.await_leg((int)base, more ? (int)base / fuse_leg : 0);");
            }
            batch(w, scope, &Batch::whole_walk(walk, &values, held, resident), Reads::Ahead);
            if arriving {
                w.line(format!("arrivals.release((int)base, more, {});", rooms(scope, resident)));
            }
        });
        put(w, scope, walk, "block");
    });
    if arriving {
        w.line(format!("arrivals.flush({});", rooms(scope, resident)));
    }
}

/// The blocks that stay in shared memory.
fn in_shared(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, resident: &[usize], [awaited, released]: [bool; 2]) {
    let values = recomputed(scope, walk);
    w.block("for (IDX block = KEPT * 16384; block < len; block += 16384)", |w| {
        declare_lanes(w, scope, walk);
        let some = format!("constexpr int SOME = WHOLE ? ITEMS : {};", few(walk));
        let work = Batch { items: "SOME", ..Batch::whole_walk(walk, &values, Held::Shared, resident) };
        declare_step(w, scope, &work, Some(&some));
        w.block("for (IDX base = block; base < block + 16384 && base < len; base += fuse_leg)", |w| {
            if awaited {
                w.line("arrivals.await_leg((int)base, more ? KEPT * LEGS : 0);");
            }
            step(w, walk);
            if released {
                w.line(format!("arrivals.release((int)base, more, {});", rooms(scope, resident)));
            }
        });
        put(w, scope, walk, "(int)(block / 16384)");
    });
    if released {
        w.line(format!("arrivals.flush({});", rooms(scope, resident)));
    }
}

/// Takes the step from `base` on; at the end of a row in short ones, since most of a long one would have nothing to do.
fn step(w: &mut Writer, walk: &Phase) {
    w.line("const IDX end = base + ITEMS * TEAM * VEC;");
    w.line("if (end <= len) step(base, fuse_bool<true>());");
    w.line("#pragma unroll 1");
    let few = few(walk);
    w.line(format!(
        "for (IDX some = base; end > len && some < len; some += {few} * TEAM * VEC) step(some, fuse_bool<false>());"
    ));
}

/// How many accesses a thread makes at once where a row ends.
fn few(walk: &Phase) -> String {
    if walk.reduces.is_empty() { "ITEMS".to_owned() } else { groups(walk) }
}

/// Leaves the lanes of a block for the joining at the end.
fn put(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, block: &str) {
    w.lines(walk.reduces.iter().map(|s| format!("{0}_blocks.put({block}, {0}_lanes);", scope.name(*s))));
}
