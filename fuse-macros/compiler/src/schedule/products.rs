//! Brings products of one left operand together and lists those that one kernel may make.
//!
//! Queries, keys and values are products of the same rows, and so are a gate and what goes through it, and on the way back the
//! gradients of their weights. Listing comes last, since it only describes what has been scheduled.

use super::buffers::{are_independent, keep_apart, touched, touchers, written};
use crate::plan::abi::may_fault;
use crate::plan::{
    BufClass, BufId, Expr, FusedBack, Kernel, Kind, Leaf, Level, Matmul, Plan, Products, Step, Stmt, StmtId,
};
use crate::types::DType;
use std::collections::BTreeMap;

/// Moves products of one left operand up to the first of them.
pub fn gather(mut plan: Plan) -> Plan {
    let mut first = 0;
    while first < plan.steps.len() {
        let mut end = first + 1;
        while end - first < Products::MOST as usize
            && let Some(late) = (end..plan.steps.len()).find(|&late| may_follow(&plan, first, late, end))
        {
            let step = plan.steps.remove(late);
            plan.steps.insert(end, step);
            end += 1;
        }
        first = end;
    }
    plan
}

/// Whether a step is a product like one before it, and may come behind that and its siblings, which end before `end`.
fn may_follow(plan: &Plan, first: usize, late: usize, end: usize) -> bool {
    are_siblings(plan, first, late) && (late == end || may_move(plan, late, end))
}

/// Lists them.
pub fn list(mut plan: Plan) -> Plan {
    let mut first = 0;
    while first < plan.steps.len() {
        let found = at(&plan, first);
        let count = found.as_ref().map_or(1, |products| products.count as usize);
        if count > 1 {
            keep_apart(&mut plan, first..first + count);
        }
        first += count;
        plan.products.extend(found);
    }
    plan
}

/// Whether two steps are products of one left operand and of equal extents.
fn are_siblings(plan: &Plan, one: usize, other: usize) -> bool {
    let of = |step: usize| {
        let Matmul { a, batch, m, n, k, dtype, tf32, .. } = plan.steps[step].matmul()?;
        // Of fp8 the template makes one product at a time.
        (*dtype != DType::F8E4M3).then_some((a, batch, m, n, k, dtype, tf32))
    };
    of(one).is_some() && of(one) == of(other)
}

/// Whether a step may run before those from `to` on that stand before it, and no attention is torn apart by that.
fn may_move(plan: &Plan, from: usize, to: usize) -> bool {
    let step = &plan.steps[from];
    let faults = step.matmul().is_some_and(|matmul| may_fault(&matmul.epilogue));
    !faults
        && plan.steps[to..from].iter().all(|other| are_independent(other, step))
        && ![to, from, from + 1].into_iter().any(|step| is_bound_to_rows(plan, step))
}

/// Whether a step and the one before it are rows and a product of which one reads what the other makes.
fn is_bound_to_rows(plan: &Plan, step: usize) -> bool {
    let is_rows = |step: &Step| step.kernel().is_some_and(|kernel| kernel.kind == Kind::Row);
    let Some([before, after]) = plan.steps.get(step - 1..=step) else { return false };
    (is_rows(before) || is_rows(after)) && written(before).iter().any(|buf| touched(after).contains(buf))
}

/// The products from a step on that one kernel may make, if those are several.
fn at(plan: &Plan, first: usize) -> Option<Products> {
    let mut together = Together::new(plan, first)?;
    while together.count < Products::MOST && together.take().is_some() {}
    (together.count > 1).then(|| together.finish())
}

/// Whether a step is one of attention.
fn is_of_attention(plan: &Plan, step: usize) -> bool {
    let attention = plan.attention.iter().map(|attention| (attention.first, 3));
    let forward = attention.chain(plan.fused.iter().map(|fused| (fused.steps.first, fused.count())));
    let back = plan.fused.iter().filter_map(|fused| fused.back.as_ref()).map(|back| (back.first, FusedBack::STEPS));
    forward.chain(back).any(|(first, count)| (first as usize..first as usize + count).contains(&step))
}

/// The program of several products under construction.
struct Together<'p> {
    plan: &'p Plan,
    first: usize,
    count: u32,
    kernel: Kernel,
    /// What has been stored, where it fills a buffer in order.
    stored: BTreeMap<BufId, StmtId>,
    /// All buffers that have been written.
    written: Vec<BufId>,
}

impl<'p> Together<'p> {
    /// With the product of the first step, if that is one.
    fn new(plan: &'p Plan, first: usize) -> Option<Self> {
        let matmul = plan.steps[first].matmul()?;
        let kernel = Kernel { leaves: vec![], stmts: vec![], stores: vec![], ops: vec![], ..matmul.epilogue.clone() };
        let (stored, written) = (BTreeMap::new(), vec![]);
        let mut together = Together { plan, first, count: 0, kernel, stored, written };
        together.take()?;
        Some(together)
    }

    /// Takes the next step, if it is a product of the same operand, and reads of what the others make only what is at hand.
    fn take(&mut self) -> Option<()> {
        let step = self.first + self.count as usize;
        let matmul = self.plan.steps.get(step)?.matmul()?;
        let epilogue = &matmul.epilogue;
        let is_new = |buf: BufId| !self.written.contains(&buf);
        let fits = are_siblings(self.plan, self.first, step)
            && !is_of_attention(self.plan, step)
            && is_new(matmul.b.buf)
            && epilogue.stores.iter().all(|store| is_new(store.to.buf) || !store.to.views.is_empty())
            && epilogue.leaves.iter().all(|leaf| self.can_read(leaf));
        if !fits {
            return None;
        }
        self.append(epilogue);
        self.count += 1;
        Some(())
    }

    /// What has been stored in the place of a leaf.
    fn at_hand(&self, leaf: &Leaf) -> Option<StmtId> {
        let stored = self.stored.get(&leaf.buf()?)?;
        leaf.is_in_place().then_some(*stored)
    }

    fn can_read(&self, leaf: &Leaf) -> bool {
        self.at_hand(leaf).is_some() || leaf.buf().is_none_or(|buf| !self.written.contains(&buf))
    }

    /// Appends what follows one more product.
    fn append(&mut self, epilogue: &Kernel) {
        let mut moved: Vec<StmtId> = Vec::new();
        for stmt in &epilogue.stmts {
            let mut stmt = stmt.clone();
            stmt.expr.operands_mut().iter_mut().for_each(|operand| *operand = moved[operand.0 as usize]);
            moved.push(self.push(epilogue, stmt));
        }
        for store in &epilogue.stores {
            let value = moved[store.value.0 as usize];
            if store.to.views.is_empty() && epilogue.store_level(store) == Level::Elem {
                self.stored.insert(store.to.buf, value);
            }
            self.written.push(store.to.buf);
            self.kernel.stores.push(crate::plan::Store { value, ..store.clone() });
        }
        self.kernel.ops.extend(&epilogue.ops);
    }

    /// Appends a statement of the epilogue, whose operands have been moved. A value that is at hand is not read, but as memory
    /// would hold it.
    fn push(&mut self, epilogue: &Kernel, mut stmt: Stmt) -> StmtId {
        match &mut stmt.expr {
            Expr::Load(leaf) if let Some(value) = self.at_hand(&epilogue.leaves[*leaf as usize]) => {
                return self.as_stored(value, stmt);
            }
            Expr::Load(leaf) | Expr::Gather { leaf, .. } => {
                *leaf = self.kernel.leaf(epilogue.leaves[*leaf as usize].clone());
            }
            Expr::Product(n) => *n = self.count,
            _ => {}
        }
        self.kernel.push(stmt)
    }

    /// A value in the place of a statement that would read what is stored of it.
    fn as_stored(&mut self, value: StmtId, read: Stmt) -> StmtId {
        let made = self.kernel.stmt(value);
        if made.dtype == read.dtype && (made.round || made.dtype == made.dtype.compute()) {
            return value;
        }
        self.kernel.push(Stmt { expr: Expr::Cast(value), round: true, ..read })
    }

    /// The products, without stores that nobody else reads.
    fn finish(mut self) -> Products {
        let (plan, steps) = (self.plan, self.first..self.first + self.count as usize);
        let is_wanted = |buf: BufId| {
            plan.bufs[buf.0 as usize].class != BufClass::Temp || touchers(plan, buf).any(|step| !steps.contains(&step))
        };
        self.kernel.stores.retain(|store| is_wanted(store.to.buf));
        self.kernel.ops.sort_unstable();
        self.kernel.ops.dedup();
        let mut program = super::prune::run(self.kernel);
        program.name = super::names::of_products(plan, self.first, &program);
        Products { first: self.first as u32, count: self.count, program }
    }
}
