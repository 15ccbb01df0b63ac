//! What nodes are made of beside their op: values, attributes, constants.

use crate::types::{DType, Dim};
use serde::{Deserialize, Serialize};

/// A value of a graph: one result of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Val {
    /// The node.
    pub node: u32,
    /// Which of its results.
    pub out: u32,
}

/// An attribute of a node: a parameter that is no operand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Attr {
    /// A host integer known at compile time: an axis, a count.
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

impl Attr {
    /// The integer of an `Int`.
    pub fn int(&self) -> i64 {
        match self {
            Attr::Int(k) => *k,
            other => panic!("{other:?} is no integer"),
        }
    }

    /// The integers of an `Ints`.
    pub fn ints(&self) -> &[i64] {
        match self {
            Attr::Ints(list) => list,
            other => panic!("{other:?} is no list of integers"),
        }
    }

    /// The flag of a `Bool`.
    pub fn flag(&self) -> bool {
        match self {
            Attr::Bool(flag) => *flag,
            other => panic!("{other:?} is no flag"),
        }
    }

    /// The formula of a `Dim`, or of a known integer.
    pub fn dim(&self) -> Dim {
        match self {
            Attr::Dim(dim) => dim.clone(),
            Attr::Int(k) => Dim::Const(*k),
            other => panic!("{other:?} is no size"),
        }
    }

    /// The formulas of a `Dims`.
    pub fn dims(&self) -> &[Dim] {
        match self {
            Attr::Dims(dims) => dims,
            other => panic!("{other:?} is no list of sizes"),
        }
    }

    /// The element type of a `DType`.
    pub fn dtype(&self) -> DType {
        match self {
            Attr::DType(dtype) => *dtype,
            other => panic!("{other:?} is no element type"),
        }
    }

    /// The constant of a `Lit`.
    pub fn literal(&self) -> Literal {
        match self {
            Attr::Lit(literal) => *literal,
            other => panic!("{other:?} is no constant"),
        }
    }
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
