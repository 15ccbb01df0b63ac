//! Long programs of a map, cut into stages that a block of points goes through one after the other.
//!
//! A processor looks a few hundred instructions ahead. A chain of functions longer than that runs at the sum of their
//! latencies, since the next point is out of sight; in stages short enough, neighbouring points overlap. What a stage
//! leaves for later ones waits in a block of the first cache.

use super::scope::Scope;
use super::{point_store, point_value};
use crate::emit::writer::Writer;
use crate::plan::{Expr, Kind, Level, Phase, StmtId};

/// How much a stage holds before it is cut, in simple operations.
const STAGE: usize = 24;
/// What a function of the table's heavy ones counts for.
const HEAVY: usize = 24;
/// With more values than this across a cut, memory would cost what the cut gains.
const KEPT: usize = 4;

/// One stage.
#[derive(Default)]
struct Stage {
    /// What it computes, in program order; loads are repeated in every stage that needs them.
    stmts: Vec<StmtId>,
    /// Values of earlier stages that it reads.
    taken: Vec<StmtId>,
    /// Values that later stages read.
    kept: Vec<StmtId>,
    /// Stores whose values it computes.
    stores: Vec<usize>,
}

/// Writes the loop of a map in stages; false, and nothing, where one loop is as good.
pub(super) fn write(w: &mut Writer, scope: &Scope<'_>, walk: &Phase) -> bool {
    let Some(stages) = stages(scope, walk) else { return false };
    let blocks = blocks(scope, &stages);
    for (name, ty) in blocks.iter().filter_map(|block| block.declared.as_ref()) {
        w.line(format!("let mut {name} = [<{ty} as Default>::default(); rt::BLOCK];"));
    }
    w.block("for start in (0..n).step_by(rt::BLOCK)", |w| {
        w.line("let n = rt::BLOCK.min(n - start);");
        slices(w, scope);
        let place = |s: &StmtId| &blocks.iter().find(|block| block.stmt == *s).expect("kept values have a block").name;
        for stage in &stages {
            w.block("for i in 0..n", |w| {
                let load = |s: &StmtId| format!("let {}: {} = {}[i];", scope.name(*s), scope.ty(*s), place(s));
                w.lines(stage.taken.iter().map(load));
                stage.stmts.iter().for_each(|s| point_value(w, scope, *s));
                w.lines(stage.kept.iter().map(|s| format!("{}[i] = {};", place(s), scope.name(*s))));
                stage.stores.iter().for_each(|store| w.line(point_store(scope, *store)));
            });
        }
    });
    true
}

/// The points of a block in what is read and written.
fn slices(w: &mut Writer, scope: &Scope<'_>) {
    let leaves = scope.leaves.iter().zip(&scope.kernel.leaves).filter(|(_, leaf)| leaf.level == Level::Elem);
    for name in leaves.map(|(name, _)| name).chain(scope.product.iter().map(|(_, name)| name)) {
        w.line(format!("let {name} = &{name}[start..][..n];"));
    }
    for name in &scope.stores {
        w.line(format!("let {name} = &mut {name}[start..][..n];"));
    }
}

/// The stages of a walk, if it is worth more than one.
fn stages(scope: &Scope<'_>, walk: &Phase) -> Option<Vec<Stage>> {
    let kernel = scope.kernel;
    let plain = kernel.kind == Kind::Map
        && kernel.leaves.iter().all(|leaf| leaf.indexed.is_none())
        && kernel.stores.iter().all(|store| store.scatter.is_none());
    if !plain {
        return None;
    }
    let computed: Vec<StmtId> = walk.fresh.iter().copied().filter(|s| !is_load(scope, *s)).collect();
    let mut stages: Vec<Stage> = cut(scope, &computed).into_iter().map(of_stmts).collect();
    if stages.len() < 2 {
        return None;
    }
    for k in 0..stages.len() {
        stages[k].stores = walk.stores.iter().copied().filter(|store| home(scope, &stages, *store) == k).collect();
        let needed = operands(scope, &stages[k]);
        stages[k].taken = needed.iter().copied().filter(|s| stages[..k].iter().any(|e| e.stmts.contains(s))).collect();
    }
    for k in 0..stages.len() {
        let later = |s: &StmtId| stages[k + 1..].iter().any(|l| l.taken.contains(s));
        stages[k].kept = stages[k].stmts.iter().copied().filter(later).collect();
    }
    for stage in &mut stages {
        let loads = operands(scope, stage).into_iter().filter(|s| is_load(scope, *s));
        stage.stmts = loads.chain(stage.stmts.iter().copied()).collect();
        stage.stmts.sort();
        stage.stmts.dedup();
    }
    Some(stages)
}

fn of_stmts(stmts: Vec<StmtId>) -> Stage {
    Stage { stmts, ..Stage::default() }
}

/// Cuts a program where a stage is full and few values cross.
fn cut(scope: &Scope<'_>, computed: &[StmtId]) -> Vec<Vec<StmtId>> {
    let (mut parts, mut part, mut weight) = (Vec::new(), Vec::new(), 0);
    let mut left: usize = computed.iter().map(|s| weight_of(scope, *s)).sum();
    for (k, &s) in computed.iter().enumerate() {
        part.push(s);
        weight += weight_of(scope, s);
        left -= weight_of(scope, s);
        if weight >= STAGE && left >= STAGE && crossing(scope, &computed[..=k], &computed[k + 1..]) <= KEPT {
            parts.push(std::mem::take(&mut part));
            weight = 0;
        }
    }
    parts.push(part);
    parts
}

fn weight_of(scope: &Scope<'_>, s: StmtId) -> usize {
    if scope.kernel.stmt(s).expr.is_heavy() { HEAVY } else { 1 }
}

/// How many values of `before` are read in `after`. Stores are written as soon as their value is there.
fn crossing(scope: &Scope<'_>, before: &[StmtId], after: &[StmtId]) -> usize {
    let read = |s: &&StmtId| after.iter().any(|user| scope.kernel.stmt(*user).expr.operands().contains(s));
    before.iter().filter(read).count()
}

fn is_load(scope: &Scope<'_>, s: StmtId) -> bool {
    matches!(scope.kernel.stmt(s).expr, Expr::Load(_) | Expr::Product(_))
}

/// The stage that computes the value of a store; the first one for what is only loaded.
fn home(scope: &Scope<'_>, stages: &[Stage], store: usize) -> usize {
    let value = scope.kernel.stores[store].value;
    stages.iter().position(|stage| stage.stmts.contains(&value)).unwrap_or(0)
}

/// What a stage reads of the values of a point, in program order.
fn operands(scope: &Scope<'_>, stage: &Stage) -> Vec<StmtId> {
    let of_stmts = stage.stmts.iter().flat_map(|s| scope.kernel.stmt(*s).expr.operands());
    let of_stores = stage.stores.iter().map(|store| scope.kernel.stores[*store].value);
    let mut found: Vec<StmtId> = of_stmts.chain(of_stores).filter(|s| !stage.stmts.contains(s)).collect();
    found.retain(|s| scope.phases.walks.iter().any(|walk| walk.fresh.contains(s)));
    found.sort();
    found.dedup();
    found
}

/// The memory in which a kept value waits.
struct Block {
    stmt: StmtId,
    name: String,
    /// Name and element type, where this value is the first one in that memory.
    declared: Option<(String, String)>,
}

/// Gives every kept value memory, which is free again in the stage that reads the value last: a point is read there before
/// anything is written.
fn blocks(scope: &Scope<'_>, stages: &[Stage]) -> Vec<Block> {
    let last_read = |s: StmtId| stages.iter().rposition(|stage| stage.taken.contains(&s)).unwrap_or(0);
    let mut blocks: Vec<Block> = Vec::new();
    for (k, stage) in stages.iter().enumerate() {
        for &stmt in &stage.kept {
            let holder = |block: &&Block| {
                let users = blocks.iter().filter(|other| other.name == block.name);
                scope.ty(block.stmt) == scope.ty(stmt) && users.map(|user| last_read(user.stmt)).max() <= Some(k)
            };
            let name = blocks.iter().find(holder).map(|block| block.name.clone());
            let fresh = format!("{}_block", scope.name(stmt));
            let declared = name.is_none().then(|| (fresh.clone(), scope.ty(stmt)));
            blocks.push(Block { stmt, name: name.unwrap_or(fresh), declared });
        }
    }
    blocks
}
