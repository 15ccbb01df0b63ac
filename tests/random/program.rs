//! Programs of tensor ops, as data that can be run, shrunk and printed.

use crate::common::{Lay, device, lay_out};
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::{Attr, Build, Fault, Literal, Op, OpEffect, Val};
use fuse_compiler::types::{DType, Dim};
use fuse_runtime::eager::{self, Arg};
use fuse_runtime::rt::{Callable, Mode};
use fuse_runtime::{Device, Error, RawTensor};

/// A value of a program: a result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ref {
    pub step: usize,
    pub out: usize,
}

/// A program: steps in order, and which values it returns.
#[derive(Clone, Debug)]
pub struct Program {
    pub steps: Vec<Step>,
    pub outs: Vec<Ref>,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A tensor argument in some layout.
    Input(Value, Lay),
    /// A call of an op.
    Call(Op, Vec<Operand>, Vec<Param>),
}

/// An operand of a call.
#[derive(Clone, Debug)]
pub enum Operand {
    /// An earlier value.
    Value(Ref),
    /// A host scalar of this element type.
    Scalar(Literal, DType),
}

/// An attribute of a call. Sizes are written as they would be in a function: in terms of extents of earlier values.
#[derive(Clone, Debug)]
pub enum Param {
    /// Known.
    Attr(Attr),
    /// One size.
    Size(Size),
    /// Several.
    Sizes(Vec<Size>),
}

/// A size.
#[derive(Clone, Debug)]
pub enum Size {
    /// Known.
    Known(usize),
    /// The extent of an axis of an earlier value.
    Extent(Ref, usize),
    /// The number of elements of an earlier value.
    Count(Ref),
}

/// The results of every step, as eager ops compute them one by one.
pub type Trace = Vec<Vec<RawTensor>>;

/// What one call of the whole gave.
pub struct Run {
    pub mode: Mode,
    /// Its number in this mode, from 1.
    pub call: usize,
    pub results: Vec<RawTensor>,
}

impl Step {
    /// Runs one step on what the earlier ones gave.
    pub fn eager(&self, trace: &Trace, device: Device) -> Result<Vec<RawTensor>, Error> {
        let value = |at: &Ref| trace[at.step][at.out].clone();
        match self {
            Step::Input(value, lay) => Ok(vec![lay_out(value, *lay, device)]),
            Step::Call(op, operands, params) => {
                let arg = |operand: &Operand| match operand {
                    Operand::Value(at) => Arg::Tensor(value(at)),
                    Operand::Scalar(literal, dtype) => Arg::Scalar(*literal, *dtype),
                };
                let known = |size: &Size| match size {
                    Size::Known(n) => *n,
                    Size::Extent(at, axis) => value(at).shape()[*axis],
                    Size::Count(at) => value(at).numel(),
                };
                let attr = |param: &Param| param.attr(&|size| Dim::Const(known(size) as i64));
                let args: Vec<Arg> = operands.iter().map(arg).collect();
                eager::run(device, op.name, &args, &params.iter().map(attr).collect::<Vec<_>>())
            }
        }
    }

    /// The values the step reads.
    fn reads(&self) -> Vec<Ref> {
        let Step::Call(_, operands, params) = self else { return vec![] };
        let operand = |operand: &Operand| match operand {
            Operand::Value(at) => Some(*at),
            Operand::Scalar(..) => None,
        };
        let size = |size: &Size| match size {
            Size::Known(_) => None,
            Size::Extent(at, _) | Size::Count(at) => Some(*at),
        };
        let sizes = params.iter().flat_map(Param::sizes);
        operands.iter().filter_map(operand).chain(sizes.filter_map(size)).collect()
    }
}

impl Param {
    fn attr(&self, dim: &dyn Fn(&Size) -> Dim) -> Attr {
        match self {
            Param::Attr(attr) => attr.clone(),
            Param::Size(size) => Attr::Dim(dim(size)),
            Param::Sizes(sizes) => Attr::Dims(sizes.iter().map(dim).collect()),
        }
    }

    fn sizes(&self) -> &[Size] {
        match self {
            Param::Attr(_) => &[],
            Param::Size(size) => std::slice::from_ref(size),
            Param::Sizes(sizes) => sizes,
        }
    }
}

impl Program {
    /// Runs every step by itself.
    pub fn eager(&self, device: Device) -> Result<Trace, Error> {
        let mut trace = vec![];
        for step in &self.steps {
            let results = step.eager(&trace, device)?;
            trace.push(results);
        }
        Ok(trace)
    }

    /// Runs the whole as one graph in these modes, so many times in each, `before` each of which something is done.
    ///
    /// Inputs are laid out for every call, and all are kept, so that no two calls have their arguments in one place.
    pub fn compiled(&self, modes: &[Mode], calls: usize, before: &dyn Fn()) -> Result<Vec<Run>, Error> {
        let (graph, scalars) = self.graph().map_err(|fault| Error::shape("graph", fault.message))?;
        let (mut runs, mut kept) = (vec![], vec![]);
        for &mode in modes {
            let callable = Callable::new(&graph, mode);
            for call in 1..=calls {
                let inputs: Vec<RawTensor> = self.inputs().map(|(value, lay)| lay_out(value, lay, device())).collect();
                before();
                let results = callable.call(&inputs.iter().collect::<Vec<_>>(), &scalars, device())?;
                runs.push(Run { mode, call, results });
                kept.push(inputs);
            }
        }
        Ok(runs)
    }

    /// The ops it calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = Op> {
        self.steps.iter().filter_map(|step| match step {
            Step::Call(op, ..) => Some(*op),
            Step::Input(..) => None,
        })
    }

    /// Whether a step draws random numbers.
    pub fn draws(&self) -> bool {
        self.calls().any(|op| op.effect == OpEffect::Rng)
    }

    /// The tensor arguments.
    pub fn inputs(&self) -> impl Iterator<Item = (&Value, Lay)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Input(value, lay) => Some((value, *lay)),
            Step::Call(..) => None,
        })
    }

    /// The graph, whose extents are symbols, and its host scalars.
    pub fn graph(&self) -> Result<(Graph, Vec<Literal>), Fault> {
        let mut graph = Graph::new("random");
        let (mut vals, mut scalars): (Vec<Val>, Vec<Literal>) = (vec![], vec![]);
        for step in &self.steps {
            let val = match step {
                Step::Input(value, _) => graph.input(&format!("x{}", vals.len()), value.dtype, value.dims.len()),
                Step::Call(op, operands, params) => {
                    let mut args = vec![];
                    for operand in operands {
                        args.push(match operand {
                            Operand::Value(at) => val(&vals, at),
                            Operand::Scalar(literal, dtype) => {
                                scalars.push(*literal);
                                graph.scalar(&format!("s{}", scalars.len()), *dtype)
                            }
                        });
                    }
                    let formula = |size: &Size| match size {
                        Size::Known(n) => Dim::Const(*n as i64),
                        Size::Extent(at, axis) => graph.ty(val(&vals, at)).dims[*axis].clone(),
                        Size::Count(at) => graph.ty(val(&vals, at)).numel(),
                    };
                    let attrs = params.iter().map(|param| param.attr(&formula)).collect();
                    graph.try_push(*op, &args, attrs)?
                }
            };
            vals.push(val);
        }
        graph.outs = self.outs.iter().map(|at| val(&vals, at)).collect();
        Ok((graph, scalars))
    }

    /// The same program without steps that nothing needs.
    pub fn pruned(&self) -> Program {
        let mut needed = vec![false; self.steps.len()];
        self.outs.iter().for_each(|at| needed[at.step] = true);
        for at in (0..self.steps.len()).rev().filter(|&at| needed[at]).collect::<Vec<_>>() {
            self.mark(at, &mut needed);
        }
        let place: Vec<usize> =
            needed.iter().scan(0, |next, &kept| Some(std::mem::replace(next, *next + usize::from(kept)))).collect();
        let moved = |at: &Ref| Ref { step: place[at.step], ..*at };
        let kept = self.steps.iter().zip(&needed).filter(|(_, needed)| **needed);
        Program {
            steps: kept.map(|(step, _)| step.moved(&moved)).collect(),
            outs: self.outs.iter().map(moved).collect(),
        }
    }

    fn mark(&self, at: usize, needed: &mut [bool]) {
        needed[at] = true;
        for read in self.steps[at].reads() {
            if !needed[read.step] {
                self.mark(read.step, needed);
            }
        }
    }
}

fn val(vals: &[Val], at: &Ref) -> Val {
    Val { out: at.out as u32, ..vals[at.step] }
}

impl Step {
    fn moved(&self, to: &dyn Fn(&Ref) -> Ref) -> Step {
        let Step::Call(op, operands, params) = self else { return self.clone() };
        let operand = |operand: &Operand| match operand {
            Operand::Value(at) => Operand::Value(to(at)),
            scalar => scalar.clone(),
        };
        let size = |size: &Size| match size {
            Size::Known(n) => Size::Known(*n),
            Size::Extent(at, axis) => Size::Extent(to(at), *axis),
            Size::Count(at) => Size::Count(to(at)),
        };
        let param = |param: &Param| match param {
            Param::Attr(attr) => Param::Attr(attr.clone()),
            Param::Size(one) => Param::Size(size(one)),
            Param::Sizes(list) => Param::Sizes(list.iter().map(size).collect()),
        };
        Step::Call(*op, operands.iter().map(operand).collect(), params.iter().map(param).collect())
    }
}
