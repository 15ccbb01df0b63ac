//! Removes what no result needs. Inputs, scalars and random draws stay: the first two are the signature, and a draw
//! moves the generator on for whoever draws next.

use crate::graph::{Graph, Rewrite};
use crate::op::OpEffect;

/// Removes dead nodes.
pub fn run(graph: Graph) -> Graph {
    let live = live(&graph);
    let mut graph = graph;
    // A check stays if its node goes: the original would have failed there. It moves to the first node.
    for (node, _) in graph.checks.iter_mut().chain(&mut graph.guards) {
        if !live[*node as usize] {
            *node = 0;
        }
    }
    Rewrite::retain(graph, &live)
}

fn live(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    for val in graph.outs.iter().chain(&graph.inputs).chain(&graph.scalars) {
        live[val.node as usize] = true;
    }
    for (id, node) in graph.nodes.iter().enumerate().rev() {
        live[id] |= node.op.effect == OpEffect::Rng;
        if live[id] {
            node.args.iter().for_each(|a| live[a.node as usize] = true);
        }
    }
    live
}
