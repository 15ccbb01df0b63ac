//! Reverse-mode differentiation of a typed graph.
//!
//! It stands before `optimise`, where a softmax is still a softmax and its row knows a closed form, and gives one graph of
//! forward and backward, so that everything behind it fuses across the two. What the backward part reads of the forward
//! part are the same values: equal nodes are merged later, and draws are made once.

mod again;
mod captured;
mod flow;
#[cfg(feature = "syn")]
pub mod functions;
mod keep;
mod open;
#[cfg(feature = "syn")]
pub mod segments;
pub mod split;
mod sweep;

pub use captured::{Cut, order, run as derive};

use crate::graph::Graph;
use crate::op::{Build, Op};
use crate::types::DType;

/// What is differentiated, and with respect to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The inputs whose gradients are wanted, by number.
    pub wrt: Vec<u32>,
    /// The cotangent of each result, as many as there are.
    pub seeds: Vec<Seed>,
}

/// Where the cotangent of a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// It is 1; the result has rank 0.
    One,
    /// It is a further input.
    Input,
    /// There is none.
    Nothing,
}

/// Why there is no gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// An input is not of floats.
    Input {
        /// The input.
        input: u32,
        /// Its element type.
        dtype: DType,
    },
    /// A result is not of floats.
    Output {
        /// The result.
        out: usize,
        /// Its element type.
        dtype: DType,
    },
    /// The results depend on an input, but only through an op that has no gradient.
    Undefined {
        /// The input.
        input: u32,
        /// The op.
        op: Op,
        /// Where it stands, as an index into the graph's places.
        place: u32,
    },
}

/// The graph with the gradients of the wanted inputs after its results. Inputs that no result depends on have zeros, and
/// so have those that results depend on through ops without a gradient only: [`check`] says where a user asked for that.
///
/// Cotangents are added up in reverse program order. Those that are inputs come after the inputs of the graph, in the
/// order of the results. The graph may be differentiated again.
pub fn run(graph: Graph, request: &Request) -> Graph {
    sweep::run(open::run(graph, request), request)
}

/// Whether a request makes sense: inputs and results are of floats, and no input would have a gradient but for an op that
/// has none.
pub fn check(graph: &Graph, request: &Request) -> Result<(), Mistake> {
    for &input in &request.wrt {
        let dtype = graph.ty(graph.inputs[input as usize]).dtype;
        if !dtype.is_float() {
            return Err(Mistake::Input { input, dtype });
        }
    }
    for (out, &val) in graph.outs.iter().enumerate() {
        let dtype = graph.ty(val).dtype;
        if request.seeds[out] != Seed::Nothing && !dtype.is_float() {
            return Err(Mistake::Output { out, dtype });
        }
    }
    request.wrt.iter().try_for_each(|&input| flow::defined(graph, request, input))
}
