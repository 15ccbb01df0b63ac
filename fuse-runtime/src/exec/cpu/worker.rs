//! One thread's share of a launch.

use super::access::Access;
use super::launch::Launch;
use super::moves::{COLUMNS, gather, gather_columns, gather_turned, pitch, scatter};
use super::strided::Strided;
use crate::reduce::{self, comes_next};
use crate::rt::{DynBody, Indexed, Ins, LeafRun, Outs, StageRun, StoreRun, Summed};
use fuse_compiler::plan::{Kind, Level};
use fuse_compiler::types::DType;

/// Memory in cache lines, so that every part of it may be of any element type.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u8; 64]);

/// Where the dense copy of an operand is kept, in lines of the scratch; none where the operand is used in place always.
type Slot = Option<usize>;

/// Runs the body on rows and parts of rows, with scratch memory for the operands that are not dense there.
pub(super) struct Worker<'a> {
    launch: &'a Launch<'a>,
    body: &'a dyn DynBody,
    stages: &'a [StageRun],
    /// Owns the scratch, which is only used through `base`.
    _scratch: Vec<Line>,
    base: *mut u8,
    leaf_slots: Vec<Slot>,
    store_slots: Vec<Slot>,
    leaves: Vec<LeafRun>,
    stores: Vec<StoreRun>,
    /// How many columns are copied together, and the first column and number of those that are.
    tile: usize,
    tiled: (usize, usize),
    /// The elements of a product that the next run finds at its points, for epilogues.
    product: (*const u8, DType),
    /// The values of the reductions of the next run, where they are known.
    summed: Vec<Summed>,
    /// Elem leaves that are one element for the whole launch are spread out once.
    filled: Vec<bool>,
    /// Leaves that lie crosswise in a tile of a map, whose first point this is, are turned around once for it.
    tile_start: usize,
    turned: Vec<bool>,
}

/// How much scratch the tiles of columns of all operands may take.
const TILE_BYTES: usize = 1 << 24;

impl<'a> Worker<'a> {
    /// A worker. Columns are copied in tiles, as they lie beside each other in memory.
    pub fn new(launch: &'a Launch<'a>, body: &'a dyn DynBody, stages: &'a [StageRun]) -> Self {
        Worker::of_runs(launch.walk.run, launch, body, stages)
    }

    /// A worker for runs of at most so many points.
    pub fn of_runs(longest: usize, launch: &'a Launch<'a>, body: &'a dyn DynBody, stages: &'a [StageRun]) -> Self {
        let columns = launch.kind == Kind::Column;
        let longest = longest.max(1);
        let copied = launch.leaves.iter().filter(|leaf| needs_copy(leaf)).map(slot_bytes).sum();
        let tile = if columns { columns_of_tile(longest, copied) } else { 1 };
        // A tile of a map that is turned around has as many rows as it has runs.
        let rows = launch.walk.piece().div_ceil(longest);
        let mut lines = 0;
        let mut slot = |needed: bool, bytes: usize| {
            needed.then(|| {
                let first = lines;
                lines += (bytes * pitch(longest) * tile.max(rows)).div_ceil(size_of::<Line>());
                first
            })
        };
        let leaf_slots = launch.leaves.iter().map(|leaf| slot(needs_copy(leaf), slot_bytes(leaf))).collect();
        let stores = launch.stores.iter().zip(&launch.deferred);
        let store_slots =
            stores.map(|(store, &deferred)| slot(deferred || needs_copy(store), slot_bytes(store))).collect();
        let mut scratch = vec![Line([0; 64]); lines];
        Worker {
            launch,
            body,
            stages,
            base: scratch.as_mut_ptr().cast(),
            _scratch: scratch,
            tile,
            leaf_slots,
            store_slots,
            leaves: Vec::with_capacity(launch.leaves.len()),
            stores: Vec::with_capacity(launch.stores.len()),
            tiled: (0, 0),
            product: (std::ptr::null(), DType::Param(0)),
            summed: vec![],
            filled: vec![false; launch.leaves.len()],
            tile_start: 0,
            turned: vec![false; launch.leaves.len()],
        }
    }

    /// Runs the points `start..start + len` of a row.
    pub fn run(&mut self, row: usize, start: usize, len: usize) {
        self.leaves.clear();
        for k in 0..self.launch.leaves.len() {
            let leaf = self.leaf(k, row, start, len);
            self.leaves.push(leaf);
        }
        self.stores.clear();
        for k in 0..self.launch.stores.len() {
            let store = self.store(k, row, start, len);
            self.stores.push(store);
        }
        let facts = self.launch.facts;
        // SAFETY: leaves point at `len` values in tensors that the launch holds or in the scratch, and nothing writes to
        // them: stores that share storage with a leaf go to the scratch first.
        let ins = unsafe {
            Ins::new(len, facts, &self.leaves).with_product(self.product.0, self.product.1).with_summed(&self.summed)
        };
        // SAFETY: rows and parts of rows are handed out once each and differ in the places they write; the places are in
        // tensors made for this call or in the scratch, all initialised.
        let mut outs = unsafe { Outs::new(len, row, &mut self.stores, self.stages, facts.faults) };
        self.body.run_widest(&ins, &mut outs);
        self.flush(row, start, len);
    }

    /// Runs points of a map that are handed out together: one run, or the rows of a tile.
    pub fn run_piece(&mut self, points: std::ops::Range<usize>) {
        self.tile_start = points.start;
        self.turned.fill(false);
        let longest = self.launch.walk.run.max(1);
        points.clone().step_by(longest).for_each(|start| self.run(0, start, longest.min(points.end - start)));
    }

    /// Where the row behind one begins, and the bytes of an element, if it is read where it lies.
    fn row_behind(&self, row: usize) -> Option<(*const u8, usize)> {
        let is_followed = row + 1 < self.launch.walk.rows;
        let read = |leaf: &&Access| leaf.level == Level::Elem && leaf.tensor.is_some() && leaf.indexed.is_none();
        let leaf = self.launch.leaves.iter().find(read).filter(|leaf| is_followed && leaf.inner.is_dense())?;
        Some((leaf.at(leaf.outer.offset(row + 1)).cast_const(), leaf.dtype.bytes()))
    }

    /// Runs a column whose reductions are known, over none of its points.
    pub fn run_summed(&mut self, column: usize, summed: &[Summed]) {
        self.summed.clear();
        self.summed.extend_from_slice(summed);
        self.run(column, 0, 0);
    }

    /// Runs part of an epilogue on elements of a product.
    ///
    /// # Safety
    /// `product` points at `len` valid elements of type `dtype`.
    pub unsafe fn run_epilogue(&mut self, product: *const u8, dtype: DType, start: usize, len: usize) {
        self.product = (product, dtype);
        self.run(0, start, len);
    }

    /// What the body sees of a leaf.
    fn leaf(&mut self, k: usize, row: usize, start: usize, len: usize) -> LeafRun {
        let leaf = &self.launch.leaves[k];
        let outer = leaf.outer.offset(row);
        if let Some((extent, stride)) = leaf.indexed {
            return LeafRun::Indexed(self.indexed(
                k as u32,
                leaf,
                self.leaf_slots[k],
                outer,
                start,
                len,
                extent,
                stride,
            ));
        }
        match (leaf.level, leaf.tensor.is_some()) {
            (Level::Elem, true) => LeafRun::Elem { start: self.dense(k, row, outer, start, len), dtype: leaf.dtype },
            (Level::Elem, false) => {
                let to = self.slot(self.leaf_slots[k]).cast::<i64>();
                fill_positions(to, &leaf.inner, leaf.first + outer as i64, start, len);
                LeafRun::Elem { start: to.cast(), dtype: DType::I64 }
            }
            (_, true) => LeafRun::Row { value: leaf.at(outer), dtype: leaf.dtype },
            (_, false) => {
                let to = self.slot(self.leaf_slots[k]).cast::<i64>();
                // SAFETY: the slot was sized for at least one value.
                unsafe { to.write(leaf.first + outer as i64) };
                LeafRun::Row { value: to.cast(), dtype: DType::I64 }
            }
        }
    }

    /// The values of an elementwise leaf, where they lie or copied together.
    fn dense(&mut self, k: usize, row: usize, outer: isize, start: usize, len: usize) -> *const u8 {
        let leaf = &self.launch.leaves[k];
        let Some(slot) = self.leaf_slots[k] else {
            return leaf.at(outer + start as isize);
        };
        if leaf.inner.is_dense_at(start, len) {
            return leaf.at(outer + leaf.inner.offset(start));
        }
        let to = self.slot(Some(slot));
        if leaf.inner.is_constant() && leaf.outer.is_constant() {
            if !std::mem::replace(&mut self.filled[k], true) {
                // The slot holds as many points as the longest run.
                gather(leaf, outer, 0, self.launch.walk.run, to);
            }
            return to;
        }
        if self.tile > 1 {
            return self.column(k, row, len, to);
        }
        if let Some(row) = self.row_of_tile(k, outer, start, to) {
            return row;
        }
        gather(leaf, outer, start, len, to);
        to
    }

    /// A row of the current tile of a map, of a leaf that lies crosswise there: it is turned around when its first row is asked for.
    fn row_of_tile(&mut self, k: usize, outer: isize, start: usize, to: *mut u8) -> Option<*const u8> {
        let (leaf, run) = (&self.launch.leaves[k], self.launch.walk.run);
        let sides = leaf.inner.tile(self.tile_start, self.launch.walk.tile?)?;
        if !self.turned[k] && !gather_turned(leaf, outer, self.tile_start, sides, to) {
            return None;
        }
        self.turned[k] = true;
        Some(to.wrapping_add((start - self.tile_start) / run * pitch(run) * leaf.dtype.bytes()))
    }

    /// A column out of the current tile, which is copied when its first column is asked for.
    fn column(&mut self, k: usize, row: usize, len: usize, to: *mut u8) -> *const u8 {
        let leaf = &self.launch.leaves[k];
        let (first, count) = self.tiled;
        debug_assert!((first..first + count).contains(&row));
        if row == first {
            gather_columns(leaf, first, count, len, to);
        }
        to.wrapping_add((row - first) * pitch(len) * leaf.dtype.bytes())
    }

    /// Runs whole rows `rows.start..rows.end`, in tiles where columns are copied together.
    pub fn run_rows(&mut self, rows: std::ops::Range<usize>) {
        let is_long = self.launch.kind == Kind::Row && reduce::is_long(self.launch.walk.points);
        for first in rows.clone().step_by(self.tile) {
            self.tiled = (first, self.tile.min(rows.end - first));
            for row in first..first + self.tiled.1 {
                if is_long {
                    comes_next(self.row_behind(row));
                }
                self.run(row, 0, self.launch.walk.points);
            }
        }
        if is_long {
            comes_next(None);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn indexed(
        &self,
        operand: u32,
        access: &Access,
        slot: Slot,
        outer: isize,
        start: usize,
        len: usize,
        extent: usize,
        stride: isize,
    ) -> Indexed {
        let run = Indexed {
            start: access.at(outer),
            dtype: access.dtype,
            step: 0,
            offsets: std::ptr::null(),
            extent,
            stride,
            operand,
        };
        match access.inner.even_stride() {
            _ if access.level != Level::Elem => run,
            Some(step) => Indexed { start: access.at(outer + step * start as isize), step, ..run },
            None => {
                let to = self.slot(slot).cast::<i64>();
                fill_positions(to, &access.inner, 0, start, len);
                Indexed { offsets: to.cast_const().cast(), ..run }
            }
        }
    }

    /// What the body sees of a store.
    fn store(&self, k: usize, row: usize, start: usize, len: usize) -> StoreRun {
        let (store, slot) = (&self.launch.stores[k], self.store_slots[k]);
        let outer = store.outer.offset(row);
        if let Some((extent, stride)) = store.indexed {
            let operand = (self.launch.leaves.len() + k) as u32;
            let to = self.indexed(operand, store, slot, outer, start, len, extent, stride);
            return StoreRun::Indexed { to, taken: false };
        }
        if store.level != Level::Elem {
            return StoreRun::Single { place: store.at(outer), dtype: store.dtype };
        }
        let start =
            if self.is_in_place(k, start, len) { store.at(outer + store.inner.offset(start)) } else { self.slot(slot) };
        StoreRun::Elem { start, dtype: store.dtype, taken: false }
    }

    /// Whether a run writes a store where it belongs, rather than to the scratch.
    fn is_in_place(&self, k: usize, start: usize, len: usize) -> bool {
        !self.launch.deferred[k] && self.launch.stores[k].inner.is_dense_at(start, len)
    }

    /// Brings what was written to the scratch where it belongs.
    fn flush(&self, row: usize, start: usize, len: usize) {
        for (k, store) in self.launch.stores.iter().enumerate() {
            let elementwise = store.level == Level::Elem && store.indexed.is_none();
            if elementwise && !self.is_in_place(k, start, len) {
                scatter(store, store.outer.offset(row), start, len, self.slot(self.store_slots[k]));
            }
        }
    }

    fn slot(&self, slot: Slot) -> *mut u8 {
        let line = slot.expect("operands that are copied have a slot");
        self.base.wrapping_add(line * size_of::<Line>())
    }
}

/// How many columns of `rows` rows, so many bytes a point of all operands, are copied together: a whole cache line, unless they
/// are very long. Half a line would be brought from memory once more for the next columns.
fn columns_of_tile(rows: usize, bytes: usize) -> usize {
    (TILE_BYTES / (bytes * rows).max(1)).clamp(1, COLUMNS)
}

/// Whether some run may find an operand not dense.
fn needs_copy(access: &Access) -> bool {
    match (access.indexed, access.level) {
        (Some(_), level) => level == Level::Elem && access.inner.even_stride().is_none(),
        (None, Level::Elem) => access.tensor.is_none() || !access.inner.is_dense(),
        (None, _) => access.tensor.is_none(),
    }
}

/// Bytes of one point in the scratch: an element, or a position.
fn slot_bytes(access: &Access) -> usize {
    if access.indexed.is_some() { 8 } else { access.dtype.bytes() }
}

/// Writes positions counted from `first`.
pub(super) fn fill_positions(to: *mut i64, inner: &Strided, first: i64, start: usize, len: usize) {
    inner.segments(start, len, |piece| {
        for i in 0..piece.len {
            let position = first + (piece.offset + i as isize * piece.stride) as i64;
            // SAFETY: the slot holds `len` positions.
            unsafe { to.add(piece.at + i).write(position) };
        }
    });
}
