//! Opens the composites on the way whose gradient is that of the graph they stand for.

use super::{Request, flow};
use crate::graph::{Graph, Rewrite};

/// Opens them, also those that open into such composites.
pub(super) fn run(mut graph: Graph, request: &Request) -> Graph {
    loop {
        let active = flow::active(&graph, request);
        let opens: Vec<bool> =
            graph.nodes.iter().zip(active).map(|(node, active)| active && flow::opens(&graph, node)).collect();
        if !opens.contains(&true) {
            return graph;
        }
        let mut opens = opens.into_iter();
        graph = Rewrite::run(graph, |new, node| match opens.next() {
            Some(true) => node.op.open(new, &node.args, &node.attrs).expect("the op is no primitive"),
            _ => Rewrite::keep(new, node),
        });
    }
}
