//! View nodes of the graph as views of the plan.

use crate::graph::{Graph, Node};
use crate::op::rules::{axes_of, axis_of};
use crate::op::{Class, Val, ViewKind};
use crate::plan::View;
use crate::types::Dim;

/// The view a `View` node stands for.
fn view_of(graph: &Graph, node: &Node, kind: ViewKind) -> View {
    let rank = graph.node(node.args[0]).outs[node.args[0].out as usize].rank();
    let axis = |rank: usize| axis_of(&node.attrs[0], rank) as u32;
    let axes = || axes_of(&node.attrs[0], rank).into_iter().map(|k| k as u32).collect();
    match kind {
        ViewKind::Reshape => View::Reshape(node.outs[0].dims.clone()),
        ViewKind::Expand => View::Expand(node.outs[0].dims.clone()),
        ViewKind::Permute => View::Permute(axes()),
        ViewKind::Unsqueeze => View::Unsqueeze(axis(rank + 1)),
        ViewKind::Squeeze => View::Squeeze(axis(rank)),
        ViewKind::Narrow => {
            View::Slice { axis: axis(rank), start: node.attrs[1].dim(), len: node.attrs[2].dim(), step: 1 }
        }
        ViewKind::Flip => View::Flip(axes()),
    }
}

/// A value as the value that owns its elements, and the views between.
pub fn behind_views(graph: &Graph, mut val: Val) -> (Val, Vec<View>) {
    let mut chains = Vec::new();
    while let Class::View(kind) = graph.node(val).op.class {
        let node = graph.node(val);
        chains.push(view_of(graph, node, kind));
        val = node.args[0];
    }
    chains.reverse();
    (val, chains)
}

/// The views that broadcast a value of these extents to those; none where they are equal.
pub fn broadcast(from: &[Dim], to: &[Dim]) -> Vec<View> {
    if from == to { vec![] } else { vec![View::Expand(to.to_vec())] }
}

/// Drops views that change nothing and joins neighbours, so that equal accesses are equal chains.
pub fn normal(dims: &[Dim], views: &[View]) -> Vec<View> {
    let mut out: Vec<View> = Vec::new();
    let mut at = dims.to_vec();
    for view in views {
        let next = super::frame::dims_after(&at, std::slice::from_ref(view));
        let idle = match view {
            View::Permute(order) => order.iter().enumerate().all(|(k, &o)| k as u32 == o),
            View::Reshape(_) | View::Expand(_) => next == at,
            View::Slice { start, step, .. } => next == at && *start == Dim::Const(0) && *step == 1,
            _ => false,
        };
        if !idle {
            join(&mut out, view.clone());
        }
        at = next;
    }
    out
}

fn join(out: &mut Vec<View>, view: View) {
    match (out.last_mut(), view) {
        (Some(View::Permute(first)), View::Permute(second)) => {
            *first = second.iter().map(|&k| first[k as usize]).collect();
            if first.iter().enumerate().all(|(k, &o)| k as u32 == o) {
                out.pop();
            }
        }
        (Some(View::Expand(first)), View::Expand(second)) => *first = second,
        (_, view) => out.push(view),
    }
}
