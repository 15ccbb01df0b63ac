//! Maps: every point on its own, several accesses of several points a thread.

use super::params::parameters;
use super::scope::{Reach, Scope};
use super::{signature, tile};
use crate::emit::writer::Writer;
use crate::plan::abi::{THREADS, UNROLL, is_turnable};
use crate::plan::{Expr, Level, Phase, StmtId};
use std::collections::{BTreeMap, BTreeSet};

/// Writes the kernel: one body for accesses along the last axis, another for tiles where the program transposes.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    if scope.kernel.leaves.iter().any(|leaf| is_turnable(scope.kernel, leaf)) {
        w.line("#if defined(TILED)");
        tile::write(w, scope);
        w.line("#else");
        straight(w, scope);
        w.line("#endif");
    } else {
        straight(w, scope);
    }
}

fn straight(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, &THREADS.to_string(), &parameters(scope)), |w| body(w, scope, "blockIdx.x"));
}

/// Writes a kernel that does for many sets of arguments what [`write`]'s does for one: a block finds the set it works for, and
/// which of its blocks it is.
pub(super) fn write_list(w: &mut Writer, scope: &Scope<'_>) {
    let parameters = parameters(scope);
    let fields: Vec<String> = parameters.iter().map(|parameter| format!("{parameter};")).collect();
    w.line(format!("struct fuse_member {{\n    {}\n}};", fields.join("\n    ")));
    w.line("// `end` is the first block behind those of a member.");
    w.line("struct fuse_list { unsigned end[LIST]; fuse_member of[LIST]; };");
    w.block(signature(scope, &THREADS.to_string(), &["const __grid_constant__ fuse_list list".to_owned()]), |w| {
        find(w, "member", "list.end", "LIST / 2");
        for parameter in &parameters {
            let name = parameter.rsplit(' ').next().expect("a parameter has a name");
            w.line(format!("const auto& {name} = list.of[member].{name};"));
        }
        body(w, scope, "block");
    });
}

/// Finds what a block works for, and which of its blocks it is, in a table of [ends](crate::plan::abi::ends) whose half is so many.
pub(super) fn find(w: &mut Writer, what: &str, ends: &str, half: &str) {
    w.line(format!("int {what} = 0;"));
    w.line(format!("for (int step = {half}; step > 0; step /= 2)"));
    w.line(format!("    if ({ends}[{what} + step - 1] <= blockIdx.x) {what} += step;"));
    w.line(format!("const unsigned block = blockIdx.x - ({what} > 0 ? {ends}[{what} - 1] : 0);"));
}

fn body(w: &mut Writer, scope: &Scope<'_>, block: &str) {
    w.line(super::compile::WAITS);
    body_behind(w, scope, block);
}

/// The body of a kernel behind what it waits for.
pub(super) fn body_behind(w: &mut Writer, scope: &Scope<'_>, block: &str) {
    prologue_behind(w, scope, &Point);
    let Some(walk) = scope.phases.walks.first() else { return };
    w.line("const IDX accesses = (IDX)((outer.points + VEC - 1) / VEC);");
    w.line(format!("const IDX first = (IDX){block} * {} + threadIdx.x;", UNROLL * THREADS));
    w.line(format!("fuse_at<RANK> at[{UNROLL}];"));
    declare_reads(w, scope, &walk.fresh, "VEC", &UNROLL.to_string());
    // All reads come before the first write: a result may lie where an operand did, and reads in flight hide latency.
    each_access(w, |w| {
        w.line("at[u] = fuse_unravel(access, outer);");
        w.line("at[u].axis[RANK - 1] *= VEC;");
        for leaf in elem_leaves(scope, &walk.fresh) {
            w.line(read(scope, leaf));
        }
    });
    each_access(w, |w| {
        values(w, scope, walk);
        for &store in &walk.stores {
            w.line(write_back(scope, store));
        }
    });
}

/// The values of one access, into arrays of what is stored.
pub(super) fn values(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    declare_results(w, scope, walk);
    declare_draws(w, scope, &walk.fresh, "VEC");
    w.unrolled("v", "VEC", |w| {
        w.lines(walk.fresh.iter().filter_map(|s| scope.define(*s, &Point)));
        for &store in &walk.stores {
            w.line(result(scope, store));
        }
    });
}

fn each_access(w: &mut Writer, body: impl FnOnce(&mut Writer)) {
    w.unrolled("u", &UNROLL.to_string(), |w| {
        w.line(format!("const IDX access = first + u * {THREADS};"));
        w.line("if (access >= accesses) break;");
        w.line("const int live = RANK > 1 ? VEC : (int)min((long long)VEC, outer.points - (long long)access * VEC);");
        body(w);
    });
}

fn read(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    let from = format!("{name}_ptr + fuse_offset<STEP_{leaf}>(at[u], {name}_strides)");
    format!("fuse_read<STEP_{leaf}>({name}_in[u], {from}, {name}_strides.axis[RANK - 1], live);")
}

pub(super) fn write_back(scope: &Scope<'_>, store: usize) -> String {
    let (name, operand) = (&scope.stores[store], scope.leaves.len() + store);
    let to = format!("{name}_ptr + fuse_offset<STEP_{operand}>(at[u], {name}_strides)");
    format!("fuse_write<STEP_{operand}>({to}, {name}_out, {name}_strides.axis[RANK - 1], live);")
}

/// The leaf that an expression reads from memory as it is, if it is one of this level.
pub(super) fn loaded(scope: &Scope<'_>, expr: &Expr, level: Level) -> Option<usize> {
    let Expr::Load(leaf) = *expr else { return None };
    Some(leaf as usize).filter(|leaf| scope.leaf_level(*leaf) == level && !scope.is_index(*leaf))
}

/// The leaves that statements read from memory at every point, each once.
pub(super) fn elem_leaves(scope: &Scope<'_>, stmts: &[StmtId]) -> Vec<usize> {
    let read = stmts.iter().filter_map(|s| loaded(scope, &scope.kernel.stmt(*s).expr, Level::Elem));
    let mut leaves: Vec<usize> = read.collect();
    leaves.dedup();
    leaves
}

/// Declares room for what the statements load: so many points an access, so many accesses.
pub(super) fn declare_reads(w: &mut Writer, scope: &Scope<'_>, stmts: &[StmtId], points: &str, accesses: &str) {
    for leaf in elem_leaves(scope, stmts) {
        w.line(format!("fuse_pack<{}, {points}> {}_in[{accesses}];", scope.leaf_type(leaf), scope.leaves[leaf]));
    }
}

/// Declares arrays for the results of one access, which are rounded when they are written.
pub(super) fn declare_results(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    for &store in &walk.stores {
        let ty = scope.ty(scope.kernel.stores[store].value);
        w.line(format!("{ty} {}_out[VEC];", scope.stores[store]));
    }
}

/// The line that puts a result into its array.
pub(super) fn result(scope: &Scope<'_>, store: usize) -> String {
    format!("{}_out[v] = {};", scope.stores[store], scope.value(scope.kernel.stores[store].value))
}

/// Declares the random draws that the statements use at so many points an access.
pub(super) fn declare_draws(w: &mut Writer, scope: &Scope<'_>, stmts: &[StmtId], points: &str) {
    let draws = stmts.iter().filter_map(|s| scope.kernel.stmt(*s).expr.draw());
    let draws: BTreeMap<u32, String> = draws.map(|(draw, at)| (draw, step(scope, at))).collect();
    w.lines(draws.iter().map(|(d, step)| format!("fuse_draw<{points}, {step}> draw{d}(seed, offset{d});")));
}

/// What stands in front of everything else: the values that are one for the whole kernel, and the random draws of
/// statements outside its walks.
pub(super) fn prologue(w: &mut Writer, scope: &Scope<'_>, reach: &dyn Reach) {
    w.line(super::compile::WAITS);
    prologue_behind(w, scope, reach);
}

/// The same behind what the kernel waits for.
pub(super) fn prologue_behind(w: &mut Writer, scope: &Scope<'_>, reach: &dyn Reach) {
    let outside: Vec<StmtId> = scope.kernel.ids().filter(|s| !scope.is_in_a_walk(*s)).collect();
    if scope.kernel.asks {
        w.line("if (goes_on && !*goes_on) return;");
    }
    if scope.kernel.heeds {
        w.line("if (fuse_failed(failed, call)) return;");
    }
    w.lines(lone_draws(scope, outside));
    w.lines(scope.phases.uniform.iter().filter_map(|s| scope.define(*s, reach)));
}

/// Declares the random draws of a kernel whose points are asked for one by one.
pub(super) fn draws(scope: &Scope<'_>) -> Vec<String> {
    lone_draws(scope, scope.kernel.ids().filter(|s| scope.is_in_a_walk(*s)))
}

fn lone_draws(scope: &Scope<'_>, stmts: impl IntoIterator<Item = StmtId>) -> Vec<String> {
    let draws = stmts.into_iter().filter_map(|s| scope.kernel.stmt(s).expr.draw());
    let draws: BTreeSet<u32> = draws.map(|(draw, _)| draw).collect();
    draws.iter().map(|d| format!("fuse_draw<1, 2> draw{d}(seed, offset{d});")).collect()
}

/// How far apart a position is at neighbouring points, where it is one of a leaf.
fn step(scope: &Scope<'_>, position: StmtId) -> String {
    match scope.kernel.stmt(position).expr {
        Expr::Load(leaf) => format!("STEP_{leaf}"),
        _ => "2".to_owned(),
    }
}

/// Operands at point `v` of access `u`.
pub(super) struct Point;

impl Reach for Point {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => one_element(scope, leaf),
            _ if scope.is_index(leaf) => self.base(scope, leaf),
            _ => format!("fuse_to_compute({name}_in[u][v])"),
        }
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            // Points that do not exist repeat the first one, so that they cannot fault.
            _ => format!(
                "{name}_ptr + fuse_offset(at[u], {name}_strides) + (v < live ? v : 0) * {name}_strides.axis[RANK - 1]"
            ),
        }
    }
}

/// A leaf that is one element for the whole kernel.
pub(super) fn one_element(scope: &Scope<'_>, leaf: usize) -> String {
    let name = &scope.leaves[leaf];
    if scope.is_index(leaf) { format!("{name}_ptr") } else { format!("fuse_to_compute(*{name}_ptr)") }
}
