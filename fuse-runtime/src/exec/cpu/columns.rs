//! Columns that are summed with their neighbours, row after row, so that memory is read in its order: each thread takes
//! chunks of rows of a strip of columns, whose sums stay in the first cache. The order of every sum is the canonical one.

use super::access::Access;
use super::kernel::{PARALLEL, Stages};
use super::launch::Launch;
use super::moves::copy;
use super::share::share;
use super::worker::{Line, Worker, fill_positions};
use crate::reduce::{COLUMN_LANES as LANES, Columns, SUB_BLOCK as ROWS, column_chunks};
use crate::rt::{DynBody, Ins, LeafRun, Summed, Sums, SumsOf};
use fuse_compiler::plan::Level;
use fuse_compiler::types::DType;

/// With fewer columns there is too little to do between two rows.
const FEWEST: usize = 48;
/// Bytes of the sums of a strip: half of the first cache.
const SUMS_BYTES: usize = 1 << 14;
/// Columns of a strip of which something has to be copied, so that its copy stays in the second cache.
const COPIED: usize = 256;
/// Columns that are finished together.
const FINISHED: usize = 128;

/// Sums up the columns of a launch and finishes them, if they lie side by side; `false` if nothing was done.
pub(super) fn drive_columns(launch: &Launch<'_>, body: &dyn DynBody, stages: Stages<'_>) -> bool {
    let Some(tiling) = Tiling::of(launch, body) else { return false };
    let room = |sum: &Columns| lines(tiling.chunks * tiling.columns * sum.dtype.bytes());
    let mut memory: Vec<Vec<Line>> = launch.sums.iter().map(room).collect();
    let parts: Vec<Part> = memory.iter_mut().map(|lines| Part(lines.as_mut_ptr().cast())).collect();
    let pieces = tiling.chunks * tiling.strips();
    share(pieces, tiling.bite(pieces), || Strip::new(launch, body, tiling), |strip, piece| strip.run(piece, &parts));
    let finished = tiling.columns.div_ceil(FINISHED);
    share(
        finished,
        tiling.bite(finished),
        || Worker::of_runs(0, launch, body, stages.get()),
        |worker, k| {
            let (first, end) = (k * FINISHED, tiling.columns.min((k + 1) * FINISHED));
            tiling.total(launch, &parts, first, end - first);
            let sums = |column: usize| {
                let of = |(part, sum): (&Part, &Columns)| Summed {
                    value: part.0.wrapping_add(column * sum.dtype.bytes()),
                    dtype: sum.dtype,
                };
                parts.iter().zip(&launch.sums).map(of).collect::<Vec<Summed>>()
            };
            (first..end).for_each(|column| worker.run_summed(column, &sums(column)));
        },
    );
    true
}

/// The values of the chunks of all columns, chunk after chunk; the first has the columns' in the end.
struct Part(*mut u8);

// SAFETY: pieces write places of their own, and nobody reads them before all have.
unsafe impl Sync for Part {}

/// How columns are shared.
#[derive(Clone, Copy)]
struct Tiling {
    columns: usize,
    rows: usize,
    chunks: usize,
    /// Rows of a chunk.
    chunk: usize,
    /// Columns of a strip.
    width: usize,
    /// Whether there is so little to do that one thread does it.
    is_little: bool,
}

impl Tiling {
    fn of(launch: &Launch<'_>, body: &dyn DynBody) -> Option<Tiling> {
        let (columns, rows) = (launch.walk.rows, launch.walk.points);
        if !body.has_sums()
            || columns < FEWEST
            || rows == 0
            || !launch.leaves.iter().all(|leaf| lies_in_rows(leaf, columns))
        {
            return None;
        }
        let (chunks, chunk) = column_chunks(rows);
        let bytes: usize = launch.sums.iter().map(|sum| LANES * sum.dtype.bytes()).sum();
        let is_copied = launch.leaves.iter().any(|leaf| leaf.level == Level::Elem && !is_in_place(leaf));
        let most = (SUMS_BYTES / bytes.max(1)).min(if is_copied { COPIED } else { usize::MAX });
        let is_little = rows * columns * launch.walk.weight < PARALLEL;
        // Else every thread has a few pieces to take.
        let pieces = if is_little { 1 } else { 4 * rayon::current_num_threads() };
        let strips = columns.div_ceil(most).max(pieces.div_ceil(chunks));
        let width = columns.div_ceil(strips).next_multiple_of(FEWEST / 3).min(columns);
        Some(Tiling { columns, rows, chunks, chunk, width, is_little })
    }

    fn strips(self) -> usize {
        self.columns.div_ceil(self.width)
    }

    /// How many of some pieces a thread takes at once.
    fn bite(self, pieces: usize) -> usize {
        if self.is_little { pieces } else { 1 }
    }

    /// Joins the chunks of some columns.
    fn total(self, launch: &Launch<'_>, parts: &[Part], first: usize, count: usize) {
        if self.rows <= ROWS {
            return;
        }
        for (part, sum) in parts.iter().zip(&launch.sums) {
            let size = sum.dtype.bytes();
            let mut memory = lines(LANES * count * size);
            let lanes: *mut u8 = memory.as_mut_ptr().cast();
            let of_chunk = |chunk: usize| part.0.wrapping_add((chunk * self.columns + first) * size);
            // SAFETY: the lanes are this call's own, and every chunk has left its values, of which nobody else uses these columns'.
            unsafe {
                sum.clear(lanes, LANES * count);
                for chunk in 0..self.chunks {
                    sum.join(lanes.wrapping_add(chunk % LANES * count * size), of_chunk(chunk), count);
                }
                sum.join_lanes(lanes, count);
                std::ptr::copy_nonoverlapping(lanes, of_chunk(0), count * size);
            }
        }
    }
}

/// Whether the values of a row lie side by side, or are one, or may be made.
fn lies_in_rows(leaf: &Access, columns: usize) -> bool {
    let is_made = leaf.tensor.is_none();
    is_made || leaf.level != Level::Elem || leaf.outer.is_constant() || leaf.outer.is_dense_at(0, columns)
}

/// Whether rows may be read where they lie.
fn is_in_place(leaf: &Access) -> bool {
    leaf.tensor.is_some() && leaf.inner.even_stride().is_some() && leaf.outer.is_dense() && !leaf.outer.is_constant()
}

/// One thread's share.
struct Strip<'a> {
    launch: &'a Launch<'a>,
    body: &'a dyn DynBody,
    tiling: Tiling,
    /// The lanes of each reduction, and its values up to here.
    lanes: Vec<Vec<Line>>,
    sums: Vec<Vec<Line>>,
    /// Copies of leaves that do not lie in rows.
    copies: Vec<Vec<Line>>,
}

impl<'a> Strip<'a> {
    fn new(launch: &'a Launch<'a>, body: &'a dyn DynBody, tiling: Tiling) -> Self {
        let of = |rows: usize| launch.sums.iter().map(move |sum| lines(rows * tiling.width * sum.dtype.bytes()));
        let copy = |leaf: &Access| match leaf.level {
            Level::Elem if !is_in_place(leaf) => lines(ROWS * tiling.width * leaf.dtype.bytes()),
            Level::Row => lines(tiling.width * leaf.dtype.bytes()),
            Level::Elem | Level::All => vec![],
        };
        let copies = launch.leaves.iter().map(copy).collect();
        Strip { launch, body, tiling, lanes: of(LANES).collect(), sums: of(1).collect(), copies }
    }

    /// Sums up a chunk of rows of a strip; strips of one chunk come one after the other.
    fn run(&mut self, piece: usize, parts: &[Part]) {
        let Tiling { columns, rows, chunk, width, .. } = self.tiling;
        let (of, first) = (piece / self.tiling.strips(), piece % self.tiling.strips() * width);
        let count = width.min(columns - first);
        let (start, end) = (of * chunk, rows.min((of + 1) * chunk));
        for at in (start..end).step_by(ROWS) {
            self.add(at, ROWS.min(end - at), first, count);
            self.gather(count, at == start);
        }
        for (k, sum) in self.launch.sums.iter().enumerate() {
            let size = sum.dtype.bytes();
            let to = parts[k].0.wrapping_add((of * columns + first) * size);
            // SAFETY: the place is this piece's own.
            unsafe { std::ptr::copy_nonoverlapping(self.sums[k].as_ptr().cast::<u8>(), to, count * size) };
        }
    }

    /// Adds some rows to their lanes.
    fn add(&mut self, at: usize, rows: usize, first: usize, count: usize) {
        let leaves: Vec<LeafRun> =
            (0..self.launch.leaves.len()).map(|k| self.leaf(k, (at, rows), (first, count))).collect();
        let mut lanes: Vec<SumsOf> = Vec::with_capacity(self.lanes.len());
        for (memory, sum) in self.lanes.iter_mut().zip(&self.launch.sums) {
            let start: *mut u8 = memory.as_mut_ptr().cast();
            // SAFETY: there is room for the lanes of a whole strip.
            unsafe { sum.clear(start, LANES * count) };
            lanes.push(SumsOf { start, dtype: sum.dtype, taken: false });
        }
        // SAFETY: leaves point at these rows of tensors that the launch holds, or at copies of them, and nothing is written yet; lanes
        // have memory of their own.
        unsafe {
            let ins = Ins::new(count, self.launch.facts, &leaves).with_rows(rows);
            self.body.sums_widest(&ins, &mut Sums::new(count, &mut lanes));
        }
    }

    /// Joins the lanes, and what they come to with the rows before in the chunk.
    fn gather(&mut self, count: usize, is_first: bool) {
        for (k, sum) in self.launch.sums.iter().enumerate() {
            let (lanes, to): (*mut u8, *mut u8) = (self.lanes[k].as_mut_ptr().cast(), self.sums[k].as_mut_ptr().cast());
            // SAFETY: both are this strip's own, and hold as many columns.
            unsafe {
                sum.join_lanes(lanes, count);
                match is_first {
                    true => std::ptr::copy_nonoverlapping(lanes, to, count * sum.dtype.bytes()),
                    false => sum.join(to, lanes, count),
                }
            }
        }
    }

    /// What the body sees of a leaf: some rows of it, or a value for each of the columns.
    fn leaf(&mut self, k: usize, (at, rows): (usize, usize), (first, count): (usize, usize)) -> LeafRun {
        let leaf = &self.launch.leaves[k];
        let dtype = if leaf.tensor.is_some() { leaf.dtype } else { DType::I64 };
        match leaf.level {
            Level::All if leaf.tensor.is_some() => LeafRun::Row { value: leaf.start, dtype },
            Level::All => LeafRun::Row { value: (&raw const leaf.first).cast(), dtype },
            Level::Elem if is_in_place(leaf) => {
                let stride = leaf.inner.even_stride().unwrap_or(0);
                let start = leaf.at(leaf.outer.offset(first) + stride * at as isize);
                LeafRun::Rows { start, dtype, pitch: stride * dtype.bytes() as isize }
            }
            Level::Elem => {
                let (to, pitch) = (self.copies[k].as_mut_ptr().cast::<u8>(), count * dtype.bytes());
                for row in 0..rows {
                    row_of(leaf, leaf.inner.offset(at + row), (first, count), to.wrapping_add(row * pitch));
                }
                LeafRun::Rows { start: to, dtype, pitch: pitch as isize }
            }
            Level::Row => {
                let to = self.copies[k].as_mut_ptr().cast::<u8>();
                row_of(leaf, 0, (first, count), to);
                LeafRun::Elem { start: to, dtype }
            }
        }
    }
}

/// Copies the values of some columns, or their positions, from what lies behind an offset.
fn row_of(leaf: &Access, offset: isize, (first, count): (usize, usize), to: *mut u8) {
    if leaf.tensor.is_none() {
        return fill_positions(to.cast(), &leaf.outer, leaf.first + offset as i64, first, count);
    }
    let size = leaf.dtype.bytes();
    leaf.outer.segments(first, count, |piece| {
        // SAFETY: the segment is inside of the leaf's tensor, and the copy has room for as many elements.
        unsafe { copy(leaf.at(offset + piece.offset), piece.stride, to.add(piece.at * size), 1, piece.len, size) };
    });
}

/// Memory for so many bytes.
fn lines(bytes: usize) -> Vec<Line> {
    vec![Line([0; 64]); bytes.div_ceil(size_of::<Line>())]
}
