//! When buffers live, and which may take the memory of another.

use crate::plan::{Buf, BufClass, BufId, Kernel, Kind, Leaf, Plan, Step};
use std::ops::Range;

/// Fills in live ranges and donors.
pub fn run(mut plan: Plan) -> Plan {
    let touched: Vec<Vec<BufId>> = plan.steps.iter().map(touched).collect();
    let end = plan.steps.len().saturating_sub(1) as u32;
    for (id, buf) in plan.bufs.iter_mut().enumerate() {
        let id = BufId(id as u32);
        let mut steps = (0..touched.len()).filter(|&s| touched[s].contains(&id)).map(|s| s as u32);
        let first = steps.next().unwrap_or(0);
        let last = steps.next_back().unwrap_or(first);
        buf.live = match buf.class {
            BufClass::In(_) => (0, last),
            BufClass::Out => (first, end),
            BufClass::Temp => (first, last),
        };
    }
    for out in plan.outs.clone() {
        plan.bufs[out.buf.0 as usize].live.1 = end;
    }
    for step in 0..plan.steps.len() {
        donate(&mut plan, step as u32);
    }
    plan
}

/// The steps that have to do with a buffer.
pub fn touchers(plan: &Plan, buf: BufId) -> impl Iterator<Item = usize> {
    (0..plan.steps.len()).filter(move |&step| touched(&plan.steps[step]).contains(&buf))
}

/// The buffers that a step writes.
pub fn written(step: &Step) -> Vec<BufId> {
    step.program().written().chain(step.matmul().map(|matmul| matmul.lib.product.buf)).collect()
}

/// The buffers that a step reads.
pub fn read(step: &Step) -> Vec<BufId> {
    step.program().read().chain(multiplied(step)).collect()
}

/// The matrices that a step multiplies: a kernel of ours reads them while it writes.
fn multiplied(step: &Step) -> impl Iterator<Item = BufId> {
    step.matmul().into_iter().flat_map(|matmul| [matmul.a.buf, matmul.b.buf])
}

/// The buffers that a step has to do with. What a library does of it has to do with no others.
pub fn touched(step: &Step) -> Vec<BufId> {
    [read(step), written(step)].concat()
}

/// Whether neither of two steps writes what the other has to do with.
pub fn are_independent(one: &Step, other: &Step) -> bool {
    let leaves_alone = |writer: &Step, touched: &[BufId]| written(writer).iter().all(|buf| !touched.contains(buf));
    leaves_alone(one, &touched(other)) && leaves_alone(other, &touched(one))
}

/// Whether a buffer takes its memory from none that an earlier step has filled.
pub fn takes_no_memory(plan: &Plan, buf: &Buf) -> bool {
    buf.donor.is_none_or(|donor| plan.bufs[donor.0 as usize].live.0 == buf.live.0)
}

/// Lets none of the steps that may run at once write over what another one of them reads from memory.
pub fn keep_apart(plan: &mut Plan, steps: Range<usize>) {
    for step in steps.clone() {
        let others = steps.clone().filter(|other| *other != step);
        let others: Vec<BufId> = others.flat_map(|other| read(&plan.steps[other])).collect();
        for buf in written(&plan.steps[step]) {
            let buf = &mut plan.bufs[buf.0 as usize];
            if buf.live.0 == step as u32 {
                buf.donor = buf.donor.filter(|donor| !others.contains(donor));
            }
        }
    }
}

/// The elementwise kernel that ends a step, where one does: it, or what follows the library's product.
fn map_of(step: &Step) -> Option<&Kernel> {
    step.rest().filter(|kernel| kernel.kind == Kind::Map)
}

/// An elementwise kernel may write over a temporary it is the last to read, if every point reads only its own place.
fn donate(plan: &mut Plan, step: u32) {
    let Some(kernel) = map_of(&plan.steps[step as usize]).cloned() else { return };
    let multiplied: Vec<BufId> = multiplied(&plan.steps[step as usize]).collect();
    let mut given: Vec<BufId> = Vec::new();
    for store in kernel.stores.iter().filter(|s| s.to.views.is_empty()) {
        let to = store.to.buf;
        let donor = kernel.leaves.iter().filter(|leaf| leaf.is_in_place()).filter_map(Leaf::buf).find(|from| {
            let (old, new) = (&plan.bufs[from.0 as usize], &plan.bufs[to.0 as usize]);
            let dies = old.class == BufClass::Temp && old.live.1 == step && new.live.0 == step;
            let read_once = kernel.read().filter(|read| read == from).count() == 1;
            let is_free = !given.contains(from) && !multiplied.contains(from);
            dies && read_once && old.ty == new.ty && is_free
        });
        if let Some(donor) = donor {
            given.push(donor);
            plan.bufs[to.0 as usize].donor = Some(donor);
        }
    }
}
