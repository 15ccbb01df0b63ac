//! The right operand of a product: brought to panels by all threads, or read where it lies.

use super::gemm::{DOT_ROWS, Matrix, Multiply, Panels, Strip as Ready, arrange, panels_in};
use super::matmul::Product;
use super::share::share;
use super::strips::Strip;
use crate::dtype::Element;
use crate::rt::level;
use crate::storage::CpuBuffer;
use std::marker::PhantomData;

/// Right operands of fewer elements are arranged by the calling thread.
const PARALLEL: usize = 1 << 14;
/// Panels that are arranged at a time.
const PANELS: usize = 4;
/// Bytes of panels that are arranged before they are used.
const ARRANGED: usize = 1 << 24;
/// A right operand that no more rows than this go past is read where it lies, if its rows are dense.
const IN_PLACE_ROWS: usize = 32;

/// How the right operand is read.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Copied to panels.
    Copied,
    /// Where it lies, as panels of dense rows; only a last panel with fewer columns is copied.
    Rows,
    /// Where it lies, dense column by dense column.
    Columns,
}

/// The right operand of a product.
pub(super) struct Right<'a, T> {
    product: &'a Product,
    /// How many matrices there are: one where the whole batch has the same.
    pub matrices: usize,
    form: Form,
    /// The columns of a panel.
    width: usize,
    of: PhantomData<T>,
}

/// Some strips as they are multiplied, and the memory of what was copied.
pub(super) struct Arranged<'a, T: Element> {
    right: &'a Right<'a, T>,
    strips: &'a [Strip],
    /// Where the copied columns of a strip begin, in elements.
    starts: Vec<usize>,
    memory: CpuBuffer,
}

impl<'a, T: Element<Compute: Multiply>> Right<'a, T> {
    /// The right operand of a product that is not empty.
    pub fn of(product: &'a Product) -> Self {
        let layout = product.b.layout();
        let (outer, inner) = layout.strides().split_at(layout.rank() - 2);
        let same = outer.iter().zip(layout.shape()).all(|(&stride, &extent)| stride == 0 || extent == 1);
        let matrices = if same { 1 } else { product.batch };
        let rows = product.m * (product.batch / matrices);
        let plain = T::DTYPE == T::Compute::DTYPE;
        let form = match *inner {
            [step, 1] if plain && step >= 0 && rows <= IN_PLACE_ROWS => Form::Rows,
            [1, _] if plain && product.m <= DOT_ROWS => Form::Columns,
            _ => Form::Copied,
        };
        Right { product, matrices, form, width: T::Compute::kernel(level()).columns, of: PhantomData }
    }

    /// How many strips of so many columns are arranged before they are used.
    pub fn strips_at_a_time(&self, columns: usize) -> usize {
        let bytes = self.product.k * columns.next_multiple_of(self.width) * size_of::<T::Compute>();
        match self.form {
            Form::Copied => (ARRANGED / bytes.max(1)).max(1),
            Form::Rows | Form::Columns => usize::MAX,
        }
    }

    /// How many of the last columns of a strip are copied.
    fn copied(&self, strip: &Strip) -> usize {
        match self.form {
            Form::Copied => strip.columns,
            Form::Rows => strip.columns % self.width,
            Form::Columns => 0,
        }
    }

    /// Some strips, arranged by all threads.
    pub fn arrange(&'a self, strips: &'a [Strip], threads: usize) -> Arranged<'a, T> {
        let (k, width) = (self.product.k, self.width);
        let mut elements = 0;
        let mut starts = Vec::with_capacity(strips.len());
        let mut pieces = Vec::new();
        for (s, strip) in strips.iter().enumerate() {
            let copied = self.copied(strip);
            starts.push(elements);
            pieces.extend((0..copied).step_by(PANELS * width).map(|column| (s, column)));
            elements += k * copied.next_multiple_of(width);
        }
        let memory = CpuBuffer::new(elements * size_of::<T::Compute>()).expect("there is memory for the right operand");
        let arranged = Arranged { right: self, strips, starts, memory };
        let bite = if threads == 1 || elements < PARALLEL { pieces.len().max(1) } else { 1 };
        share(pieces.len(), bite, || (), |(), p| arranged.copy(pieces[p]));
        arranged
    }

    fn matrix(&self, strip: &Strip) -> Matrix<T> {
        self.product.matrix::<T>(&self.product.b, strip.matrix).from(0, strip.column)
    }
}

impl<T: Element<Compute: Multiply>> Arranged<'_, T> {
    fn place(&self, s: usize) -> *mut T::Compute {
        self.memory.as_ptr().cast::<T::Compute>().wrapping_add(self.starts[s])
    }

    /// Copies some panels of a strip, from a copied column on.
    fn copy(&self, (s, column): (usize, usize)) {
        let (right, strip) = (self.right, &self.strips[s]);
        let (k, width, copied) = (right.product.k, right.width, right.copied(strip));
        let from = right.matrix(strip).from(0, strip.columns - copied + column);
        let columns = (PANELS * width).min(copied - column);
        // SAFETY: the operand holds that many rows and columns there; the piece has its own place in memory of this call.
        unsafe { arrange(from, columns, k, self.place(s).wrapping_add(column * k), width) };
    }

    /// A strip.
    pub fn strip(&self, s: usize) -> Ready<T::Compute> {
        let (right, strip) = (self.right, &self.strips[s]);
        let (k, width) = (right.product.k, right.width);
        let copied = panels_in(self.place(s).cast_const(), width, right.copied(strip), k);
        let in_place = || right.matrix(strip).as_computed().expect("the operand is of the type that it is computed in");
        match right.form {
            Form::Copied => Ready::Panels(copied),
            Form::Rows => {
                let Matrix { start, row_stride, .. } = in_place();
                Ready::Panels(Panels { start, step: row_stride as usize, distance: width, rest: copied.rest })
            }
            Form::Columns => Ready::Columns(in_place()),
        }
    }
}

// SAFETY: copies go to places of their own, and what lies in the operand and the memory is read by all.
unsafe impl<T: Element> Sync for Arranged<'_, T> {}
