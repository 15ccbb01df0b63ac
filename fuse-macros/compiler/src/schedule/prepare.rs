//! Puts copies where a value must lie in memory in an order its views cannot give.
//!
//! Three places need one: a reshape that merges axes which no longer lie next to each other, a matmul or gather or
//! scatter operand that lives nowhere (a constant, positions), and a gathered table under views that move more than
//! whole axes. The copies are ordinary elementwise nodes, so they fuse with what makes the value.

use super::views::{behind_views, source_axis};
use super::walk::is_walkable;
use crate::graph::{Graph, Node, Rewrite};
use crate::op::rules::axis_of;
use crate::op::{Build, Class, Op, Source, Val, ViewKind};
use crate::plan::View;

/// Adds the copies.
pub fn run(graph: Graph) -> Graph {
    Rewrite::run(graph, |new, node| {
        let mut node = node.clone();
        for k in 0..node.args.len() {
            if needs_copy(new, &node, k) {
                node.args[k] = new.push(Op::named("contiguous"), &[node.args[k]], vec![]);
            }
        }
        Rewrite::keep(new, &node)
    })
}

fn needs_copy(graph: &Graph, node: &Node, operand: usize) -> bool {
    let arg = node.args[operand];
    match node.op.class {
        Class::View(ViewKind::Reshape) => {
            let (root, views) = behind_views(graph, arg);
            let reshaped = [views, vec![View::Reshape(node.outs[0].dims.clone())]].concat();
            !is_walkable(&graph.node(root).outs[root.out as usize].dims, &reshaped)
        }
        Class::Matmul => lives_nowhere(graph, arg),
        Class::Gather if operand == 0 => lives_nowhere(graph, arg) || !is_indexable(graph, node),
        _ => false,
    }
}

fn lives_nowhere(graph: &Graph, val: Val) -> bool {
    let (root, _) = behind_views(graph, val);
    matches!(graph.node(root).op.class, Class::Source(kind) if kind != Source::Input)
}

/// Whether the axis a gather indexes is a whole axis of the memory behind its table.
fn is_indexable(graph: &Graph, node: &Node) -> bool {
    let (root, views) = behind_views(graph, node.args[0]);
    let axis = axis_of(&node.attrs[0], graph.ty(node.args[0]).rank());
    source_axis(graph.ty(root).rank(), &views, axis).is_some()
}
