//! A kernel's program run statement by statement on whole blocks: how eager ops run on the processor.
//!
//! Every statement is one loop over its block, so the cost of interpreting is spread over the points of a run. The loops
//! hold the same Rust text that emitted kernels hold, which keeps both equal bit for bit.

mod cells;
mod loops;
mod reduce;

use super::kernel_dtypes;
use crate::rt::{Body, Ins, Outs};
use cells::{Cell, Cells};
use fuse_compiler::op::{Literal, Reduction};
use fuse_compiler::plan::{Expr, Kernel, Kind, Level, Stmt, StmtId, Store};
use fuse_compiler::types::DType;
use loops::{Loop, loop_of_op};

/// A kernel ready to be interpreted.
pub(crate) struct Interp {
    kernel: Kernel,
    /// The loop of each `Apply`.
    loops: Vec<Option<Loop>>,
    /// The store that each statement can be computed right into.
    direct: Vec<Option<usize>>,
    /// Row-level statements whose values are needed at the end.
    staged: Vec<bool>,
}

impl Interp {
    /// Prepares a kernel whose element types are concrete.
    pub fn new(kernel: Kernel) -> Self {
        let loops = kernel.stmts.iter().map(|stmt| match &stmt.expr {
            Expr::Apply(op, args) => {
                let types: Vec<DType> = args.iter().map(|a| kernel.stmts[a.0 as usize].dtype.compute()).collect();
                Some(loop_of_op(op.name, &types))
            }
            _ => None,
        });
        let loops = loops.collect();
        let direct = (0..kernel.stmts.len()).map(|k| direct_store(&kernel, k)).collect();
        let mut staged = vec![false; kernel.stmts.len()];
        for stmt in kernel.stmts.iter().filter(|stmt| stmt.level == Level::All) {
            if let Expr::Reduce(_, value) = stmt.expr {
                staged[value.0 as usize] = kernel.stmts[value.0 as usize].level == Level::Row;
            }
        }
        Interp { kernel, loops, direct, staged }
    }

    /// Runs the statements of a walk and stores what it stores.
    fn walk(&self, ins: &Ins<'_>, outs: &mut Outs<'_>, wanted: fn(Level) -> bool) {
        Cells::with(self.kernel.stmts.len(), |cells| {
            for (k, stmt) in self.kernel.stmts.iter().enumerate() {
                if wanted(stmt.level) {
                    let cell = self.statement(k, stmt, ins, outs, cells);
                    cells.set(k, cell);
                }
            }
            for (k, store) in self.kernel.stores.iter().enumerate() {
                if wanted(self.stmt(store.value).level) {
                    self.store(k, store, outs, cells);
                }
            }
        });
    }

    fn statement(&self, k: usize, stmt: &Stmt, ins: &Ins<'_>, outs: &mut Outs<'_>, cells: &mut Cells) -> Cell {
        let len = if stmt.level == Level::Elem { ins.len() } else { 1 };
        let dtype = stmt.dtype.compute();
        let cell = match &stmt.expr {
            Expr::Load(leaf) => self.widen(load(ins, *leaf as usize, stmt.level, len), dtype, cells),
            Expr::Product(_) => self.widen(Cell::new(ins.product_raw(), len), dtype, cells),
            Expr::Const(literal) => self.fill(*literal, dtype, len, cells),
            Expr::Scalar(n) => self.fill(ins.scalar_raw(*n as usize), dtype, len, cells),
            Expr::Size(_) => self.fill(Literal::Int(ins.size(k)), dtype, len, cells),
            Expr::Apply(_, args) => return self.apply(k, stmt, args, len, ins, outs, cells),
            Expr::Cast(value) => return self.cast(k, stmt, *value, len, outs, cells),
            Expr::Gather { leaf, index } => {
                let index = self.at_length(*index, len, cells);
                let out = cells.fresh(ins.gather_dtype(*leaf as usize), len);
                loops::gather(ins, *leaf as usize, &index, out);
                self.widen(out, dtype, cells)
            }
            Expr::Reduce(kind, value) => self.reduce(*kind, *value, stmt, ins, cells),
            Expr::Scan(Reduction::Sum, value) => loops::running_sum(&cells.get(value.0), cells.fresh(dtype, len)),
            Expr::Scan(kind, _) => unreachable!("there is no scan of {kind:?}"),
            Expr::Uniform(draw, at) => {
                let (at, draw) = (self.at_length(*at, len, cells), ins.draw(*draw as usize));
                loops::draw(&at, cells.fresh(dtype, len), |position| draw.uniform(position))
            }
            Expr::Normal(draw, at) => {
                let (at, draw) = (self.at_length(*at, len, cells), ins.draw(*draw as usize));
                loops::draw(&at, cells.fresh(dtype, len), |position| draw.normal(position))
            }
        };
        let cell = if stmt.round { self.rounded(cell, stmt.dtype, cells) } else { cell };
        if self.staged[k] {
            outs.stage_raw(k, cell.start(), dtype);
        }
        cell
    }

    #[allow(clippy::too_many_arguments)]
    fn apply(
        &self,
        k: usize,
        stmt: &Stmt,
        args: &[StmtId],
        len: usize,
        ins: &Ins<'_>,
        outs: &mut Outs<'_>,
        cells: &mut Cells,
    ) -> Cell {
        let mut operands = [std::ptr::null(); 3];
        for (operand, &arg) in operands.iter_mut().zip(args) {
            *operand = self.at_length(arg, len, cells).start();
        }
        if kernel_dtypes::faults_on_zero(stmt, &self.kernel) && loops::has_zero(&self.at_length(args[1], len, cells)) {
            ins.fault(k as u32);
        }
        let out = self.place(k, stmt, len, outs, cells);
        let run = self.loops[k].expect("every applied op has a loop");
        // SAFETY: the loop was chosen by the types of the operands, each has `len` elements, and `out` is none of them.
        unsafe { run(operands, out.start_mut(), len) };
        let cell = if stmt.round { self.rounded(out, stmt.dtype, cells) } else { out };
        if self.staged[k] {
            outs.stage_raw(k, cell.start(), cell.dtype());
        }
        cell
    }

    /// A conversion; to a narrow type it goes through that type itself, so that it rounds once.
    fn cast(&self, k: usize, stmt: &Stmt, value: StmtId, len: usize, outs: &mut Outs<'_>, cells: &mut Cells) -> Cell {
        let from = self.at_length(value, len, cells);
        let dtype = stmt.dtype.compute();
        let cell = if stmt.dtype.is_narrow() && (stmt.round || from.dtype() != dtype) {
            let half = loops::convert(&from, cells.fresh(stmt.dtype, len));
            loops::convert(&half, cells.fresh(dtype, len))
        } else if from.dtype() == dtype && self.direct[k].is_none() {
            from
        } else {
            loops::convert(&from, self.place(k, stmt, len, outs, cells))
        };
        if self.staged[k] {
            outs.stage_raw(k, cell.start(), dtype);
        }
        cell
    }

    fn reduce(&self, kind: Reduction, value: StmtId, stmt: &Stmt, ins: &Ins<'_>, cells: &mut Cells) -> Cell {
        let dtype = stmt.dtype.compute();
        let from = match stmt.level {
            Level::All => Cell::new(ins.staged_raw(value.0 as usize), ins.len()),
            _ => cells.get(value.0),
        };
        let column = self.kernel.kind == Kind::Column && stmt.level == Level::Row;
        reduce::reduce(kind, column, &from, cells.fresh(dtype, 1))
    }

    /// The value of a statement as `len` elements, spread out if it is one for the whole row.
    fn at_length(&self, value: StmtId, len: usize, cells: &mut Cells) -> Cell {
        let cell = cells.get(value.0);
        if cell.len() == len || self.stmt(value).level == Level::Elem {
            return cell;
        }
        cells.spread(value.0, len, |to| loops::spread(&cell, to))
    }

    /// Where a statement's value goes: right into the store that takes it, if there is one.
    fn place(&self, k: usize, stmt: &Stmt, len: usize, outs: &mut Outs<'_>, cells: &mut Cells) -> Cell {
        match self.direct[k] {
            Some(store) => {
                let out = Cell::new(outs.elem_raw(store), len);
                assert_eq!(out.dtype(), stmt.dtype, "a buffer has the element type of what is stored in it");
                out
            }
            None => cells.fresh(stmt.dtype.compute(), len),
        }
    }

    fn fill(&self, literal: Literal, dtype: DType, len: usize, cells: &mut Cells) -> Cell {
        let out = cells.fresh(dtype, len);
        loops::fill(literal, out);
        out
    }

    /// Values as they are stored, in the compute type.
    fn widen(&self, stored: Cell, dtype: DType, cells: &mut Cells) -> Cell {
        if stored.dtype() == dtype { stored } else { loops::convert(&stored, cells.fresh(dtype, stored.len())) }
    }

    /// Values of the compute type rounded to the element type.
    fn rounded(&self, cell: Cell, dtype: DType, cells: &mut Cells) -> Cell {
        let half = loops::convert(&cell, cells.fresh(dtype, cell.len()));
        loops::convert(&half, cells.fresh(dtype.compute(), cell.len()))
    }

    fn store(&self, k: usize, store: &Store, outs: &mut Outs<'_>, cells: &mut Cells) {
        let level = self.stmt(store.value).level;
        let value = cells.get(store.value.0);
        if let Some(scatter) = &store.scatter {
            let value = self.at_length(store.value, value.len(), cells);
            let index = self.at_length(scatter.index, value.len(), cells);
            loops::scatter(outs, k, scatter.add, &index, &value);
        } else if level != Level::Elem {
            loops::convert(&value, Cell::new(outs.single_raw(k), 1));
        } else if self.direct[store.value.0 as usize] != Some(k) {
            loops::convert(&value, Cell::new(outs.elem_raw(k), value.len()));
        }
    }

    fn stmt(&self, id: StmtId) -> &Stmt {
        &self.kernel.stmts[id.0 as usize]
    }
}

impl Body for Interp {
    fn run(&self, ins: &Ins<'_>, outs: &mut Outs<'_>) {
        self.walk(ins, outs, |level| level != Level::All);
    }

    fn finish(&self, ins: &Ins<'_>, outs: &mut Outs<'_>) {
        self.walk(ins, outs, |level| level == Level::All);
    }
}

fn load(ins: &Ins<'_>, leaf: usize, level: Level, len: usize) -> Cell {
    Cell::new(if level == Level::Elem { ins.elem_raw(leaf) } else { ins.row_raw(leaf) }, len)
}

/// The first plain store of an elementwise statement whose values are stored as they are computed.
fn direct_store(kernel: &Kernel, stmt: usize) -> Option<usize> {
    let value = &kernel.stmts[stmt];
    let computed = matches!(value.expr, Expr::Apply(..) | Expr::Cast(_));
    if !computed || value.level != Level::Elem || value.dtype.is_narrow() {
        return None;
    }
    kernel.stores.iter().position(|store| store.value.0 as usize == stmt && store.scatter.is_none())
}
