//! Makes the graph smaller without changing a bit of its results.
//!
//! Extents that are checked to be equal are made one first. Then composites are opened, so that every later pass sees
//! only primitives: then algebra and constants, then equal
//! nodes are merged, then what nobody reads goes. Outputs that would alias an input or each other become copies last,
//! because the other passes would remove them.

mod alias;
mod assume;
mod cse;
mod dce;
mod decompose;
mod simplify;
mod unify;

use crate::graph::Graph;
use crate::op::Class;
use crate::types::DType;

pub use assume::run as assume;

/// What the optimiser may assume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// `numerics = "fast"`: halves stay in f32 inside a kernel.
    pub fast: bool,
}

/// Optimises a typed graph.
pub fn run(graph: Graph, options: Options) -> Graph {
    let graph = unify::run(graph);
    let graph = decompose::run(graph);
    let graph = simplify::run(graph);
    let graph = cse::run(graph);
    let graph = dce::run(graph);
    let mut graph = alias::run(graph);
    if options.fast {
        keep_compute_precision(&mut graph);
    }
    graph
}

/// Elementwise halves keep the bits of their compute type, fp8, which is cast to for its few bits, does not; what is stored is rounded by the store.
fn keep_compute_precision(graph: &mut Graph) {
    let is_kept = |dtype: DType| dtype.is_half() || matches!(dtype, DType::Param(_));
    for node in &mut graph.nodes {
        node.round = !(matches!(node.op.class, Class::Elementwise) && is_kept(node.outs[0].dtype));
    }
}
