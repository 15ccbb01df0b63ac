//! The sum over what was broadcast.

use super::Val;
use super::build::{Along, Ops};
use super::views::LAYOUT_RANK;
use crate::types::Dim;

/// Sums a value to the extents it was broadcast from.
///
/// Where it is open whether an extent `a` was broadcast to `n`, the axis becomes two, of `n / a` and `a`, and the first is
/// summed: that is one position if the extents are equal, and one sum of all `n` if `a` is 1.
pub(super) fn sum_to(o: &mut Ops, x: Val, dims: &[Dim]) -> Val {
    let (split, summed) = split(&o.dims(x), dims);
    if split.len() > LAYOUT_RANK {
        return one_by_one(o, x, dims);
    }
    let x = o.reshape(x, split.clone());
    let sum = match summed.len() == split.len() && !split.is_empty() {
        true => o.reduce("sum", x, Along::All),
        false => summed.iter().rev().fold(x, |x, &axis| o.reduce("sum", x, Along::Axis(axis))),
    };
    o.reshape(sum, dims.to_vec())
}

/// Sums one axis after the other, each to the extent it was broadcast from.
fn one_by_one(o: &mut Ops, x: Val, dims: &[Dim]) -> Val {
    let outer = o.rank(x) - dims.len();
    let sum = (0..o.rank(x)).fold(x, |x, axis| {
        let mut to = o.dims(x);
        to[axis] = axis.checked_sub(outer).map_or(Dim::Const(1), |own| dims[own].clone());
        sum_to(o, x, &to)
    });
    o.reshape(sum, dims.to_vec())
}

/// The extents in which neighbours that are summed are one axis, and which axes are summed.
fn split(from: &[Dim], to: &[Dim]) -> (Vec<Dim>, Vec<usize>) {
    let (mut split, mut summed): (Vec<Dim>, Vec<usize>) = (vec![], vec![]);
    let outer = from.len() - to.len();
    for (axis, extent) in from.iter().enumerate() {
        let kept = axis.checked_sub(outer).map_or(Dim::Const(1), |own| to[own].clone());
        let lost = if kept == *extent { Dim::Const(1) } else { Dim::floor_div(extent.clone(), kept.clone()) };
        if lost != Dim::Const(1) {
            if summed.last().is_some_and(|last| last + 1 == split.len()) {
                let neighbour = split.pop().expect("the last axis is summed");
                split.push(Dim::mul(neighbour, lost));
            } else {
                summed.push(split.len());
                split.push(lost);
            }
        }
        if kept != Dim::Const(1) {
            split.push(kept);
        }
    }
    (split, summed)
}
