//! When buffers live, and which may take the memory of another.

use crate::plan::{Buf, BufClass, BufId, Kernel, Kind, Leaf, LeafSource, Level, Plan, Step};
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
    let of = |kernel: &Kernel| kernel.stores.iter().map(|store| store.to.buf).collect::<Vec<_>>();
    match step {
        Step::Kernel(kernel) => of(kernel),
        Step::Matmul(matmul) => [of(&matmul.epilogue), vec![matmul.lib.product.buf]].concat(),
    }
}

/// The buffers that a step reads.
pub fn read(step: &Step) -> Vec<BufId> {
    let of = |kernel: &Kernel| {
        let buf = |leaf: &Leaf| if let LeafSource::Buf(buf) = leaf.source { Some(buf) } else { None };
        kernel.leaves.iter().filter_map(buf).collect::<Vec<_>>()
    };
    match step {
        Step::Kernel(kernel) => of(kernel),
        Step::Matmul(matmul) => [of(&matmul.epilogue), multiplied(step)].concat(),
    }
}

/// The matrices that a step multiplies: a kernel of ours reads them while it writes.
fn multiplied(step: &Step) -> Vec<BufId> {
    match step {
        Step::Kernel(_) => vec![],
        Step::Matmul(matmul) => vec![matmul.a.buf, matmul.b.buf],
    }
}

/// The buffers that a step has to do with.
pub fn touched(step: &Step) -> Vec<BufId> {
    let of = |kernel: &Kernel| {
        let leaves = kernel.leaves.iter().filter_map(|l| match l.source {
            LeafSource::Buf(buf) => Some(buf),
            LeafSource::Index(_) => None,
        });
        leaves.chain(kernel.stores.iter().map(|s| s.to.buf)).collect::<Vec<_>>()
    };
    match step {
        Step::Kernel(kernel) => of(kernel),
        Step::Matmul(m) => {
            let mut bufs = of(&m.epilogue);
            bufs.extend(m.lib.rest.iter().flat_map(of));
            bufs.extend([m.a.buf, m.b.buf, m.lib.product.buf]);
            bufs.extend(m.lib.bias.iter().map(|b| b.buf));
            bufs
        }
    }
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
    let multiplied = multiplied(&plan.steps[step as usize]);
    let mut given: Vec<BufId> = Vec::new();
    for store in kernel.stores.iter().filter(|s| s.to.views.is_empty()) {
        let to = store.to.buf;
        let donor = kernel.leaves.iter().find_map(|leaf| match leaf.source {
            LeafSource::Buf(from) if leaf.views.is_empty() && leaf.level == Level::Elem => {
                let (old, new) = (&plan.bufs[from.0 as usize], &plan.bufs[to.0 as usize]);
                let dies = old.class == BufClass::Temp && old.live.1 == step && new.live.0 == step;
                let read_once = kernel.leaves.iter().filter(|l| l.source == leaf.source).count() == 1;
                let is_free = !given.contains(&from) && !multiplied.contains(&from);
                (dies && read_once && old.ty == new.ty && is_free).then_some(from)
            }
            _ => None,
        });
        if let Some(donor) = donor {
            given.push(donor);
            plan.bufs[to.0 as usize].donor = Some(donor);
        }
    }
}
