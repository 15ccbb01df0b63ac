//! The tensor graph: typed nodes in static single assignment form, in program order.

mod dims;
pub mod eval;
mod print;
mod rewrite;
pub mod verify;

pub use rewrite::Rewrite;

use crate::op::{Attr, Build, Check, Class, Fault, Literal, Op, Rules, Val};
use crate::types::{DType, Dim, Sym, Ty};
use serde::{Deserialize, Serialize};

/// A pure region of tensor ops (but for ordered effects), captured from one stretch of a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The name of the function and segment, for headers and reports.
    pub name: String,
    /// What each symbol stands for, by its number.
    pub syms: Vec<SymDef>,
    /// Nodes in program order; operands come before their users.
    pub nodes: Vec<Node>,
    /// The nodes that are tensor inputs, in argument order (each an `input` node).
    pub inputs: Vec<Val>,
    /// Host scalars in argument order (each a `scalar` node).
    pub scalars: Vec<Val>,
    /// The results, in order.
    pub outs: Vec<Val>,
    /// Equalities left to run time, in program order, with the node that needs them.
    pub checks: Vec<(u32, Check)>,
    /// Equalities this graph was specialised for; where one does not hold, a more general graph runs instead.
    pub guards: Vec<(u32, Check)>,
    /// Source places, by [`Node::place`].
    pub places: Vec<Place>,
}

/// What a symbol stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SymDef {
    /// How it is printed: a dim the user named, or `x.0`.
    pub name: String,
    /// Where its value comes from at run time.
    pub source: SymSource,
}

/// Where the value of a symbol comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SymSource {
    /// The extent of an axis of the n-th input.
    Input {
        /// Index into [`Graph::inputs`].
        input: u32,
        /// The axis.
        axis: u32,
    },
    /// The n-th host integer handed to the graph.
    Host(u32),
}

/// One op with its operands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The row of the op table.
    pub op: Op,
    /// Operands.
    pub args: Vec<Val>,
    /// Parameters that are no tensors, in the row's order.
    pub attrs: Vec<Attr>,
    /// The types of the results.
    pub outs: Vec<Ty>,
    /// Whether results are rounded to their element type (strict numerics) or kept at the compute type inside a kernel.
    pub round: bool,
    /// Index into [`Graph::places`].
    pub place: u32,
    /// The user's variable that holds the result, for names in generated code.
    pub name: Option<String>,
}

/// Where a node was written: the file's path relative to the manifest, line and column counted from 1, the user's expression, and
/// the op it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Path relative to the manifest.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1.
    pub column: u32,
    /// The expression as written.
    pub text: String,
    /// The op, which failures at run time name: eager ops know no expression.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub op: String,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Graph { name: name.into(), places: vec![Place::default()], ..Graph::default() }
    }

    /// A fresh symbol.
    pub fn sym(&mut self, name: impl Into<String>, source: SymSource) -> Sym {
        self.syms.push(SymDef { name: name.into(), source });
        Sym(self.syms.len() as u32 - 1)
    }

    /// Adds a tensor input whose extents are fresh symbols (`name.axis`).
    pub fn input(&mut self, name: &str, dtype: DType, rank: usize) -> Val {
        let input = self.inputs.len() as u32;
        let dims = (0..rank)
            .map(|axis| Dim::Sym(self.sym(format!("{name}.{axis}"), SymSource::Input { input, axis: axis as u32 })))
            .collect::<Vec<_>>();
        let val =
            self.push_typed(Op::named("input"), vec![], vec![Attr::Int(input as i64)], vec![Ty::new(dtype, dims)]);
        self.nodes[val.node as usize].name = Some(name.to_owned());
        self.inputs.push(val);
        val
    }

    /// Adds a host scalar: a rank-0 value of this element type, handed in with each call.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Val {
        let attr = Attr::Int(self.scalars.len() as i64);
        let val = self.push_typed(Op::named("scalar"), vec![], vec![attr], vec![Ty::new(dtype, [])]);
        self.nodes[val.node as usize].name = Some(name.to_owned());
        self.scalars.push(val);
        val
    }

    /// Adds a node whose result types are known.
    pub fn push_typed(&mut self, op: Op, args: Vec<Val>, attrs: Vec<Attr>, outs: Vec<Ty>) -> Val {
        let place = self.places.len().saturating_sub(1) as u32;
        self.nodes.push(Node { op, args, attrs, outs, round: true, place, name: None });
        Val { node: self.nodes.len() as u32 - 1, out: 0 }
    }

    /// Adds a node and infers its types by the row's rule; equalities that stay open become checks.
    pub fn try_push(&mut self, op: Op, args: &[Val], attrs: Vec<Attr>) -> Result<Val, Fault> {
        let name = |sym: Sym| self.syms[sym.0 as usize].name.clone();
        let mut rules = Rules { names: Some(&name), ..Rules::default() };
        let types: Vec<&Ty> = args.iter().map(|&v| self.ty(v)).collect();
        let outs = op.types(&mut rules, &types, &attrs)?;
        let checks = rules.checks;
        let val = self.push_typed(op, args.to_vec(), attrs, outs);
        self.checks.extend(checks.into_iter().map(|c| (val.node, c)));
        Ok(val)
    }

    /// Whether a node can meet an index out of range or an integer division by zero. A divisor that is written out is seen.
    pub fn may_fault(&self, node: u32) -> bool {
        let node = &self.nodes[node as usize];
        let dtype = node.args.first().map_or(DType::F32, |&arg| self.ty(arg).dtype);
        let divisor = |val: Val| match self.node(self.behind_views(val)).attrs.first() {
            Some(Attr::Lit(Literal::Int(divisor))) => *divisor != 0,
            _ => false,
        };
        let divides = node.op.scalar.as_ref().is_some_and(|scalar| scalar.zero_fault);
        node.op.may_fault(dtype) && !(divides && divisor(node.args[1]))
    }

    /// The value whose elements a view shows.
    pub fn behind_views(&self, mut val: Val) -> Val {
        while let Class::View(_) = self.node(val).op.class {
            val = self.node(val).args[0];
        }
        val
    }

    /// The node that makes a value.
    pub fn node(&self, val: Val) -> &Node {
        &self.nodes[val.node as usize]
    }
}

impl Build for Graph {
    fn push(&mut self, op: Op, args: &[Val], attrs: Vec<Attr>) -> Val {
        self.try_push(op, args, attrs).unwrap_or_else(|fault| panic!("{}: {}", op.name, fault.message))
    }

    fn ty(&self, val: Val) -> &Ty {
        &self.nodes[val.node as usize].outs[val.out as usize]
    }
}
