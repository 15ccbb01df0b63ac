//! What decompositions are written in.

use super::{Attr, Literal, Op, Val};
use crate::types::{DType, Dim, Ty};

/// What a decomposition builds on; the graph implements it.
pub trait Build {
    /// Adds a node.
    fn push(&mut self, op: Op, args: &[Val], attrs: Vec<Attr>) -> Val;
    /// The type of a value.
    fn ty(&self, val: Val) -> &Ty;
}

/// Short names for building nodes.
pub struct Ops<'a>(pub &'a mut dyn Build);

impl Ops<'_> {
    /// The type of a value.
    pub fn ty(&self, x: Val) -> &Ty {
        self.0.ty(x)
    }

    /// The element type of a value.
    pub fn dtype(&self, x: Val) -> DType {
        self.ty(x).dtype
    }

    /// The number of axes of a value.
    pub fn rank(&self, x: Val) -> usize {
        self.ty(x).rank()
    }

    /// The extents of a value.
    pub fn dims(&self, x: Val) -> Vec<Dim> {
        self.ty(x).dims.clone()
    }

    /// A node of an op without attributes.
    pub fn apply(&mut self, name: &str, args: &[Val]) -> Val {
        self.0.push(Op::named(name), args, vec![])
    }

    /// A node of an op with attributes.
    pub fn with(&mut self, name: &str, args: &[Val], attrs: Vec<Attr>) -> Val {
        self.0.push(Op::named(name), args, attrs)
    }

    /// `a + b`.
    pub fn add(&mut self, a: Val, b: Val) -> Val {
        self.apply("add", &[a, b])
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Val, b: Val) -> Val {
        self.apply("sub", &[a, b])
    }

    /// `a * b`.
    pub fn mul(&mut self, a: Val, b: Val) -> Val {
        self.apply("mul", &[a, b])
    }

    /// `a / b`.
    pub fn div(&mut self, a: Val, b: Val) -> Val {
        self.apply("div", &[a, b])
    }

    /// `if cond { a } else { b }`, element by element.
    pub fn choose(&mut self, cond: Val, a: Val, b: Val) -> Val {
        self.apply("where_cond", &[cond, a, b])
    }

    /// A conversion, unless the value has that element type.
    pub fn cast(&mut self, x: Val, dtype: DType) -> Val {
        if self.dtype(x) == dtype { x } else { self.with("cast", &[x], vec![Attr::DType(dtype)]) }
    }

    /// The value in the type it is computed in.
    pub fn widen(&mut self, x: Val) -> Val {
        self.cast(x, self.dtype(x).compute())
    }

    /// A float constant.
    pub fn float(&mut self, value: f64, dtype: DType) -> Val {
        self.constant(Literal::Float(value), dtype)
    }

    /// An i64 constant.
    pub fn int(&mut self, value: i64) -> Val {
        self.constant(Literal::Int(value), DType::I64)
    }

    /// The zero of an element type.
    pub fn zero(&mut self, dtype: DType) -> Val {
        self.constant(number(0, dtype), dtype)
    }

    /// The one of an element type.
    pub fn one(&mut self, dtype: DType) -> Val {
        self.constant(number(1, dtype), dtype)
    }

    /// A constant of rank 0.
    pub fn constant(&mut self, literal: Literal, dtype: DType) -> Val {
        self.with("constant", &[], vec![Attr::Lit(literal), Attr::DType(dtype)])
    }

    /// A size as a value of rank 0.
    pub fn size(&mut self, dim: Dim, dtype: DType) -> Val {
        self.with("size", &[], vec![Attr::Dim(dim), Attr::DType(dtype)])
    }

    /// An axis of extent 1 before axis `at`.
    pub fn unsqueeze(&mut self, x: Val, at: usize) -> Val {
        self.with("unsqueeze", &[x], vec![Attr::Int(at as i64)])
    }

    /// The value without its axis `at`, which has extent 1.
    pub fn squeeze(&mut self, x: Val, at: usize) -> Val {
        self.with("squeeze", &[x], vec![Attr::Int(at as i64)])
    }

    /// Other extents for the same elements, unless the value has them.
    pub fn reshape(&mut self, x: Val, dims: Vec<Dim>) -> Val {
        if self.ty(x).dims == dims { x } else { self.with("reshape", &[x], vec![Attr::Dims(dims)]) }
    }

    /// The value broadcast to these extents, unless it has them.
    pub fn expand(&mut self, x: Val, dims: Vec<Dim>) -> Val {
        if self.ty(x).dims == dims { x } else { self.with("expand", &[x], vec![Attr::Dims(dims)]) }
    }

    /// The value with its axes in another order.
    pub fn permute(&mut self, x: Val, order: &[usize]) -> Val {
        self.with("permute", &[x], vec![Attr::Ints(order.iter().map(|&axis| axis as i64).collect())])
    }

    /// The value with its last two axes swapped.
    pub fn swap_last(&mut self, x: Val) -> Val {
        let rank = self.rank(x);
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        self.permute(x, &order)
    }

    /// `len` positions of an axis from `start` on, unless that is all of it.
    pub fn narrow(&mut self, x: Val, axis: usize, start: Dim, len: Dim) -> Val {
        if start == Dim::Const(0) && self.ty(x).dims[axis] == len {
            return x;
        }
        self.with("narrow", &[x], vec![Attr::Int(axis as i64), Attr::Dim(start), Attr::Dim(len)])
    }

    /// The positions along one axis as an i64 value that broadcasts with values of this rank.
    pub fn positions(&mut self, extent: Dim, axis: usize, rank: usize) -> Val {
        let flat = self.with("index", &[], vec![Attr::Dims(vec![extent])]);
        (axis + 1..rank).fold(flat, |x, at| self.unsqueeze(x, at - axis))
    }

    /// A reduction along an axis, or of all elements.
    pub fn reduce(&mut self, name: &str, x: Val, along: Along) -> Val {
        match along {
            Along::Axis(axis) => self.with(name, &[x], vec![Attr::Int(axis as i64)]),
            Along::All => self.with(&format!("{name}_all"), &[x], vec![]),
        }
    }

    /// Brings the result of a reduction into a shape that broadcasts with what was reduced.
    pub fn spread(&mut self, x: Val, along: Along) -> Val {
        match along {
            Along::Axis(axis) => self.unsqueeze(x, axis),
            Along::All => x,
        }
    }

    /// How many elements a reduction takes together.
    pub fn count(&self, x: Val, along: Along) -> Dim {
        match along {
            Along::Axis(axis) => self.ty(x).dims[axis].clone(),
            Along::All => self.ty(x).numel(),
        }
    }
}

/// What a reduction goes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// One axis.
    Axis(usize),
    /// All of them.
    All,
}

/// A small whole number as a constant of an element type.
fn number(value: i64, dtype: DType) -> Literal {
    match dtype {
        DType::Bool => Literal::Bool(value != 0),
        int if int.is_int() => Literal::Int(value),
        _ => Literal::Float(value as f64),
    }
}
