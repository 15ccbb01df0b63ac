//! Products of matrices with what follows: the epilogue takes tiles of the product out of the cache.

use super::gemm::{Matrix, Multiply, Room};
use super::kernel::{RUN, bind};
use super::launch::Launch;
use super::right::Right;
use super::share::share;
use super::strips::{Cut, Strip, Tile};
use super::worker::Worker;
use crate::dtype::{Element, f8e4m3};
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::symbols::Sizes;
use crate::raw::RawTensor;
use crate::rt::{CallFacts, DynBody, level};
use fuse_compiler::plan::Matmul;
use fuse_compiler::types::DType;
use half::{bf16, f16};

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
        // A single row takes as long as two, since reading is what it waits for.
        let threads = match self.batch * self.m.max(2) * self.n * self.k < PARALLEL {
            true => 1,
            false => rayon::current_num_threads(),
        };
        let right = Right::<T>::of(self);
        let kernel = T::Compute::kernel(level());
        let cut = Cut::of(self, right.matrices, threads, kernel.rows);
        let room = || (Worker::new(launch, body, &[]), Room::new(cut.rows * cut.columns, kernel));
        let numbers: Vec<usize> = (0..cut.strips()).collect();
        for numbers in numbers.chunks(right.strips_at_a_time(cut.columns)) {
            let strips: Vec<Strip> = numbers.iter().map(|&number| cut.strip(number)).collect();
            let arranged = right.arrange(&strips, threads);
            let tiles = strips.len() * cut.tiles_of_strip();
            share(tiles, if threads == 1 { tiles } else { 1 }, room, |(worker, room), t| {
                let s = t / cut.tiles_of_strip();
                let tile = cut.tile(&strips[s], t % cut.tiles_of_strip());
                let a = self.matrix::<T>(&self.a, tile.batch).from(tile.row, 0);
                // SAFETY: the operands hold that many rows and columns there, which nobody writes to.
                unsafe { room.multiply(a, tile.rows, &arranged.strip(s), tile.columns, self.k) };
                self.epilogue::<T>(&tile, worker, room.out(tile.rows * tile.columns));
            });
        }
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
