//! What is made again on the way back however much room there is: attention's matrices of queries by keys, and what is drawn.

use crate::graph::Graph;
use crate::op::{Class, OpEffect, Source, Val};
use std::collections::BTreeSet;

/// Attention that is written out: a product, a softmax over what becomes of it, and a product with what becomes of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attention {
    /// Where the first product stands, as an index into the graph's places.
    pub place: u32,
    /// The first product, and all nodes between the two, which nobody else reads.
    pub nodes: BTreeSet<usize>,
}

/// All attention of a graph that is written out.
pub(super) fn attention(graph: &Graph) -> Vec<Attention> {
    let live = live(graph);
    let softmaxes = live.iter().copied().filter(|&node| graph.nodes[node].op.name == "softmax");
    softmaxes.filter_map(|softmax| around(graph, &live, softmax)).collect()
}

/// The nodes that results need.
fn live(graph: &Graph) -> BTreeSet<usize> {
    let mut live = BTreeSet::new();
    let mut open: Vec<Val> = graph.outs.clone();
    while let Some(val) = open.pop() {
        if live.insert(val.node as usize) {
            open.extend(&graph.node(val).args);
        }
    }
    live
}

/// The attention whose rows are a softmax.
fn around(graph: &Graph, live: &BTreeSet<usize>, softmax: usize) -> Option<Attention> {
    let (first, mut nodes) = before(graph, softmax)?;
    let mut second = None;
    for &node in live.range(first + 1..) {
        let info = &graph.nodes[node];
        let is_operand = || info.op.class == Class::Matmul && nodes.contains(&(info.args[0].node as usize));
        match info.op.class {
            _ if nodes.contains(&node) || !reads(graph, node, &nodes) => {}
            Class::Elementwise if node > softmax => _ = nodes.insert(node),
            _ if second.is_none() && is_operand() => second = Some(node),
            _ => return None,
        }
    }
    let is_result = |out: &Val| nodes.contains(&(out.node as usize));
    let place = graph.nodes[first].place;
    (second.is_some() && !graph.outs.iter().any(is_result)).then_some(Attention { place, nodes })
}

/// The product that a softmax is of, and what lies between the two, both included.
fn before(graph: &Graph, softmax: usize) -> Option<(usize, BTreeSet<usize>)> {
    let (mut points, mut products) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![graph.nodes[softmax].args[0].node as usize];
    while let Some(node) = open.pop() {
        match graph.nodes[node].op.class {
            Class::Matmul => _ = products.insert(node),
            Class::Elementwise if points.insert(node) => {
                open.extend(graph.nodes[node].args.iter().map(|arg| arg.node as usize));
            }
            _ => {}
        }
    }
    let first = products.pop_first().filter(|_| products.is_empty())?;
    // Masks and other operands are not made of the product, and others may read them, too.
    let mut nodes = BTreeSet::from([first, softmax]);
    for &node in points.range(first + 1..) {
        if reads(graph, node, &nodes) {
            nodes.insert(node);
        }
    }
    Some((first, nodes))
}

/// Whether a node reads one of these.
fn reads(graph: &Graph, node: usize, nodes: &BTreeSet<usize>) -> bool {
    graph.nodes[node].args.iter().any(|arg| nodes.contains(&(arg.node as usize)))
}

/// The nodes that are made of random draws and numbers alone, point by point. A generator in the state it had gives them again.
pub(super) fn drawn(graph: &Graph) -> BTreeSet<usize> {
    let mut drawn = BTreeSet::new();
    // What has no operands but is known anyhow, as a constant is.
    let mut known = BTreeSet::new();
    for (id, node) in graph.nodes.iter().enumerate() {
        let is_of = |set: &BTreeSet<usize>, arg: &Val| set.contains(&(arg.node as usize));
        match node.op.class {
            _ if node.op.effect == OpEffect::Rng => _ = drawn.insert(id),
            Class::Source(Source::Input) => {}
            Class::Source(_) => _ = known.insert(id),
            Class::Elementwise | Class::View(_) => {
                if node.args.iter().all(|arg| is_of(&known, arg)) {
                    known.insert(id);
                } else if node.args.iter().all(|arg| is_of(&known, arg) || is_of(&drawn, arg)) {
                    drawn.insert(id);
                }
            }
            _ => {}
        }
    }
    drawn
}
