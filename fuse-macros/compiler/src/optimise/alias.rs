//! Tensors are values: a result never shares memory with an input or with another result.
//!
//! Where a result is an input, or two results are one value, perhaps under views, a copy is added.

use crate::graph::Graph;
use crate::op::{Build, Class, Op, Val};

/// Adds the copies.
pub fn run(mut graph: Graph) -> Graph {
    let mut taken: Vec<Val> = graph.inputs.clone();
    let start = graph.nodes.len();
    for k in 0..graph.outs.len() {
        let out = graph.outs[k];
        let root = graph.behind_views(out);
        if taken.contains(&root) || needs_memory(&graph, root) {
            graph.outs[k] = graph.push(Op::named("contiguous"), &[out], vec![]);
        } else {
            taken.push(root);
        }
    }
    for copy in start..graph.nodes.len() {
        graph.nodes[copy].place = graph.node(graph.nodes[copy].args[0]).place;
    }
    graph
}

/// Constants, scalars and positions live nowhere until somebody stores them.
fn needs_memory(graph: &Graph, root: Val) -> bool {
    matches!(graph.node(root).op.class, Class::Source(_))
}
