//! Where the axes of a value end up under a chain of views.
//!
//! Two chains that bring a value onto a kernel's domain are the same access exactly if they put the same axes in the
//! same places. Chains the tracker cannot follow (merging or splitting axes, slices, flips) have no frame, and the
//! scheduler then reads the value from memory instead of from a register.

use crate::plan::View;
use crate::types::Dim;

/// What one axis of a viewed value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The k-th axis of the value itself.
    Of(usize),
    /// Repeats the same elements.
    Broadcast,
}

/// The axes of a viewed value, outermost first.
pub type Frame = Vec<Axis>;

/// The frame of a value of these extents under a chain of views, or `None` where it cannot be followed.
pub fn frame(dims: &[Dim], views: &[View]) -> Option<Frame> {
    let mut axes: Vec<(Axis, Dim)> = dims.iter().enumerate().map(|(k, d)| (axis_of(k, d), d.clone())).collect();
    for view in views {
        axes = step(axes, view)?;
    }
    Some(axes.into_iter().map(|(axis, _)| axis).collect())
}

/// Whether a value that broadcasts to these extents can be read under a chain of views without lying in memory itself:
/// a reshape must not merge or split axes, since those of the operand may repeat.
pub fn keeps_axes(dims: &[Dim], views: &[View]) -> bool {
    !views.iter().any(|view| matches!(view, View::Reshape(_))) || frame(dims, views).is_some()
}

/// The extents of a value under a chain of views.
pub fn dims_after(dims: &[Dim], views: &[View]) -> Vec<Dim> {
    views.iter().fold(dims.to_vec(), view_dims)
}

/// An axis known to be 1 repeats one element, whether or not it is called a broadcast.
fn axis_of(k: usize, extent: &Dim) -> Axis {
    if *extent == Dim::Const(1) { Axis::Broadcast } else { Axis::Of(k) }
}

fn step(axes: Vec<(Axis, Dim)>, view: &View) -> Option<Vec<(Axis, Dim)>> {
    match view {
        View::Permute(order) => Some(order.iter().map(|&k| axes[k as usize].clone()).collect()),
        View::Unsqueeze(at) => {
            let mut axes = axes;
            axes.insert(*at as usize, (Axis::Broadcast, Dim::Const(1)));
            Some(axes)
        }
        View::Squeeze(at) => {
            let mut axes = axes;
            axes.remove(*at as usize);
            Some(axes)
        }
        View::Expand(dims) => expand(axes, dims),
        View::Reshape(dims) => reshape(axes, dims),
        View::Slice { axis, start, len, step } => {
            let whole = *start == Dim::Const(0) && *step == 1 && *len == axes[*axis as usize].1;
            whole.then_some(axes)
        }
        View::Flip(_) => None,
    }
}

fn expand(axes: Vec<(Axis, Dim)>, dims: &[Dim]) -> Option<Vec<(Axis, Dim)>> {
    let new = dims.len() - axes.len();
    let mut out: Vec<(Axis, Dim)> = dims[..new].iter().map(|d| (Axis::Broadcast, d.clone())).collect();
    for ((axis, extent), target) in axes.into_iter().zip(&dims[new..]) {
        if axis == Axis::Broadcast || extent == *target {
            out.push((axis, target.clone()));
        } else {
            // The extent may be 1 at run time: then this axis repeats, else it does not. No frame is right for both.
            return None;
        }
    }
    Some(out)
}

/// A reshape that only adds or drops axes of extent 1 keeps the others in place.
fn reshape(axes: Vec<(Axis, Dim)>, dims: &[Dim]) -> Option<Vec<(Axis, Dim)>> {
    let one = Dim::Const(1);
    let mut kept = axes.into_iter().filter(|(_, d)| *d != one);
    let mut out = Vec::new();
    for dim in dims {
        if *dim == one {
            out.push((Axis::Broadcast, one.clone()));
        } else {
            let (axis, extent) = kept.next()?;
            if extent != *dim {
                return None;
            }
            out.push((axis, extent));
        }
    }
    kept.next().is_none().then_some(out)
}

fn view_dims(mut dims: Vec<Dim>, view: &View) -> Vec<Dim> {
    match view {
        View::Permute(order) => order.iter().map(|&k| dims[k as usize].clone()).collect(),
        View::Unsqueeze(at) => {
            dims.insert(*at as usize, Dim::Const(1));
            dims
        }
        View::Squeeze(at) => {
            dims.remove(*at as usize);
            dims
        }
        View::Expand(new) | View::Reshape(new) => new.clone(),
        View::Slice { axis, len, .. } => {
            dims[*axis as usize] = len.clone();
            dims
        }
        View::Flip(_) => dims,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Sym;

    fn s(n: u32) -> Dim {
        Dim::Sym(Sym(n))
    }

    #[test]
    fn a_permutation_and_its_inverse_cancel() {
        let dims = [s(0), s(1), s(2)];
        let views = [View::Permute(vec![2, 0, 1]), View::Permute(vec![1, 2, 0])];
        assert_eq!(frame(&dims, &views), frame(&dims, &[]));
    }

    #[test]
    fn a_row_value_broadcasts_along_the_new_axis() {
        let views = [View::Unsqueeze(1), View::Expand(vec![s(0), s(1)])];
        assert_eq!(frame(&[s(0)], &views), Some(vec![Axis::Of(0), Axis::Broadcast]));
    }

    #[test]
    fn an_extent_that_may_be_one_has_no_frame_under_expand() {
        let target = Dim::broadcast(s(0), s(1)).unwrap();
        assert_eq!(frame(&[s(0)], &[View::Expand(vec![target])]), None);
    }

    #[test]
    fn merging_axes_has_no_frame() {
        assert_eq!(frame(&[s(0), s(1)], &[View::Reshape(vec![Dim::mul(s(0), s(1))])]), None);
    }
}
