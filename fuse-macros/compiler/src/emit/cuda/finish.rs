//! Reductions over all rows: every block leaves the values of its rows, the last block to finish reduces them.

use super::map::one_element;
use super::params::policy;
use super::row::{is_reduce, total};
use super::scope::{Reach, Scope};
use super::stores::outgoing;
use crate::emit::writer::Writer;
use crate::plan::{Level, StmtId};

/// The line that leaves the value of a row.
pub(super) fn stage(scope: &Scope<'_>, s: StmtId, row: &str) -> String {
    format!("{}_stage[{row}] = {};", scope.name(s), scope.value(s))
}

/// Writes what the last of `blocks` does, if there is something. Expects the number of threads of a block as `THREADS`.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, blocks: &str) {
    if !scope.phases.has_finish() {
        return;
    }
    w.block(format!("if (fuse_last(counters, {blocks}))"), |w| {
        for s in &scope.phases.all {
            match is_reduce(scope, *s) {
                true => total(w, scope, *s, &over_rows(scope, *s)),
                false => w.lines(scope.define(*s, &Whole)),
            }
        }
        let stores =
            (0..scope.stores.len()).filter(|k| scope.kernel.store_level(&scope.kernel.stores[*k]) == Level::All);
        let lines: Vec<String> =
            stores.map(|k| format!("*{}_ptr = {};", scope.stores[k], outgoing(scope, k))).collect();
        w.block("if (threadIdx.x == 0)", |w| w.lines(lines));
    });
}

fn over_rows(scope: &Scope<'_>, s: StmtId) -> String {
    let staged = scope.kernel.stmt(s).expr.operands()[0];
    format!("fuse_over_rows<{}, THREADS>({}_stage, outer.points)", policy(scope, s), scope.name(staged))
}

/// Operands of the whole kernel.
struct Whole;

impl Reach for Whole {
    fn load(&self, scope: &Scope<'_>, leaf: usize) -> String {
        one_element(scope, leaf)
    }

    fn base(&self, scope: &Scope<'_>, leaf: usize) -> String {
        format!("{}_ptr", scope.leaves[leaf])
    }
}
