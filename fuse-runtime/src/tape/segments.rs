//! Graphs of compiled functions on a tape: one entry each, which the compiled backward graph walks back over.

use super::record::{What, record, traced};
use crate::device::Device;
use crate::eager::Arg;
use crate::error::Result;
use crate::raw::RawTensor;
use crate::rt::{Derivative, Inputs, Way};
use fuse_compiler::autodiff::split::Kept;
use fuse_compiler::graph::{Graph, SymSource};
use fuse_compiler::op::{Attr, Build};
use fuse_compiler::types::DType;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A call of a graph on variables.
pub(crate) struct SegmentCall {
    /// Which graph it is, for gradients that were not compiled.
    pub graph: SegmentKey,
    /// Its host integers.
    pub host_ints: Vec<i64>,
    backward: Way,
    device: Device,
    /// What the backward graph reads beside cotangents.
    kept: Vec<RawTensor>,
    scalars: Vec<crate::rt::Scalar>,
    /// The host integers of the backward graph.
    sizes: Vec<i64>,
}

/// A graph of a compiled function, for some element types.
#[derive(Clone)]
pub(crate) struct SegmentKey {
    derivative: &'static Derivative,
    params: Vec<DType>,
}

/// Runs the forward graph and writes it on the tapes that its arguments are on.
pub(crate) fn follow(
    inputs: &Inputs<'_>,
    device: Device,
    derivative: &'static Derivative,
    forward: Way,
    backward: Way,
) -> Result<Vec<RawTensor>> {
    let known = derivative.get();
    let constants: Vec<RawTensor> = inputs.tensors.iter().map(|&tensor| tensor.clone().with_var(None)).collect();
    let mut results = forward(&constants.iter().collect::<Vec<_>>(), inputs.scalars, inputs.host_ints, device)?;
    let kept = known.kept.iter().map(|kept| match *kept {
        Kept::Input(k) => constants[k as usize].clone(),
        Kept::Result(k) => results[k as usize].clone(),
    });
    let kept = kept.collect();
    let size = |source: &SymSource| match *source {
        SymSource::Input { input, axis } => constants[input as usize].shape()[axis as usize] as i64,
        SymSource::Host(k) => inputs.host_ints[k as usize],
    };
    let further = results.split_off(known.results);
    let draws = known.graph.inputs.len() - constants.len();
    let graph = SegmentKey { derivative, params: inputs.params.to_vec() };
    let tensors = inputs.tensors.iter().map(|&tensor| tensor.clone()).chain(further.into_iter().take(draws));
    let scalars = inputs.scalars.iter().zip(graph.scalar_types()).map(|(&scalar, dtype)| Arg::Scalar(scalar, dtype));
    let args: Vec<Arg> = tensors.map(Arg::Tensor).chain(scalars).collect();
    let call = SegmentCall {
        graph,
        host_ints: inputs.host_ints.to_vec(),
        backward,
        device,
        kept,
        scalars: inputs.scalars.to_vec(),
        sizes: known.sizes.iter().map(size).collect(),
    };
    Ok(record(&traced(&args), &What::Segment(Arc::new(call)), &args, results))
}

impl SegmentCall {
    /// The cotangents of the operands that are wanted, in order. `None`: the backward graph is for other cotangents.
    pub fn pull(&self, wanted: &[bool], ups: &[Option<RawTensor>]) -> Result<Option<Vec<RawTensor>>> {
        let known = self.graph.derivative.get();
        let wanted = numbers(wanted.iter().copied());
        let has_all = wanted.iter().all(|operand| known.wrt.contains(operand));
        if !has_all || numbers(ups.iter().map(Option::is_some)) != known.seeds {
            return Ok(None);
        }
        let ups: Vec<RawTensor> = ups.iter().flatten().map(|up| up.clone().with_var(None)).collect();
        let tensors: Vec<&RawTensor> = self.kept.iter().chain(&ups).collect();
        let cotangents = (self.backward)(&tensors, &self.scalars, &self.sizes, self.device)?;
        let pairs = known.wrt.iter().zip(cotangents);
        Ok(Some(pairs.filter(|(operand, _)| wanted.contains(operand)).map(|(_, cotangent)| cotangent).collect()))
    }
}

/// The places of flags that are set.
fn numbers(flags: impl Iterator<Item = bool>) -> Vec<u32> {
    flags.enumerate().filter(|(_, flag)| *flag).map(|(k, _)| k as u32).collect()
}

impl SegmentKey {
    /// The graph with concrete element types.
    pub fn graph(&self) -> Graph {
        let mut graph = self.derivative.get().graph.clone();
        let set = |dtype: &mut DType| *dtype = dtype.instantiate(&self.params);
        for node in &mut graph.nodes {
            node.outs.iter_mut().for_each(|ty| set(&mut ty.dtype));
            for attr in &mut node.attrs {
                if let Attr::DType(dtype) = attr {
                    set(dtype);
                }
            }
        }
        graph
    }

    /// For each operand which input of the graph it is: tensors come first.
    pub fn inputs(&self) -> Vec<Option<u32>> {
        let graph = &self.derivative.get().graph;
        (0..graph.inputs.len() as u32).map(Some).chain(graph.scalars.iter().map(|_| None)).collect()
    }

    fn scalar_types(&self) -> Vec<DType> {
        let graph = &self.derivative.get().graph;
        graph.scalars.iter().map(|&scalar| graph.ty(scalar).dtype.instantiate(&self.params)).collect()
    }
}

impl PartialEq for SegmentKey {
    fn eq(&self, other: &SegmentKey) -> bool {
        std::ptr::eq(self.derivative, other.derivative) && self.params == other.params
    }
}

impl Eq for SegmentKey {}

impl Hash for SegmentKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.derivative).hash(state);
        self.params.hash(state);
    }
}

impl std::fmt::Debug for SegmentKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.derivative.get().graph.name, self.params)
    }
}
