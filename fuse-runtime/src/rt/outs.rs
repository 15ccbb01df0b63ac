//! What a kernel body writes.

use super::indexed::{Indexed, Scatter};
use super::ins::wrong_access;
use crate::dtype::Element;
use crate::exec::FaultCell;
use fuse_compiler::types::DType;
use std::marker::PhantomData;

/// A store as one run sees it.
#[derive(Clone, Copy)]
pub(crate) enum StoreRun {
    /// One value a point, dense; given out at most once a run.
    Elem {
        /// The place of the first point.
        start: *mut u8,
        /// Its element type.
        dtype: DType,
        /// Whether the body has it already.
        taken: bool,
    },
    /// One value for the run, or for the whole kernel.
    Single {
        /// The place.
        place: *mut u8,
        /// Its element type.
        dtype: DType,
    },
    /// Written at computed positions.
    Indexed {
        /// Where.
        to: Indexed,
        /// Whether the body has it already.
        taken: bool,
    },
}

/// Where rows leave a value of a statement for the end of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct StageRun {
    /// The statement.
    pub stmt: u32,
    /// The element type.
    pub dtype: DType,
    /// The value of the first row.
    pub start: *mut u8,
    /// The number of rows.
    pub rows: usize,
}

/// What one run writes.
pub struct Outs<'a> {
    len: usize,
    row: usize,
    stores: &'a mut [StoreRun],
    stages: &'a [StageRun],
    faults: &'a FaultCell,
    run: PhantomData<&'a mut u8>,
}

impl<'a> Outs<'a> {
    /// The places of a run of `len` points in row `row`.
    ///
    /// # Safety
    /// For as long as `'a`, the places are writable and initialised for `len` points (`Elem`) or one value (`Single`, and
    /// `row` of each stage), belong to this run alone, and overlap neither each other nor anything the run reads.
    pub(crate) unsafe fn new(
        len: usize,
        row: usize,
        stores: &'a mut [StoreRun],
        stages: &'a [StageRun],
        faults: &'a FaultCell,
    ) -> Self {
        Outs { len, row, stores, stages, faults, run: PhantomData }
    }

    /// The places of a store at the points of this run. Each may be taken once.
    #[inline(always)]
    pub fn elem<T: Element>(&mut self, store: usize) -> &'a mut [T] {
        match &mut self.stores[store] {
            StoreRun::Elem { start, dtype, taken } if *dtype == T::DTYPE && !*taken => {
                *taken = true;
                // SAFETY: by the promise of `new`; `taken` keeps the slice the only one.
                unsafe { std::slice::from_raw_parts_mut(start.cast::<T>(), self.len) }
            }
            _ => wrong_access(store, T::DTYPE),
        }
    }

    /// Writes the value of a row.
    #[inline(always)]
    pub fn row<T: Element>(&mut self, store: usize, value: T) {
        self.single(store, value);
    }

    /// Writes the value of the whole kernel.
    #[inline(always)]
    pub fn all<T: Element>(&mut self, store: usize, value: T) {
        self.single(store, value);
    }

    /// Leaves the value of a row for the end of the kernel.
    #[inline(always)]
    pub fn stage<T: Element>(&mut self, stmt: usize, value: T) {
        match self.stages.iter().find(|stage| stage.stmt == stmt as u32) {
            // SAFETY: by the promise of `new`, the row's place in the stage belongs to this run.
            Some(stage) if stage.dtype == T::DTYPE && self.row < stage.rows => unsafe {
                stage.start.cast::<T>().add(self.row).write(value)
            },
            _ => wrong_access(stmt, T::DTYPE),
        }
    }

    /// A store that is written at computed positions. It may be taken once.
    #[inline(always)]
    pub fn scatter<T: Element>(&mut self, store: usize) -> Scatter<'a, T> {
        match &mut self.stores[store] {
            StoreRun::Indexed { to, taken } if to.dtype == T::DTYPE && !*taken => {
                *taken = true;
                Scatter::new(*to, self.len, self.faults)
            }
            _ => wrong_access(store, T::DTYPE),
        }
    }

    /// [`Outs::elem`] for the interpreter, whose types are values.
    pub(crate) fn elem_raw(&mut self, store: usize) -> (*mut u8, DType) {
        match &mut self.stores[store] {
            StoreRun::Elem { start, dtype, taken } if !*taken => {
                *taken = true;
                (*start, *dtype)
            }
            _ => wrong_access(store, DType::Param(0)),
        }
    }

    /// Where [`Outs::row`] and [`Outs::all`] write, for the interpreter.
    pub(crate) fn single_raw(&mut self, store: usize) -> (*mut u8, DType) {
        match self.stores[store] {
            StoreRun::Single { place, dtype } => (place, dtype),
            _ => wrong_access(store, DType::Param(0)),
        }
    }

    /// [`Outs::stage`] for the interpreter: copies the one value at `from`, of type `dtype`.
    pub(crate) fn stage_raw(&mut self, stmt: usize, from: *const u8, dtype: DType) {
        match self.stages.iter().find(|stage| stage.stmt == stmt as u32) {
            // SAFETY: the row's place in the stage belongs to this run, and the caller has one value of the type.
            Some(stage) if stage.dtype == dtype && self.row < stage.rows => unsafe {
                std::ptr::copy_nonoverlapping(from, stage.start.add(self.row * dtype.bytes()), dtype.bytes());
            },
            _ => wrong_access(stmt, dtype),
        }
    }

    /// The element type of a store that is written at computed positions.
    pub(crate) fn scatter_dtype(&self, store: usize) -> DType {
        match self.stores[store] {
            StoreRun::Indexed { to, .. } => to.dtype,
            _ => wrong_access(store, DType::Param(0)),
        }
    }

    #[inline(always)]
    fn single<T: Element>(&mut self, store: usize, value: T) {
        match self.stores[store] {
            // SAFETY: by the promise of `new`, with the type that was asked for.
            StoreRun::Single { place, dtype } if dtype == T::DTYPE => unsafe { place.cast::<T>().write(value) },
            _ => wrong_access(store, T::DTYPE),
        }
    }
}
