//! The axes a kernel runs over and how its operands are walked, as the layouts of a call give them.

use super::ceil_div;
use crate::plan::{Kernel, Kind, Leaf, Level, View};

/// Points of a tile along each of its two axes.
const TILES: [u32; 2] = [64, 32];
/// The widest access, in bytes.
const WIDEST: i64 = 16;
/// Shared memory that all devices give a block without being asked, in bytes.
const SHARED: usize = 48 << 10;

/// The axes a kernel runs over, as the layouts of a call give them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Extents of the outer axes; of all axes in a map.
    pub outer: Vec<i64>,
    /// Extents of the reduced or sequential axes.
    pub inner: Vec<i64>,
    /// Leaves, then stores.
    pub operands: Vec<Access>,
}

/// How one operand is walked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Strides in elements over the outer, then the inner axes (`Elem`), over the outer axes (`Row`) or none (`All`).
    pub strides: Vec<i64>,
    /// The address of the first element; only its alignment counts. 0 for index leaves.
    pub address: u64,
    /// Bytes of an element; 0 for index leaves, which are computed and not read.
    pub bytes: usize,
    /// Whether every element is addressed on its own (gathers and scatters).
    pub indexed: bool,
}

impl Geometry {
    /// Merges neighbouring axes wherever every operand allows it and drops axes of extent 1; at least one axis stays in each group.
    pub fn collapse(&self, kernel: &Kernel) -> Geometry {
        let has_inner = kernel.kind != Kind::Map;
        let outer = self.merged(0..self.outer.len());
        let inner = self.merged(self.outer.len()..self.outer.len() + self.inner.len());
        let levels = kernel.leaves.iter().map(|l| l.level);
        let levels = levels.chain(kernel.stores.iter().map(|s| kernel.store_level(s)));
        let operands = self.operands.iter().zip(levels).map(|(access, level)| {
            let strides = match level {
                Level::All => vec![],
                Level::Elem if has_inner => [outer.strides_of(access), inner.strides_of(access)].concat(),
                Level::Row | Level::Elem => outer.strides_of(access),
            };
            Access { strides, ..access.clone() }
        });
        let operands = operands.collect();
        Geometry { outer: outer.extents(), inner: if has_inner { inner.extents() } else { vec![] }, operands }
    }

    fn merged(&self, axes: std::ops::Range<usize>) -> Merged {
        let all = [self.outer.as_slice(), &self.inner].concat();
        let mut merged: Vec<(i64, usize)> = vec![];
        for axis in axes.filter(|&a| all[a] != 1) {
            match merged.last_mut() {
                Some((extent, last)) if self.operands.iter().all(|o| o.mergeable(*last, axis, all[axis])) => {
                    (*extent, *last) = (*extent * all[axis], axis);
                }
                _ => merged.push((all[axis], axis)),
            }
        }
        Merged(merged)
    }

    /// The number of rows, columns, lines or (in a map) points.
    pub fn rows(&self) -> i64 {
        self.outer.iter().product()
    }

    /// The length of a row, column or line.
    pub fn len(&self) -> i64 {
        self.inner.iter().product()
    }

    /// Whether there is no point to run over.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0 || self.len() == 0
    }

    /// Whether a leaf of a map is transposed in the program's text and in memory, over extents that are worth a tile.
    pub(super) fn is_turned(&self, kernel: &Kernel, leaf: usize) -> bool {
        let (info, access) = (&kernel.leaves[leaf], &self.operands[leaf]);
        let [.., before, last] = self.outer[..] else { return false };
        let [.., before_stride, last_stride] = access.strides[..] else { return false };
        is_turnable(kernel, info) && before.min(last) >= 16 && before_stride == 1 && last_stride > 1
    }

    /// The tiles of a map's last two axes.
    pub(super) fn tiles(&self, tile: u32) -> i64 {
        let [ref rest @ .., before, last] = self.outer[..] else { unreachable!("a tiled map has two axes") };
        rest.iter().product::<i64>() * ceil_div(before, tile.into()) * ceil_div(last, tile.into())
    }

    /// Points of a tile along each of its axes: long runs in memory, where the axes are long and there is room for all operands.
    pub(super) fn tile(&self, kernel: &Kernel) -> u32 {
        let turned = (0..kernel.leaves.len()).filter(|leaf| self.is_turned(kernel, *leaf));
        let bytes: usize = turned.map(|leaf| self.operands[leaf].bytes).sum();
        let shortest = self.outer.iter().rev().take(2).min().copied().unwrap_or(0);
        let room = |tile: u32| bytes * (tile * (tile + 1)) as usize <= SHARED && shortest >= i64::from(tile);
        TILES.into_iter().find(|tile| room(*tile)).unwrap_or(TILES[1])
    }

    /// Whether some position does not fit 31 bits.
    pub(super) fn is_wide(&self) -> bool {
        let all = [self.outer.as_slice(), &self.inner].concat();
        let far = |access: &Access| {
            let reach: i128 =
                access.strides.iter().zip(&all).map(|(s, n)| i128::from(s.abs()) * i128::from(n - 1).max(0)).sum();
            reach >= 1 << 31
        };
        let points: i128 = all.iter().map(|&n| i128::from(n)).product();
        points >= (1 << 31) - (1 << 20) || self.operands.iter().any(far)
    }
}

/// Axes after merging: the extent and the last original axis of each.
struct Merged(Vec<(i64, usize)>);

impl Merged {
    fn extents(&self) -> Vec<i64> {
        if self.0.is_empty() { vec![1] } else { self.0.iter().map(|(extent, _)| *extent).collect() }
    }

    fn strides_of(&self, access: &Access) -> Vec<i64> {
        if self.0.is_empty() { vec![0] } else { self.0.iter().map(|(_, axis)| access.strides[*axis]).collect() }
    }
}

impl Access {
    /// Whether walking `outer` and then `inner` is one walk. An operand that does not see the axes does not mind.
    fn mergeable(&self, outer: usize, inner: usize, inner_extent: i64) -> bool {
        match (self.strides.get(outer), self.strides.get(inner)) {
            (Some(o), Some(i)) => *o == i * inner_extent,
            _ => true,
        }
    }

    /// Whether accesses of `vec` neighbouring elements are aligned wherever the walk leads.
    pub(super) fn aligned(&self, vec: u32, along: usize) -> bool {
        let access = (u64::from(vec) * self.bytes as u64).min(16);
        let far = self.strides.iter().enumerate().filter(|(axis, _)| *axis != along);
        let bytes = |stride: i64| stride.unsigned_abs() * self.bytes as u64;
        self.address.is_multiple_of(access) && far.into_iter().all(|(_, s)| bytes(*s).is_multiple_of(access))
    }
}

/// Whether so many elements are accesses of 16 bytes: whether rows that lie so far apart begin at even addresses.
pub(super) fn are_whole_accesses(elements: i64, bytes: usize) -> bool {
    elements * bytes as i64 % WIDEST == 0
}

/// Whether a leaf is read through a written transposition, so that the text has a body that turns tiles.
pub fn is_turnable(kernel: &Kernel, leaf: &Leaf) -> bool {
    let permuted = leaf.views.iter().any(|v| matches!(v, View::Permute(_)));
    let plain = leaf.buf().is_some() && leaf.indexed.is_none() && leaf.level == Level::Elem;
    kernel.kind == Kind::Map && permuted && plain
}
