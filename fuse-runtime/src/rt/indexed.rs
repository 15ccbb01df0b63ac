//! Reads and writes at computed positions.

use crate::dtype::Element;
use crate::exec::FaultCell;
use crate::math;
use fuse_compiler::types::DType;
use std::marker::PhantomData;

/// An operand that is addressed along one axis by computed positions.
///
/// The maker promises that for every point `i` of the run and every `index` in `0..extent` the element
/// `start + offset(i) + index * stride` is a valid value of `dtype` while the run lasts.
#[derive(Clone, Copy)]
pub(crate) struct Indexed {
    /// The element at index 0 of the first point.
    pub start: *mut u8,
    /// The element type.
    pub dtype: DType,
    /// How far index 0 moves from point to point, in elements, where `offsets` is null.
    pub step: isize,
    /// Where index 0 of each point lies, in elements, if not evenly spaced; else null.
    pub offsets: *const isize,
    /// Positions of the indexed axis.
    pub extent: usize,
    /// Distance of neighbours of the indexed axis, in elements.
    pub stride: isize,
    /// The number of the operand, leaves and then stores, to say which it was.
    pub operand: u32,
}

impl Indexed {
    /// The element of point `i` at `index`, or `None` where that is out of range.
    #[inline(always)]
    fn at<T>(&self, i: usize, index: i64) -> Option<*mut T> {
        if index as u64 >= self.extent as u64 {
            return None;
        }
        // SAFETY: if offsets are given there is one for every point, and callers have checked `i`.
        let offset =
            if self.offsets.is_null() { self.step * i as isize } else { unsafe { self.offsets.add(i).read() } };
        Some(self.start.cast::<T>().wrapping_offset(offset + index as isize * self.stride))
    }
}

/// A leaf that is read at computed positions.
#[derive(Clone, Copy)]
pub struct Gather<'a, T> {
    to: Indexed,
    len: usize,
    faults: &'a FaultCell,
    element: PhantomData<T>,
}

impl<'a, T: Element> Gather<'a, T> {
    #[inline(always)]
    pub(super) fn new(to: Indexed, len: usize, faults: &'a FaultCell) -> Self {
        Gather { to, len, faults, element: PhantomData }
    }

    /// The element of point `i` at `index`. Out of range is a fault and gives the default.
    #[inline(always)]
    pub fn get(&self, i: usize, index: i64) -> T {
        // A leaf of row level has one point, whatever the length of the run.
        assert!(i < self.len || i == 0, "point {i} of a run of {}", self.len);
        match self.to.at::<T>(i, index) {
            // SAFETY: the point and the index were checked, and the maker promised a value there.
            Some(element) => unsafe { element.read() },
            None => {
                self.faults.note_index(self.to.operand, index, self.to.extent);
                T::default()
            }
        }
    }
}

// SAFETY: gathering only reads, and faults are noted through atomics.
unsafe impl<T> Sync for Gather<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Send for Gather<'_, T> {}

/// A store that is written at computed positions.
pub struct Scatter<'a, T> {
    to: Indexed,
    len: usize,
    faults: &'a FaultCell,
    element: PhantomData<&'a mut T>,
}

impl<'a, T: Element> Scatter<'a, T> {
    #[inline(always)]
    pub(super) fn new(to: Indexed, len: usize, faults: &'a FaultCell) -> Self {
        Scatter { to, len, faults, element: PhantomData }
    }

    /// Replaces the element of point `i` at `index`. Out of range is a fault and writes nothing.
    #[inline(always)]
    pub fn set(&mut self, i: usize, index: i64, value: T) {
        if let Some(element) = self.find(i, index) {
            // SAFETY: see `find`.
            unsafe { element.write(value) }
        }
    }

    /// Adds to the element of point `i` at `index`, rounding to the element type. Out of range is a fault and writes nothing.
    #[inline(always)]
    pub fn add(&mut self, i: usize, index: i64, value: T)
    where
        T::Compute: math::Number,
    {
        if let Some(element) = self.find(i, index) {
            // SAFETY: see `find`.
            unsafe { element.write(T::from_compute(math::add(element.read().to_compute(), value.to_compute()))) }
        }
    }

    /// The element, which belongs to this run alone: runs differ in the axes that are not indexed.
    #[inline(always)]
    fn find(&self, i: usize, index: i64) -> Option<*mut T> {
        assert!(i < self.len, "point {i} of a run of {}", self.len);
        let element = self.to.at::<T>(i, index);
        if element.is_none() {
            self.faults.note_index(self.to.operand, index, self.to.extent);
        }
        element
    }
}
