//! Graphs of compiled functions on a tape: one entry each, which the compiled backward graph walks back over.

use super::record::{What, record, traced};
use crate::device::Device;
use crate::eager::{self, Arg};
use crate::error::Result;
use crate::generator::{Generator, draw_blocks};
use crate::philox::blocks_of;
use crate::raw::RawTensor;
use crate::rt::{Derivative, Inputs, Way};
use fuse_compiler::autodiff::split::Kept;
use fuse_compiler::graph::{Graph, SymSource};
use fuse_compiler::op::{Attr, Build, Op};
use fuse_compiler::types::{DType, Dim};
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
    draws: Draws,
}

/// What a call has drawn: nothing of it is kept, since from the same generator the same numbers come again.
struct Draws {
    /// The generator before the call.
    generator: Generator,
    /// The op of each draw, and its extents.
    list: Vec<(Op, Vec<i64>)>,
}

impl Draws {
    /// Takes their numbers from the generator that the call draws from.
    fn take(list: Vec<(Op, Vec<i64>)>, device: Device) -> Draws {
        // Where extents make no sense the call fails.
        let elements = |dims: &[i64]| dims.iter().map(|&extent| extent.max(0) as usize).product();
        let blocks = list.iter().map(|(_, dims)| blocks_of(elements(dims))).sum();
        let (seed, offset) = draw_blocks(device, blocks);
        Draws { generator: Generator::from_state([seed, offset]), list }
    }

    /// Runs what draws just these numbers.
    fn again<R>(&self, body: impl FnOnce() -> R) -> R {
        let mut generator = self.generator;
        generator.scope(body)
    }

    /// The numbers, as tensors.
    fn tensors(&self, device: Device) -> Result<Vec<RawTensor>> {
        let draw = |(op, dims): &(Op, Vec<i64>)| {
            let dims = dims.iter().map(|&extent| Dim::Const(extent)).collect();
            Ok(eager::run(device, op.name, &[], &[Attr::Dims(dims)])?.remove(0))
        };
        self.again(|| self.list.iter().map(draw).collect())
    }
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
    let size = |source: &SymSource| match *source {
        SymSource::Input { input, axis } => constants[input as usize].shape()[axis as usize] as i64,
        SymSource::Host(k) => inputs.host_ints[k as usize],
    };
    let extent = |dim: &Dim| dim.eval(&|sym| size(&known.graph.syms[sym.0 as usize].source));
    let drawn = known.draws.iter().map(|(op, dims)| (*op, dims.iter().map(extent).collect()));
    let draws = Draws::take(drawn.collect(), device);
    let tensors: Vec<&RawTensor> = constants.iter().collect();
    let mut results = draws.again(|| forward(&tensors, inputs.scalars, inputs.host_ints, device))?;
    let kept = known.kept.iter().map(|kept| match *kept {
        Kept::Input(k) => constants[k as usize].clone(),
        Kept::Result(k) => results[k as usize].clone(),
    });
    let kept = kept.collect();
    results.truncate(known.results);
    let graph = SegmentKey { derivative, params: inputs.params.to_vec() };
    let tensors = inputs.tensors.iter().map(|&tensor| tensor.clone());
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
        draws,
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
        let cotangents = self.draws.again(|| (self.backward)(&tensors, &self.scalars, &self.sizes, self.device))?;
        let pairs = known.wrt.iter().zip(cotangents);
        Ok(Some(pairs.filter(|(operand, _)| wanted.contains(operand)).map(|(_, cotangent)| cotangent).collect()))
    }

    /// What the call has drawn: operands of the graph from which other gradients are derived.
    pub fn drawn(&self) -> Result<Vec<RawTensor>> {
        self.draws.tensors(self.device)
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

    /// For each operand which input of the graph it is: tensors come first, then scalars, then what was drawn.
    pub fn inputs(&self) -> Vec<Option<u32>> {
        let known = self.derivative.get();
        let all = known.graph.inputs.len() as u32;
        let own = all - known.draws.len() as u32;
        let scalars = known.graph.scalars.iter().map(|_| None);
        (0..own).map(Some).chain(scalars).chain((own..all).map(Some)).collect()
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
