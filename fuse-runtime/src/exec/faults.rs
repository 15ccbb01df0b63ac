//! The first fault of a launch.

use crate::error::Error;
use fuse_compiler::plan::{Expr, Kernel, Plan, Stmt};
use std::sync::OnceLock;

/// An index out of range or an integer division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A position outside of the axis it indexes.
    Index {
        /// The number of the operand: leaves, then stores.
        operand: u32,
        /// The position.
        index: i64,
        /// The extent of the axis.
        extent: usize,
    },
    /// An integer division by zero, by the number of the statement.
    Division(u32),
}

impl Fault {
    /// The fault as an error of what the user wrote, or of the op.
    pub fn error(self, plan: &Plan, kernel: &Kernel) -> Error {
        let stmt = match self {
            Fault::Division(stmt) => Some(stmt as usize),
            Fault::Index { operand, .. } => indexing(kernel, operand as usize),
        };
        let place = stmt.and_then(|stmt| plan.places.get(kernel.stmts[stmt].place as usize));
        let written = place.map(|place| place.text.as_str()).filter(|text| !text.is_empty());
        let name = written.unwrap_or(&plan.name);
        match self {
            Fault::Division(_) => division_by_zero(name),
            Fault::Index { index, extent, .. } => index_out_of_range(name, index, extent as i64),
        }
    }
}

/// The error of an index, by what the user wrote or the op.
pub(super) fn index_out_of_range(name: &str, index: i64, extent: i64) -> Error {
    Error::index(name, format!("index {index} is out of range for extent {extent}"))
}

/// The error of an integer division, by what the user wrote or the op.
pub(super) fn division_by_zero(name: &str) -> Error {
    Error::index(name, "an integer is divided by zero")
}

/// The statement that reads or writes an operand at computed positions.
fn indexing(kernel: &Kernel, operand: usize) -> Option<usize> {
    match operand.checked_sub(kernel.leaves.len()) {
        Some(store) => kernel.stores.get(store).map(|store| store.value.0 as usize),
        None => {
            let reads = |stmt: &Stmt| matches!(stmt.expr, Expr::Gather { leaf, .. } if leaf as usize == operand);
            kernel.stmts.iter().position(reads)
        }
    }
}

/// Where the kernels of a call note their first fault. Noting is rare, so it may be slow.
#[derive(Debug, Default)]
pub struct FaultCell(OnceLock<Fault>);

impl FaultCell {
    /// A cell without a fault.
    pub const fn new() -> Self {
        FaultCell(OnceLock::new())
    }

    /// The first fault, if there was one.
    pub fn first(&self) -> Option<Fault> {
        self.0.get().copied()
    }

    /// Notes an index out of range.
    #[cold]
    #[inline(never)]
    pub fn note_index(&self, operand: u32, index: i64, extent: usize) {
        self.0.get_or_init(|| Fault::Index { operand, index, extent });
    }

    /// Notes an integer division by zero.
    #[cold]
    #[inline(never)]
    pub fn note_division(&self, stmt: u32) {
        self.0.get_or_init(|| Fault::Division(stmt));
    }
}
