//! The reference evaluator: a graph computed element by element in f64, the oracle of the tests.
//!
//! It is the slow, obvious version of everything: no fusion, no layouts, every op by its row. Composites are opened into
//! a scratch graph and evaluated there.

mod class;
#[cfg(test)]
mod tests;
mod value;

pub use value::Value;

use super::{Graph, Node, SymSource};
use crate::op::{Attr, Build, Class, Num, Source, Val};
use crate::types::{DType, Dim, Sym, Ty};
use std::cell::Cell;

/// What a graph is given beside its tensors, and how exact its values are.
pub struct Host<'a> {
    /// Concrete element types of the generic ones.
    pub params: &'a [DType],
    /// The host scalars, in argument order.
    pub scalars: &'a [Num],
    /// The host integers, in argument order.
    pub ints: &'a [i64],
    /// How values are rounded.
    pub rounding: Rounding,
    /// The random number of a draw (counted in program order) at a row-major position.
    pub random: &'a dyn Fn(Source, u32, u64) -> f64,
}

/// How values are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Every node rounds to its element type, as strict numerics have it.
    EveryOp,
    /// Only casts round, everything else is in f64: what results are measured against.
    OnlyCasts,
}

impl Default for Host<'_> {
    /// No scalars and no integers, draws of 0.5, and only casts round.
    fn default() -> Self {
        let random = &|_: Source, _, _| 0.5;
        Host { params: &[], scalars: &[], ints: &[], rounding: Rounding::OnlyCasts, random }
    }
}

/// Why a graph has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A check does not hold; its message with both numbers.
    Check(String),
    /// A position along an axis is out of range.
    Index {
        /// The position.
        index: i64,
        /// The extent.
        extent: usize,
    },
    /// An integer was divided by zero.
    DivisionByZero,
}

/// The results of a graph for these inputs.
pub fn eval(graph: &Graph, inputs: &[Value], host: &Host) -> Result<Vec<Value>, Failure> {
    let draws = Cell::new(0);
    let mut evaluator = Evaluator { graph, inputs, host, draws: &draws, values: vec![] };
    evaluator.run()?;
    Ok(graph.outs.iter().map(|&val| evaluator.value(val).clone()).collect())
}

/// One graph being evaluated.
struct Evaluator<'a> {
    graph: &'a Graph,
    inputs: &'a [Value],
    host: &'a Host<'a>,
    /// How many draws there were, in this graph and those it was opened from.
    draws: &'a Cell<u32>,
    /// Results by node and output.
    values: Vec<Vec<Value>>,
}

impl Evaluator<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        for (id, node) in self.graph.nodes.iter().enumerate() {
            self.check(id as u32)?;
            let results = self.node(node)?;
            self.values.push(results.into_iter().map(|value| self.rounded(node, value)).collect());
        }
        Ok(())
    }

    fn value(&self, val: Val) -> &Value {
        &self.values[val.node as usize][val.out as usize]
    }

    fn node(&self, node: &Node) -> Result<Vec<Value>, Failure> {
        let args: Vec<&Value> = node.args.iter().map(|&arg| self.value(arg)).collect();
        let types: Vec<Ty> = node.outs.iter().map(|ty| self.concrete(ty)).collect();
        match node.op.class {
            _ if node.op.opens(node.args.first().map(|&arg| self.graph.ty(arg))) => self.opened(node, &args),
            Class::Source(source) => Ok(vec![self.source(source, node, &types[0])]),
            Class::Host => panic!("`{}` runs on the host, not in a graph", node.op.name),
            _ => class::eval(node.op, &args, &self.concrete_attrs(node), &types[0]).map(|value| vec![value]),
        }
    }

    /// Opens a composite over inputs of known extents and evaluates what it stands for.
    fn opened(&self, node: &Node, args: &[&Value]) -> Result<Vec<Value>, Failure> {
        let mut scratch = Graph::new(node.op.name);
        let operands: Vec<Val> =
            args.iter().enumerate().map(|(k, value)| known_input(&mut scratch, k, value)).collect();
        let opened = node.op.open(&mut scratch, &operands, &self.concrete_attrs(node));
        scratch.outs = opened.expect("the op is no primitive");
        let inputs: Vec<Value> = args.iter().map(|&value| value.clone()).collect();
        let mut inner = Evaluator { graph: &scratch, inputs: &inputs, values: vec![], ..*self };
        inner.run()?;
        Ok(scratch.outs.iter().map(|&val| inner.value(val).clone()).collect())
    }

    fn source(&self, source: Source, node: &Node, ty: &Ty) -> Value {
        let number = |num: Num| Value::new(ty.dtype, vec![], vec![num.cast(ty.dtype)]);
        match source {
            Source::Input => self.inputs[node.attrs[0].int() as usize].clone(),
            Source::Scalar => number(self.host.scalars[node.attrs[0].int() as usize]),
            Source::Constant => number(Num::of(node.attrs[0].literal())),
            Source::Size => number(Num::I(self.extent(&node.attrs[0].dim()))),
            Source::Index => Value::positions(ty, |at| Num::I(at as i64)),
            Source::Uniform | Source::Normal => {
                let draw = self.draws.replace(self.draws.get() + 1);
                Value::positions(ty, |at| Num::F((self.host.random)(source, draw, at as u64)))
            }
        }
    }

    fn rounded(&self, node: &Node, value: Value) -> Value {
        // Casts and sources have rounded by themselves.
        let rounds = self.host.rounding == Rounding::EveryOp && node.round;
        if rounds || !value.dtype.is_float() { value.rounded() } else { value }
    }

    fn check(&self, node: u32) -> Result<(), Failure> {
        for (_, check) in self.graph.checks.iter().filter(|(at, _)| *at == node) {
            let (left, right) = (self.extent(&check.left), self.extent(&check.right));
            if let Some(text) = check.failure(left, right) {
                return Err(Failure::Check(text));
            }
        }
        Ok(())
    }

    fn extent(&self, dim: &Dim) -> i64 {
        dim.eval(&|Sym(n)| match self.graph.syms[n as usize].source {
            SymSource::Input { input, axis } => self.inputs[input as usize].dims[axis as usize] as i64,
            SymSource::Host(k) => self.host.ints[k as usize],
        })
    }

    /// A type with its symbols and generic element types replaced.
    fn concrete(&self, ty: &Ty) -> Ty {
        Ty::new(ty.dtype.instantiate(self.host.params), self.concrete_dims(&ty.dims))
    }

    fn concrete_dims(&self, dims: &[Dim]) -> Vec<Dim> {
        dims.iter().map(|dim| Dim::Const(self.extent(dim))).collect()
    }

    fn concrete_attrs(&self, node: &Node) -> Vec<Attr> {
        let concrete = |attr: &Attr| match attr {
            Attr::Dim(dim) => Attr::Dim(Dim::Const(self.extent(dim))),
            Attr::Dims(dims) => Attr::Dims(self.concrete_dims(dims)),
            Attr::DType(dtype) => Attr::DType(dtype.instantiate(self.host.params)),
            other => other.clone(),
        };
        node.attrs.iter().map(concrete).collect()
    }
}

/// An input of the extents of a value.
fn known_input(graph: &mut Graph, k: usize, value: &Value) -> Val {
    let dims: Vec<Dim> = value.dims.iter().map(|&extent| Dim::Const(extent as i64)).collect();
    let val = graph.input(&format!("arg{k}"), value.dtype, 0);
    graph.nodes[val.node as usize].outs[0].dims = dims;
    val
}
