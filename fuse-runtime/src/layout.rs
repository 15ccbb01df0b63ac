//! Where the elements of a tensor lie in its storage.

use crate::error::{Error, Result};
use std::fmt::{self, Debug};

/// The most dims a layout can have. Tensors of users have at most 6; views inside of plans may need two more.
pub const MAX_DIMS: usize = 8;

/// Extents, strides and offset of a tensor in its storage, counted in elements.
///
/// A stride of 0 repeats one element (broadcast), a negative one runs backwards (flip).
///
/// ```
/// use fuse_runtime::Layout;
/// let rows = Layout::contiguous(&[2, 3]);
/// let columns = rows.transpose(0, 1)?;
/// assert_eq!(columns.shape(), [3, 2]);
/// assert_eq!(columns.strides(), [1, 3]);
/// # Ok::<(), fuse_runtime::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    rank: u8,
    shape: [usize; MAX_DIMS],
    strides: [isize; MAX_DIMS],
    offset: isize,
}

impl Layout {
    /// Row-major from offset 0. Panics above [`MAX_DIMS`] dims.
    pub fn contiguous(shape: &[usize]) -> Self {
        let mut layout = Layout { rank: 0, shape: [0; MAX_DIMS], strides: [0; MAX_DIMS], offset: 0 };
        layout.set_shape(shape);
        let mut stride = 1isize;
        for d in (0..shape.len()).rev() {
            layout.strides[d] = stride;
            stride = stride.saturating_mul(shape[d].max(1) as isize);
        }
        layout
    }

    /// A layout from its parts; nothing is checked but the number of dims.
    pub fn strided(shape: &[usize], strides: &[isize], offset: isize) -> Self {
        let mut layout = Layout::contiguous(shape);
        layout.strides[..strides.len()].copy_from_slice(strides);
        layout.offset = offset;
        layout
    }

    /// The same layout from another first element on.
    pub(crate) fn with_offset(&self, offset: isize) -> Self {
        Layout { offset, ..*self }
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape[..self.rank()]
    }

    /// The distance between neighbours of each dim.
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.rank()]
    }

    /// Where the first element lies.
    pub fn offset(&self) -> isize {
        self.offset
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether the elements lie one after the other in row-major order, wherever they start.
    pub fn is_contiguous(&self) -> bool {
        if self.numel() == 0 {
            return true;
        }
        let mut expected = 1;
        for d in (0..self.rank()).rev() {
            if self.shape[d] != 1 && self.strides[d] != expected {
                return false;
            }
            expected *= self.shape[d] as isize;
        }
        true
    }

    /// Whether one place in the storage stands for several elements, as after [`Layout::broadcast_to`].
    pub fn repeats(&self) -> bool {
        self.shape().iter().zip(self.strides()).any(|(&extent, &stride)| extent > 1 && stride == 0)
    }

    /// The lowest and the highest position of an element; `None` if there are no elements.
    pub fn span(&self) -> Option<(isize, isize)> {
        if self.numel() == 0 {
            return None;
        }
        let reach = |d: usize| (self.shape[d] as isize - 1) * self.strides[d];
        let low: isize = (0..self.rank()).map(|d| reach(d).min(0)).sum();
        let high: isize = (0..self.rank()).map(|d| reach(d).max(0)).sum();
        Some((self.offset + low, self.offset + high))
    }

    /// The dim that `dim` means, counted from the end if negative. A tensor of rank 0 acts as one of one element.
    pub fn axis(&self, op: &str, dim: isize) -> Result<usize> {
        axis(op, dim, self.rank())
    }

    /// The dims in another order.
    pub fn permute(&self, order: &[isize]) -> Result<Layout> {
        let clash = || Error::shape("permute", format!("{order:?} is no order of {} dims", self.rank()));
        if order.len() != self.rank() {
            return Err(clash());
        }
        let mut taken = [false; MAX_DIMS];
        let mut out = *self;
        for (to, &from) in order.iter().enumerate() {
            let from = self.axis("permute", from)?;
            if std::mem::replace(&mut taken[from], true) {
                return Err(clash());
            }
            out.copy_dim(to, self, from);
        }
        Ok(out)
    }

    /// Two dims exchanged.
    pub fn transpose(&self, a: isize, b: isize) -> Result<Layout> {
        let (a, b) = (self.axis("transpose", a)?, self.axis("transpose", b)?);
        let mut out = *self;
        if self.rank() > 0 {
            out.copy_dim(a, self, b);
            out.copy_dim(b, self, a);
        }
        Ok(out)
    }

    /// The same elements with other extents, or `None` where that takes a copy. The number of elements must be equal.
    pub fn reshape(&self, shape: &[usize]) -> Result<Option<Layout>> {
        if shape.iter().product::<usize>() != self.numel() {
            let text = format!("{} elements of {:?} do not fill {shape:?}", self.numel(), self.shape());
            return Err(Error::shape("reshape", text));
        }
        Ok(self.view(shape))
    }

    /// The strides of a view of `shape`, found by splitting the mergeable runs of dims.
    fn view(&self, shape: &[usize]) -> Option<Layout> {
        let mut out = Layout { offset: self.offset, ..Layout::contiguous(shape) };
        if self.numel() == 0 {
            return Some(out);
        }
        // `new` counts the dims of `shape` that still have no stride; runs are consumed from the innermost out.
        let mut new = shape.len();
        for (extent, stride) in self.runs() {
            let mut filled = 1;
            while new > 0 && (filled < extent || shape[new - 1] == 1) {
                new -= 1;
                out.strides[new] = stride * filled as isize;
                filled *= shape[new];
            }
            if filled != extent {
                return None;
            }
        }
        Some(out)
    }

    /// The dims merged where they can be: `(extent, stride)` of each run, innermost first, without extents of 1.
    pub fn runs(&self) -> impl Iterator<Item = (usize, isize)> {
        let mut d = self.rank();
        std::iter::from_fn(move || {
            let mut run: Option<(usize, isize)> = None;
            while d > 0 {
                let (extent, stride) = (self.shape[d - 1], self.strides[d - 1]);
                match &mut run {
                    _ if extent == 1 => {}
                    None => run = Some((extent, stride)),
                    Some((n, inner)) if stride == *inner * *n as isize => *n *= extent,
                    Some(_) => break,
                }
                d -= 1;
            }
            run
        })
    }

    /// Extents of 1, and missing leading dims, stretched to `shape` with stride 0.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Layout> {
        let clash = || Error::shape("expand", format!("{:?} does not expand to {shape:?}", self.shape()));
        let lead = shape.len().checked_sub(self.rank()).ok_or_else(clash)?;
        let mut out = Layout { offset: self.offset, strides: [0; MAX_DIMS], ..Layout::contiguous(shape) };
        for d in 0..self.rank() {
            if self.shape[d] == shape[lead + d] {
                out.strides[lead + d] = self.strides[d];
            } else if self.shape[d] != 1 {
                return Err(clash());
            }
        }
        Ok(out)
    }

    /// `len` elements of `dim` from `start` on.
    pub fn narrow(&self, dim: isize, start: usize, len: usize) -> Result<Layout> {
        let d = self.dim_of("narrow", dim)?;
        if start.checked_add(len).is_none_or(|end| end > self.shape[d]) {
            let text = format!("{len} from {start} on is outside of dim {d} with extent {}", self.shape[d]);
            return Err(Error::shape("narrow", text));
        }
        Ok(self.cut(d, start, len))
    }

    /// The elements `start..end` of `dim`, with Python's rules: negative ends count from the end, and both are clamped.
    pub fn slice(&self, dim: isize, start: isize, end: isize) -> Result<Layout> {
        let d = self.dim_of("slice", dim)?;
        let (start, end) = slice_bounds(start, end, self.shape[d]);
        Ok(self.cut(d, start, end - start))
    }

    /// A new dim of extent 1 before `dim`.
    pub fn unsqueeze(&self, dim: isize) -> Result<Layout> {
        let d = axis("unsqueeze", dim, self.rank() + 1)?;
        let mut out = Layout { rank: self.rank + 1, ..*self };
        for from in d..self.rank() {
            out.copy_dim(from + 1, self, from);
        }
        (out.shape[d], out.strides[d]) = (1, 0);
        Ok(out)
    }

    /// Without `dim`, whose extent must be 1. Rank 0 stays rank 0.
    pub fn squeeze(&self, dim: isize) -> Result<Layout> {
        let d = self.axis("squeeze", dim)?;
        if self.rank == 0 {
            return Ok(*self);
        }
        if self.shape[d] != 1 {
            return Err(Error::shape("squeeze", format!("dim {d} has extent {} and not 1", self.shape[d])));
        }
        Ok(self.without(d))
    }

    /// One place of `dim`, which goes away.
    pub fn select(&self, dim: isize, index: usize) -> Result<Layout> {
        let d = self.dim_of("select", dim)?;
        Ok(self.narrow(dim, index, 1)?.without(d))
    }

    /// The dims in `dims` in reverse order.
    pub fn flip(&self, dims: &[isize]) -> Result<Layout> {
        let mut out = *self;
        let mut done = [false; MAX_DIMS];
        for &dim in dims {
            let d = self.axis("flip", dim)?;
            if std::mem::replace(&mut done[d], true) {
                return Err(Error::shape("flip", format!("dim {d} appears twice in {dims:?}")));
            }
            if d < self.rank() {
                out.offset += (self.shape[d].max(1) as isize - 1) * self.strides[d];
                out.strides[d] = -self.strides[d];
            }
        }
        Ok(out)
    }

    /// The elements `start..start + len` of dim `d`, which must be inside.
    fn cut(&self, d: usize, start: usize, len: usize) -> Layout {
        let mut out = *self;
        out.shape[d] = len;
        // An empty cut may start one past the end; it keeps the offset, so that offsets stay inside of the storage.
        if len > 0 {
            out.offset += start as isize * self.strides[d];
        }
        out
    }

    fn without(&self, d: usize) -> Layout {
        let mut out = Layout { rank: self.rank - 1, ..*self };
        for from in d + 1..self.rank() {
            out.copy_dim(from - 1, self, from);
        }
        out.clear_above_rank();
        out
    }

    /// The dim that `dim` means, which must exist, unlike for [`Layout::axis`] in rank 0.
    fn dim_of(&self, op: &str, dim: isize) -> Result<usize> {
        if self.rank == 0 {
            return Err(Error::shape(op, "a tensor of rank 0 has no dims"));
        }
        self.axis(op, dim)
    }

    fn copy_dim(&mut self, to: usize, source: &Layout, from: usize) {
        self.shape[to] = source.shape[from];
        self.strides[to] = source.strides[from];
    }

    fn set_shape(&mut self, shape: &[usize]) {
        assert!(shape.len() <= MAX_DIMS, "{shape:?} has more than {MAX_DIMS} dims");
        self.rank = shape.len() as u8;
        self.shape[..shape.len()].copy_from_slice(shape);
    }

    /// Unused places hold zeros, so that equal layouts are equal field by field.
    fn clear_above_rank(&mut self) {
        self.shape[self.rank as usize..].fill(0);
        self.strides[self.rank as usize..].fill(0);
    }
}

impl Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} strides {:?} offset {}", self.shape(), self.strides(), self.offset)
    }
}

/// The dim of `rank` that `dim` means, counted from the end if negative. Rank 0 counts as rank 1.
pub fn axis(op: &str, dim: isize, rank: usize) -> Result<usize> {
    let count = rank.max(1) as isize;
    let from_start = if dim < 0 { dim + count } else { dim };
    if (0..count).contains(&from_start) {
        return Ok(from_start as usize);
    }
    Err(Error::shape(op, format!("dim {dim} is outside of a tensor of rank {rank}")))
}

/// Python's `start..end` in a dim of `extent`: clamped, with `start <= end`.
pub fn slice_bounds(start: isize, end: isize, extent: usize) -> (usize, usize) {
    let clamp = |at: isize| {
        let from_start = if at < 0 { at.saturating_add_unsigned(extent) } else { at };
        from_start.clamp(0, extent as isize) as usize
    };
    let start = clamp(start);
    (start, clamp(end).max(start))
}

/// The extents two shapes broadcast to, or `None` if they do not.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], d: usize| (d + shape.len()).checked_sub(rank).map_or(1, |d| shape[d]);
    (0..rank)
        .map(|d| match (at(a, d), at(b, d)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn positions(layout: &Layout) -> Vec<isize> {
        let mut out = vec![layout.offset()];
        for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
            out = out.iter().flat_map(|&at| (0..extent as isize).map(move |i| at + i * stride)).collect();
        }
        out
    }

    fn text<T: Debug>(result: Result<T>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        error.to_string()
    }

    #[test]
    fn contiguous_counts_up() {
        let layout = Layout::contiguous(&[2, 3]);
        assert_eq!(positions(&layout), [0, 1, 2, 3, 4, 5]);
        assert!(layout.is_contiguous());
        assert_eq!(Layout::contiguous(&[]).numel(), 1);
        assert_eq!(Layout::contiguous(&[2, 0, 3]).numel(), 0);
    }

    #[test]
    fn extents_of_one_do_not_matter_for_contiguity() {
        assert!(Layout::strided(&[1, 3], &[77, 1], 0).is_contiguous());
        assert!(!Layout::strided(&[2, 3], &[77, 1], 0).is_contiguous());
        assert!(Layout::strided(&[2, 0], &[5, 7], 0).is_contiguous());
    }

    #[test]
    fn permute_and_transpose_move_dims() {
        let x = Layout::contiguous(&[2, 3, 4]);
        assert_eq!(x.permute(&[2, 0, -2]).unwrap().shape(), [4, 2, 3]);
        assert_eq!(positions(&Layout::contiguous(&[2, 3]).transpose(0, -1).unwrap()), [0, 3, 1, 4, 2, 5]);
        assert_eq!(text(x.permute(&[0, 0, 1])), "`permute`: [0, 0, 1] is no order of 3 dims");
        assert_eq!(text(x.transpose(0, 3)), "`transpose`: dim 3 is outside of a tensor of rank 3");
    }

    #[test]
    fn reshape_is_a_view_where_strides_allow() {
        let x = Layout::contiguous(&[2, 3, 4]);
        assert_eq!(x.reshape(&[6, 4]).unwrap(), Some(Layout::contiguous(&[6, 4])));
        assert_eq!(x.reshape(&[1, 24, 1]).unwrap().map(|l| positions(&l)), Some((0..24).collect()));
        let swapped = x.permute(&[1, 0, 2]).unwrap();
        assert_eq!(swapped.reshape(&[6, 4]).unwrap(), None);
        let split = swapped.reshape(&[3, 2, 2, 2]).unwrap().unwrap();
        assert_eq!(positions(&split), positions(&swapped));
        assert_eq!(text(x.reshape(&[5, 5])), "`reshape`: 24 elements of [2, 3, 4] do not fill [5, 5]");
    }

    #[test]
    fn reshape_keeps_broadcast_and_flipped_dims() {
        let x = Layout::contiguous(&[4]).flip(&[0]).unwrap().broadcast_to(&[3, 4]).unwrap();
        let split = x.reshape(&[3, 2, 2]).unwrap().unwrap();
        assert_eq!(split.strides(), [0, -2, -1]);
        assert_eq!(x.reshape(&[12]).unwrap(), None);
        assert_eq!(Layout::contiguous(&[]).reshape(&[1, 1]).unwrap().unwrap().numel(), 1);
        assert_eq!(Layout::contiguous(&[0, 3]).reshape(&[3, 0]).unwrap().unwrap().shape(), [3, 0]);
    }

    #[test]
    fn broadcast_repeats_with_stride_zero() {
        let x = Layout::contiguous(&[3, 1]);
        assert_eq!(x.broadcast_to(&[2, 3, 4]).unwrap().strides(), [0, 1, 0]);
        assert_eq!(x.broadcast_to(&[3, 0]).unwrap().numel(), 0);
        assert_eq!(text(x.broadcast_to(&[4, 4])), "`expand`: [3, 1] does not expand to [4, 4]");
    }

    #[test]
    fn narrow_and_slice_move_the_offset() {
        let x = Layout::contiguous(&[2, 5]);
        assert_eq!(positions(&x.narrow(1, 2, 2).unwrap()), [2, 3, 7, 8]);
        assert_eq!(positions(&x.slice(1, -2, isize::MAX).unwrap()), [3, 4, 8, 9]);
        assert_eq!(x.slice(1, 4, 2).unwrap().numel(), 0);
        assert_eq!(x.narrow(0, 2, 0).unwrap().offset(), 0);
        assert_eq!(text(x.narrow(1, 4, 2)), "`narrow`: 2 from 4 on is outside of dim 1 with extent 5");
        assert_eq!(text(Layout::contiguous(&[]).narrow(0, 0, 1)), "`narrow`: a tensor of rank 0 has no dims");
    }

    #[test]
    fn unsqueeze_squeeze_and_select_change_the_rank() {
        let x = Layout::contiguous(&[2, 3]);
        assert_eq!(x.unsqueeze(-1).unwrap().shape(), [2, 3, 1]);
        assert_eq!(x.unsqueeze(0).unwrap().squeeze(0).unwrap(), x);
        assert_eq!(positions(&x.select(1, 2).unwrap()), [2, 5]);
        assert_eq!(text(x.squeeze(1)), "`squeeze`: dim 1 has extent 3 and not 1");
    }

    #[test]
    fn flip_runs_backwards() {
        let x = Layout::contiguous(&[2, 3]);
        assert_eq!(positions(&x.flip(&[1]).unwrap()), [2, 1, 0, 5, 4, 3]);
        assert_eq!(x.flip(&[0, 1]).unwrap().span(), Some((0, 5)));
        assert_eq!(text(x.flip(&[1, -1])), "`flip`: dim 1 appears twice in [1, -1]");
    }

    #[test]
    fn shapes_broadcast_like_numpy() {
        assert_eq!(broadcast_shapes(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(broadcast_shapes(&[2, 0], &[2, 1]), Some(vec![2, 0]));
        assert_eq!(broadcast_shapes(&[2, 0], &[2, 2]), None);
        assert_eq!(broadcast_shapes(&[], &[4]), Some(vec![4]));
    }
}
