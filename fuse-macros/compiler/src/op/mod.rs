//! The op table: one row per op, read by every stage, by both back ends, by the runtime's eager methods and by the tests.
//!
//! Adding an op is adding a row. A row that other files would have to name again is missing a column.
//!
//! A call becomes a node like this: the receiver and every parameter of kind `Operand`, `Tensor`, `TensorOf`, `Mask`,
//! `Tensors`, `Scalar`, `ScalarOf` or `Branch` become operands, in order; every other parameter becomes an attribute, in
//! order. `Device` becomes neither. A row with [`Call::Function`] and no tensor operand has the element type of its result
//! as one more attribute at the end.

mod arithmetic;
mod attention;
mod attr;
mod bits;
mod build;
mod compare;
mod create;
mod float;
mod gradient;
mod handle;
pub mod helpers;
mod host;
mod index;
mod join;
mod lone;
mod loss;
mod matmul;
pub mod methods;
mod norm;
mod num;
mod reduce;
pub mod rules;
mod slopes;
mod source;
#[cfg(test)]
mod tests;
mod unbroadcast;
mod views;

pub use attr::{Attr, Literal, Val};
pub use build::{Along, Build, Ops};
pub use gradient::{Gradient, Pull, Pulled};
pub use handle::{Op, table};
pub use num::Num;
pub use rules::{Check, Fault, Relation, Rules, with_names};

use crate::types::{DType, Ty};
use serde::{Deserialize, Serialize};

/// The rows by family, in the order of the documentation.
fn families() -> [&'static [OpInfo]; 15] {
    [
        arithmetic::ROWS,
        float::ROWS,
        compare::ROWS,
        bits::ROWS,
        reduce::ROWS,
        norm::ROWS,
        loss::ROWS,
        matmul::ROWS,
        attention::ROWS,
        views::ROWS,
        join::ROWS,
        index::ROWS,
        create::ROWS,
        host::ROWS,
        source::ROWS,
    ]
}

/// One row of the op table.
pub struct OpInfo {
    /// The name users write, PyTorch's.
    pub name: &'static str,
    /// One sentence for the docs, without the final full stop.
    pub doc: &'static str,
    /// How users call it.
    pub call: Call,
    /// The Rust operator that means it, if one does.
    pub operator: Option<&'static str>,
    /// How the op is lowered.
    pub class: Class,
    /// What follows the receiver in a call, in order.
    pub params: &'static [Param],
    /// The element types the receiver may have.
    pub accepts: Accepts,
    /// The type rule; [`OpInfo::types`] is the way to ask it.
    pub infer: Infer,
    /// The text, values and algebra of an elementwise op.
    pub scalar: Option<Scalar>,
    /// The graph of simpler ops a composite stands for.
    pub decompose: Option<Decompose>,
    /// How the op is differentiated.
    pub gradient: Gradient,
    /// What else than computing its values the op does.
    pub effect: OpEffect,
    /// Whether a receiver of rank 0 acts as one element along an axis, which is PyTorch's rule for most ops along axes.
    pub lone: bool,
    /// Where tests sample float operands.
    pub domain: (f64, f64),
}

/// A type rule: the types of the results from the types of the operands.
pub type Infer = fn(&mut Rules, &[&Ty], &[Attr]) -> Result<Vec<Ty>, Fault>;

/// The graph of simpler ops a composite stands for; gives one value per result.
pub type Decompose = fn(&mut dyn Build, &[Val], &[Attr]) -> Vec<Val>;

impl OpInfo {
    /// What rows start from: a composite method on any element type whose result has the type of its receiver.
    const BASE: OpInfo = OpInfo {
        name: "",
        doc: "",
        call: Call::Method,
        operator: None,
        class: Class::Composite,
        params: &[],
        accepts: Accepts::Any,
        infer: rules::same,
        scalar: None,
        decompose: None,
        gradient: Gradient::Opened,
        effect: OpEffect::Pure,
        lone: false,
        domain: (-4.0, 4.0),
    };

    /// The types of the results, or why the operands do not fit. What must hold at run time is added to `rules`.
    pub fn types(&self, rules: &mut Rules, args: &[&Ty], attrs: &[Attr]) -> Result<Vec<Ty>, Fault> {
        rules.op = self.name;
        if let Some(receiver) = args.first()
            && !self.accepts.contains(receiver.dtype)
        {
            return Err(rules::wrong_dtype(self, receiver.dtype));
        }
        match self.is_of_one(args.first().copied()) {
            true => lone::types(self, rules, args, attrs),
            false => (self.infer)(rules, args, attrs),
        }
    }

    /// The graph of simpler ops that a call stands for; `None` if it is a primitive.
    pub fn open(&self, b: &mut dyn Build, args: &[Val], attrs: &[Attr]) -> Option<Vec<Val>> {
        match self.is_of_one(args.first().map(|&arg| b.ty(arg))) {
            true => Some(lone::open(self, b, args, attrs)),
            false => self.decompose.map(|open| open(b, args, attrs)),
        }
    }

    /// Whether a call with this receiver is no primitive.
    pub fn opens(&self, receiver: Option<&Ty>) -> bool {
        self.decompose.is_some() || self.is_of_one(receiver)
    }

    /// Whether the receiver is a scalar in the place of one element along an axis.
    fn is_of_one(&self, receiver: Option<&Ty>) -> bool {
        self.lone && receiver.is_some_and(|ty| ty.rank() == 0)
    }

    /// Whether a node of this op can meet an index out of range, or an integer division by zero on this element type.
    pub fn may_fault(&self, dtype: DType) -> bool {
        self.effect == OpEffect::MayFault && (self.class != Class::Elementwise || !dtype.is_float())
    }
}

/// How users call an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `x.op(..)`.
    Method,
    /// `x.op(..)` on `&mut self`: the result takes the place of the receiver.
    Mutating,
    /// `Tensor::op(..)`.
    Function,
    /// Written by the compiler only.
    Internal,
}

/// How an op is lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One result element from the operand elements at the same index; operands broadcast. Of these, `cast` alone has no
    /// text of its own, because what it is written as depends on both element types.
    Elementwise,
    /// Another view of the same elements: no arithmetic, often no copy.
    View(ViewKind),
    /// Many elements to one along an axis (attribute: the axis), or all to one (no attribute).
    Reduce(Reduction),
    /// Sequential along one axis. Attribute: the axis.
    Scan(Reduction),
    /// A product of matrices `[batch.., m, k]` and `[batch.., k, n]`; batch axes broadcast. Attribute, optional: an
    /// element type for the result, wider than the operands', to which the sums are rounded instead.
    Matmul,
    /// Operands `x, index`, attribute: an axis. The result has the extents to which `x` with that axis cut down to 1
    /// and `index` broadcast; its elements are those of `x` at the position along the axis that `index` holds.
    Gather,
    /// Operands `x, index, src`, attributes: an axis and whether to add. A copy of `x` in which the element at the
    /// position along the axis that `index` holds is replaced by the element of `src` or has it added, in row-major
    /// order of `src`. `index` broadcasts to `src`; along other axes `src` covers the first positions of `x`.
    Scatter,
    /// Operands `x, src`, attributes: an axis and a start. A copy of `x` in which the positions from `start` on along
    /// the axis are those of `src`.
    Write,
    /// Operands one after the other along an axis. Attribute: the axis.
    Join,
    /// A value without tensor operands.
    Source(Source),
    /// Stands for a graph of simpler ops.
    Composite,
    /// Runs on the host and breaks the graph: `item`, `to_vec`.
    Host,
}

/// What a view does. Attributes are those of the op of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewKind {
    /// Other extents for the same elements in row-major order. Attribute: the extents.
    Reshape,
    /// Axis `k` of the result is axis `order[k]` of the operand. Attribute: the order.
    Permute,
    /// NumPy broadcasting, with leading axes added. Attribute: the extents.
    Expand,
    /// Some positions of one axis. Attributes: axis, start, length.
    Narrow,
    /// A new axis of extent 1. Attribute: where it stands in the result.
    Unsqueeze,
    /// An axis of extent 1 less. Attribute: the axis.
    Squeeze,
    /// Axes reversed. Attribute: the axes.
    Flip,
}

/// Where a value without tensor operands comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The n-th tensor argument. Attribute: n.
    Input,
    /// The n-th host scalar, of rank 0. Attribute: n.
    Scalar,
    /// A constant of rank 0. Attributes: literal, element type.
    Constant,
    /// A size as a number of rank 0. Attributes: formula, element type.
    Size,
    /// The row-major positions of a tensor of these extents, in i64. Attribute: the extents.
    Index,
    /// Uniform f32 in [0, 1). Attribute: the extents.
    Uniform,
    /// Standard normal f32. Attribute: the extents.
    Normal,
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

/// A parameter, for rows to be short.
const fn param(name: &'static str, kind: ParamKind) -> Param {
    Param { name, kind }
}

/// What a parameter of an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor (or scalar) of the receiver's element type that broadcasts with it. A scalar is a value of rank 0 and of
    /// the element type's compute type.
    Operand,
    /// A tensor (or scalar) of any element type, the same in all parameters of this kind.
    Branch,
    /// A tensor of the receiver's element type.
    Tensor,
    /// A tensor of one given element type, such as i64 indices or a bool mask.
    TensorOf(DType),
    /// An optional attention mask: bool, or of the receiver's element type. Left out, there is no operand.
    Mask,
    /// Tensors of one element type, as an array or slice.
    Tensors,
    /// A scalar of the receiver's (or result's) element type: an operand of rank 0 and of its compute type.
    Scalar,
    /// A host number of one given type: an operand of rank 0 and of that type.
    ScalarOf(DType),
    /// An axis, negative from the end: `Attr::Int`.
    Axis,
    /// Several axes: `Attr::Ints`.
    Axes,
    /// A size or a position: `Attr::Dim`.
    Dim,
    /// Several sizes: `Attr::Dims`.
    Dims,
    /// A bound of a range: `Attr::Dim`, or `Attr::Float` for a float known at compile time.
    Bound,
    /// How many results there are, from what the call is assigned to: `Attr::Int`. No argument of the call.
    Count,
    /// A host flag: `Attr::Bool`.
    Bool,
    /// One of the variants of an enum of the prelude, by its position: `Attr::Int`.
    Choice(&'static str, &'static [&'static str]),
    /// An element type, written as a type argument: `Attr::DType`.
    DType,
    /// A device, always the last argument.
    Device,
}

impl ParamKind {
    /// Whether the argument becomes an operand of the node, rather than an attribute.
    pub fn is_operand(self) -> bool {
        use ParamKind::*;
        matches!(self, Operand | Branch | Tensor | TensorOf(_) | Mask | Tensors | Scalar | ScalarOf(_))
    }
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
    /// What products of matrices are made of: floats, integers and fp8.
    Factor,
    /// fp8.
    Float8,
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
            Accepts::Number => !matches!(dtype, DType::Bool | DType::F8E4M3),
            Accepts::Factor => dtype != DType::Bool,
            Accepts::Float8 => dtype == DType::F8E4M3,
            Accepts::Int => dtype.is_int(),
            Accepts::Bits => dtype.is_int() || dtype == DType::Bool,
            Accepts::Bool => dtype == DType::Bool,
        }
    }
}

/// The elementwise columns.
pub struct Scalar {
    /// CUDA C++ over `{0}`, `{1}`, ... in the compute type; may call functions of the table of [`helpers`]. What is put
    /// in the place of `{0}` is a name or stands in parentheses. `{T}` is the element type.
    pub cuda: &'static str,
    /// Rust over `{0}`, `{1}`, ... in the compute type; functions of the runtime's `math` module are written `m::name`.
    pub rust: &'static str,
    /// The two texts for integers, where they differ: `(cuda, rust)`.
    pub int: Option<(&'static str, &'static str)>,
    /// The reference value.
    pub eval: fn(&[Num]) -> Num,
    /// Facts the optimiser may use.
    pub facts: &'static [Fact],
    /// Whether the op costs more than a few instructions an element, so that it is not worth computing twice.
    pub heavy: bool,
    /// Whether a zero in operand 1 is a fault on integers. The text itself then gives 0.
    pub zero_fault: bool,
}

impl Scalar {
    const BASE: Scalar =
        Scalar { cuda: "", rust: "", int: None, eval: |x| x[0], facts: &[], heavy: false, zero_fault: false };

    /// The CUDA text for operands of this element type.
    pub fn cuda_for(&self, dtype: DType) -> &'static str {
        self.int.filter(|_| dtype.is_int()).map_or(self.cuda, |(cuda, _)| cuda)
    }

    /// The Rust text for operands of this element type.
    pub fn rust_for(&self, dtype: DType) -> &'static str {
        self.int.filter(|_| dtype.is_int()).map_or(self.rust, |(_, rust)| rust)
    }
}

/// An algebraic fact about an elementwise op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// `f(a, b) = f(b, a)`, bit for bit but for NaN payloads.
    Commutative,
    /// `f(x, c) = x` for this constant, on every float including signed zeros, NaN and infinities.
    RightIdentity(f64),
    /// `f(x, c) = x` for this constant, on integers only.
    RightIdentityInt(i64),
    /// `f(f(x)) = x`.
    Involution,
    /// `f(f(x)) = f(x)`.
    Idempotent,
    /// Exactly rounded by IEEE 754 (or exact on integers), so constants may be folded through it.
    Exact,
}

/// What else than computing its values an op does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpEffect {
    /// Nothing.
    Pure,
    /// Draws random numbers, in program order.
    Rng,
    /// May meet an index out of range or an integer division by zero; [`OpInfo::may_fault`] says on which element types.
    MayFault,
}
