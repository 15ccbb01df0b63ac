//! Lists small kernels that do not depend on one another, so that one launch may run them.
//!
//! It comes last, since it only describes what has been scheduled. Nothing is moved for it: what lies between two kernels may need the
//! memory that one of them would hold longer.

use super::buffers::{are_independent, keep_apart};
use crate::plan::abi::small::{fit, may_share};
use crate::plan::{Plan, SmallKernels, Step};

/// Lists them.
pub fn list(mut plan: Plan) -> Plan {
    let mut first = 0;
    while first < plan.steps.len() {
        let count = count(&plan, first);
        if count > 1 {
            let name = super::names::of(&plan, first, "small");
            plan.small.push(SmallKernels { first: first as u32, count: count as u32, name });
            keep_apart(&mut plan, first..first + count);
        }
        first += count.max(1);
    }
    plan
}

/// How many steps from one on are such kernels.
fn count(plan: &Plan, first: usize) -> usize {
    let mut count = 0;
    while count < SmallKernels::MOST as usize && joins(plan, first, count) {
        count += 1;
    }
    count
}

/// Whether a kernel may run beside so many before it.
fn joins(plan: &Plan, first: usize, count: usize) -> bool {
    let step = plan.steps.get(first + count).and_then(Step::kernel);
    let Some(kernel) = step.filter(|kernel| may_share(kernel)) else { return false };
    if plan.write_at(first + count).is_some() {
        return false;
    }
    let (before, step) = (&plan.steps[first..first + count], &plan.steps[first + count]);
    let all = before.iter().filter_map(Step::kernel).chain([kernel]);
    fit(all) && before.iter().all(|other| are_independent(other, step))
}
