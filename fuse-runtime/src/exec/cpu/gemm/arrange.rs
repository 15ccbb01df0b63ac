//! Operands of a product as its kernel reads them: in the compute type, rows dense.

use super::kernel::Panels;
use crate::dtype::Element;
use crate::exec::cpu::moves::turn;
use crate::rt::vectorised;

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(in crate::exec::cpu) struct Matrix<T> {
    pub start: *const T,
    pub row_stride: isize,
    pub column_stride: isize,
}

impl<T> Matrix<T> {
    fn at(&self, row: usize, column: usize) -> *const T {
        self.start.wrapping_offset(row as isize * self.row_stride + column as isize * self.column_stride)
    }

    /// The matrix as one of the compute type, if it is that.
    pub fn as_computed(&self) -> Option<Matrix<T::Compute>>
    where
        T: Element,
    {
        let Matrix { start, row_stride, column_stride } = *self;
        (T::DTYPE == T::Compute::DTYPE).then_some(Matrix { start: start.cast(), row_stride, column_stride })
    }

    /// The matrix from a row and column on.
    pub fn from(&self, row: usize, column: usize) -> Self {
        Matrix { start: self.at(row, column), ..*self }
    }
}

/// Rows and columns that are turned around at a time, in the first cache.
const BLOCK: [usize; 2] = [64, 32];
/// Rows that go to all of some panels before the next ones, so that memory is read in long pieces.
const ROWS: usize = 64;

/// Copies a matrix to rows `pitch` apart.
///
/// # Safety
/// The matrix holds `rows x columns` readable elements, and there is room for as many in `to`.
pub(super) unsafe fn lay<T: Element>(from: Matrix<T>, rows: usize, columns: usize, to: *mut T::Compute, pitch: usize) {
    if from.column_stride == 1 {
        return vectorised(
            #[inline(always)]
            // SAFETY: passed on from the caller.
            || (0..rows).for_each(|row| unsafe { widen(from.at(row, 0), to.add(row * pitch), columns) }),
        );
    }
    let mut block = [T::Compute::default(); BLOCK[0] * BLOCK[1]];
    for row in (0..rows).step_by(BLOCK[0]) {
        let along = BLOCK[0].min(rows - row);
        for column in (0..columns).step_by(BLOCK[1]) {
            let across = BLOCK[1].min(columns - column);
            let piece = from.from(row, column);
            // SAFETY: passed on from the caller; the block holds its lines of BLOCK[0] elements.
            unsafe {
                (0..across).for_each(|c| line(piece.from(0, c), along, block.as_mut_ptr().add(c * BLOCK[0])));
                let (lines, to) = (block.as_ptr().cast(), to.add(row * pitch + column).cast());
                turn(lines, BLOCK[0] as isize, to, pitch, [across, along], size_of::<T::Compute>());
            }
        }
    }
}

/// The first column of a matrix.
unsafe fn line<T: Element>(from: Matrix<T>, rows: usize, to: *mut T::Compute) {
    // SAFETY: passed on from the caller.
    unsafe {
        if from.row_stride == 1 {
            return vectorised(
                #[inline(always)]
                || widen(from.start, to, rows),
            );
        }
        (0..rows).for_each(|row| to.add(row).write(from.at(row, 0).read().to_compute()));
    }
}

#[inline(always)]
unsafe fn widen<T: Element>(from: *const T, to: *mut T::Compute, len: usize) {
    // SAFETY: passed on from the caller.
    (0..len).for_each(|i| unsafe { to.add(i).write(from.add(i).read().to_compute()) });
}

/// Where the panels of a matrix of `depth` rows lie in `memory`, one after the other.
pub(in crate::exec::cpu) fn panels_in<A>(memory: *const A, width: usize, columns: usize, depth: usize) -> Panels<A> {
    let distance = width * depth;
    let rest = memory.wrapping_add(columns / width * distance);
    Panels { start: memory, step: width, distance, rest }
}

/// Copies some columns of a matrix of `depth` rows to panels of `width`, one after the other.
///
/// # Safety
/// The matrix holds `depth x columns` readable elements, and there is room for that many columns of whole panels in `to`.
pub(in crate::exec::cpu) unsafe fn arrange<T: Element>(
    from: Matrix<T>,
    columns: usize,
    depth: usize,
    to: *mut T::Compute,
    width: usize,
) {
    // Rows are copied side by side, dense columns one panel after the other.
    let most = if from.column_stride == 1 { ROWS } else { depth.max(1) };
    for row in (0..depth).step_by(most) {
        let rows = most.min(depth - row);
        for column in (0..columns).step_by(width) {
            let to = to.wrapping_add(column * depth + row * width);
            // SAFETY: passed on from the caller.
            unsafe { lay(from.from(row, column), rows, width.min(columns - column), to, width) };
        }
    }
}
