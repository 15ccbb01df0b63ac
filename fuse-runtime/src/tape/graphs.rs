//! The graphs of what a tape has seen, found again by their keys, and those of their gradients.

use super::segments::SegmentKey;
use crate::eager::{self, Key};
use crate::error::Result;
use crate::exec::Program;
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::Graph;
use fuse_compiler::{optimise, schedule};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// What decides a graph that ran on variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GraphKey {
    /// An op.
    Op(Key),
    /// A graph of a compiled function.
    Segment(SegmentKey),
    /// The cotangents of another one, which a walk back has computed.
    Gradient(Arc<GradientKey>),
}

/// What decides the graph of cotangents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GradientKey {
    /// What they are the cotangents of.
    pub forward: GraphKey,
    /// The operands whose cotangents are wanted.
    pub wanted: Vec<bool>,
    /// The results that have a cotangent; these come behind the operands.
    pub ups: Vec<bool>,
}

impl GraphKey {
    fn graph(&self) -> Result<Graph> {
        match self {
            GraphKey::Op(key) => eager::graph(key),
            GraphKey::Segment(key) => Ok(key.graph()),
            GraphKey::Gradient(key) => key.graph(),
        }
    }

    /// For each operand which input of the graph it is, if it is a tensor.
    fn inputs(&self) -> Vec<Option<u32>> {
        match self {
            GraphKey::Op(key) => key.inputs(),
            GraphKey::Segment(key) => key.inputs(),
            GraphKey::Gradient(key) => {
                let mut inputs = key.forward.inputs();
                let known = inputs.iter().flatten().count() as u32;
                let ups = key.ups.iter().filter(|&&has| has).count() as u32;
                inputs.extend((known..known + ups).map(Some));
                inputs
            }
        }
    }
}

impl GradientKey {
    /// The graph of forward and backward, of which only the cotangents are results.
    fn graph(&self) -> Result<Graph> {
        let graph = self.forward.graph()?;
        let results = graph.outs.len();
        let inputs = self.forward.inputs();
        let wrt = inputs.into_iter().zip(&self.wanted).filter(|(_, wanted)| **wanted).filter_map(|(input, _)| input);
        let seeds = self.ups.iter().map(|&has| if has { Seed::Input } else { Seed::Nothing }).collect();
        let mut joint = autodiff::run(graph, &Request { wrt: wrt.collect(), seeds });
        joint.name = format!("{}_backward", joint.name);
        joint.outs.drain(..results);
        Ok(joint)
    }
}

static PROGRAMS: LazyLock<RwLock<HashMap<Arc<GradientKey>, Arc<Program>>>> = LazyLock::new(Default::default);

/// The program of cotangents, from the cache or newly made.
pub(super) fn program(key: &Arc<GradientKey>) -> Result<Arc<Program>> {
    if let Some(program) = PROGRAMS.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(key) {
        return Ok(program.clone());
    }
    let graph = optimise::run(key.graph()?, optimise::Options::default());
    let program = Arc::new(Program::new(&schedule::run(&graph, schedule::Options::default()), &[]));
    let mut programs = PROGRAMS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(programs.entry(key.clone()).or_insert(program).clone())
}
