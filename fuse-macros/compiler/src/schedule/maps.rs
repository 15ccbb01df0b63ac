//! Lists small maps that do not depend on one another, so that one launch may run them.
//!
//! It comes last, since it only describes what has been scheduled. Nothing is moved for it: what lies between two maps may need the
//! memory that one of them would hold longer.

use super::buffers::{keep_apart, read, touched, written};
use crate::plan::abi::maps::{fit, may_share};
use crate::plan::{Kernel, Maps, Plan, Step};

/// Lists them.
pub fn list(mut plan: Plan) -> Plan {
    let letter = super::names::letter(&plan);
    let mut first = 0;
    while first < plan.steps.len() {
        let count = count(&plan, first);
        if count > 1 {
            let name = format!("{letter}{first}_maps");
            plan.maps.push(Maps { first: first as u32, count: count as u32, name });
            keep_apart(&mut plan, first..first + count);
        }
        first += count.max(1);
    }
    plan
}

/// How many steps from one on are such maps.
fn count(plan: &Plan, first: usize) -> usize {
    let mut count = 0;
    while count < Maps::MOST as usize && joins(plan, first, count) {
        count += 1;
    }
    count
}

/// Whether a map may run beside so many before it.
fn joins(plan: &Plan, first: usize, count: usize) -> bool {
    let Some(kernel) = map_at(plan, first + count).filter(|kernel| may_share(kernel)) else { return false };
    if plan.writes.iter().any(|write| write.copy as usize == first + count) {
        return false;
    }
    let before = &plan.steps[first..first + count];
    let (touched, writes) = (touched(&plan.steps[first + count]), written(&plan.steps[first + count]));
    let is_apart = |other: &Step| {
        written(other).iter().all(|buf| !touched.contains(buf)) && read(other).iter().all(|buf| !writes.contains(buf))
    };
    let all = (first..first + count).filter_map(|step| map_at(plan, step)).chain([kernel]);
    fit(all) && before.iter().all(is_apart)
}

fn map_at(plan: &Plan, step: usize) -> Option<&Kernel> {
    match plan.steps.get(step) {
        Some(Step::Kernel(kernel)) => Some(kernel),
        _ => None,
    }
}
