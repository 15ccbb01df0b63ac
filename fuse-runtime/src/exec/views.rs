//! Chains of views on run-time layouts.

use super::symbols::Sizes;
use crate::error::Result;
use crate::layout::Layout;
use crate::raw::RawTensor;
use fuse_compiler::plan::View;

/// A tensor under a chain of views. Where strides do not allow a reshape, the tensor is copied first.
pub(super) fn view(tensor: &RawTensor, views: &[View], sizes: &Sizes) -> Result<RawTensor> {
    let mut tensor = tensor.clone();
    for view in views {
        tensor = match step(tensor.layout(), view, sizes)? {
            Some(layout) => tensor.with_layout(layout),
            None => {
                let copy = tensor.copied()?;
                let layout = step(copy.layout(), view, sizes)?;
                copy.with_layout(layout.expect("a contiguous tensor can be reshaped"))
            }
        };
    }
    Ok(tensor)
}

/// A layout under a chain of views, or `None` where that takes a copy.
pub(super) fn view_layout(layout: Layout, views: &[View], sizes: &Sizes) -> Result<Option<Layout>> {
    let mut layout = layout;
    for view in views {
        match step(&layout, view, sizes)? {
            Some(next) => layout = next,
            None => return Ok(None),
        }
    }
    Ok(Some(layout))
}

/// The layout with one axis cut down to extent 1, whatever its extent was: the base that an index moves along the axis.
pub(super) fn cut(layout: &Layout, axis: usize) -> Layout {
    let mut shape = layout.shape().to_vec();
    shape[axis] = 1;
    Layout::strided(&shape, layout.strides(), layout.offset())
}

fn step(layout: &Layout, view: &View, sizes: &Sizes) -> Result<Option<Layout>> {
    Ok(Some(match view {
        View::Permute(order) => layout.permute(&order.iter().map(|&k| k as isize).collect::<Vec<_>>())?,
        View::Reshape(dims) => return layout.reshape(&sizes.extents(dims)?),
        View::Expand(dims) => layout.broadcast_to(&sizes.extents(dims)?)?,
        View::Slice { axis, start, len, step } => {
            slice(layout, *axis as usize, sizes.extent(start)?, sizes.extent(len)?, *step as usize)?
        }
        View::Unsqueeze(axis) => layout.unsqueeze(*axis as isize)?,
        View::Squeeze(axis) => layout.squeeze(*axis as isize)?,
        View::Flip(axes) => layout.flip(&axes.iter().map(|&k| k as isize).collect::<Vec<_>>())?,
    }))
}

fn slice(layout: &Layout, axis: usize, start: usize, len: usize, step: usize) -> Result<Layout> {
    let reach = if len == 0 { 0 } else { (len - 1) * step + 1 };
    let window = layout.narrow(axis as isize, start, reach)?;
    let (mut shape, mut strides) = (window.shape().to_vec(), window.strides().to_vec());
    (shape[axis], strides[axis]) = (len, strides[axis] * step as isize);
    Ok(Layout::strided(&shape, &strides, window.offset()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuse_compiler::plan::Plan;
    use fuse_compiler::types::Dim;

    fn sizes() -> Sizes {
        Sizes::of(&Plan::default(), &[], &[]).unwrap()
    }

    #[test]
    fn a_chain_is_applied_first_to_last() {
        let views = [
            View::Permute(vec![1, 0]),
            View::Slice { axis: 0, start: Dim::Const(1), len: Dim::Const(2), step: 2 },
            View::Flip(vec![1]),
            View::Unsqueeze(0),
            View::Expand(vec![Dim::Const(3), Dim::Const(2), Dim::Const(2)]),
        ];
        let layout = view_layout(Layout::contiguous(&[2, 4]), &views, &sizes()).unwrap().unwrap();
        assert_eq!((layout.shape(), layout.strides(), layout.offset()), (&[3, 2, 2][..], &[0, 2, -4][..], 5));
    }

    #[test]
    fn a_reshape_that_strides_do_not_allow_copies() {
        let x = RawTensor::from_slice(&[0i32, 1, 2, 3, 4, 5], &[2, 3]).unwrap();
        let views = [View::Permute(vec![1, 0]), View::Reshape(vec![Dim::Const(6)])];
        assert_eq!(view(&x, &views, &sizes()).unwrap().to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
        assert!(view_layout(*x.layout(), &views, &sizes()).unwrap().is_none());
    }
}
