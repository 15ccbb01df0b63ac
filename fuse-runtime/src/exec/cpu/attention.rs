//! Attention without its matrices in memory: a thread takes some rows of the scores through all three steps.
//!
//! The rows go through the kernels that would otherwise run one after the other over whole matrices; all that differs is
//! that these find the values in between in the thread's own memory, which its caches hold.

use super::gemm::{Matrix, Multiply, Room, Strip, TILE_ROWS, arrange, panels_in};
use super::kernel::bind;
use super::launch::Launch;
use super::matmul::Product;
use super::share::share;
use super::strips::Tile;
use super::worker::Worker;
use crate::dtype::{Element, f8e4m3};
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::symbols::Sizes;
use crate::rt::{CallFacts, DynBody, level};
use crate::storage::CpuBuffer;
use fuse_compiler::plan::{Attention, BufId, Expr, Kernel, Matmul, Plan};
use fuse_compiler::types::DType;
use half::{bf16, f16};

/// Bytes of a thread's rows of scores and weights together, as the second cache of a core holds them.
const NEAR: usize = 3 << 18;
/// Fewer rows than this make products slow, since all keys and values go past them.
const LEAST_ROWS: usize = 28;

/// The three steps: their bodies, and what their kernels read besides operands.
pub(crate) struct Parts<'a> {
    /// Which steps.
    pub attention: Attention,
    /// The compiled kernel of each.
    pub bodies: [&'a dyn DynBody; 3],
    /// Scalars, sizes, draws and faults of each.
    pub facts: [&'a CallFacts<'a>; 3],
}

/// Runs the three steps together; faults are left in the facts of each.
pub(crate) fn run_attention(plan: &Plan, parts: &Parts<'_>, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<()> {
    let rows = Rows::bind(plan, parts, buffers, sizes)?;
    match parts.attention.steps(plan).0.dtype {
        DType::F32 => rows.run::<f32>(),
        DType::F64 => rows.run::<f64>(),
        DType::F16 => rows.run::<f16>(),
        DType::BF16 => rows.run::<bf16>(),
        DType::F8E4M3 => rows.run::<f8e4m3>(),
        DType::I64 => rows.run::<i64>(),
        DType::I32 => rows.run::<i32>(),
        DType::U8 => rows.run::<u8>(),
        dtype => unreachable!("`matmul` does not accept {dtype}"),
    }
    Ok(())
}

/// The steps bound to their operands, but for the values in between.
struct Rows<'a> {
    scores: Product,
    values: Product,
    launches: [Launch<'a>; 3],
    bodies: [&'a dyn DynBody; 3],
    /// Whether the scores are the first product as it is.
    is_plain: bool,
    /// Leaves of the second kernel that read scores.
    readers: Vec<usize>,
    /// Where the first kernel stores scores, and the second one weights.
    stores: [usize; 2],
}

/// A thread's memory.
struct Memory<A> {
    room: Room<A>,
    /// Keys and values in panels, and the matrix of the batch that they are of.
    right: [CpuBuffer; 2],
    batch: Option<usize>,
    scores: CpuBuffer,
    weights: CpuBuffer,
}

impl<'a> Rows<'a> {
    fn bind(plan: &Plan, parts: &Parts<'a>, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Self> {
        let (first, between, last) = parts.attention.steps(plan);
        buffers.stand_in(parts.attention.scores)?;
        buffers.stand_in(parts.attention.weights)?;
        let (scores, values) = (Product::of(first, buffers, sizes)?, Product::of(last, buffers, sizes)?);
        let mut bind = |kernel: &Kernel, k: usize| bind(kernel, buffers, sizes, parts.facts[k], false);
        let mut launches = [bind(&first.epilogue, 0)?, bind(between, 1)?, bind(&last.epilogue, 2)?];
        let stores = [store_to(&first.epilogue, parts.attention.scores), store_to(between, parts.attention.weights)];
        let reads_scores = |&leaf: &usize| between.leaves[leaf].buf() == Some(parts.attention.scores);
        let readers: Vec<usize> = (0..between.leaves.len()).filter(reads_scores).collect();
        let extents = [scores.batch, scores.m, scores.n];
        launches[0].stores[stores[0]].make_dense(&extents, 0);
        launches[1].stores[stores[1]].make_dense(&extents, 2);
        readers.iter().for_each(|&leaf| launches[1].leaves[leaf].make_dense(&extents, 2));
        let is_plain = is_plain(first, plan);
        Ok(Rows { scores, values, launches, bodies: parts.bodies, is_plain, readers, stores })
    }

    fn run<T: Element<Compute: Multiply>>(&self) {
        let (rows, batch) = (self.tile_rows::<T>(), self.scores.batch);
        let tiles = self.scores.m.div_ceil(rows);
        let tile = |memory: &mut Memory<T::Compute>, t: usize| {
            let row = t % tiles * rows;
            self.tile::<T>(t / tiles, row, rows.min(self.scores.m - row), memory);
        };
        // A thread takes tiles of one matrix, as it has to arrange keys and values once for all of them.
        let parts = (4 * rayon::current_num_threads()).div_ceil(batch.max(1));
        share(batch * tiles, tiles.div_ceil(parts).max(1), || self.memory::<T>(rows), tile);
    }

    /// As many rows as the caches hold, but not so few that products get slow, and some for every thread.
    fn tile_rows<T: Element>(&self) -> usize {
        let threads = rayon::current_num_threads();
        let shared = (self.scores.batch * self.scores.m).div_ceil(4 * threads);
        let near = NEAR / (self.bytes_of_row::<T>().max(1));
        near.min(shared).clamp(LEAST_ROWS, TILE_ROWS).min(self.scores.m).max(1)
    }

    fn bytes_of_row<T: Element>(&self) -> usize {
        let [scores, weights] = self.bytes();
        self.scores.n * (size_of::<T::Compute>() + scores + weights)
    }

    /// Bytes of an element of the scores, as far as they are not the product itself, and of the weights.
    fn bytes(&self) -> [usize; 2] {
        let scores = self.launches[0].stores[self.stores[0]].dtype.bytes();
        [if self.is_plain { 0 } else { scores }, self.launches[1].stores[self.stores[1]].dtype.bytes()]
    }

    fn memory<T: Element<Compute: Multiply>>(&self, rows: usize) -> Memory<T::Compute> {
        let memory = |bytes: usize| CpuBuffer::new(bytes).expect("there is memory for some rows");
        let [scores, weights] = self.bytes().map(|bytes| memory(bytes * rows * self.scores.n));
        let kernel = T::Compute::kernel(level());
        let right = [&self.scores, &self.values]
            .map(|product| memory(product.k * product.n.next_multiple_of(kernel.columns) * size_of::<T::Compute>()));
        let room = Room::new(rows * self.scores.n.max(self.values.n), kernel);
        Memory { room, right, batch: None, scores, weights }
    }

    /// Brings keys and values of a matrix of the batch to panels, unless they are there.
    fn arrange<T: Element<Compute: Multiply>>(&self, batch: usize, memory: &mut Memory<T::Compute>) {
        if memory.batch.replace(batch) == Some(batch) {
            return;
        }
        let width = memory.room.panel();
        for (product, to) in [&self.scores, &self.values].into_iter().zip(&memory.right) {
            let from = product.matrix::<T>(&product.b, batch);
            // SAFETY: the operand holds `k x n` elements, which nobody writes to, and the memory is for as many in panels.
            unsafe { arrange(from, product.n, product.k, to.as_ptr().cast(), width) };
        }
    }

    /// Takes rows through the three steps.
    fn tile<T: Element<Compute: Multiply>>(
        &self,
        batch: usize,
        row: usize,
        rows: usize,
        memory: &mut Memory<T::Compute>,
    ) {
        self.arrange::<T>(batch, memory);
        let tile = |columns: usize| Tile { batch, row, rows, column: 0, columns };
        let (m, n) = (self.scores.m, self.scores.n);
        let first = batch * m + row;
        let room = &mut memory.room;
        let panels = |product: &Product, k: usize| {
            Strip::Panels(panels_in(memory.right[k].as_ptr().cast_const().cast(), room.panel(), product.n, product.k))
        };
        let [keys, values] = [panels(&self.scores, 0), panels(&self.values, 1)];
        let queries = self.scores.matrix::<T>(&self.scores.a, batch);
        // SAFETY: the operand holds `rows x k` elements there, which nobody writes to, and the panels are arranged.
        unsafe { room.multiply(queries.from(row, 0), rows, &keys, n, self.scores.k) };
        let scores = if self.is_plain { room.out_ptr().cast() } else { memory.scores.as_ptr() };
        if !self.is_plain {
            let mut launch = self.launches[0].clone();
            launch.stores[self.stores[0]].start_at(scores, first * n);
            let mut worker = Worker::new(&launch, self.bodies[0], &[]);
            self.scores.epilogue::<T>(&tile(n), &mut worker, room.out(rows * n));
        }
        let mut launch = self.launches[1].clone();
        self.readers.iter().for_each(|&leaf| launch.leaves[leaf].start_at(scores, first * n));
        launch.stores[self.stores[1]].start_at(memory.weights.as_ptr(), first * n);
        Worker::new(&launch, self.bodies[1], &[]).run_rows(first..first + rows);

        let weights =
            Matrix { start: memory.weights.as_ptr().cast_const().cast(), row_stride: n as isize, column_stride: 1 };
        let columns = self.values.n;
        // SAFETY: all of the weights of these rows are written, and the panels are arranged.
        unsafe { room.multiply::<T>(weights, rows, &values, columns, n) };
        let mut worker = Worker::new(&self.launches[2], self.bodies[2], &[]);
        self.values.epilogue::<T>(&tile(columns), &mut worker, room.out(rows * columns));
    }
}

/// The number of the store to a buffer.
fn store_to(kernel: &Kernel, buf: BufId) -> usize {
    kernel.stores.iter().position(|store| store.to.buf == buf).expect("the kernel makes what comes between")
}

/// Whether all an epilogue does is to store the product in the type it was computed in.
fn is_plain(matmul: &Matmul, plan: &Plan) -> bool {
    let kernel = &matmul.epilogue;
    let [store] = &kernel.stores[..] else { return false };
    let stored = plan.bufs[store.to.buf.0 as usize].ty.dtype;
    kernel.stmts[store.value.0 as usize].expr == Expr::Product(0) && stored == matmul.dtype.compute()
}
