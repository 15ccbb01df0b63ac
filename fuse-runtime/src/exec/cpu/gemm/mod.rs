//! Products of matrices out of the caches.
//!
//! The right operand is arranged in panels, once for all threads. A tile of the product is made of stretches of the inner axis:
//! the tile's rows of the left operand are laid out in the second cache, from where a few at a time stay in the first while
//! panels go past them; their sums are in registers. An element of the product is the sum of its stretches, each added up
//! in order, whatever the tile and the thread, so results do not depend on these.

mod arrange;
mod dots;
mod kernel;
mod lanes;
#[cfg(test)]
mod tests;

pub(super) use arrange::{Matrix, arrange, panels_in};
pub(super) use dots::DOT_ROWS;
pub(super) use kernel::{Kernel, Multiply, Panels};

use crate::dtype::Element;
use crate::storage::CpuBuffer;
use dots::Dots;
use kernel::Stretch;

/// The most rows of a tile: whole groups of those that fit registers, and a stretch of them in the second cache.
pub(super) const TILE_ROWS: usize = 112;

/// Some columns of the right operand.
pub(super) enum Strip<A> {
    /// In panels.
    Panels(Panels<A>),
    /// Dense columns, for few rows.
    Columns(Matrix<A>),
}

/// A thread's memory for tiles.
pub(super) struct Room<A> {
    left: CpuBuffer,
    out: CpuBuffer,
    kernel: Kernel<A>,
}

impl<A: Multiply> Room<A> {
    /// Memory for tiles of so many elements.
    pub fn new(elements: usize, kernel: Kernel<A>) -> Self {
        let room = |elements: usize| CpuBuffer::new(elements * size_of::<A>()).expect("there is memory for a tile");
        Room { left: room(TILE_ROWS * A::PITCH), out: room(elements), kernel }
    }

    /// The columns of a panel.
    pub fn panel(&self) -> usize {
        self.kernel.columns
    }

    /// The first elements of the tile that was made last.
    pub fn out(&self, elements: usize) -> &[A] {
        assert!(elements * size_of::<A>() <= self.out.bytes());
        // SAFETY: the buffer is aligned for any element, its bytes are initialised, and every pattern of bits is a number.
        unsafe { std::slice::from_raw_parts(self.out.as_ptr().cast(), elements) }
    }

    /// The memory of the tile.
    pub fn out_ptr(&self) -> *mut A {
        self.out.as_ptr().cast()
    }

    /// Multiplies `rows` rows of a matrix with `columns` columns of another.
    ///
    /// # Safety
    /// The matrix holds `rows x depth` readable elements, the strip `depth x columns`.
    pub unsafe fn multiply<T: Element<Compute = A>>(
        &mut self,
        a: Matrix<T>,
        rows: usize,
        right: &Strip<A>,
        columns: usize,
        depth: usize,
    ) {
        let Kernel { columns: width, run, dots, .. } = self.kernel;
        let add = |left: *const A, first, depth, out| {
            let begins = first == 0;
            // SAFETY: passed on from the caller; the kernel is one of this processor.
            unsafe {
                match right {
                    Strip::Panels(panels) => {
                        let right = panels.below(first, width);
                        run(&Stretch { left, rows, right, columns, depth, out, begins })
                    }
                    Strip::Columns(matrix) => {
                        let (right, distance) = (matrix.from(first, 0).start, matrix.column_stride);
                        dots(&Dots { left, rows, right, distance, columns, depth, out, begins })
                    }
                }
            }
        };
        let [longest, pitch] = match right {
            Strip::Panels(_) => [A::DEPTH, A::PITCH],
            Strip::Columns(_) => [A::DOT_DEPTH, A::DOT_PITCH],
        };
        assert!(rows * pitch <= TILE_ROWS * A::PITCH && rows * columns * size_of::<A>() <= self.out.bytes());
        let (left, out) = (self.left.as_ptr().cast::<A>(), self.out_ptr());
        if depth == 0 {
            // SAFETY: the tile has as many elements, as was asked above.
            return unsafe { std::slice::from_raw_parts_mut(out, rows * columns) }.fill(A::ZERO);
        }
        for first in (0..depth).step_by(longest) {
            let depth = longest.min(depth - first);
            // SAFETY: passed on from the caller; there is memory for that many rows, as was asked above.
            unsafe { arrange::lay(a.from(0, first), rows, depth, left, pitch) };
            add(left, first, depth, out);
        }
    }
}
