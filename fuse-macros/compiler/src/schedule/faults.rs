//! Values that are stored though nobody reads all of them, because computing them may fail.
//!
//! A failure is an effect: an index out of range is an error even where its row is cut away later. A value that is
//! computed again where a part of it is read would only be tested there.

use super::frame::dims_after;
use super::views::behind_views;
use crate::graph::Graph;
use crate::op::Val;
use crate::plan::View;
use crate::types::Dim;

/// The values of nodes that may fail and that no result is computed from in full.
pub fn unread(graph: &Graph) -> Vec<Val> {
    let mut in_full = vec![false; graph.nodes.len()];
    let mut unread = Vec::new();
    for &out in &graph.outs {
        in_full[graph.behind_views(out).node as usize] = true;
    }
    for id in (0..graph.nodes.len()).rev() {
        if !in_full[id] && graph.may_fault(id as u32) {
            in_full[id] = true;
            unread.push(Val { node: id as u32, out: 0 });
        }
        if !in_full[id] {
            continue;
        }
        for &arg in &graph.nodes[id].args {
            let (value, views) = behind_views(graph, arg);
            in_full[value.node as usize] |= shows_all(&graph.node(value).outs[value.out as usize].dims, &views);
        }
    }
    unread
}

/// Whether every element is seen through views.
fn shows_all(dims: &[Dim], views: &[View]) -> bool {
    let mut at = dims.to_vec();
    views.iter().all(|view| {
        let after = dims_after(&at, std::slice::from_ref(view));
        let before = std::mem::replace(&mut at, after);
        !matches!(view, View::Slice { .. }) || before == at
    })
}
