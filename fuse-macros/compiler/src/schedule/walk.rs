//! Whether memory can be walked under views: a reshape that merges axes which do not lie next to each other needs a copy.

use super::views::{behind_views, broadcast};
use crate::graph::Graph;
use crate::op::{Class, Source, Val};
use crate::plan::View;
use crate::types::Dim;

/// Whether an elementwise value can be computed again at the positions of a chain, reading each of its operands where it lies.
pub fn reads_in_place(graph: &Graph, val: Val, chain: &[View]) -> bool {
    let node = graph.node(val);
    let is_reshaped = chain.iter().any(|view| matches!(view, View::Reshape(_)));
    let in_place = |arg: Val| {
        let (root, views) = behind_views(graph, arg);
        let from = &graph.node(arg).outs[arg.out as usize].dims;
        let views = [views, broadcast(from, &node.outs[0].dims), chain.to_vec()].concat();
        is_uniform(graph.node(root).op.class) || is_walkable(&graph.node(root).outs[root.out as usize].dims, &views)
    };
    !is_reshaped || node.args.iter().all(|&arg| in_place(arg))
}

/// Whether a value is the same everywhere, and in no memory.
pub fn is_uniform(class: Class) -> bool {
    matches!(class, Class::Source(Source::Constant | Source::Scalar | Source::Size))
}

/// One axis of a viewed value: which stretch of memory it walks.
#[derive(Clone)]
struct Walk {
    extent: Dim,
    /// Where it lies in the order of memory.
    stretch: Stretch,
    /// Cut by a slice, so that the axis outside it does not continue where it ends.
    cut: bool,
}

impl Walk {
    fn repeating(extent: Dim) -> Walk {
        Walk { extent, stretch: Stretch::Repeats, cut: false }
    }
}

/// Where an axis lies in the order of memory.
#[derive(Clone, Copy)]
enum Stretch {
    /// In this interval.
    Of(u32, u32),
    /// Its elements are one element.
    Repeats,
    /// It runs backwards, or repeats if an extent is 1 that may be another.
    Open,
}

/// The length of the interval of one axis; splitting an axis splits its interval.
const AXIS: u32 = 1 << 16;

/// Whether values of these extents that lie one after the other can be read under a chain of views by strides alone.
pub fn is_walkable(dims: &[Dim], views: &[View]) -> bool {
    let walk = |(k, d): (usize, &Dim)| {
        // Axes of one element lie nowhere, so their neighbours lie next to each other.
        let at = dims[..k].iter().filter(|dim| **dim != Dim::Const(1)).count() as u32;
        let stretch = if *d == Dim::Const(1) { Stretch::Repeats } else { Stretch::Of(at * AXIS, (at + 1) * AXIS) };
        Walk { extent: d.clone(), stretch, cut: false }
    };
    let start: Vec<Walk> = dims.iter().enumerate().map(walk).collect();
    views.iter().try_fold(start, step).is_some()
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
            let keep = |(w, d): (Walk, &Dim)| match () {
                () if w.extent == *d => w,
                () if w.extent == Dim::Const(1) => Walk::repeating(d.clone()),
                () => Walk { extent: d.clone(), stretch: Stretch::Open, cut: false },
            };
            let fresh = dims[..new].iter().cloned().map(Walk::repeating);
            axes = fresh.chain(axes.into_iter().zip(&dims[new..]).map(keep)).collect();
        }
        View::Slice { axis, start, len, step } => {
            let walk = &mut axes[*axis as usize];
            walk.cut |= *start != Dim::Const(0) || *step != 1 || walk.extent != *len;
            walk.extent = len.clone();
        }
        View::Flip(at) => at.iter().for_each(|&k| axes[k as usize].stretch = Stretch::Open),
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

/// Splits or merges the axes of one group, if they lie next to each other or all repeat.
fn group(axes: &[Walk], dims: &[Dim]) -> Option<Vec<Walk>> {
    let adjacent = |w: &[Walk]| match (w[0].stretch, w[1].stretch) {
        (Stretch::Of(_, end), Stretch::Of(start, _)) => end == start && !w[1].cut,
        (Stretch::Repeats, Stretch::Repeats) => true,
        _ => false,
    };
    if !axes.windows(2).all(adjacent) {
        return None;
    }
    let piece = |k: usize| match (axes[0].stretch, axes[axes.len() - 1].stretch) {
        (Stretch::Of(start, _), Stretch::Of(_, end)) => {
            let width = (end - start) / dims.len() as u32;
            let last = k + 1 == dims.len();
            Stretch::Of(start + k as u32 * width, if last { end } else { start + (k as u32 + 1) * width })
        }
        (one, _) => one,
    };
    let cut = axes[0].cut;
    let walk = |(k, d): (usize, &Dim)| Walk { extent: d.clone(), stretch: piece(k), cut: cut && k == 0 };
    Some(dims.iter().enumerate().map(walk).collect())
}
