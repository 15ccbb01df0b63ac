//! What decides the plan of an eager op.

use super::Arg;
use fuse_compiler::op::{Attr, Literal, Op};
use fuse_compiler::types::{DType, Dim};
use std::hash::{Hash, Hasher};

/// Everything about a call that its plan depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// The op.
    pub op: Op,
    /// The operands, in order.
    pub args: Vec<Operand>,
    /// The other parameters. Sizes are 0 here and come with the call.
    pub attrs: Vec<Attr>,
}

/// What a plan depends on of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// A tensor of this element type and rank.
    Tensor(DType, usize),
    /// A host scalar of this element type.
    Scalar(DType),
}

impl Key {
    /// The key of a call, and the sizes among its attributes, in order.
    pub fn of(op: Op, args: &[Arg], attrs: &[Attr]) -> (Key, Vec<i64>) {
        let mut sizes = Vec::new();
        let attrs = attrs.iter().map(|attr| without_sizes(attr, &mut sizes)).collect();
        (Key { op, args: args.iter().map(Operand::of).collect(), attrs }, sizes)
    }

    /// Whether it is the key of a call.
    pub fn is_of(&self, op: &str, args: &[Arg], attrs: &[Attr]) -> bool {
        let alike = self.args.len() == args.len() && self.attrs.len() == attrs.len() && self.op.name == op;
        alike
            && self.args.iter().zip(args).all(|(own, arg)| *own == Operand::of(arg))
            && self.attrs.iter().zip(attrs).all(|(own, attr)| same_but_sizes(own, attr))
    }
}

/// The sizes among the attributes of a call, in order.
pub(super) fn sizes_of(attrs: &[Attr]) -> Vec<i64> {
    let mut sizes = Vec::new();
    for attr in attrs {
        if let Attr::Dim(_) | Attr::Dims(_) = attr {
            without_sizes(attr, &mut sizes);
        }
    }
    sizes
}

fn same_but_sizes(own: &Attr, attr: &Attr) -> bool {
    match (own, attr) {
        (Attr::Dim(_), Attr::Dim(_)) => true,
        (Attr::Dims(own), Attr::Dims(dims)) => own.len() == dims.len(),
        _ => own == attr,
    }
}

impl Operand {
    fn of(arg: &Arg) -> Operand {
        match arg {
            Arg::Tensor(tensor) => Operand::Tensor(tensor.dtype(), tensor.shape().len()),
            Arg::Scalar(_, dtype) => Operand::Scalar(*dtype),
        }
    }
}

impl Key {
    /// For each operand which input of the graph it is, if it is a tensor.
    pub fn inputs(&self) -> Vec<Option<u32>> {
        let mut next = 0..;
        let input = |operand: &Operand| match operand {
            Operand::Tensor(..) => next.next(),
            Operand::Scalar(_) => None,
        };
        self.args.iter().map(input).collect()
    }
}

/// An attribute with its sizes taken out.
fn without_sizes(attr: &Attr, sizes: &mut Vec<i64>) -> Attr {
    let mut take = |dim: &Dim| match dim {
        Dim::Const(size) => {
            sizes.push(*size);
            Dim::Const(0)
        }
        symbolic => unreachable!("an eager call has known sizes, not {symbolic}"),
    };
    match attr {
        Attr::Dim(dim) => Attr::Dim(take(dim)),
        Attr::Dims(dims) => Attr::Dims(dims.iter().map(take).collect()),
        other => other.clone(),
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.op.hash(state);
        self.args.hash(state);
        self.attrs.iter().for_each(|attr| hash_attr(attr, state));
    }
}

/// Attributes hold floats, so their bits are hashed.
fn hash_attr<H: Hasher>(attr: &Attr, state: &mut H) {
    std::mem::discriminant(attr).hash(state);
    match attr {
        Attr::Int(k) => k.hash(state),
        Attr::Ints(list) => list.hash(state),
        Attr::Float(x) => x.to_bits().hash(state),
        Attr::Bool(b) => b.hash(state),
        Attr::Dim(dim) => dim.hash(state),
        Attr::Dims(dims) => dims.hash(state),
        Attr::DType(dtype) => dtype.hash(state),
        Attr::Lit(Literal::Float(x)) => x.to_bits().hash(state),
        Attr::Lit(Literal::Int(k)) => k.hash(state),
        Attr::Lit(Literal::Bool(b)) => b.hash(state),
    }
}
