//! Lets a product that frees memory run before one that takes some, where neither waits for the other.
//!
//! The gradients of both operands of a product stand one behind the other in the program. That of the weight is often the last to read what
//! was kept for it, and small; that of the other operand is large, and had better come when this is freed.

use super::buffers::{are_independent, touched, written};
use crate::plan::{BufClass, BufId, Plan, Step};

/// Changes the order of neighbouring products until none of them frees memory behind one that takes it.
pub fn run(mut plan: Plan) -> Plan {
    // Each round brings a product one step further, at least.
    for _ in 0..plan.steps.len() {
        let Some(step) = (1..plan.steps.len()).find(|&step| comes_sooner(&plan, step)) else { break };
        plan.steps.swap(step - 1, step);
    }
    plan
}

/// Whether a step had better run before the one in front of it. Of attention, whose steps stay together, products have batch axes.
fn comes_sooner(plan: &Plan, step: usize) -> bool {
    let is_plain = |step: &Step| step.matmul().is_some_and(|matmul| matmul.batch.is_empty());
    let [before, own] = [&plan.steps[step - 1], &plan.steps[step]];
    is_plain(before)
        && is_plain(own)
        && are_independent(before, own)
        && balance(plan, step - 1, &[]) > 0
        && balance(plan, step, &touched(before)) <= 0
}

/// Bytes that a step takes less those that it frees, of which some buffers are not.
fn balance(plan: &Plan, step: usize, kept: &[BufId]) -> i64 {
    let bytes = |buf: &BufId| {
        let ty = &plan.bufs[buf.0 as usize].ty;
        ty.likely_numel() * ty.dtype.compute().bytes().max(1) as i64
    };
    let behind = |buf: &BufId| plan.steps[step + 1..].iter().any(|later| touched(later).contains(buf));
    let is_freed = |buf: &BufId| {
        let is_ours = plan.bufs[buf.0 as usize].class == BufClass::Temp;
        is_ours && !behind(buf) && !kept.contains(buf) && plan.outs.iter().all(|out| out.buf != *buf)
    };
    let own = &plan.steps[step];
    let mut all = touched(own);
    all.sort_unstable();
    all.dedup();
    let taken: i64 = all.iter().filter(|buf| written(own).contains(buf)).map(bytes).sum();
    taken - all.iter().filter(|buf| is_freed(buf)).map(bytes).sum::<i64>()
}
