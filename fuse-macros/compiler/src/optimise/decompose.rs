//! Opens composites: softmax, layer_norm, linear and their like become the primitives their rows name.
//!
//! A composite rounds once, at its end: its row computes in the compute type and casts last.

use crate::graph::{Graph, Rewrite};
use crate::op::Build;

/// Opens every composite, also those that open into composites.
pub fn run(graph: Graph) -> Graph {
    let mut graph = graph;
    while graph.nodes.iter().any(|node| node.op.opens(node.args.first().map(|&arg| graph.ty(arg)))) {
        graph = Rewrite::run(graph, |new, node| {
            node.op.open(new, &node.args, &node.attrs).unwrap_or_else(|| Rewrite::keep(new, node))
        });
    }
    graph
}
