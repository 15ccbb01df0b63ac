//! Rows and columns: reductions as closures over the points, then loops for what is stored at every point.

use super::scope::{Scope, convert, round};
use super::{column, point_store};
use crate::emit::writer::Writer;
use crate::op::Reduction;
use crate::plan::abi::store_dtype;
use crate::plan::{Expr, Kind, Level, Phase, StmtId};
use crate::types::DType;
use std::collections::BTreeSet;

/// Writes all walks of a row or column, then its results.
pub(super) fn walks(w: &mut Writer, scope: &Scope<'_>) {
    let parked = parked(scope);
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

/// An expensive value that waits in the memory of a result for a later walk, in place of being computed again.
struct Parked {
    stmt: StmtId,
    /// The walk that computes it.
    walk: usize,
    /// The store whose memory it waits in.
    store: usize,
}

fn parked(scope: &Scope<'_>) -> Vec<Parked> {
    let walks = &scope.phases.walks;
    let mut found: Vec<Parked> = vec![];
    for (walk, phase) in walks.iter().enumerate() {
        let needed_later = |s: &&StmtId| walks[walk + 1..].iter().any(|p| p.kept.contains(s));
        for &stmt in phase.fresh.iter().filter(needed_later).filter(|s| is_heavy(scope, **s)) {
            // The result itself comes into that memory in the last walk that reads the value, or after. A walk also reads
            // what the values it keeps are computed from, for they may be computed again.
            let last = walks.iter().rposition(|p| reads(scope, p).contains(&stmt)).unwrap_or(walk);
            let later = walks.iter().skip(last).flat_map(|p| &p.stores);
            let fits = |store: &&usize| {
                let dtype = store_dtype(scope.plan, &scope.kernel.stores[**store]);
                let plain = matches!(dtype, DType::F32 | DType::F64);
                plain && dtype == scope.kernel.stmt(stmt).dtype.compute() && found.iter().all(|p| p.store != **store)
            };
            if let Some(&store) = later.into_iter().find(fits) {
                found.push(Parked { stmt, walk, store });
            }
        }
    }
    found
}

/// The elementwise values that a walk's stores and reductions follow from.
fn reads(scope: &Scope<'_>, walk: &Phase) -> BTreeSet<StmtId> {
    let stores = walk.stores.iter().flat_map(|&k| scope.kernel.store_operands(&scope.kernel.stores[k]));
    let reduced = walk.reduces.iter().flat_map(|s| scope.kernel.stmt(*s).expr.operands());
    let mut open: Vec<StmtId> = stores.chain(reduced).collect();
    let mut read = BTreeSet::new();
    while let Some(stmt) = open.pop() {
        if scope.kernel.stmt(stmt).level == Level::Elem && read.insert(stmt) {
            open.extend(scope.kernel.stmt(stmt).expr.operands());
        }
    }
    read
}

/// Whether computing an elementwise value again costs more than a load.
fn is_heavy(scope: &Scope<'_>, s: StmtId) -> bool {
    let expr = &scope.kernel.stmt(s).expr;
    let is_elem = |o: &StmtId| scope.kernel.stmt(*o).level == Level::Elem;
    expr.is_heavy() || expr.operands().iter().filter(|o| is_elem(o)).any(|o| is_heavy(scope, *o))
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
    if walk.stores.is_empty() {
        return;
    }
    let stores = walk.stores.iter().flat_map(|&k| scope.kernel.store_operands(&scope.kernel.stores[k]));
    let wanted: Vec<StmtId> = stores.collect();
    w.block("for i in 0..n", |w| {
        w.lines(point(scope, &wanted, parked));
        walk.stores.iter().for_each(|store| w.line(point_store(scope, *store)));
    });
}
