//! View nodes of the graph as views of the plan.

use crate::graph::{Graph, Node};
use crate::op::{Attr, Class, Val, ViewKind};
use crate::plan::View;
use crate::types::Dim;

/// The view a `View` node stands for.
fn view_of(graph: &Graph, node: &Node) -> View {
    let operand = &graph.node(node.args[0]).outs[node.args[0].out as usize];
    let rank = operand.rank() as i64;
    match node.op.class {
        Class::View(ViewKind::Reshape) => View::Reshape(node.outs[0].dims.clone()),
        Class::View(ViewKind::Expand) => View::Expand(node.outs[0].dims.clone()),
        Class::View(ViewKind::Permute) => View::Permute(axes(&node.attrs[0], rank)),
        Class::View(ViewKind::Flip) => View::Flip(axes(&node.attrs[0], rank)),
        Class::View(ViewKind::Unsqueeze) => View::Unsqueeze(axis(&node.attrs[0], rank + 1)),
        Class::View(ViewKind::Squeeze) => View::Squeeze(axis(&node.attrs[0], rank)),
        Class::View(ViewKind::Narrow) => {
            let axis = axis(&node.attrs[0], rank);
            let len = node.outs[0].dims[axis as usize].clone();
            View::Slice { axis, start: dim(&node.attrs[1]), len, step: 1 }
        }
        other => unreachable!("{other:?} is no view"),
    }
}

/// A value as the value that owns its elements, and the views between.
pub fn behind_views(graph: &Graph, mut val: Val) -> (Val, Vec<View>) {
    let mut views = Vec::new();
    while let Class::View(_) = graph.node(val).op.class {
        let node = graph.node(val);
        views.push(view_of(graph, node));
        val = node.args[0];
    }
    views.reverse();
    (val, views)
}

/// The views that broadcast a value of these extents to those; none where they are equal.
pub fn broadcast(from: &[Dim], to: &[Dim]) -> Vec<View> {
    if from == to { vec![] } else { vec![View::Expand(to.to_vec())] }
}

/// The order of axes that undoes another one.
pub fn inverse(order: &[u32]) -> Vec<u32> {
    let mut inverse = vec![0; order.len()];
    (0..).zip(order).for_each(|(k, &axis)| inverse[axis as usize] = k);
    inverse
}

/// The axis of a source that an axis of its view is, if the views between only move whole axes and it is one of them.
pub fn source_axis(rank: usize, views: &[View], axis: usize) -> Option<usize> {
    let mut axes: Vec<Option<usize>> = (0..rank).map(Some).collect();
    for view in views {
        match view {
            View::Permute(order) => axes = order.iter().map(|&k| axes[k as usize]).collect(),
            View::Unsqueeze(at) => axes.insert(*at as usize, None),
            View::Squeeze(at) => {
                axes.remove(*at as usize);
            }
            _ => return None,
        }
    }
    axes[axis]
}

/// Drops views that change nothing, joins neighbours and moves axes before they are broadcast, so that equal accesses are equal chains.
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
        if idle {
            at = next;
            continue;
        }
        match (out.pop(), view) {
            (Some(View::Expand(wide)), View::Permute(order)) if rank_behind(dims, &out) == wide.len() => {
                join(&mut out, View::Permute(order.clone()));
                join(&mut out, View::Expand(order.iter().map(|&axis| wide[axis as usize].clone()).collect()));
            }
            (last, view) => {
                out.extend(last);
                join(&mut out, view.clone());
            }
        }
        at = next;
    }
    out
}

fn rank_behind(dims: &[Dim], views: &[View]) -> usize {
    super::frame::dims_after(dims, views).len()
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

fn axis(attr: &Attr, rank: i64) -> u32 {
    match attr {
        Attr::Int(k) => k.rem_euclid(rank.max(1)) as u32,
        other => unreachable!("an axis is an integer: {other:?}"),
    }
}

fn axes(attr: &Attr, rank: i64) -> Vec<u32> {
    match attr {
        Attr::Ints(axes) => axes.iter().map(|&k| k.rem_euclid(rank) as u32).collect(),
        other => unreachable!("axes are integers: {other:?}"),
    }
}

fn dim(attr: &Attr) -> Dim {
    match attr {
        Attr::Dim(d) => d.clone(),
        Attr::Int(k) => Dim::Const(*k),
        other => unreachable!("a position is a size: {other:?}"),
    }
}
