//! Opens composites: softmax, layer_norm, linear and their like become the primitives their rows name.
//!
//! A composite rounds once, at its end: its row computes in the compute type and casts last.

use crate::graph::{Graph, Rewrite};

/// Opens every composite, also those that open into composites.
pub fn run(graph: Graph) -> Graph {
    let mut graph = graph;
    while graph.nodes.iter().any(|n| n.op.decompose.is_some()) {
        graph = Rewrite::run(graph, |new, node| match node.op.decompose {
            Some(open) => open(new, &node.args, &node.attrs),
            None => Rewrite::keep(new, node),
        });
    }
    graph
}
