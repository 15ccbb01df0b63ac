//! Running a graph that was made at run time, for tests that make them.

use super::{Mode, Scalar};
use crate::device::Device;
use crate::error::Result;
use crate::exec::{self, Call, Program};
use crate::raw::RawTensor;
use fuse_compiler::graph::Graph;
use fuse_compiler::{optimise, schedule};
use std::sync::OnceLock;

/// A graph that can be called any number of times, as a compiled function is: guessed extents first, fused, with the
/// interpreter in the place of emitted loops on the processor.
pub struct Callable {
    graph: Graph,
    mode: Mode,
    guessed: Option<Program>,
    /// Made when a call does not fit the guess.
    general: OnceLock<Program>,
}

impl Callable {
    /// The graph, with calls tuned for something.
    pub fn new(graph: &Graph, mode: Mode) -> Self {
        let guessed = optimise::assume(graph).map(|graph| program(graph, mode));
        Callable { graph: graph.clone(), mode, guessed, general: OnceLock::new() }
    }

    /// Runs the whole graph.
    pub fn call(&self, tensors: &[&RawTensor], scalars: &[Scalar], device: Device) -> Result<Vec<RawTensor>> {
        let guessed = self.guessed.as_ref().filter(|guess| exec::guards_hold(&guess.plan, tensors, &[]));
        let program = guessed.unwrap_or_else(|| self.general.get_or_init(|| program(self.graph.clone(), self.mode)));
        let call = Call {
            program,
            tensors,
            given: &vec![false; tensors.len()],
            scalars,
            host_ints: &[],
            device,
            bodies: &if device.is_cpu() { program.interpreted() } else { Vec::new() },
        };
        exec::run(&call)
    }
}

/// Runs a whole graph once.
pub fn run_graph(graph: &Graph, tensors: &[&RawTensor], scalars: &[Scalar], device: Device) -> Result<Vec<RawTensor>> {
    Callable::new(graph, Mode::Default).call(tensors, scalars, device)
}

fn program(graph: Graph, mode: Mode) -> Program {
    let graph = optimise::run(graph, optimise::Options::default());
    Program::new(&schedule::run(&graph, schedule::Options::default()), &[]).with_mode(mode)
}
