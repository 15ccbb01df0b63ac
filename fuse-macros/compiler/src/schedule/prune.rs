//! Drops statements and leaves of a kernel that no store needs.

use crate::plan::{Expr, Kernel, StmtId, Store};

/// The kernel without what it does not need.
pub fn run(mut kernel: Kernel) -> Kernel {
    let stored = |store: &Store| [store.value].into_iter().chain(store.scatter.as_ref().map(|scatter| scatter.index));
    let live = kernel.needed(kernel.stores.iter().flat_map(stored));
    let stmts = renumber(&live);
    let leaf_live: Vec<bool> = (0..kernel.leaves.len())
        .map(|leaf| kernel.stmts.iter().zip(&live).any(|(s, l)| *l && leaf_of(&s.expr) == Some(leaf as u32)))
        .collect();
    let leaves = renumber(&leaf_live);
    retain(&mut kernel.stmts, &live);
    retain(&mut kernel.leaves, &leaf_live);
    for stmt in &mut kernel.stmts {
        move_expr(&mut stmt.expr, &stmts, &leaves);
    }
    for store in &mut kernel.stores {
        store.value = StmtId(stmts[store.value.0 as usize]);
        if let Some(scatter) = &mut store.scatter {
            scatter.index = StmtId(stmts[scatter.index.0 as usize]);
        }
    }
    kernel
}

fn renumber(live: &[bool]) -> Vec<u32> {
    live.iter().scan(0, |next, &l| Some(std::mem::replace(next, *next + l as u32))).collect()
}

fn retain<T>(items: &mut Vec<T>, live: &[bool]) {
    let mut flags = live.iter();
    items.retain(|_| *flags.next().expect("one flag an item"));
}

fn leaf_of(expr: &Expr) -> Option<u32> {
    match expr {
        Expr::Load(leaf) | Expr::Gather { leaf, .. } => Some(*leaf),
        _ => None,
    }
}

fn move_expr(expr: &mut Expr, stmts: &[u32], leaves: &[u32]) {
    let to = |id: &mut StmtId| *id = StmtId(stmts[id.0 as usize]);
    match expr {
        Expr::Load(leaf) => *leaf = leaves[*leaf as usize],
        Expr::Gather { leaf, index } => {
            *leaf = leaves[*leaf as usize];
            to(index);
        }
        Expr::Apply(_, args) => args.iter_mut().for_each(to),
        Expr::Cast(a) | Expr::Reduce(_, a) | Expr::Scan(_, a) | Expr::Uniform(_, a) | Expr::Normal(_, a) => to(a),
        Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_) | Expr::Product(_) => {}
    }
}
