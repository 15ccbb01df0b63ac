//! A kernel bound to its operands.

use super::access::Access;
use crate::reduce::Columns;
use crate::rt::CallFacts;
use fuse_compiler::plan::{Expr, Kernel, Kind, Level, Stmt};
use fuse_compiler::types::DType;

/// Everything about a launch that is the same for all runs.
#[derive(Clone)]
pub(super) struct Launch<'a> {
    /// How the domain is walked.
    pub kind: Kind,
    /// How much there is to walk.
    pub walk: Walk,
    /// What is read.
    pub leaves: Vec<Access>,
    /// What is written.
    pub stores: Vec<Access>,
    /// Whether a store must not be written while the run reads, by store: it shares storage with something read.
    pub deferred: Vec<bool>,
    /// Statements whose values rows leave for the end, with their element types.
    pub staged: Vec<(u32, DType)>,
    /// What the columns of a `Column` kernel are reduced to, in the order of the program.
    pub sums: Vec<Columns>,
    /// Scalars, sizes, draws and faults.
    pub facts: &'a CallFacts<'a>,
}

/// The extents of a walk.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    /// The number of rows; 1 for `Map`.
    pub rows: usize,
    /// Points of a row.
    pub points: usize,
    /// Points of a run: a whole row, or part of the one row of a `Map`.
    pub run: usize,
    /// Points of a tile of a `Map`, whose rows are runs, where some operand lies crosswise.
    pub tile: Option<usize>,
    /// How much there is to do at a point, in passes over memory that is in the cache.
    pub weight: usize,
}

impl Walk {
    /// Points that are handed out together.
    pub fn piece(&self) -> usize {
        self.tile.unwrap_or(self.run).max(1)
    }
}

impl<'a> Launch<'a> {
    /// Binds a kernel to its operands.
    pub fn new(
        kernel: &Kernel,
        walk: Walk,
        leaves: Vec<Access>,
        stores: Vec<Access>,
        facts: &'a CallFacts<'a>,
    ) -> Self {
        let deferred = stores.iter().map(|store| leaves.iter().any(|leaf| leaf.shares_storage(store))).collect();
        Launch { kind: kernel.kind, walk, leaves, stores, deferred, staged: staged(kernel), sums: sums(kernel), facts }
    }
}

/// The reductions of columns.
fn sums(kernel: &Kernel) -> Vec<Columns> {
    let of = |stmt: &Stmt| match stmt.expr {
        Expr::Reduce(kind, _) if stmt.level == Level::Row => Some(Columns { kind, dtype: stmt.dtype.compute() }),
        _ => None,
    };
    if kernel.kind == Kind::Column { kernel.stmts.iter().filter_map(of).collect() } else { vec![] }
}

/// Row-level values that statements of level `All` reduce.
fn staged(kernel: &Kernel) -> Vec<(u32, DType)> {
    let mut staged: Vec<(u32, DType)> = Vec::new();
    for stmt in kernel.stmts.iter().filter(|stmt| stmt.level == Level::All) {
        let Expr::Reduce(_, value) = stmt.expr else { continue };
        let from = &kernel.stmts[value.0 as usize];
        if from.level == Level::Row && staged.iter().all(|s| s.0 != value.0) {
            staged.push((value.0, from.dtype.compute()));
        }
    }
    staged
}
