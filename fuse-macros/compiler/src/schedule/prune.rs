//! Drops statements and leaves of a kernel that no store needs.

use crate::plan::{Kernel, Stmt, StmtId};

/// The kernel without what it does not need.
pub fn run(mut kernel: Kernel) -> Kernel {
    let live = kernel.needed(kernel.stores.iter().flat_map(|store| kernel.store_operands(store)));
    let stmts = renumber(&live);
    let leaf_live: Vec<bool> = (0..kernel.leaves.len())
        .map(|leaf| kernel.stmts.iter().zip(&live).any(|(s, l)| *l && s.expr.leaf() == Some(leaf as u32)))
        .collect();
    let leaves = renumber(&leaf_live);
    retain(&mut kernel.stmts, &live);
    retain(&mut kernel.leaves, &leaf_live);
    let move_to = |id: &mut StmtId| *id = StmtId(stmts[id.0 as usize]);
    for Stmt { expr, .. } in &mut kernel.stmts {
        expr.leaf_mut().into_iter().for_each(|leaf| *leaf = leaves[*leaf as usize]);
        expr.operands_mut().iter_mut().for_each(move_to);
    }
    for store in &mut kernel.stores {
        move_to(&mut store.value);
        store.scatter.iter_mut().for_each(|scatter| move_to(&mut scatter.index));
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
