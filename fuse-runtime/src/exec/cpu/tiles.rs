//! Walking a map in tiles where its operands run along different axes.
//!
//! In `x + y.t()` one operand is dense along the last axis and the other along the first, so runs along the last axis
//! would touch a cache line for every element of `y` and use one element of it. Points of a map may be walked in any
//! order, so the domain is cut into tiles: both operands then use whole lines. A tile of `y` is turned around, and its rows
//! are run one after the other, where everything else is used as it lies.

use crate::exec::operands::Operand;
use crate::layout::{Layout, MAX_DIMS};

/// The largest tile edges: along the axis of the other operand, and along the last. Rows of a tile are a few cache lines
/// each, which memory delivers much faster than single ones; the whole stays in a core's own cache.
const EDGES: [usize; 2] = [64, 256];
/// Smaller tiles are not worth their handling.
const LEAST: usize = 8;

/// How a domain is cut into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    /// The axis along which some operand is dense.
    axis: usize,
    /// Edges along that axis and along the last; both divide their extents.
    edges: [usize; 2],
}

impl Tiles {
    /// Tiles for a domain and its operands, or none where one order suits them all.
    pub fn for_operands<'a>(domain: &[usize], operands: impl Iterator<Item = &'a Operand>) -> Option<Self> {
        let last = domain.len().checked_sub(1)?;
        let axis = operands.filter_map(|operand| other_axis(operand.layout(), domain)).next()?;
        let edge =
            |extent: usize, most: usize| (LEAST..=most.min(extent)).rev().find(|edge| extent.is_multiple_of(*edge));
        let edges = [edge(domain[axis], EDGES[0])?, edge(domain[last], EDGES[1])?];
        (domain.len() + 2 <= MAX_DIMS).then_some(Tiles { axis, edges })
    }

    /// The points of a tile.
    pub fn points(&self) -> usize {
        self.edges[0] * self.edges[1]
    }

    /// The points of a row of a tile.
    pub fn row(&self) -> usize {
        self.edges[1]
    }

    /// A layout over the domain with its positions in the order of the tiles.
    pub fn arrange(&self, layout: &Layout) -> Layout {
        let (mut shape, mut strides) = (layout.shape().to_vec(), layout.strides().to_vec());
        for (axis, edge) in [self.axis, shape.len() - 1].into_iter().zip(self.edges) {
            let stride = strides[axis];
            shape[axis] /= edge;
            strides[axis] *= edge as isize;
            shape.push(edge);
            strides.push(stride);
        }
        Layout::strided(&shape, &strides, layout.offset())
    }
}

/// The axis along which an operand is dense, if that is not the last one.
fn other_axis(layout: &Layout, domain: &[usize]) -> Option<usize> {
    let last = domain.len() - 1;
    let strides = layout.strides();
    if strides.len() != domain.len() || strides[last].unsigned_abs() < LEAST {
        return None;
    }
    (0..last).find(|&axis| strides[axis] == 1 && domain[axis] >= LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_operand_asks_for_tiles() {
        let domain = [96, 100];
        let plain = Operand::Positions(Layout::contiguous(&domain));
        let turned = Operand::Positions(Layout::contiguous(&[100, 96]).transpose(0, 1).unwrap());
        assert_eq!(Tiles::for_operands(&domain, [&plain].into_iter()), None);
        let tiles = Tiles::for_operands(&domain, [&plain, &turned].into_iter()).unwrap();
        assert_eq!(tiles, Tiles { axis: 0, edges: [48, 100] });
        let arranged = tiles.arrange(plain.layout());
        assert_eq!((arranged.shape(), arranged.strides()), (&[2, 1, 48, 100][..], &[4800, 100, 100, 1][..]));
    }

    #[test]
    fn extents_without_divisors_are_walked_as_they_are() {
        let turned = Operand::Positions(Layout::contiguous(&[101, 97]).transpose(0, 1).unwrap());
        assert_eq!(Tiles::for_operands(&[97, 101], [&turned].into_iter()), None);
    }
}
