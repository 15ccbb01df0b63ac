//! Running a graph that was made at run time, for tests that make them.

use super::Scalar;
use crate::device::Device;
use crate::error::Result;
use crate::exec::{self, Call, Program};
use crate::raw::RawTensor;
use fuse_compiler::graph::Graph;
use fuse_compiler::{optimise, schedule};

/// Runs a whole graph as a compiled function would: guessed extents first, fused, with the interpreter in the place of
/// emitted loops on the processor.
pub fn run_graph(graph: &Graph, tensors: &[&RawTensor], scalars: &[Scalar], device: Device) -> Result<Vec<RawTensor>> {
    let guessed = optimise::assume(graph).map(program).filter(|guess| exec::guards_hold(&guess.plan, tensors, &[]));
    let program = guessed.unwrap_or_else(|| program(graph.clone()));
    let call = Call {
        program: &program,
        tensors,
        given: &vec![false; tensors.len()],
        scalars,
        host_ints: &[],
        device,
        bodies: &if device.is_cpu() { program.interpreted() } else { Vec::new() },
    };
    exec::run(&call)
}

fn program(graph: Graph) -> Program {
    let graph = optimise::run(graph, optimise::Options::default());
    Program::new(&schedule::run(&graph, schedule::Options::default()), &[])
}
