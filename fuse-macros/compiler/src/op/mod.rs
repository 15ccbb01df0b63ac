//! The op table: one row per op, read by every stage, by both back ends, by the runtime's eager methods and by the tests.
//!
//! Adding an op is adding a row. A row that other files would have to name again is missing a column.

use crate::types::{DType, Dim, Ty};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

/// One row of the op table.
pub struct OpInfo {
    /// The name users write, PyTorch's.
    pub name: &'static str,
    /// One sentence for the docs, without the final full stop.
    pub doc: &'static str,
    /// How the op is lowered.
    pub class: Class,
    /// What follows the receiver in a call, in order.
    pub params: &'static [Param],
    /// The element types the receiver may have.
    pub accepts: Accepts,
    /// The type rule.
    pub infer: fn(&mut Rules, &[&Ty], &[Attr]) -> Result<Vec<Ty>, Fault>,
    /// The text, values and algebra of an elementwise op.
    pub scalar: Option<Scalar>,
    /// The graph of simpler ops a composite stands for.
    pub decompose: Option<fn(&mut dyn Build, &[Val], &[Attr]) -> Vec<Val>>,
    /// What else than computing its values the op does.
    pub effect: OpEffect,
    /// Where tests sample float operands.
    pub domain: (f64, f64),
}

/// How an op is lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One result element from the operand elements at the same index.
    Elementwise,
    /// Another view of the same elements: no arithmetic, often no copy.
    View,
    /// Many elements to one along some axes.
    Reduce(Reduction),
    /// Sequential along one axis.
    Scan,
    /// A product of matrices, with or without leading batch axes.
    Matmul,
    /// Reads elements at computed positions.
    Gather,
    /// Writes or adds elements at computed positions.
    Scatter,
    /// Joins tensors.
    Join,
    /// A source without tensor operands: inputs, constants, iota, random draws.
    Source,
    /// Stands for a graph of simpler ops.
    Composite,
    /// Runs on the host and breaks the graph: `item`, `to_vec`.
    Host,
}

/// What a reduction combines with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reduction {
    /// Addition, identity 0.
    Sum,
    /// Multiplication, identity 1.
    Prod,
    /// The largest, NaN wins.
    Max,
    /// The smallest, NaN wins.
    Min,
    /// The first index of the largest, the first NaN wins.
    ArgMax,
    /// The first index of the smallest, the first NaN wins.
    ArgMin,
}

/// A parameter of an op after its receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Its name in docs and messages.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
}

/// What a parameter of an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor (or scalar) of the receiver's element type that broadcasts with it.
    Operand,
    /// A tensor of the receiver's element type.
    Tensor,
    /// A tensor of one given element type, such as i64 indices or a bool mask.
    TensorOf(DType),
    /// An optional attention mask.
    Mask,
    /// Tensors of the receiver's element type.
    Tensors,
    /// An axis, negative from the end.
    Axis,
    /// Several axes.
    Axes,
    /// A size or a position.
    Dim,
    /// Several sizes.
    Dims,
    /// A host integer.
    Int,
    /// A host float.
    Float,
    /// A host flag.
    Bool,
    /// A scalar of the receiver's element type.
    Scalar,
    /// An element type, written as a type argument.
    DType,
}

/// The element types a receiver may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Every element type.
    Any,
    /// Floats.
    Float,
    /// Floats and integers.
    Number,
    /// Integers.
    Int,
    /// Integers and bool.
    Bits,
    /// Bool.
    Bool,
}

impl Accepts {
    /// Whether values of this element type may be the receiver.
    pub fn contains(self, dtype: DType) -> bool {
        match self {
            Accepts::Any => true,
            Accepts::Float => dtype.is_float(),
            Accepts::Number => dtype != DType::Bool,
            Accepts::Int => dtype.is_int(),
            Accepts::Bits => dtype.is_int() || dtype == DType::Bool,
            Accepts::Bool => dtype == DType::Bool,
        }
    }
}

/// The elementwise columns.
pub struct Scalar {
    /// CUDA C++ over `{0}`, `{1}`, ... in the compute type; may call helpers of the helper table, whose names start with `fuse_`.
    pub cuda: &'static str,
    /// Rust over `{0}`, `{1}`, ... in the compute type; functions of the runtime's `math` module are written `m::name`.
    pub rust: &'static str,
    /// The reference value.
    pub eval: fn(&[Num]) -> Num,
    /// Facts the optimiser may use.
    pub facts: &'static [Fact],
    /// Whether the op costs more than a few instructions an element, so that it is not worth computing twice.
    pub heavy: bool,
}

/// A value of the reference evaluator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// A float in double precision.
    F(f64),
    /// An integer; the evaluator wraps it to its declared width.
    I(i64),
    /// A bool.
    B(bool),
}

/// An algebraic fact about an elementwise op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// `f(a, b) = f(b, a)`, bit for bit.
    Commutative,
    /// `f(x, c) = x` for this constant, on every float including signed zeros, NaN and infinities.
    RightIdentity(f64),
    /// `f(x, c) = x` for this constant, on integers only.
    RightIdentityInt(i64),
    /// `f(f(x)) = x`.
    Involution,
    /// `f(f(x)) = f(x)`.
    Idempotent,
    /// Exactly rounded by IEEE 754, so constants may be folded through it.
    Exact,
}

/// What else than computing its values an op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpEffect {
    /// Nothing.
    Pure,
    /// Draws random numbers, in program order.
    Rng,
    /// May meet an index out of range or an integer division by zero.
    MayFault,
}

/// A value of a graph: one result of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Val {
    /// The node.
    pub node: u32,
    /// Which of its results.
    pub out: u32,
}

/// An attribute of a node: a parameter that is no tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Attr {
    /// A host integer known at compile time: an axis, an exponent.
    Int(i64),
    /// Several of them.
    Ints(Vec<i64>),
    /// A host float known at compile time.
    Float(f64),
    /// A host flag.
    Bool(bool),
    /// A size or position, possibly symbolic.
    Dim(Dim),
    /// Several of them.
    Dims(Vec<Dim>),
    /// An element type.
    DType(DType),
    /// A constant of the graph.
    Lit(Literal),
}

/// A constant, exact to the bit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Literal {
    /// A float; rounded to the element type where it is used.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
}

impl PartialEq for Literal {
    /// Equal bits, so that -0.0 differs from 0.0 and NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            _ => false,
        }
    }
}

/// Where type rules report what must hold at run time.
#[derive(Default)]
pub struct Rules {
    /// Equalities that could not be decided.
    pub checks: Vec<Check>,
}

/// An equality of extents that is left to run time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// One side.
    pub left: Dim,
    /// The other side.
    pub right: Dim,
    /// Whether 1 on either side is fine too (broadcasting).
    pub broadcast: bool,
    /// The message around the two numbers, with `{left}` and `{right}`.
    pub text: String,
}

/// Why operands do not fit, in the user's words: `message`, then a way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What happened. Operand `k` is written `{k}`, its name is filled in by who knows it.
    pub message: String,
    /// What to do, if there is something.
    pub help: Option<String>,
    /// The operand to point at, if it is one.
    pub operand: Option<usize>,
}

/// What a decomposition builds on; the graph implements it.
pub trait Build {
    /// Adds a node.
    fn push(&mut self, op: Op, args: &[Val], attrs: Vec<Attr>) -> Val;
    /// The type of a value.
    fn ty(&self, val: Val) -> &Ty;
}

/// A handle of a row, compared, printed and stored by name.
#[derive(Clone, Copy)]
pub struct Op(&'static OpInfo);

impl Op {
    /// The row of this name.
    ///
    /// # Panics
    /// If there is none: names come from this crate or have been looked up with [`Op::find`].
    pub fn named(name: &str) -> Op {
        Op::find(name).unwrap_or_else(|| panic!("no op is called `{name}`"))
    }

    /// Looks a row up by name.
    pub fn find(name: &str) -> Option<Op> {
        table().iter().find(|row| row.name == name).map(|row| Op(row))
    }
}

impl Deref for Op {
    type Target = OpInfo;
    fn deref(&self) -> &OpInfo {
        self.0
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Op {}

impl std::hash::Hash for Op {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        Op::find(&name).ok_or_else(|| serde::de::Error::custom(format!("no op is called `{name}`")))
    }
}

/// Every row, in the order of the documentation.
pub fn table() -> &'static [OpInfo] {
    &[]
}
