//! Graphs of compiled functions that a tape walks back over.

use super::{Inputs, Scalar, Segment};
use crate::device::Device;
use crate::error::Result;
use crate::raw::RawTensor;
use crate::tape;
use fuse_compiler::autodiff::split;
use std::sync::OnceLock;

/// How forward and backward of a graph go together, as the macro has embedded it; read when a tape first meets the graph.
pub struct Derivative {
    text: &'static str,
    read: OnceLock<split::Derivative>,
}

/// Runs a forward or backward graph on tensors, scalars and host integers.
pub type Way = fn(&[&RawTensor], &[Scalar], &[i64], Device) -> Result<Vec<RawTensor>>;

impl Derivative {
    /// A derivative from its text.
    pub const fn new(text: &'static str) -> Self {
        Derivative { text, read: OnceLock::new() }
    }

    /// What the text says.
    pub(crate) fn get(&self) -> &split::Derivative {
        self.read.get_or_init(|| ron::from_str(self.text).expect("the macro has embedded a derivative of this version"))
    }
}

impl Segment {
    /// Runs the graph; if a tape records one of its arguments, by its forward graph, and the tape learns how to walk back.
    pub fn followed(
        &self,
        inputs: Inputs<'_>,
        derivative: &'static Derivative,
        forward: Way,
        backward: Way,
    ) -> Result<Vec<RawTensor>> {
        match inputs.tensors.iter().any(|tensor| tape::is_traced(tensor)) {
            true => tape::follow(&inputs, self.device(&inputs)?, derivative, forward, backward),
            false => self.call(inputs),
        }
    }

    /// Runs a graph through which no gradients go: to a tape its arguments are constants.
    pub fn called_by_a_tape(&self, inputs: Inputs<'_>) -> Result<Vec<RawTensor>> {
        if !inputs.tensors.iter().any(|tensor| tape::is_traced(tensor)) {
            return self.call(inputs);
        }
        let constants: Vec<RawTensor> = inputs.tensors.iter().map(|&tensor| tensor.clone().with_var(None)).collect();
        self.call(Inputs { tensors: &constants.iter().collect::<Vec<_>>(), given: &[], ..inputs })
    }
}
