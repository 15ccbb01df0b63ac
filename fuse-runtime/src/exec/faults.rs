//! The first fault of a launch.

use super::kernel_dtypes::faults_on_zero;
use fuse_compiler::plan::{Expr, Kernel};
use std::sync::OnceLock;

/// An index out of range or an integer division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A position outside of the axis it indexes.
    Index {
        /// The number of the leaf or store.
        operand: u32,
        /// The position.
        index: i64,
        /// The extent of the axis.
        extent: usize,
    },
    /// An integer division by zero, by the number of the statement.
    Division(u32),
}

/// Whether a kernel can fault.
pub(super) fn may_fault(kernel: &Kernel) -> bool {
    kernel.stmts.iter().any(|stmt| matches!(stmt.expr, Expr::Gather { .. }) || faults_on_zero(stmt, kernel))
        || kernel.stores.iter().any(|store| store.scatter.is_some())
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
