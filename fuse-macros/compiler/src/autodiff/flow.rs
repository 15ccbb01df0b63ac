//! Which nodes lie between the wanted inputs and the results.

use super::{Mistake, Request, Seed};
use crate::graph::{Graph, Node};
use crate::op::{Build, Gradient};

/// For each node, whether cotangents go through it: it depends on a wanted input, and a result depends on it, both
/// through ops that have a gradient.
pub(super) fn active(graph: &Graph, request: &Request) -> Vec<bool> {
    let reached = reached(graph, &request.wrt, is_smooth);
    let needed = needed(graph, request);
    reached.into_iter().zip(needed).map(|(reached, needed)| reached && needed).collect()
}

/// Whether an input that the results depend on has a gradient: there is none if every way leads through an op without.
pub(super) fn defined(graph: &Graph, request: &Request, input: u32) -> Result<(), Mistake> {
    let needed = needed(graph, request);
    let (by_any, by_smooth) = (reached(graph, &[input], |_| true), reached(graph, &[input], has_gradient));
    let arrives = |reached: &[bool]| {
        let mut outs = graph.outs.iter().zip(&request.seeds);
        outs.any(|(out, &seed)| seed != Seed::Nothing && reached[out.node as usize])
    };
    if !arrives(&by_any) || arrives(&by_smooth) {
        return Ok(());
    }
    let stops = |&(id, node): &(usize, &Node)| {
        let depends = node.args.iter().any(|arg| by_smooth[arg.node as usize]);
        needed[id] && depends && !has_gradient(node)
    };
    let (_, node) = graph.nodes.iter().enumerate().find(stops).expect("what leads on from there has no gradient");
    Err(Mistake::Undefined { input, op: node.op, place: node.place })
}

/// The nodes that depend on inputs, through nodes that let them.
fn reached(graph: &Graph, inputs: &[u32], lets: fn(&Node) -> bool) -> Vec<bool> {
    let mut reached = vec![false; graph.nodes.len()];
    inputs.iter().for_each(|&input| reached[graph.inputs[input as usize].node as usize] = true);
    for (id, node) in graph.nodes.iter().enumerate() {
        reached[id] |= lets(node) && node.args.iter().any(|arg| reached[arg.node as usize]);
    }
    reached
}

/// The nodes that results with a cotangent depend on.
fn needed(graph: &Graph, request: &Request) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes.len()];
    for (out, &seed) in graph.outs.iter().zip(&request.seeds) {
        needed[out.node as usize] |= seed != Seed::Nothing;
    }
    for (id, node) in graph.nodes.iter().enumerate().rev().filter(|(_, node)| !node.args.is_empty()) {
        if needed[id] {
            node.args.iter().for_each(|arg| needed[arg.node as usize] = true);
        }
    }
    needed
}

/// Whether cotangents go through a node. Integers and bools have none.
fn is_smooth(node: &Node) -> bool {
    has_gradient(node) && !matches!(node.op.gradient, Gradient::Zero)
}

/// Whether a node has a gradient, be it zero.
fn has_gradient(node: &Node) -> bool {
    !matches!(node.op.gradient, Gradient::Undefined) && node.outs.iter().all(|ty| ty.dtype.is_float())
}

/// Whether a node of these is differentiated as the graph it stands for.
pub(super) fn opens(graph: &Graph, node: &Node) -> bool {
    let is_opened = matches!(node.op.gradient, Gradient::Opened);
    let is_of_one = node.op.lone && node.args.first().is_some_and(|&arg| graph.ty(arg).rank() == 0);
    is_opened || is_of_one
}
