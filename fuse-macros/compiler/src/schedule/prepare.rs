//! Puts copies where a value must lie in memory in an order its views cannot give.
//!
//! Three places need one: a reshape that merges axes which no longer lie next to each other, a matmul or gather or
//! scatter operand that lives nowhere (a constant, positions), and a gathered table under views that move more than
//! whole axes. The copies are ordinary elementwise nodes, so they fuse with what makes the value.

use super::views::{behind_views, source_axis};
use crate::graph::{Graph, Node, Rewrite};
use crate::op::rules::axis_of;
use crate::op::{Build, Class, Op, Source, Val, ViewKind};
use crate::plan::View;
use crate::types::Dim;

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
        Class::View(ViewKind::Reshape) => !is_viewable(graph, arg, &node.outs[0].dims),
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

/// One axis of a viewed value: which stretch of memory it walks.
#[derive(Clone)]
struct Walk {
    extent: Dim,
    /// Where it lies in the order of memory, as an interval; `None` for axes that repeat or run backwards.
    stretch: Option<(u32, u32)>,
    /// Cut by a slice, so that the axis outside it does not continue where it ends.
    cut: bool,
}

impl Walk {
    fn repeating(extent: Dim) -> Walk {
        Walk { extent, stretch: None, cut: false }
    }
}

/// The length of the interval of one axis; splitting an axis splits its interval.
const AXIS: u32 = 1 << 16;

/// Whether a value can be reshaped without a copy, if the memory behind it is contiguous.
fn is_viewable(graph: &Graph, val: Val, to: &[Dim]) -> bool {
    let (root, views) = behind_views(graph, val);
    let dims = &graph.node(root).outs[root.out as usize].dims;
    let walk = |(k, d): (usize, &Dim)| {
        // Axes of one element lie nowhere, so their neighbours lie next to each other.
        let at = dims[..k].iter().filter(|dim| **dim != Dim::Const(1)).count() as u32;
        let stretch = (*d != Dim::Const(1)).then_some((at * AXIS, (at + 1) * AXIS));
        Walk { extent: d.clone(), stretch, cut: false }
    };
    let start: Vec<Walk> = dims.iter().enumerate().map(walk).collect();
    let all = [views, vec![View::Reshape(to.to_vec())]].concat();
    all.iter().try_fold(start, step).is_some()
}

fn step(mut axes: Vec<Walk>, view: &View) -> Option<Vec<Walk>> {
    match view {
        View::Permute(order) => return Some(order.iter().map(|&k| axes[k as usize].clone()).collect()),
        View::Unsqueeze(at) => axes.insert(*at as usize, Walk::repeating(Dim::Const(1))),
        View::Squeeze(at) => {
            axes.remove(*at as usize);
        }
        View::Expand(dims) => {
            let new = dims.len() - axes.len();
            let keep = |(w, d): (Walk, &Dim)| if w.extent == *d { w } else { Walk::repeating(d.clone()) };
            let fresh = dims[..new].iter().cloned().map(Walk::repeating);
            axes = fresh.chain(axes.into_iter().zip(&dims[new..]).map(keep)).collect();
        }
        View::Slice { axis, start, len, step } => {
            let walk = &mut axes[*axis as usize];
            walk.cut |= *start != Dim::Const(0) || *step != 1 || walk.extent != *len;
            walk.extent = len.clone();
        }
        View::Flip(at) => at.iter().for_each(|&k| axes[k as usize].stretch = None),
        View::Reshape(dims) => return regroup(axes, dims),
    }
    Some(axes)
}

/// Matches old and new axes from the left in groups of equal size; a group may split one axis or merge neighbours.
fn regroup(axes: Vec<Walk>, dims: &[Dim]) -> Option<Vec<Walk>> {
    let one = Dim::Const(1);
    let axes: Vec<Walk> = axes.into_iter().filter(|w| w.extent != one).collect();
    let wanted: Vec<Dim> = dims.iter().filter(|d| **d != one).cloned().collect();
    let mut out = Vec::new();
    let (mut a, mut d) = (0, 0);
    while a < axes.len() || d < wanted.len() {
        let (to_a, to_d) = next_group(&axes, &wanted, a, d)?;
        out.extend(group(&axes[a..to_a], &wanted[d..to_d])?);
        (a, d) = (to_a, to_d);
    }
    let mut out = out.into_iter();
    let place = |d: &Dim| if *d == one { None } else { out.next() }.unwrap_or_else(|| Walk::repeating(d.clone()));
    Some(dims.iter().map(place).collect())
}

/// Where the smallest group of equal size ends on either side. Sizes that agree only at run time make one last group.
fn next_group(axes: &[Walk], dims: &[Dim], mut a: usize, mut d: usize) -> Option<(usize, usize)> {
    let (mut left, mut right) = (axes.get(a)?.extent.clone(), dims.get(d)?.clone());
    (a, d) = (a + 1, d + 1);
    while left != right && (a < axes.len() || d < dims.len()) {
        let take_left = d == dims.len() || (a < axes.len() && right.is_multiple_of(&left));
        if take_left {
            left = Dim::mul(left, axes[a].extent.clone());
            a += 1;
        } else {
            right = Dim::mul(right, dims[d].clone());
            d += 1;
        }
    }
    Some((a, d))
}

/// Splits or merges the axes of one group, if they lie next to each other.
fn group(axes: &[Walk], dims: &[Dim]) -> Option<Vec<Walk>> {
    let adjacent = |w: &[Walk]| matches!((w[0].stretch, w[1].stretch), (Some(a), Some(b)) if a.1 == b.0) && !w[1].cut;
    if !axes.windows(2).all(adjacent) {
        return None;
    }
    let stretch = axes[0].stretch.zip(axes[axes.len() - 1].stretch).map(|(first, last)| (first.0, last.1));
    let piece = |k: usize| {
        let (start, end) = stretch?;
        let width = (end - start) / dims.len() as u32;
        let last = k + 1 == dims.len();
        Some((start + k as u32 * width, if last { end } else { start + (k as u32 + 1) * width }))
    };
    let cut = axes[0].cut;
    let walk = |(k, d): (usize, &Dim)| Walk { extent: d.clone(), stretch: piece(k), cut: cut && k == 0 };
    Some(dims.iter().enumerate().map(walk).collect())
}
