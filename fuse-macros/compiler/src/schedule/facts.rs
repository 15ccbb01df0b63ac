//! What is asked of a node before it is in a kernel.

use crate::graph::Graph;
use crate::op::{Attr, Class, OpEffect, Reduction, Source, Val};

/// The kind and the axes of a reduction node, ascending.
pub fn reduction(graph: &Graph, node: u32) -> (Reduction, Vec<usize>) {
    let info = &graph.nodes[node as usize];
    let Class::Reduce(kind) = info.op.class else { unreachable!("{} is no reduction", info.op.name) };
    let rank = graph.node(info.args[0]).outs[info.args[0].out as usize].rank();
    let axes = match info.attrs.first() {
        Some(Attr::Int(axis)) => vec![axis.rem_euclid(rank.max(1) as i64) as usize],
        _ => (0..rank).collect(),
    };
    (kind, axes)
}

/// The axis an attribute of a node names, counted from the front of its first operand.
pub fn axis_attr(graph: &Graph, node: u32, attr: usize) -> usize {
    let info = &graph.nodes[node as usize];
    let rank = graph.node(info.args[0]).outs[info.args[0].out as usize].rank().max(1) as i64;
    match &info.attrs[attr] {
        Attr::Int(axis) => axis.rem_euclid(rank) as usize,
        other => unreachable!("an axis is an integer: {other:?}"),
    }
}

/// Rows are along the innermost axis, or along all axes flattened; everything else is a column.
pub fn is_row_order(axes: &[usize], rank: usize) -> bool {
    axes.len() == rank || axes == [rank - 1]
}

/// All axes in order, the reduced ones moved to the end.
pub fn reduced_last(rank: usize, axes: &[usize]) -> Vec<u32> {
    let kept = (0..rank).filter(|k| !axes.contains(k));
    kept.chain(axes.iter().copied()).map(|k| k as u32).collect()
}

/// Whether one value is made of constants, sizes and host scalars alone, like the scale of attention.
pub fn is_from_nothing(graph: &Graph, val: Val) -> bool {
    let node = graph.node(val);
    match node.op.class {
        Class::Source(Source::Constant | Source::Scalar | Source::Size) => true,
        Class::Elementwise => node.outs[0].dims.is_empty() && node.args.iter().all(|&arg| is_from_nothing(graph, arg)),
        _ => false,
    }
}

/// Whether a node draws random numbers.
pub fn is_draw(graph: &Graph, node: u32) -> bool {
    graph.nodes[node as usize].op.effect == OpEffect::Rng
}
