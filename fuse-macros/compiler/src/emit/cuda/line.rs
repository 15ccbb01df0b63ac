//! Lines: a thread goes along the last axis point after point, for scans and scatters.

use super::map::{declare_draws, one_element};
use super::params::{parameters, policy};
use super::scope::{Reach, Scope, round};
use super::signature;
use super::stores::{outgoing, scatter};
use crate::emit::writer::Writer;
use crate::plan::{Expr, Level, Phase, StmtId};

/// Threads of a block: few, since a line keeps its thread busy and there may not be many.
const THREADS: &str = "128";

/// Writes the kernel.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, THREADS, &parameters(scope)), |w| {
        super::map::prologue(w, scope, &Point);
        w.line("const IDX len = (IDX)inner.points;");
        w.line(format!("const IDX row = (IDX)blockIdx.x * {THREADS} + threadIdx.x;"));
        w.line("if (row >= (IDX)outer.points) return;");
        operands(w, scope);
        find_targets(w, scope);
        for walk in &scope.phases.walks {
            w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Point)));
            for s in scans(scope, walk) {
                w.line(format!("{0}::Acc {1}_lanes = {0}::none();", policy(scope, s), scope.name(s)));
            }
            declare_draws(w, scope, &walk.fresh, "1");
            w.block("for (IDX e = 0; e < len; ++e)", |w| point(w, scope, walk));
        }
    });
}

/// Looks at all positions before the first write to a tensor of the caller, which is to stay as it is if one is out of range. They
/// are the same for all lines, see [`in_place`](crate::schedule).
fn find_targets(w: &mut Writer, scope: &Scope<'_>) {
    for (store, name) in scope.kernel.stores.iter().zip(&scope.stores).filter(|_| scope.kernel.heeds) {
        let Some(scatter) = &store.scatter else { continue };
        let place = scatter.place;
        w.line("bool found = true;");
        w.block("for (IDX e = 0; e < len; ++e)", |w| {
            w.lines(scope.define(scatter.index, &Point));
            let index = scope.value(scatter.index);
            w.line(format!("found &= fuse_target({name}_ptr, {name}_axis, {index}, fault, call, {place}) != 0;"));
        });
        w.line("if (!found) return;");
    }
}

fn operands(w: &mut Writer, scope: &Scope<'_>) {
    w.line("const fuse_at<RANK> at = fuse_unravel(row, outer);");
    for (k, name) in scope.leaves.iter().enumerate().filter(|(k, _)| scope.leaf_level(*k) != Level::All) {
        let ty = if scope.is_index(k) { "long long".to_owned() } else { format!("{}*", scope.leaf_type(k)) };
        w.line(format!("const {ty} {name}_row = {name}_ptr + fuse_offset(at, {name}_strides);"));
    }
    for (k, name) in scope.stores.iter().enumerate() {
        w.line(format!("{}* {name}_row = {name}_ptr + fuse_offset(at, {name}_strides);", scope.store_type(k)));
    }
}

fn scans(scope: &Scope<'_>, walk: &Phase) -> Vec<StmtId> {
    walk.fresh.iter().copied().filter(|s| matches!(scope.kernel.stmt(*s).expr, Expr::Scan(..))).collect()
}

fn point(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) {
    for s in &walk.fresh {
        match scope.kernel.stmt(*s).expr {
            Expr::Scan(_, operand) => scan(w, scope, *s, operand),
            _ => w.lines(scope.define(*s, &Point)),
        }
    }
    for &store in &walk.stores {
        let name = &scope.stores[store];
        let base = format!("{name}_row + fuse_along<RANK>(e, inner, {name}_strides)");
        match scope.kernel.stores[store].scatter {
            Some(_) => w.lines(scatter(scope, store, &base)),
            None => w.line(format!("*({base}) = {};", outgoing(scope, store))),
        }
    }
}

/// The running value stays unrounded, each result is rounded.
fn scan(w: &mut Writer, scope: &Scope<'_>, s: StmtId, operand: StmtId) {
    let (stmt, name, acc) = (scope.kernel.stmt(s), scope.name(s), policy(scope, s));
    w.line(format!("{name}_lanes = {acc}::join({name}_lanes, {acc}::of({}, e));", scope.value(operand)));
    let value = format!("{acc}::value({name}_lanes)");
    let rounded = if stmt.round { round(value, stmt.dtype, &stmt.expr) } else { value };
    w.line(format!("const {} {name} = {rounded};", scope.ty(s)));
}

/// Operands at point `e` of the line.
struct Point;

impl Reach for Point {
    fn point(&self) -> &'static str {
        "0"
    }

    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        let place = match scope.leaf_level(leaf) {
            Level::All => return one_element(scope, leaf),
            Level::Row => format!("{name}_row"),
            Level::Elem => format!("{name}_row + fuse_along<RANK>(e, inner, {name}_strides)"),
        };
        if scope.is_index(leaf) { place } else { format!("fuse_to_compute(*({place}))") }
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        let name = &scope.leaves[leaf];
        match scope.leaf_level(leaf) {
            Level::All => format!("{name}_ptr"),
            Level::Row => format!("{name}_row"),
            Level::Elem => format!("{name}_row + fuse_along<RANK>(e, inner, {name}_strides)"),
        }
    }
}
