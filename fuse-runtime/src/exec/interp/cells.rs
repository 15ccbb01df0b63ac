//! The values of statements while a run is interpreted.

use fuse_compiler::types::DType;
use std::cell::RefCell;

/// The elements of one statement: in an operand of the run, or in scratch memory.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    start: *mut u8,
    dtype: DType,
    len: usize,
}

impl Cell {
    /// Elements in an operand of the run, of which there must be `len`.
    pub fn new((start, dtype): (*mut u8, DType), len: usize) -> Self {
        Cell { start, dtype, len }
    }

    /// The first element.
    pub fn start(&self) -> *const u8 {
        self.start
    }

    /// The first element, to write.
    pub fn start_mut(&self) -> *mut u8 {
        self.start
    }

    /// The type the elements have in memory.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// Memory in cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The cells of a run by statement, and the memory of those that lie in scratch.
#[derive(Default)]
pub(super) struct Cells {
    cells: Vec<Option<Cell>>,
    /// Values of a row that have been repeated for every point.
    spread: Vec<Option<Cell>>,
    blocks: Vec<Vec<Line>>,
    /// Blocks in use by this run.
    used: usize,
}

/// Blocks of up to a megabyte are kept between runs.
const KEPT_LINES: usize = (1 << 20) / size_of::<Line>();

thread_local! {
    /// Kept between runs, so that a run takes no memory from the system.
    static CELLS: RefCell<Vec<Cells>> = const { RefCell::new(Vec::new()) };
}

impl Cells {
    /// Gives a run of `statements` statements its cells.
    pub fn with(statements: usize, run: impl FnOnce(&mut Cells)) {
        // Taken out rather than borrowed: a long reduction may run another task on this thread while it waits.
        let mut cells = CELLS.with_borrow_mut(|kept| kept.pop()).unwrap_or_default();
        cells.cells.clear();
        cells.cells.resize(statements, None);
        cells.spread.clear();
        cells.spread.resize(statements, None);
        cells.used = 0;
        run(&mut cells);
        // What a few very long rows took is given back.
        cells.blocks.retain(|block| block.len() <= KEPT_LINES);
        CELLS.with_borrow_mut(|kept| kept.push(cells));
    }

    /// The cell of a statement, which has run.
    pub fn get(&self, stmt: u32) -> Cell {
        self.cells[stmt as usize].expect("operands come before their users")
    }

    /// Sets the cell of a statement.
    pub fn set(&mut self, stmt: usize, cell: Cell) {
        self.cells[stmt] = Some(cell);
    }

    /// The value of a statement repeated `len` times, which `fill` does the first time it is asked for.
    pub fn spread(&mut self, stmt: u32, len: usize, fill: impl FnOnce(Cell)) -> Cell {
        if let Some(cell) = self.spread[stmt as usize] {
            return cell;
        }
        let cell = self.fresh(self.get(stmt).dtype(), len);
        fill(cell);
        self.spread[stmt as usize] = Some(cell);
        cell
    }

    /// Scratch memory for `len` elements that no other cell of the run has.
    pub fn fresh(&mut self, dtype: DType, len: usize) -> Cell {
        let lines = (len * dtype.bytes()).div_ceil(size_of::<Line>()).max(1);
        if self.used == self.blocks.len() {
            self.blocks.push(Vec::new());
        }
        let block = &mut self.blocks[self.used];
        self.used += 1;
        if block.len() < lines {
            block.clear();
            block.resize(lines, Line([0; 64]));
        }
        Cell { start: block.as_mut_ptr().cast(), dtype, len }
    }
}
