//! Merges nodes that compute the same value. Random draws are never the same.

use crate::graph::{Graph, Node, Rewrite};
use crate::op::{OpEffect, Val};
use std::collections::HashMap;

/// What equal nodes have in common: the op and its operands.
type Key = (&'static str, Vec<Val>);

/// Merges equal nodes into the first of them.
pub fn run(graph: Graph) -> Graph {
    // Buckets by operator and operands; attributes hold floats and are compared, not hashed.
    let mut seen: HashMap<Key, Vec<(Node, Vec<Val>)>> = HashMap::new();
    Rewrite::run(graph, |new, node| {
        if node.op.effect == OpEffect::Rng {
            return Rewrite::keep(new, node);
        }
        let bucket = seen.entry((node.op.name, node.args.clone())).or_default();
        let twin = bucket.iter().find(|(other, _)| same(other, node)).map(|(_, results)| results.clone());
        twin.unwrap_or_else(|| {
            let results = Rewrite::keep(new, node);
            bucket.push((node.clone(), results.clone()));
            results
        })
    })
}

fn same(a: &Node, b: &Node) -> bool {
    a.attrs == b.attrs && a.outs == b.outs && a.round == b.round
}
