//! Sums of neighbouring columns, row after row.

use super::ins::wrong_access;
use crate::dtype::Element;
use crate::reduce::COLUMN_LANES as LANES;
use fuse_compiler::types::DType;
use std::marker::PhantomData;

/// The sums of one reduction: a row for each lane, of as many as there are columns.
#[derive(Clone, Copy)]
pub(crate) struct SumsOf {
    /// The first sum of the first row.
    pub start: *mut u8,
    /// The type of a sum.
    pub dtype: DType,
    /// Whether the body has them already.
    pub taken: bool,
}

/// The sums that a body adds rows to, of each of its reductions.
pub struct Sums<'a> {
    columns: usize,
    of: &'a mut [SumsOf],
    run: PhantomData<&'a mut u8>,
}

impl<'a> Sums<'a> {
    /// The sums of so many columns.
    ///
    /// # Safety
    /// For as long as `'a`, each of them is initialised, belongs to this run alone, and overlaps neither another one nor anything
    /// the run reads.
    pub(crate) unsafe fn new(columns: usize, of: &'a mut [SumsOf]) -> Self {
        Sums { columns, of, run: PhantomData }
    }

    /// The sums of a reduction. Each may be taken once.
    #[inline(always)]
    pub fn take<T: Element>(&mut self, reduction: usize) -> Lanes<'a, T> {
        match &mut self.of[reduction] {
            SumsOf { start, dtype, taken } if *dtype == T::DTYPE && !*taken => {
                *taken = true;
                // SAFETY: by the promise of `new`; `taken` keeps the slice the only one.
                let all = unsafe { std::slice::from_raw_parts_mut(start.cast::<T>(), LANES * self.columns) };
                Lanes { all, columns: self.columns }
            }
            _ => wrong_access(reduction, T::DTYPE),
        }
    }
}

/// The sums of one reduction.
pub struct Lanes<'a, T> {
    all: &'a mut [T],
    columns: usize,
}

impl<T> Lanes<'_, T> {
    /// Those that a row is added to, one a column.
    #[inline(always)]
    pub fn of(&mut self, row: usize) -> &mut [T] {
        &mut self.all[row % LANES * self.columns..][..self.columns]
    }
}
