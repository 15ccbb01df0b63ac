//! A long row is read once a walk: by one block, or in chunks by several.

use super::super::finish;
use super::super::params::{parameters, policy};
use super::super::scope::Scope;
use super::super::signature;
use super::{
    Batch, Element, Held, Reads, batch, declare_groups, declare_lanes, groups, prologue, row_operands, row_results,
    total,
};
use crate::emit::writer::Writer;
use crate::plan::abi;
use crate::plan::{Phase, StmtId};
use std::collections::BTreeSet;

/// A block reads its row again in every walk, block of the canonical order by block.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        prologue(w, scope);
        w.line("const IDX row = (IDX)blockIdx.x;");
        w.block("if (row < (IDX)outer.points)", |w| {
            row_operands(w, scope, &BTreeSet::new());
            for walk in &scope.phases.walks {
                w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
                declare_blocks(w, scope, walk);
                blocks(w, scope, walk, ["0", "len"]);
                for s in &walk.reduces {
                    total(w, scope, *s, &format!("{}_blocks.total()", scope.name(*s)));
                }
            }
            row_results(w, scope);
        });
        finish::write(w, scope, "gridDim.x");
    });
}

/// Every block takes one chunk of a row, the last one joins the chunks.
pub(super) fn split(w: &mut Writer, scope: &Scope<'_>) {
    let walk = &scope.phases.walks[0];
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        prologue(w, scope);
        let least = abi::least_chunk(scope.kernel);
        w.line(format!("const IDX chunk_len = (IDX)(max(inner.points - 1, 0ll) / {} + 1) * {least};", 1024 * least));
        w.line("const int chunks = (int)((len + chunk_len - 1) / chunk_len);");
        w.line("const IDX row = (IDX)blockIdx.x / chunks;");
        w.line("const int chunk = blockIdx.x % chunks;");
        row_operands(w, scope, &BTreeSet::new());
        w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
        declare_blocks(w, scope, walk);
        w.line("const IDX chunk_end = min(len, (chunk + 1) * chunk_len);");
        blocks(w, scope, walk, ["chunk * chunk_len", "chunk_end"]);
        for s in &walk.reduces {
            let name = scope.name(*s);
            w.line(format!("const {}::Acc {name}_chunk = {name}_blocks.total();", policy(scope, *s)));
            w.line(format!("if (threadIdx.x == 0) {name}_part[(long long)row * chunks + chunk] = {name}_chunk;"));
        }
        w.block("if (fuse_last(counters + 1 + row, chunks))", |w| {
            for s in &walk.reduces {
                let join = format!(
                    "fuse_join_chunks<{}>({}_part + (long long)row * chunks, chunks)",
                    policy(scope, *s),
                    scope.name(*s)
                );
                total(w, scope, *s, &join);
            }
            row_results(w, scope);
            finish::write(w, scope, "(unsigned)outer.points");
        });
    });
}

/// Declares what joins the values of blocks.
fn declare_blocks(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    declare_groups(w, walk);
    for s in &walk.reduces {
        let (name, groups) = (scope.name(*s), groups(walk));
        let id = s.0;
        w.line(format!("fuse_blocks<{id}, {}, TEAM, VEC, {groups}> {name}_blocks(inner.points);", policy(scope, *s)));
    }
}

/// Walks the elements of a range in blocks of the canonical order, several accesses a thread at once.
fn blocks(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, [start, end]: [&str; 2]) {
    let values = recomputed(scope, walk);
    let work = Batch::whole_walk(walk, &values, Held::Nowhere, &[]);
    w.block(format!("for (IDX block = {start}; block < {end}; block += 16384)"), |w| {
        declare_lanes(w, scope, walk);
        declare_step(w, scope, &work, None);
        w.block(
            "for (IDX base = block; base < block + 16384 && base < END; base += ITEMS * TEAM * VEC)"
                .replace("END", end),
            step,
        );
        for s in &walk.reduces {
            w.line(format!("{0}_blocks.push({0}_lanes);", scope.name(*s)));
        }
    });
}

/// What is done with accesses from `base` on, as a lambda that knows whether all of them are there, and declares how many they are if
/// not always `ITEMS`.
pub(super) fn declare_step(w: &mut Writer, scope: &Scope<'_>, work: &Batch<'_>, items: Option<&str>) {
    w.line("const auto step = [&](IDX base, auto whole) {");
    w.indented(|w| {
        w.line("constexpr bool WHOLE = whole.value;");
        items.into_iter().for_each(|declared| w.line(declared));
        batch(w, scope, work, Reads::Ahead);
    });
    w.line("};");
}

/// Takes the step from `base` on.
fn step(w: &mut Writer) {
    w.line("if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());");
    w.line("else step(base, fuse_bool<false>());");
}

/// The elementwise statements of a walk when nothing is kept: those of earlier walks are computed again.
pub(super) fn recomputed(scope: &Scope<'_>, walk: &Phase) -> Vec<StmtId> {
    let mut all = walk.fresh.clone();
    let mut open = walk.kept.clone();
    let elementwise: Vec<StmtId> = scope.phases.walks.iter().flat_map(|p| p.fresh.clone()).collect();
    while let Some(s) = open.pop() {
        if !all.contains(&s) && elementwise.contains(&s) {
            all.push(s);
            open.extend(scope.kernel.stmt(s).expr.operands());
        }
    }
    all.sort();
    all
}
