//! Columns: reductions along axes that do not lie innermost, in the canonical order.
//!
//! A block takes a tile of 32 accesses of neighbouring columns and one chunk of rows; its threads are the columns times
//! the 8 lanes. The last block of a tile joins the chunks.

use super::finish::{self, stage};
use super::map::{declare_draws, declare_reads, declare_results, elem_leaves, loaded, one_element, result};
use super::params::{parameters, policy};
use super::row::total;
use super::scope::{Reach, Scope};
use super::signature;
use super::stores::outgoing;
use crate::emit::writer::Writer;
use crate::plan::abi::{THREADS, TILE_COLUMNS};
use crate::plan::{Level, Phase, StmtId};
use std::collections::BTreeSet;

/// Rows of which each thread keeps the reads in flight.
const BATCH: &str = "(VEC >= 4 ? 4 : 8)";

/// Writes the kernel.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    let Some(walk) = scope.phases.walks.first() else { unreachable!("a column kernel reduces something") };
    w.line(format!("#define THREADS {THREADS}"));
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        super::map::prologue(w, scope, &Point);
        places(w);
        operands(w, scope);
        row_values(w, scope, walk);
        reduce_chunk(w, scope, walk);
        join_chunks(w, scope, walk);
    });
}

/// Which columns and which rows.
fn places(w: &mut Writer) {
    w.line("const IDX len = (IDX)inner.points;");
    w.line("const IDX columns = (IDX)outer.points;");
    w.line(format!(
        "const unsigned tiles = (unsigned)((columns + {TILE_COLUMNS} * VEC - 1) / ({TILE_COLUMNS} * VEC));"
    ));
    w.line("const unsigned tile = blockIdx.x % tiles, chunk = blockIdx.x / tiles, chunks = gridDim.x / tiles;");
    w.line("const IDX chunk_len = (IDX)fuse_chunk_rows(inner.points);");
    w.line("const IDX start = chunk * chunk_len, end = min(len, start + chunk_len);");
    w.line("const int lane = threadIdx.x / 32;");
    w.line(format!("const IDX column = ((IDX)tile * {TILE_COLUMNS} + threadIdx.x % 32) * VEC;"));
    w.line("const bool live = column < columns;");
    w.line("fuse_at<RANK> at = fuse_unravel(live ? column / VEC : 0, outer);");
    w.line("at.axis[RANK - 1] *= VEC;");
}

fn operands(w: &mut Writer, scope: &Scope<'_>) {
    for (k, name) in scope.leaves.iter().enumerate().filter(|(k, _)| scope.leaf_level(*k) != Level::All) {
        let ty = if scope.is_index(k) { "long long".to_owned() } else { format!("{}*", scope.leaf_type(k)) };
        w.line(format!("const {ty} {name}_row = {name}_ptr + fuse_offset(at, {name}_strides);"));
    }
    for (k, name) in scope.stores.iter().enumerate() {
        if scope.kernel.store_level(&scope.kernel.stores[k]) != Level::All {
            w.line(format!("{}* {name}_row = {name}_ptr + fuse_offset(at, {name}_strides);", scope.store_type(k)));
        }
    }
}

/// Reads what is one value a column.
fn row_values(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    let stmts = walk.before.iter().chain(&scope.phases.after);
    let leaves: BTreeSet<usize> =
        stmts.filter_map(|s| loaded(scope, &scope.kernel.stmt(*s).expr, Level::Row)).collect();
    for leaf in leaves {
        let name = &scope.leaves[leaf];
        w.line(format!("fuse_pack<{}, VEC> {name}_in;", scope.leaf_type(leaf)));
        let stride = format!("{name}_strides.axis[RANK - 1]");
        w.line(format!("fuse_read<STEP_{leaf}>({name}_in, {name}_row, {stride});"));
    }
}

/// The chunk's value of every column: sub-blocks of 256 rows, row r of one in lane r % 8. The rows of a whole one are written
/// out, so that reads go on while sums are made.
fn reduce_chunk(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    for s in &walk.reduces {
        let (name, acc) = (scope.name(*s), policy(scope, *s));
        w.line(format!("{acc}::Acc {name}_chunk[VEC];"));
        w.unrolled("v", "VEC", |w| w.line(format!("{name}_chunk[v] = {acc}::none();")));
    }
    w.line(format!("constexpr int ITEMS = {BATCH};"));
    w.block("for (IDX block = start; block < end; block += 256)", |w| {
        for s in &walk.reduces {
            let (name, acc) = (scope.name(*s), policy(scope, *s));
            w.line(format!("{acc}::Acc {name}_lanes[VEC];"));
            w.unrolled("v", "VEC", |w| w.line(format!("{name}_lanes[v] = {acc}::none();")));
        }
        w.line("const auto step = [&](IDX base, auto whole) {");
        w.indented(|w| {
            w.line("constexpr bool WHOLE = whole.value;");
            batch(w, scope, walk);
        });
        w.line("};");
        w.block("if (live && block + 256 <= end)", |w| {
            w.unrolled("k", "32 / ITEMS", |w| w.line("step(block + lane + k * 8 * ITEMS, fuse_bool<true>());"));
        });
        w.block("else if (live)", |w| {
            let head = "for (IDX base = block + lane; base < end; base += 8 * ITEMS)";
            w.block(head, |w| w.line("step(base, fuse_bool<false>());"));
        });
        for s in &walk.reduces {
            let (name, acc) = (scope.name(*s), policy(scope, *s));
            w.line(format!("fuse_join_lanes<{acc}>({name}_lanes);"));
            w.unrolled("v", "VEC", |w| {
                w.line(format!(
                    "{name}_chunk[v] = block == start ? {name}_lanes[v] : {acc}::join({name}_chunk[v], {name}_lanes[v]);"
                ));
            });
        }
    });
}

fn batch(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    declare_reads(w, scope, &walk.fresh, "VEC", "ITEMS");
    let leaves = elem_leaves(scope, &walk.fresh);
    if !leaves.is_empty() {
        w.unrolled("i", "ITEMS", |w| {
            w.line("const IDX e = base + i * 8;");
            w.block("if (WHOLE || e < end)", |w| leaves.iter().for_each(|leaf| w.line(read(scope, *leaf))));
        });
    }
    w.unrolled("i", "ITEMS", |w| {
        w.line("const IDX e = base + i * 8;");
        w.line("if (!WHOLE && e >= end) break;");
        declare_results(w, scope, walk);
        declare_draws(w, scope, &walk.fresh, "VEC");
        w.unrolled("v", "VEC", |w| {
            w.lines(walk.before.iter().chain(&walk.fresh).filter_map(|s| scope.define(*s, &Point)));
            w.lines(walk.reduces.iter().map(|s| add(scope, *s)));
            w.lines(walk.stores.iter().map(|store| result(scope, *store)));
        });
        walk.stores.iter().for_each(|store| w.line(write_back(scope, *store)));
    });
}

fn add(scope: &Scope<'_>, s: StmtId) -> String {
    let operand = scope.kernel.stmt(s).expr.operands()[0];
    let (name, acc) = (scope.name(s), policy(scope, s));
    format!("{name}_lanes[v] = {acc}::join({name}_lanes[v], {acc}::of({}, e));", scope.value(operand))
}

fn read(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    let from = format!("{name}_row + fuse_along<RANK>(e, inner, {name}_strides)");
    format!("fuse_read<STEP_{leaf}>({name}_in[i], {from}, {name}_strides.axis[RANK - 1]);")
}

fn write_back(scope: &Scope<'_>, store: usize) -> String {
    let (name, operand) = (&scope.stores[store], scope.leaves.len() + store);
    let to = format!("{name}_row + fuse_along<RANK>(e, inner, {name}_strides)");
    format!("fuse_write<STEP_{operand}>({to}, {name}_out, {name}_strides.axis[RANK - 1]);")
}

/// Joins the chunks where there are several; then the columns' values go where they belong.
fn join_chunks(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    w.block("if (chunks > 1)", |w| {
        w.block("if (live && lane == 0)", |w| {
            w.unrolled("v", "VEC", |w| {
                for s in &walk.reduces {
                    w.line(format!(
                        "{0}_part[(long long)chunk * columns + column + v] = {0}_chunk[v];",
                        scope.name(*s)
                    ));
                }
            });
        });
        w.line("if (!fuse_last(counters + 1 + tile, chunks)) return;");
        for s in &walk.reduces {
            let (name, acc) = (scope.name(*s), policy(scope, *s));
            w.line(format!("fuse_join_columns<{acc}>({name}_chunk, {name}_part + column, chunks, columns, live);"));
        }
    });
    let results = column_results(scope);
    if !results.is_empty() {
        w.block("if (live && lane == 0)", |w| {
            w.unrolled("v", "VEC", |w| {
                for s in &walk.reduces {
                    total(w, scope, *s, &format!("{}_chunk[v]", scope.name(*s)));
                }
                w.lines(walk.before.iter().chain(&scope.phases.after).filter_map(|s| scope.define(*s, &Point)));
                w.lines(results);
            });
        });
    }
    finish::write(w, scope, "tiles");
}

fn column_results(scope: &Scope<'_>) -> Vec<String> {
    let is_row = |k: &usize| scope.kernel.store_level(&scope.kernel.stores[*k]) == Level::Row;
    let store = |k: usize| {
        let name = &scope.stores[k];
        format!("{name}_row[v * {name}_strides.axis[RANK - 1]] = {};", outgoing(scope, k))
    };
    let stores = (0..scope.stores.len()).filter(is_row).map(store);
    stores.chain(scope.phases.staged.iter().map(|s| stage(scope, *s, "column + v"))).collect()
}

/// Operands at row `e` of column `v`.
struct Point;

impl Reach for Point {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        let at = match scope.leaf_level(leaf) {
            Level::All => return one_element(scope, leaf),
            _ if scope.is_index(leaf) => return self.base(scope, leaf),
            Level::Row => "[v]",
            Level::Elem => "[i][v]",
        };
        format!("fuse_to_compute({name}_in{at})")
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        let column = format!("{name}_row + v * {name}_strides.axis[RANK - 1]");
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            Level::Row => column,
            Level::Elem => format!("{column} + fuse_along<RANK>(e, inner, {name}_strides)"),
        }
    }
}
