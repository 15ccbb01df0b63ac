//! What a kernel body reads.

use super::draw::Draw;
use super::indexed::{Gather, Indexed};
use super::outs::StageRun;
use super::scalar::{Scalar, scalar_as};
use crate::dtype::Element;
use crate::exec::FaultCell;
use fuse_compiler::types::DType;
use std::marker::PhantomData;

/// What is the same for every run of a launch.
pub(crate) struct CallFacts<'a> {
    /// Host scalars, in the order of the plan.
    pub scalars: &'a [Scalar],
    /// The value of every `Size` statement, by number of the statement; 0 for others.
    pub sizes: &'a [i64],
    /// Where each random draw starts.
    pub draws: &'a [Draw],
    /// Where faults are noted.
    pub faults: &'a FaultCell,
}

/// A leaf as one run sees it.
#[derive(Clone, Copy)]
pub(crate) enum LeafRun {
    /// One value a point, dense.
    Elem {
        /// The value of the first point.
        start: *const u8,
        /// Its element type.
        dtype: DType,
    },
    /// One value for the whole run.
    Row {
        /// The value.
        value: *const u8,
        /// Its element type.
        dtype: DType,
    },
    /// One value a point of several rows.
    Rows {
        /// The value of the first point of the first row.
        start: *const u8,
        /// Its element type.
        dtype: DType,
        /// Bytes between neighbouring rows, in which points are dense.
        pitch: isize,
    },
    /// Read at computed positions.
    Indexed(Indexed),
}

/// What a column was summed up to before its body runs: the value of a reduction.
#[derive(Clone, Copy)]
pub(crate) struct Summed {
    /// The value.
    pub value: *const u8,
    /// Its type.
    pub dtype: DType,
}

/// What one run reads: a dense slice for every leaf read at each point, one value for every leaf read once a row.
pub struct Ins<'a> {
    len: usize,
    facts: &'a CallFacts<'a>,
    leaves: &'a [LeafRun],
    product: LeafRun,
    staged: &'a [StageRun],
    rows: usize,
    summed: &'a [Summed],
    run: PhantomData<&'a u8>,
}

impl<'a> Ins<'a> {
    /// A run of `len` points.
    ///
    /// # Safety
    /// For as long as `'a`, every `Elem` leaf and `product` (if read) point at `len` valid values of their type, every
    /// `Row` leaf at one, every `Rows` leaf at `len` in each row, every `Indexed` leaf keeps the promise of [`Indexed`], and nobody writes to any of them.
    pub(crate) unsafe fn new(len: usize, facts: &'a CallFacts<'a>, leaves: &'a [LeafRun]) -> Self {
        let nothing = LeafRun::Row { value: std::ptr::null(), dtype: DType::Param(0) };
        Ins { len, facts, leaves, product: nothing, staged: &[], rows: 1, summed: &[], run: PhantomData }
    }

    /// The same run with the elements of a product, of which there must be as many as points.
    pub(crate) unsafe fn with_product(self, start: *const u8, dtype: DType) -> Self {
        Ins { product: LeafRun::Elem { start, dtype }, ..self }
    }

    /// So many rows of `len` points each, which every `Rows` leaf has.
    pub(crate) unsafe fn with_rows(self, rows: usize) -> Self {
        Ins { rows, ..self }
    }

    /// The same run where the reductions are known, each to point at its valid value.
    pub(crate) unsafe fn with_summed(self, summed: &'a [Summed]) -> Self {
        Ins { summed, ..self }
    }

    /// The same run with the values staged by all rows.
    pub(crate) unsafe fn with_staged(self, staged: &'a [StageRun]) -> Self {
        Ins { staged, ..self }
    }

    /// The number of points of this run.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the run has no points, as a row along an axis of extent 0.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values of a leaf at the points of this run.
    #[inline(always)]
    pub fn elem<T: Element>(&self, leaf: usize) -> &'a [T] {
        self.dense(self.leaves[leaf])
    }

    /// How many rows this run has.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of a leaf at the points of a row of this run.
    #[inline(always)]
    pub fn elem_at<T: Element>(&self, leaf: usize, row: usize) -> &'a [T] {
        match self.leaves[leaf] {
            // SAFETY: by the promise of `new`, with the type that was asked for, for every row there is.
            LeafRun::Rows { start, dtype, pitch } if dtype == T::DTYPE && row < self.rows => unsafe {
                std::slice::from_raw_parts(start.offset(row as isize * pitch).cast::<T>(), self.len)
            },
            _ => wrong_access(leaf, T::DTYPE),
        }
    }

    /// The value of a reduction over the points, if it was found before.
    #[inline(always)]
    pub fn summed<T: Element>(&self, reduction: usize) -> Option<T> {
        match self.summed.get(reduction) {
            None => None,
            // SAFETY: by the promise of `with_summed`, with the type that was asked for.
            Some(sum) if sum.dtype == T::DTYPE => Some(unsafe { sum.value.cast::<T>().read() }),
            Some(_) => wrong_access(reduction, T::DTYPE),
        }
    }

    /// The value of a leaf that is read once a row.
    #[inline(always)]
    pub fn row<T: Element>(&self, leaf: usize) -> T {
        match self.leaves[leaf] {
            // SAFETY: by the promise of `new`, with the type that was asked for.
            LeafRun::Row { value, dtype } if dtype == T::DTYPE => unsafe { value.cast::<T>().read() },
            _ => wrong_access(leaf, T::DTYPE),
        }
    }

    /// A leaf that is read at computed positions.
    #[inline(always)]
    pub fn gather<T: Element>(&self, leaf: usize) -> Gather<'a, T> {
        match self.leaves[leaf] {
            LeafRun::Indexed(indexed) if indexed.dtype == T::DTYPE => Gather::new(indexed, self.len, self.facts.faults),
            _ => wrong_access(leaf, T::DTYPE),
        }
    }

    /// The product's elements at the points of this run, in the epilogue of a matmul.
    #[inline(always)]
    pub fn product<T: Element>(&self) -> &'a [T] {
        self.dense(self.product)
    }

    /// A host scalar, converted to the compute type of its statement.
    #[inline(always)]
    pub fn scalar<T: Element>(&self, k: usize) -> T {
        scalar_as(self.facts.scalars[k])
    }

    /// The size that a statement stands for.
    #[inline(always)]
    pub fn size(&self, stmt: usize) -> i64 {
        self.facts.sizes[stmt]
    }

    /// A random draw.
    #[inline(always)]
    pub fn draw(&self, number: usize) -> Draw {
        self.facts.draws[number]
    }

    /// Notes a fault; `code` is the number of the statement that met it.
    #[cold]
    #[inline(never)]
    pub fn fault(&self, code: u32) {
        self.facts.faults.note_division(code);
    }

    /// What every row staged for a statement, in the order of the rows.
    #[inline(always)]
    pub fn staged<T: Element>(&self, stmt: usize) -> &'a [T] {
        match self.staged.iter().find(|stage| stage.stmt == stmt as u32) {
            // SAFETY: the rows are done, and the driver gave the stage one initialised value of its type a row.
            Some(stage) if stage.dtype == T::DTYPE => unsafe {
                std::slice::from_raw_parts(stage.start.cast::<T>(), stage.rows)
            },
            _ => wrong_access(stmt, T::DTYPE),
        }
    }

    /// [`Ins::elem`] for the interpreter, whose types are values.
    pub(crate) fn elem_raw(&self, leaf: usize) -> (*mut u8, DType) {
        match self.leaves[leaf] {
            LeafRun::Elem { start, dtype } => (start.cast_mut(), dtype),
            _ => wrong_access(leaf, DType::Param(0)),
        }
    }

    /// [`Ins::row`] for the interpreter.
    pub(crate) fn row_raw(&self, leaf: usize) -> (*mut u8, DType) {
        match self.leaves[leaf] {
            LeafRun::Row { value, dtype } => (value.cast_mut(), dtype),
            _ => wrong_access(leaf, DType::Param(0)),
        }
    }

    /// [`Ins::product`] for the interpreter.
    pub(crate) fn product_raw(&self) -> (*mut u8, DType) {
        match self.product {
            LeafRun::Elem { start, dtype } => (start.cast_mut(), dtype),
            _ => wrong_access(usize::MAX, DType::Param(0)),
        }
    }

    /// [`Ins::staged`] for the interpreter.
    pub(crate) fn staged_raw(&self, stmt: usize) -> (*mut u8, DType) {
        match self.staged.iter().find(|stage| stage.stmt == stmt as u32) {
            Some(stage) => (stage.start, stage.dtype),
            None => wrong_access(stmt, DType::Param(0)),
        }
    }

    /// [`Ins::scalar`] before it is converted.
    pub(crate) fn scalar_raw(&self, k: usize) -> Scalar {
        self.facts.scalars[k]
    }

    /// The element type of a leaf that is read at computed positions.
    pub(crate) fn gather_dtype(&self, leaf: usize) -> DType {
        match self.leaves[leaf] {
            LeafRun::Indexed(indexed) => indexed.dtype,
            _ => wrong_access(leaf, DType::Param(0)),
        }
    }

    #[inline(always)]
    fn dense<T: Element>(&self, leaf: LeafRun) -> &'a [T] {
        match leaf {
            // SAFETY: by the promise of `new`, with the type that was asked for.
            LeafRun::Elem { start, dtype } if dtype == T::DTYPE => unsafe {
                std::slice::from_raw_parts(start.cast::<T>(), self.len)
            },
            _ => wrong_access(usize::MAX, T::DTYPE),
        }
    }
}

// SAFETY: a run is read-only, and faults are noted through atomics.
unsafe impl Sync for Ins<'_> {}
// SAFETY: as above.
unsafe impl Send for Ins<'_> {}

/// Emitted code and the plan are made from one another, so this is a mistake of ours.
#[cold]
#[inline(never)]
pub(super) fn wrong_access(which: usize, dtype: DType) -> ! {
    panic!("a kernel body uses operand {which} as {dtype}, which its plan does not say")
}
