//! A long row is read once a walk: by one block, or in chunks by several.

use super::super::finish;
use super::super::params::{parameters, policy};
use super::super::scope::Scope;
use super::super::signature;
use super::{Batch, Element, Reads, batch, declare_lanes, prologue, row_operands, row_results, total};
use crate::emit::writer::Writer;
use crate::plan::{Phase, StmtId};

/// A block reads its row again in every walk, block of the canonical order by block.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        prologue(w, scope);
        w.line("const IDX row = (IDX)blockIdx.x;");
        w.block("if (row < (IDX)outer.points)", |w| {
            row_operands(w, scope);
            for walk in &scope.phases.walks {
                w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
                declare_trees(w, scope, walk);
                blocks(w, scope, walk, "0", "len");
                for s in &walk.reduces {
                    total(w, scope, *s, &format!("{}_tree.total()", scope.name(*s)));
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
        w.line("const IDX chunk_len = (IDX)fuse_blocks_per_chunk(inner.points) * 16384;");
        w.line("const int chunks = (int)((len + chunk_len - 1) / chunk_len);");
        w.line("const IDX row = (IDX)blockIdx.x / chunks;");
        w.line("const int chunk = blockIdx.x % chunks;");
        row_operands(w, scope);
        w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
        declare_trees(w, scope, walk);
        w.line("const IDX chunk_end = min(len, (chunk + 1) * chunk_len);");
        blocks(w, scope, walk, "chunk * chunk_len", "chunk_end");
        for s in &walk.reduces {
            let name = scope.name(*s);
            w.line(format!("const {}::Acc {name}_chunk = {name}_tree.total();", policy(scope, *s)));
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

fn declare_trees(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    for s in &walk.reduces {
        w.line(format!("fuse_tree<{}> {}_tree(inner.points);", policy(scope, *s), scope.name(*s)));
    }
}

/// Walks the elements from `start` to `end` in blocks of the canonical order, several accesses a thread at once.
fn blocks(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, start: &str, end: &str) {
    let all: Vec<StmtId> = recomputed(scope, walk);
    w.block(format!("for (IDX block = {start}; block < {end}; block += 16384)"), |w| {
        declare_lanes(w, scope, walk);
        let work = Batch { walk, read: &all, values: &all, kept: &[], kept_later: &[], base: Some("base") };
        w.line("const auto step = [&](IDX base, auto whole) {");
        w.indented(|w| {
            w.line("constexpr bool WHOLE = whole.value;");
            batch(w, scope, &work, Reads::Ahead);
        });
        w.line("};");
        w.block("for (IDX base = block; base < block + 16384 && base < len; base += ITEMS * TEAM * VEC)", |w| {
            w.line("if (base + ITEMS * TEAM * VEC <= len) step(base, fuse_bool<true>());");
            w.line("else step(base, fuse_bool<false>());");
        });
        for s in &walk.reduces {
            w.line(format!("{0}_tree.push({0}_lanes.total());", scope.name(*s)));
        }
    });
}

/// The elementwise statements of a walk when nothing is kept: those of earlier walks are computed again.
fn recomputed(scope: &Scope<'_>, walk: &Phase) -> Vec<StmtId> {
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
