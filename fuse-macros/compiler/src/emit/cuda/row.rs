//! Rows: reductions along the inner axes in the canonical order, and what is computed with them.
//!
//! The text holds up to four bodies. A team of threads keeps a row of moderate length in registers (`ITEMS`); a block keeps
//! a longer one in shared memory (`RESIDENT`), or reads it once a walk (`STREAM`); the blocks of a grid share a row where
//! there are few.

mod kept;
mod resident;
mod streamed;

use super::finish::stage;
use super::map::{declare_draws, declare_results, elem_leaves, one_element, result};
use super::params::policy;
use super::scope::{Reach, Scope, round};
use super::stores::outgoing;
use crate::emit::writer::Writer;
use crate::plan::abi::Arg;
use crate::plan::{Expr, Level, Phase, StmtId};
use std::collections::BTreeSet;

/// Writes the kernel.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    let splits = crate::plan::abi::arguments(scope.kernel).iter().any(|a| matches!(a, Arg::Partial(_)));
    w.line("#if defined(ITEMS)");
    w.line("#define THREADS (TEAM == 32 ? 128 : TEAM)");
    kept::write(w, scope);
    if resident::is_possible(scope) {
        w.line("#elif defined(RESIDENT)");
        w.line("#define THREADS TEAM");
        w.line("#define LEGS (16384 / fuse_leg)");
        w.line("#define ITEMS (fuse_leg / (TEAM * VEC))");
        resident::write(w, scope);
    }
    w.line(if splits { "#elif defined(STREAM)" } else { "#else" });
    w.line("#define THREADS TEAM");
    w.line("#define ITEMS (TEAM == 1024 ? 16 : 4)");
    streamed::write(w, scope);
    if splits {
        w.line("#else");
        w.line("#define TEAM 256");
        w.line("#define THREADS 256");
        w.line("#define ITEMS 4");
        streamed::split(w, scope);
    }
    w.line("#endif");
}

/// What a block does with rows that its teams keep, behind what the kernel waits for.
pub(super) fn kept_behind(w: &mut Writer, scope: &Scope<'_>, block: &str) {
    kept::body_behind(w, scope, block);
}

fn prologue(w: &mut Writer, scope: &Scope<'_>) {
    w.line(super::compile::WAITS);
    prologue_behind(w, scope);
}

fn prologue_behind(w: &mut Writer, scope: &Scope<'_>) {
    super::map::prologue_behind(w, scope, &Element);
    w.line("const IDX len = (IDX)inner.points;");
    w.line("const int lane = threadIdx.x % TEAM;");
}

/// The addresses of the row's elements. Some leaves have one, which was read `ahead`.
fn row_operands(w: &mut Writer, scope: &Scope<'_>, ahead: &BTreeSet<usize>) {
    w.line("const fuse_at<RANK> at = fuse_unravel(row, outer);");
    for (k, name) in scope.leaves.iter().enumerate().filter(|(k, _)| scope.leaf_level(*k) != Level::All) {
        if ahead.contains(&k) {
            let ty = scope.leaf_type(k);
            w.line(format!("const {ty} {name}_here = {name}_next, *const {name}_row = &{name}_here;"));
            continue;
        }
        let ty = if scope.is_index(k) { "long long".to_owned() } else { format!("{}*", scope.leaf_type(k)) };
        w.line(format!("const {ty} {name}_row = {name}_ptr + fuse_offset(at, {name}_strides);"));
    }
    for (k, name) in scope.stores.iter().enumerate() {
        if scope.kernel.store_level(&scope.kernel.stores[k]) != Level::All {
            let ty = scope.store_type(k);
            w.line(format!("{ty}* {name}_row = {name}_ptr + fuse_offset(at, {name}_strides);"));
        }
    }
}

/// The constant for the number of lane groups a thread holds.
fn declare_groups(w: &mut Writer, walk: &Phase) {
    if !walk.reduces.is_empty() {
        w.line(
            "constexpr int GROUPS = 1024 / (TEAM * VEC) < ITEMS ? 1024 / (TEAM * VEC) : ITEMS;"
                .replace("GROUPS", &groups(walk)),
        );
    }
}

fn declare_lanes(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    for s in &walk.reduces {
        w.line(format!("fuse_lanes<{}, TEAM, VEC, {}> {}_lanes;", policy(scope, *s), groups(walk), scope.name(*s)));
    }
}

/// One a walk, named after its first reduction.
fn groups(walk: &Phase) -> String {
    format!("GROUPS{}", walk.reduces[0].0)
}

/// What a thread does with some accesses.
struct Batch<'a> {
    walk: &'a Phase,
    /// How many.
    items: &'a str,
    /// Statements whose leaves are read.
    read: &'a [StmtId],
    /// Statements that are computed.
    values: &'a [StmtId],
    /// Values that earlier walks left in arrays.
    kept: &'a [StmtId],
    /// Values that are left in arrays for later walks.
    kept_later: &'a [StmtId],
    /// Where the batch starts in the row, if not at its start.
    base: Option<&'a str>,
    /// Where the resident leaves are.
    held: Held,
    /// Leaves whose rows the block keeps.
    resident: &'a [usize],
}

impl<'a> Batch<'a> {
    /// Everything a walk computes, when no values are kept from one walk to the next.
    fn whole_walk(walk: &'a Phase, values: &'a [StmtId], held: Held, resident: &'a [usize]) -> Self {
        Batch {
            walk,
            items: "ITEMS",
            read: values,
            values,
            kept: &[],
            kept_later: &[],
            base: Some("base"),
            held,
            resident,
        }
    }
}

/// Where the leaves of a resident row are.
#[derive(Clone, Copy, PartialEq)]
enum Held {
    /// There are none.
    Nowhere,
    /// In shared memory.
    Shared,
    /// In shared memory, on their way to registers.
    Arriving,
    /// In registers.
    Registers,
}

/// When a batch reads: all of it ahead, so that many reads are in flight, or each access where it is used, which takes
/// fewer registers and is as good for what lies in the cache.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Ahead,
    Close,
}

fn batch(w: &mut Writer, scope: &Scope<'_>, work: &Batch<'_>, reads: Reads) {
    let walk = work.walk;
    let items = work.items;
    let item = match work.base {
        None => "(i * TEAM + lane) * VEC".to_owned(),
        Some(base) => format!("{base} + (i * TEAM + lane) * VEC"),
    };
    let leaves = declare_batch(w, scope, work);
    if reads == Reads::Ahead && !leaves.is_empty() {
        read_ahead(w, scope, work, (&leaves, &item));
    }
    w.unrolled("i", items, |w| {
        w.line(format!("const IDX e = {item};"));
        w.line("if (!WHOLE && e >= len) continue;");
        if reads == Reads::Close {
            leaves.iter().for_each(|leaf| w.line(read(scope, *leaf)));
        }
        declare_results(w, scope, walk);
        declare_draws(w, scope, work.values, "VEC");
        w.unrolled("v", "VEC", |w| point(w, scope, work));
        if work.base.is_none() {
            let folds = walk.reduces.iter().map(|s| format!("{}_lanes.fold(i);", scope.name(*s)));
            let folds: Vec<String> = folds.collect();
            if !folds.is_empty() {
                w.line(format!("if (ITEMS <= 1024 / (TEAM * VEC)) {{ {} }}", folds.join(" ")));
            }
        }
        walk.stores.iter().for_each(|store| w.line(write_back(scope, *store)));
    });
}

/// Reads what the batch reads from memory and from where rows are kept.
fn read_ahead(w: &mut Writer, scope: &Scope<'_>, work: &Batch<'_>, (leaves, item): (&[usize], &str)) {
    w.unrolled("i", work.items, |w| {
        w.line(format!("const IDX e = {item};"));
        w.block("if (WHOLE || e < len)", |w| {
            leaves.iter().for_each(|leaf| match work.resident.contains(leaf) {
                true => w.line(format!("fuse_read<1>({0}_in[i], {0}_room.row() + e, 1);", scope.leaves[*leaf])),
                false => w.line(read(scope, *leaf)),
            });
        });
    });
}

/// What is done at one point: values from those that are kept, to those that will be, sums and results.
fn point(w: &mut Writer, scope: &Scope<'_>, work: &Batch<'_>) {
    for s in work.kept {
        w.line(format!("const {} {1} = {1}_kept[i][v];", scope.ty(*s), scope.name(*s)));
    }
    w.lines(work.values.iter().filter_map(|s| scope.define(*s, &Element)));
    w.lines(work.kept_later.iter().map(|s| format!("{0}_kept[i][v] = {0};", scope.name(*s))));
    w.lines(work.walk.reduces.iter().map(|s| add(scope, *s)));
    w.lines(work.walk.stores.iter().map(|store| result(scope, *store)));
}

/// Declares where the batch finds its leaves, and says which are yet to be read.
fn declare_batch(w: &mut Writer, scope: &Scope<'_>, work: &Batch<'_>) -> Vec<usize> {
    let leaves = elem_leaves(scope, work.read);
    let in_registers = matches!(work.held, Held::Arriving | Held::Registers);
    for leaf in &leaves {
        let (ty, name) = (scope.leaf_type(*leaf), &scope.leaves[*leaf]);
        w.line(match in_registers && work.resident.contains(leaf) {
            true => format!("fuse_pack<{ty}, VEC> (&{name}_in)[ITEMS] = {name}_kept[block * LEGS + leg];"),
            false => format!("fuse_pack<{ty}, VEC> {name}_in[{}];", work.items),
        });
    }
    leaves.into_iter().filter(|leaf| work.held != Held::Registers || !work.resident.contains(leaf)).collect()
}

fn add(scope: &Scope<'_>, s: StmtId) -> String {
    let operand = scope.kernel.stmt(s).expr.operands()[0];
    format!("{}_lanes.add(i, v, {}::of({}, e + v));", scope.name(s), policy(scope, s), scope.value(operand))
}

fn read(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    let from = format!("{name}_row + fuse_along<RANK, STEP_{leaf}>(e, inner, {name}_strides)");
    let stride = format!("{name}_strides.axis[RANK + INNER_RANK - 1]");
    format!("fuse_read<STEP_{leaf}>({name}_in[i], {from}, {stride});")
}

fn write_back(scope: &Scope<'_>, store: usize) -> String {
    let (name, operand) = (&scope.stores[store], scope.leaves.len() + store);
    let to = format!("{name}_row + fuse_along<RANK, STEP_{operand}>(e, inner, {name}_strides)");
    format!("fuse_write<STEP_{operand}>({to}, {name}_out, {name}_strides.axis[RANK + INNER_RANK - 1]);")
}

/// Defines a reduction's value from what its lanes came to.
pub(super) fn total(w: &mut Writer, scope: &Scope<'_>, s: StmtId, accumulated: &str) {
    let stmt = scope.kernel.stmt(s);
    let value = format!("{}::value({accumulated})", policy(scope, s));
    let rounded = if stmt.round { round(value, stmt.dtype, &stmt.expr) } else { value };
    w.line(format!("const {} {} = {rounded};", scope.ty(s), scope.name(s)));
}

/// The values of a row after its last walk, and where they go.
fn row_results(w: &mut Writer, scope: &Scope<'_>) {
    w.lines(scope.phases.after.iter().filter_map(|s| scope.define(*s, &Element)));
    let row_stores =
        (0..scope.stores.len()).filter(|k| scope.kernel.store_level(&scope.kernel.stores[*k]) == Level::Row);
    let mut lines: Vec<String> =
        row_stores.map(|k| format!("*{}_row = {};", scope.stores[k], outgoing(scope, k))).collect();
    lines.extend(scope.phases.staged.iter().map(|s| stage(scope, *s, "row")));
    if !lines.is_empty() {
        w.block("if (lane == 0)", |w| w.lines(lines));
    }
}

/// Operands at point `v` of access `i`, and of the row.
struct Element;

impl Reach for Element {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match (scope.leaf_level(leaf), scope.is_index(leaf)) {
            (Level::All, _) => one_element(scope, leaf),
            (Level::Row, true) => format!("{name}_row"),
            (Level::Row, false) => format!("fuse_to_compute(*{name}_row)"),
            (Level::Elem, true) => format!("{name}_row + fuse_along<RANK, STEP_{leaf}>(e + v, inner, {name}_strides)"),
            (Level::Elem, false) => format!("fuse_to_compute({name}_in[i][v])"),
        }
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            Level::Row => format!("{name}_row"),
            Level::Elem => format!("{name}_row + fuse_along<RANK, STEP_{leaf}>(e + v, inner, {name}_strides)"),
        }
    }
}

/// Whether a statement reduces over all rows.
pub(super) fn is_reduce(scope: &Scope<'_>, s: StmtId) -> bool {
    matches!(scope.kernel.stmt(s).expr, Expr::Reduce(..))
}
