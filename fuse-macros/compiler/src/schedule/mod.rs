//! Decides which ops share a kernel, what is stored and what is computed again, and lays the result out as a plan.

mod attention;
mod buffers;
mod facts;
mod faults;
mod frame;
mod group;
mod groups;
mod in_place;
mod kernel;
mod lower;
mod matmul;
mod merge;
mod missed;
mod names;
mod prepare;
mod products;
mod prune;
mod sink;
mod small;
mod sooner;
mod spill;
#[cfg(test)]
mod tests;
mod together;
mod views;
mod walk;

use crate::graph::Graph;
use crate::plan::{Plan, Step};
use crate::types::DType;

/// What the scheduler may assume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// `precision = "high"`: f32 products may use TF32.
    pub tf32: bool,
    /// `numerics = "fast"`: products may contract with the sums they go into.
    pub contract: bool,
    /// The graph is a turn of a loop: where all of it can be left out, the device decides whether it is.
    pub is_turn: bool,
}

/// Schedules an optimised graph.
pub fn run(graph: &Graph, options: Options) -> Plan {
    let graph = prepare::run(graph.clone());
    let groups = groups::Groups::build(&graph);
    let (plan, joined) = lower::run(&groups);
    let plan = together::run(sooner::run(plan));
    let plan = sink::run(plan, &joined);
    let plan = products::gather(plan);
    let plan = names::run(plan);
    let plan = buffers::run(plan);
    let plan = attention::run(plan);
    let plan = products::list(plan);
    let plan = in_place::run(plan);
    let mut plan = if options.is_turn { plan } else { small::list(plan) };
    plan.contract = options.contract;
    if options.tf32 {
        allow_tf32(&mut plan);
    }
    if options.is_turn {
        let_ask(&mut plan);
    }
    plan
}

/// Lets every kernel ask whether it has anything to do, unless there are products, which the library does not leave out.
fn let_ask(plan: &mut Plan) {
    if plan.can_be_left_out() {
        plan.steps.iter_mut().flat_map(Step::kernels_mut).for_each(|kernel| kernel.asks = true);
    }
}

fn allow_tf32(plan: &mut Plan) {
    for matmul in plan.steps.iter_mut().filter_map(Step::matmul_mut) {
        matmul.tf32 = matmul.dtype == DType::F32;
    }
}
