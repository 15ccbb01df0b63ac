//! Sums of columns row by row: memory is read in its order, and every column has sums of its own that wait in the cache.

use super::scope::{Scope, convert};
use crate::emit::writer::Writer;
use crate::op::Reduction;
use crate::plan::{Expr, Kind, Level, Phase, StmtId};

/// Whether columns may be summed so: what their rows are made of is read in order, and nothing but sums or products is kept.
pub(super) fn is_possible(scope: &Scope<'_>) -> bool {
    let kernel = scope.kernel;
    let [walk] = scope.phases.walks.as_slice() else { return false };
    let adds = |s: &StmtId| matches!(kernel.stmt(*s).expr, Expr::Reduce(Reduction::Sum | Reduction::Prod, _));
    let is_read_in_order = kernel.leaves.iter().all(|leaf| leaf.indexed.is_none());
    kernel.kind == Kind::Column && walk.stores.is_empty() && walk.reduces.iter().all(adds) && is_read_in_order
}

/// Writes the method that adds rows of some neighbouring columns to their sums.
pub(super) fn sums(w: &mut Writer, scope: &Scope<'_>) {
    let [walk] = scope.phases.walks.as_slice() else { unreachable!("columns are walked once") };
    let scope = &scope.of_neighbours();
    let summed = walk.reduces.iter().flat_map(|s| scope.kernel.stmt(*s).expr.operands());
    let needed = scope.kernel.needed(summed);
    let is_needed = |s: &&StmtId| needed[s.0 as usize];
    let is_read = |leaf: usize| {
        let reads = |s: StmtId| needed[s.0 as usize] && scope.kernel.stmt(s).expr.leaf() == Some(leaf as u32);
        scope.kernel.ids().any(reads)
    };
    w.line("const SUMS: bool = true;");
    w.line("#[inline(always)]");
    let head = "fn sums(&self, ins: &::fuse_runtime::rt::Ins<'_>, sums: &mut ::fuse_runtime::rt::Sums<'_>)";
    w.block(head, |w| {
        w.line("use ::fuse_runtime::{Element, rt, rt::math as m};");
        w.line("let n = ins.len();");
        leaves(w, scope, (Level::Row, &is_read), |k, ty| format!("ins.elem::<{ty}>({k})"));
        for (k, s) in walk.reduces.iter().enumerate() {
            w.line(format!("let mut {}_lanes = sums.take::<{}>({k});", scope.name(*s), scope.ty(*s)));
        }
        w.lines(scope.define_draws());
        w.lines(scope.phases.uniform.iter().filter(is_needed).filter_map(|s| scope.define(*s)));
        w.block("for row in 0..ins.rows()", |w| {
            leaves(w, scope, (Level::Elem, &is_read), |k, ty| format!("ins.elem_at::<{ty}>({k}, row)"));
            for s in &walk.reduces {
                w.line(format!("let {0}_lane = &mut {0}_lanes.of(row)[..n];", scope.name(*s)));
            }
            w.block("for i in 0..n", |w| {
                w.lines(walk.before.iter().chain(&walk.fresh).filter(is_needed).filter_map(|s| scope.define(*s)));
                w.lines(walk.reduces.iter().map(|s| add(scope, *s)));
            });
        });
    });
}

/// Slices of the leaves of a level that are read, which all have a value for each of the columns.
fn leaves(
    w: &mut Writer,
    scope: &Scope<'_>,
    (level, is_read): (Level, &dyn Fn(usize) -> bool),
    slice: impl Fn(usize, &str) -> String,
) {
    let of_level = scope.kernel.leaves.iter().enumerate().filter(|(k, leaf)| leaf.level == level && is_read(*k));
    for (k, _) in of_level {
        w.line(format!("let {} = &{}[..n];", scope.leaves[k], slice(k, &scope.leaf_type(k))));
    }
}

fn add(scope: &Scope<'_>, s: StmtId) -> String {
    let Expr::Reduce(kind, operand) = scope.kernel.stmt(s).expr else { unreachable!("a walk lists its reductions") };
    let join = if kind == Reduction::Prod { "mul" } else { "add" };
    let term = convert(&scope.ty(operand), &scope.ty(s), &scope.value(operand));
    format!("{0}_lane[i] = m::{join}({0}_lane[i], {term});", scope.name(s))
}

/// What a reduction is where its column was summed with its neighbours, and else.
pub(super) fn or_given(scope: &Scope<'_>, walk: &Phase, s: StmtId, otherwise: &str) -> String {
    let k = walk.reduces.iter().position(|reduce| *reduce == s).expect("the walk has the reduction");
    format!("match ins.summed::<{}>({k}) {{ Some(sum) => sum, None => {otherwise} }}", scope.ty(s))
}
