//! Products of matrices: tiles of the product are made by a library while the epilogue takes them out of the cache.

use super::kernel::{RUN, bind};
use super::launch::Launch;
use super::share::share;
use super::worker::Worker;
use crate::dtype::{Element, f8e4m3};
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::symbols::Sizes;
use crate::math::Number;
use crate::raw::RawTensor;
use crate::rt::{CallFacts, DynBody, vectorised};
use fuse_compiler::plan::Matmul;
use fuse_compiler::types::DType;
use half::{bf16, f16};

/// Rows and columns of a tile, best first. Every tile packs its operands again, which matters less the larger it is; but
/// every thread has to have some, and not to wait long for the last.
const TILES: [[usize; 2]; 4] = [[256, 512], [128, 512], [64, 512], [64, 256]];
/// Products of fewer multiplications stay on the calling thread.
const PARALLEL: usize = 1 << 17;

/// Runs a matmul with its epilogue; faults are left in `facts`.
pub(crate) fn run_matmul(
    matmul: &Matmul,
    body: &dyn DynBody,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    facts: &CallFacts<'_>,
) -> Result<()> {
    let product = Product::of(matmul, buffers, sizes)?;
    let launch = bind(&matmul.epilogue, buffers, sizes, facts, false)?;
    match matmul.dtype {
        DType::F32 => product.run::<f32>(&launch, body),
        DType::F64 => product.run::<f64>(&launch, body),
        DType::F16 => product.run::<f16>(&launch, body),
        DType::BF16 => product.run::<bf16>(&launch, body),
        DType::F8E4M3 => product.run::<f8e4m3>(&launch, body),
        DType::I64 => product.run::<i64>(&launch, body),
        DType::I32 => product.run::<i32>(&launch, body),
        DType::U8 => product.run::<u8>(&launch, body),
        DType::Bool | DType::Param(_) | DType::Compute(_) => unreachable!("`matmul` does not accept {}", matmul.dtype),
    }
    Ok(())
}

/// The operands of a product, viewed as `[batch.., m, k]` and `[batch.., k, n]`.
pub(super) struct Product {
    pub a: RawTensor,
    pub b: RawTensor,
    pub batch: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// Part of the product: some rows and columns of one matrix of the batch.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub batch: usize,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(super) struct Matrix<T> {
    pub start: *const T,
    pub row_stride: isize,
    pub column_stride: isize,
}

impl<T> Matrix<T> {
    fn at(&self, row: usize, column: usize) -> *const T {
        self.start.wrapping_offset(row as isize * self.row_stride + column as isize * self.column_stride)
    }

    pub fn from(&self, row: usize, column: usize) -> Self {
        Matrix { start: self.at(row, column), ..*self }
    }
}

impl Product {
    /// The operands of a step.
    pub fn of(matmul: &Matmul, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Self> {
        Ok(Product {
            a: buffers.operand(&matmul.a)?,
            b: buffers.operand(&matmul.b)?,
            batch: sizes.extents(&matmul.batch)?.iter().product(),
            m: sizes.extent(&matmul.m)?,
            n: sizes.extent(&matmul.n)?,
            k: sizes.extent(&matmul.k)?,
        })
    }

    fn run<T: Element<Compute: Multiply>>(&self, launch: &Launch<'_>, body: &dyn DynBody) {
        if self.batch * self.m * self.n == 0 {
            return;
        }
        let alone = self.batch * self.m * self.n * self.k.max(1) < PARALLEL;
        let [tile_rows, tile_columns] = self.tile_extents(if alone { 1 } else { 2 * rayon::current_num_threads() });
        let (row_tiles, column_tiles) = (self.m.div_ceil(tile_rows), self.n.div_ceil(tile_columns));
        let tile = |t: usize| {
            let (row, column) = (t / column_tiles % row_tiles * tile_rows, t % column_tiles * tile_columns);
            Tile {
                batch: t / column_tiles / row_tiles,
                row,
                rows: tile_rows.min(self.m - row),
                column,
                columns: tile_columns.min(self.n - column),
            }
        };
        let worker = || (Worker::new(launch, body, &[]), Panels::<T::Compute>::default());
        let tiles = self.batch * row_tiles * column_tiles;
        if alone {
            let mut state = worker();
            return (0..tiles).for_each(|t| self.tile::<T>(&tile(t), &mut state));
        }
        share(tiles, 1, worker, |state, t| self.tile::<T>(&tile(t), state));
    }

    /// The largest tiles of which there are at least `wanted`.
    fn tile_extents(&self, wanted: usize) -> [usize; 2] {
        let tiles = |[rows, columns]: [usize; 2]| self.batch * self.m.div_ceil(rows) * self.n.div_ceil(columns);
        let [rows, columns] =
            *TILES.iter().find(|&&extents| tiles(extents) >= wanted).unwrap_or(&TILES[TILES.len() - 1]);
        [rows.min(self.m), columns.min(self.n)]
    }

    fn tile<T: Element<Compute: Multiply>>(
        &self,
        tile: &Tile,
        (worker, panels): &mut (Worker<'_>, Panels<T::Compute>),
    ) {
        let a = self.matrix::<T>(&self.a, tile.batch).from(tile.row, 0);
        let b = self.matrix::<T>(&self.b, tile.batch).from(0, tile.column);
        // SAFETY: the operands hold `rows x k` and `k x columns` elements there, which nobody writes to.
        unsafe { panels.multiply(a, b, tile.rows, tile.columns, self.k) };
        self.epilogue::<T>(tile, worker, &panels.out);
    }

    /// Hands the elements of a tile to the epilogue, run by run: whole rows together where they are consecutive.
    pub fn epilogue<T: Element>(&self, tile: &Tile, worker: &mut Worker<'_>, out: &[T::Compute]) {
        let (piece, pieces) = match tile.columns == self.n {
            true => (tile.rows * self.n, 1),
            false => (tile.columns, tile.rows),
        };
        for p in 0..pieces {
            let first = (tile.batch * self.m + tile.row + p) * self.n + tile.column;
            for (c, run) in out[p * piece..(p + 1) * piece].chunks(RUN).enumerate() {
                let start = first + c * RUN;
                // SAFETY: the run is a slice of that type and length.
                unsafe { worker.run_epilogue(run.as_ptr().cast(), T::Compute::DTYPE, start, run.len()) };
            }
        }
    }

    /// One matrix of the batch of an operand.
    pub fn matrix<T>(&self, operand: &RawTensor, batch: usize) -> Matrix<T> {
        let layout = operand.layout();
        let (outer, inner) = layout.strides().split_at(layout.rank() - 2);
        let mut left = batch;
        let mut offset = 0;
        for (&extent, &stride) in layout.shape()[..outer.len()].iter().zip(outer).rev() {
            offset += (left % extent) as isize * stride;
            left /= extent;
        }
        let start = operand.host_ptr().expect("operands of a processor kernel are on the host").cast::<T>();
        Matrix { start: start.wrapping_offset(offset), row_stride: inner[0], column_stride: inner[1] }
    }
}

// SAFETY: the tensors are only read while the product runs.
unsafe impl Sync for Product {}

/// A thread's memory for tiles: the product, and operands widened to the compute type.
pub(super) struct Panels<A> {
    pub out: Vec<A>,
    a: Vec<A>,
    b: Vec<A>,
}

impl<A> Default for Panels<A> {
    fn default() -> Self {
        Panels { out: Vec::new(), a: Vec::new(), b: Vec::new() }
    }
}

impl<A: Multiply> Panels<A> {
    /// Puts the product of two matrices, dense, into `out`.
    ///
    /// # Safety
    /// The matrices hold `m x k` and `k x n` readable elements.
    pub unsafe fn multiply<T: Element<Compute = A>>(
        &mut self,
        a: Matrix<T>,
        b: Matrix<T>,
        m: usize,
        n: usize,
        k: usize,
    ) {
        self.out.resize(m * n, A::ZERO);
        // SAFETY: passed on from the caller; widened panels hold what they were sized for.
        unsafe {
            let (a, b) = if T::DTYPE == A::DTYPE {
                (Matrix { start: a.start.cast(), ..retyped(a) }, Matrix { start: b.start.cast(), ..retyped(b) })
            } else {
                (widen(a, m, k, &mut self.a), widen(b, k, n, &mut self.b))
            };
            A::multiply(&mut self.out, a, b, m, n, k);
        }
    }
}

fn retyped<T, A>(matrix: Matrix<T>) -> Matrix<A> {
    Matrix { start: std::ptr::null(), row_stride: matrix.row_stride, column_stride: matrix.column_stride }
}

/// A dense copy of a matrix in the compute type.
unsafe fn widen<T: Element>(
    from: Matrix<T>,
    rows: usize,
    columns: usize,
    to: &mut Vec<T::Compute>,
) -> Matrix<T::Compute> {
    to.clear();
    for row in 0..rows {
        vectorised(
            #[inline(always)]
            || {
                // SAFETY: passed on from the caller.
                to.extend((0..columns).map(|column| unsafe { from.at(row, column).read() }.to_compute()))
            },
        );
    }
    Matrix { start: to.as_ptr(), row_stride: columns as isize, column_stride: 1 }
}

/// A compute type that matrices can be multiplied in.
pub(super) trait Multiply: Element + Number {
    /// Puts the product of two matrices, dense, into `out`.
    ///
    /// # Safety
    /// The matrices hold `m x k` and `k x n` readable elements.
    unsafe fn multiply(out: &mut [Self], a: Matrix<Self>, b: Matrix<Self>, m: usize, n: usize, k: usize);
}

macro_rules! by_library {
    ($($ty:ty)*) => {$(
        impl Multiply for $ty {
            unsafe fn multiply(out: &mut [Self], a: Matrix<Self>, b: Matrix<Self>, m: usize, n: usize, k: usize) {
                if k == 0 {
                    return out.fill(0.0);
                }
                assert_eq!(out.len(), m * n);
                // SAFETY: `out` holds m x n elements densely, the operands are passed on from the caller.
                unsafe {
                    gemm::gemm(
                        m, n, k,
                        out.as_mut_ptr(), 1, n as isize,
                        false,
                        a.start, a.column_stride, a.row_stride,
                        b.start, b.column_stride, b.row_stride,
                        0.0, 1.0,
                        false, false, false,
                        gemm::Parallelism::None,
                    )
                }
            }
        }
    )*};
}

by_library! { f32 f64 }

macro_rules! by_loops {
    ($($ty:ty)*) => {$(
        impl Multiply for $ty {
            unsafe fn multiply(out: &mut [Self], a: Matrix<Self>, b: Matrix<Self>, m: usize, n: usize, k: usize) {
                out.fill(0);
                for (row, out) in out.chunks_exact_mut(n).enumerate().take(m) {
                    for inner in 0..k {
                        // SAFETY: passed on from the caller.
                        let factor = unsafe { a.at(row, inner).read() };
                        for (column, sum) in out.iter_mut().enumerate() {
                            // SAFETY: as above.
                            let other = unsafe { b.at(inner, column).read() };
                            *sum = sum.wrapping_add(factor.wrapping_mul(other));
                        }
                    }
                }
            }
        }
    )*};
}

by_loops! { i64 i32 u8 }
