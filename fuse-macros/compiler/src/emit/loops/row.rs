//! Rows and columns: reductions as closures over the points, then loops for what is stored at every point.

use super::parked::{self, Parked};
use super::scope::{Scope, convert, round};
use super::{column, point_store};
use crate::emit::writer::Writer;
use crate::op::Reduction;
use crate::plan::{Expr, Kind, Level, Phase, StmtId};

/// Writes all walks of a row or column, then its results.
pub(super) fn walks(w: &mut Writer, scope: &Scope<'_>) {
    let parked = parked::of(scope);
    for (k, walk) in scope.phases.walks.iter().enumerate() {
        w.lines(walk.before.iter().filter_map(|s| scope.define(*s)));
        let ready = |p: &&Parked| p.walk == k;
        for p in parked.iter().filter(ready) {
            park(w, scope, &parked, p);
        }
        let known: Vec<&Parked> = parked.iter().filter(|p| p.walk <= k).collect();
        walk.reduces.iter().for_each(|s| reduce(w, scope, walk, *s, &known));
        store_points(w, scope, walk, &known);
    }
    w.lines(scope.phases.after.iter().filter_map(|s| scope.define(*s)));
    for (k, store) in scope.kernel.stores.iter().enumerate() {
        if scope.kernel.store_level(store) == Level::Row {
            w.line(format!("outs.row::<{}>({k}, {});", scope.store_type(k), scope.outgoing(k)));
        }
    }
    for s in &scope.phases.staged {
        w.line(format!("outs.stage::<{}>({}, {});", scope.ty(*s), s.0, scope.value(*s)));
    }
}

/// The statements over all rows.
pub(super) fn finish(w: &mut Writer, scope: &Scope<'_>) {
    w.line("use ::fuse_runtime::{Element, rt, rt::math as m};");
    w.lines(scope.define_draws());
    w.lines(scope.phases.uniform.iter().filter_map(|s| scope.define(*s)));
    for s in &scope.phases.all {
        let Expr::Reduce(kind, operand) = scope.kernel.stmt(*s).expr else {
            w.lines(scope.define(*s));
            continue;
        };
        let staged = format!("{}_rows", scope.name(operand));
        w.line(format!("let {staged} = ins.staged::<{}>({});", scope.ty(operand), operand.0));
        let element = format!("{staged}[i]");
        let types = (scope.ty(operand), scope.ty(*s));
        let text = call(kind, (&types.0, &types.1), "row", &format!("{staged}.len()"), &element);
        w.line(definition(scope, *s, text));
    }
    for (k, store) in scope.kernel.stores.iter().enumerate() {
        if scope.kernel.store_level(store) == Level::All {
            w.line(format!("outs.all::<{}>({k}, {});", scope.store_type(k), scope.outgoing(k)));
        }
    }
}

fn park(w: &mut Writer, scope: &Scope<'_>, parked: &[Parked], p: &Parked) {
    let known: Vec<&Parked> =
        parked.iter().filter(|q| q.walk < p.walk || (q.walk == p.walk && q.stmt < p.stmt)).collect();
    w.block("for i in 0..n", |w| {
        w.lines(point(scope, &[p.stmt], &known));
        w.line(format!("{}[i] = {};", scope.stores[p.store], scope.name(p.stmt)));
    });
}

/// The lines that compute elementwise values, from parked ones where there are.
fn point(scope: &Scope<'_>, wanted: &[StmtId], parked: &[&Parked]) -> Vec<String> {
    let (mut needed, mut open): (Vec<StmtId>, Vec<StmtId>) = (vec![], wanted.to_vec());
    let is_point = |s: StmtId| scope.phases.walks.iter().any(|p| p.fresh.contains(&s));
    let waits = |s: StmtId| parked.iter().find(|p| p.stmt == s);
    while let Some(s) = open.pop() {
        if !is_point(s) || needed.contains(&s) {
            continue;
        }
        needed.push(s);
        if waits(s).is_none() {
            open.extend(scope.kernel.stmt(s).expr.operands());
        }
    }
    needed.sort();
    let line = |s: &StmtId| match waits(*s) {
        Some(p) => Some(format!("let {}: {} = {}[i];", scope.name(*s), scope.ty(*s), scope.stores[p.store])),
        None => scope.define(*s),
    };
    needed.iter().filter_map(line).collect()
}

fn reduce(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, s: StmtId, parked: &[&Parked]) {
    let Expr::Reduce(kind, operand) = scope.kernel.stmt(s).expr else { unreachable!("a walk lists its reductions") };
    let order = if scope.kernel.kind == Kind::Column { "column" } else { "row" };
    let lines = point(scope, &[operand], parked).join(" ");
    let value = scope.value(operand);
    let text = call(kind, (&scope.ty(operand), &scope.ty(s)), order, "n", &format!("{lines} {value}"));
    let text = if column::is_possible(scope) { column::or_given(scope, walk, s, &text) } else { text };
    w.line(definition(scope, s, text));
}

/// A reduction of `value`, of the type of its operand, over `0..len`.
fn call(kind: Reduction, (operand, result): (&str, &str), order: &str, len: &str, value: &str) -> String {
    let (function, value) = match kind {
        Reduction::Sum => (format!("{order}_sum"), convert_block(operand, result, value)),
        Reduction::Prod => (format!("{order}_prod"), convert_block(operand, result, value)),
        Reduction::Max => ("max".to_owned(), value.to_owned()),
        Reduction::Min => ("min".to_owned(), value.to_owned()),
        Reduction::ArgMax => ("argmax".to_owned(), value.to_owned()),
        Reduction::ArgMin => ("argmin".to_owned(), value.to_owned()),
    };
    format!("rt::reduce::{function}({len}, #[inline(always)] |i| {{ {value} }})")
}

/// The definition of a reduction.
fn definition(scope: &Scope<'_>, s: StmtId, text: String) -> String {
    let stmt = scope.kernel.stmt(s);
    let rounded = if stmt.round { round(text, stmt.dtype, &stmt.expr) } else { text };
    format!("let {}: {} = {rounded};", scope.name(s), scope.ty(s))
}

/// Sums of integers and bool are i64.
fn convert_block(from: &str, to: &str, value: &str) -> String {
    if from == to { value.to_owned() } else { convert(from, to, &format!("{{ {value} }}")) }
}

fn store_points(w: &mut Writer, scope: &Scope<'_>, walk: &Phase, parked: &[&Parked]) {
    let is_open = |store: &usize| !parked.iter().any(|p| p.is_result && p.store == *store);
    let stores: Vec<usize> = walk.stores.iter().copied().filter(is_open).collect();
    if stores.is_empty() {
        return;
    }
    let operands = stores.iter().flat_map(|&k| scope.kernel.store_operands(&scope.kernel.stores[k]));
    let wanted: Vec<StmtId> = operands.collect();
    w.block("for i in 0..n", |w| {
        w.lines(point(scope, &wanted, parked));
        stores.iter().for_each(|store| w.line(point_store(scope, *store)));
    });
}
