//! Positions of elements in memory, walked in row-major order of the extents.

use crate::layout::Layout;

/// Extents and strides of one operand over some axes, neighbours merged where its strides allow, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Strided {
    dims: Vec<(usize, isize)>,
}

/// Evenly spaced elements within a run.
pub(super) struct Segment {
    /// Where in the run the first one goes.
    pub at: usize,
    /// How many there are.
    pub len: usize,
    /// The position of the first one in memory, in elements.
    pub offset: isize,
    /// The distance of neighbours.
    pub stride: isize,
}

impl Strided {
    /// The axes `from..to` of a layout.
    pub fn of(layout: &Layout, from: usize, to: usize) -> Self {
        let part = Layout::strided(&layout.shape()[from..to], &layout.strides()[from..to], 0);
        Strided { dims: part.runs().collect() }
    }

    /// Whether consecutive positions are consecutive in memory everywhere.
    pub fn is_dense(&self) -> bool {
        matches!(self.dims[..], [] | [(_, 1)])
    }

    /// Whether every position is the same element.
    pub fn is_constant(&self) -> bool {
        self.dims.iter().all(|&(_, stride)| stride == 0)
    }

    /// The one stride between consecutive positions, if it is the same everywhere.
    pub fn even_stride(&self) -> Option<isize> {
        match self.dims[..] {
            [] => Some(0),
            [(_, stride)] => Some(stride),
            _ => None,
        }
    }

    /// The position in memory of the n-th element.
    pub fn offset(&self, n: usize) -> isize {
        let mut left = n;
        let mut offset = 0;
        for &(extent, stride) in &self.dims {
            // Rows of no points have a start too.
            offset += (left % extent.max(1)) as isize * stride;
            left /= extent.max(1);
        }
        offset
    }

    /// The elements `start..start + len` as evenly spaced pieces.
    pub fn segments(&self, start: usize, len: usize, mut visit: impl FnMut(Segment)) {
        let (extent, stride) = self.dims.first().copied().unwrap_or((1, 0));
        let mut at = 0;
        while at < len {
            let piece = (extent - (start + at) % extent).min(len - at);
            visit(Segment { at, len: piece, offset: self.offset(start + at), stride });
            at += piece;
        }
    }

    /// The two innermost axes, `(extent, stride)` each, where the elements `start..start + len` are all of them.
    pub fn tile(&self, start: usize, len: usize) -> Option<[(usize, isize); 2]> {
        let [inner, outer] = *self.dims.first_chunk::<2>()?;
        let points = inner.0 * outer.0;
        (len == points && start.is_multiple_of(points)).then_some([inner, outer])
    }

    /// Whether the elements `start..start + len` are consecutive in memory.
    pub fn is_dense_at(&self, start: usize, len: usize) -> bool {
        // A run of no points comes from an axis of extent 0, where nothing divides.
        match self.dims.first() {
            _ if len <= 1 => true,
            None => false,
            Some(&(extent, stride)) => stride == 1 && start % extent + len <= extent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(strided: &Strided, start: usize, len: usize) -> Vec<isize> {
        let mut out = vec![isize::MIN; len];
        strided.segments(start, len, |s| {
            (0..s.len).for_each(|i| out[s.at + i] = s.offset + i as isize * s.stride);
        });
        out
    }

    #[test]
    fn segments_visit_every_element_in_order() {
        let layout = Layout::contiguous(&[3, 4, 5]).permute(&[2, 0, 1]).unwrap();
        let strided = Strided::of(&layout, 0, 3);
        let all = positions(&strided, 0, 60);
        assert_eq!(all, (0..60).map(|n| strided.offset(n)).collect::<Vec<_>>());
        assert_eq!(positions(&strided, 7, 30), all[7..37]);
        assert_eq!(all[..4], [0, 5, 10, 15]);
    }

    #[test]
    fn broadcasts_and_single_elements_are_constant() {
        let row = Layout::contiguous(&[4]).broadcast_to(&[3, 4]).unwrap();
        assert!(!Strided::of(&row, 0, 2).is_constant());
        assert!(Strided::of(&row, 0, 1).is_constant());
        let one = Strided::of(&Layout::contiguous(&[1, 1]), 0, 2);
        assert!(one.is_constant() && one.is_dense());
        assert_eq!(positions(&one, 0, 1), [0]);
    }

    #[test]
    fn a_run_inside_of_a_row_is_dense() {
        let window = Layout::contiguous(&[4, 10]).narrow(1, 0, 6).unwrap();
        let strided = Strided::of(&window, 0, 2);
        assert!(!strided.is_dense());
        assert!(strided.is_dense_at(6, 6) && strided.is_dense_at(8, 3) && !strided.is_dense_at(4, 3));
    }
}
