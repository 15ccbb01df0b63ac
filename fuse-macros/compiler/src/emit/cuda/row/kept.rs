//! A team of threads keeps a row of moderate length in registers.

use super::super::compile::WAITS;
use super::super::finish;
use super::super::params::parameters;
use super::super::scope::Scope;
use super::super::signature;
use super::{
    Batch, Element, Held, Reads, batch, declare_groups, declare_lanes, prologue_behind, row_operands, row_results,
    total,
};
use crate::emit::writer::Writer;
use crate::plan::{Expr, StmtId};
use std::collections::BTreeSet;

/// A team keeps its row: what a later walk needs again stays in arrays.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>) {
    w.block(signature(scope, "THREADS", &parameters(scope)), |w| {
        w.line(WAITS);
        body_behind(w, scope, "blockIdx.x");
        finish::write(w, scope, "gridDim.x");
    });
}

/// What a block does with its rows, behind what the kernel waits for.
pub(super) fn body_behind(w: &mut Writer, scope: &Scope<'_>, block: &str) {
    prologue_behind(w, scope);
    w.line(format!("const IDX row = (IDX){block} * (THREADS / TEAM) + threadIdx.x / TEAM;"));
    w.block("if (row < (IDX)outer.points)", |w| {
        row_operands(w, scope, &BTreeSet::new());
        for (k, walk) in scope.phases.walks.iter().enumerate() {
            w.lines(walk.before.iter().filter_map(|s| scope.define(*s, &Element)));
            let kept_later = kept_after(scope, k);
            for s in &kept_later {
                w.line(format!("{} {}_kept[ITEMS][VEC];", scope.ty(*s), scope.name(*s)));
            }
            declare_groups(w, walk);
            declare_lanes(w, scope, walk);
            let again: BTreeSet<StmtId> =
                walk.kept.iter().flat_map(|s| reread(scope, *s).unwrap_or_default()).collect();
            let all: Vec<StmtId> = again.into_iter().chain(walk.fresh.iter().copied()).collect();
            let kept: Vec<StmtId> = walk.kept.iter().copied().filter(|s| reread(scope, *s).is_none()).collect();
            let reads = if k == 0 { Reads::Ahead } else { Reads::Close };
            let work = Batch {
                walk,
                items: "ITEMS",
                read: &walk.fresh,
                values: &all,
                kept: &kept,
                kept_later: &kept_later,
                base: None,
                held: Held::Nowhere,
                resident: &[],
            };
            batch(w, scope, &work, reads);
            for s in &walk.reduces {
                let folded = "(ITEMS <= 1024 / (TEAM * VEC))";
                total(w, scope, *s, &format!("{}_lanes.total<{folded}>()", scope.name(*s)));
            }
        }
        row_results(w, scope);
    });
}

/// The elementwise values first computed in a walk that a later one uses.
fn kept_after(scope: &Scope<'_>, walk: usize) -> Vec<StmtId> {
    let later = &scope.phases.walks[walk + 1..];
    let fresh = scope.phases.walks[walk].fresh.iter().copied();
    fresh.filter(|s| later.iter().any(|p| p.kept.contains(s)) && reread(scope, *s).is_none()).collect()
}

/// How a value that a later walk needs comes back from what was read, where that takes no more than a conversion: halves
/// take less room than the floats they become.
fn reread(scope: &Scope<'_>, s: StmtId) -> Option<Vec<StmtId>> {
    match scope.kernel.stmt(s).expr {
        Expr::Load(_) => Some(vec![s]),
        Expr::Cast(from) if matches!(scope.kernel.stmt(from).expr, Expr::Load(_)) => Some(vec![from, s]),
        _ => None,
    }
}
