//! Guesses that operands do not broadcast where nothing says so.
//!
//! In `x.matmul(w) + b` the extent of `b` may be the one of `w`, or 1. Kernels fuse only over extents that are known to
//! be equal, so the graph is compiled twice: once with the guess, guarded by a test on entry, and once without.

use crate::graph::Graph;
use crate::op::{Check, Relation};

/// The graph with open broadcasts as guarded equalities, or `None` where there is nothing to guess.
pub fn run(graph: &Graph) -> Option<Graph> {
    let mut graph = graph.clone();
    let is_open = |(_, check): &(u32, Check)| check.relation == Relation::Broadcasts;
    let (open, checks) = std::mem::take(&mut graph.checks).into_iter().partition(is_open);
    (graph.guards, graph.checks) = (open, checks);
    (!graph.guards.is_empty()).then_some(graph)
}
