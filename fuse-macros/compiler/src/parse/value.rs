//! What capture knows about the values of a function while it reads it.

use super::names::Name;
use super::types::{HostTy, TensorTy};
use crate::op::Val;
use crate::types::{Dim, Ty};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// A tensor, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TensorKey(pub usize);

/// A tensor: its type and where it is.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Element type and extents, in symbols of the function.
    pub ty: Ty,
    /// Where it is.
    pub home: Home,
}

impl TensorInfo {
    /// Element type and rank.
    pub fn tensor_ty(&self) -> TensorTy {
        TensorTy { dtype: self.ty.dtype, rank: self.ty.rank() }
    }
}

/// Where a tensor is.
#[derive(Clone, Debug)]
pub enum Home {
    /// In the graph being built.
    Pending(Val),
    /// In a variable or place of the emitted code.
    Host(Place),
}

/// A place of the emitted code that holds a tensor.
#[derive(Clone, Debug)]
pub struct Place {
    /// The expression.
    pub tokens: TokenStream,
    /// Whether the expression is a reference to the tensor.
    pub by_ref: bool,
    /// The user's variable it reads.
    pub name: Option<Name>,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor, or a reference to one.
    Tensor {
        /// Which.
        key: TensorKey,
        /// Whether it is a reference.
        by_ref: bool,
    },
    /// A host integer as a formula.
    Dim(Dim),
    /// A float written out, with its sign.
    Float(String),
    /// A bool written out.
    Bool(bool),
    /// A tuple.
    Tuple(Vec<Value>),
    /// An array.
    Array(Vec<Value>),
    /// A value that holds others: `Some(y)`, `vec![a, b]`, `Output { y }`.
    Made(Maker, Vec<Value>),
    /// A host value in a variable of the emitted code.
    Captured(Ident, HostTy),
    /// A host value; the emitted code has the user's variable, or the user's expression stands for it.
    Host(HostTy),
    /// Declared, not yet assigned.
    Unset,
    /// The result of a mistake that was reported.
    Poison,
}

impl Value {
    /// Every tensor in it.
    pub fn tensors(&self) -> Vec<TensorKey> {
        match self {
            Value::Tensor { key, .. } => vec![*key],
            Value::Tuple(parts) | Value::Array(parts) | Value::Made(_, parts) => {
                parts.iter().flat_map(Value::tensors).collect()
            }
            _ => vec![],
        }
    }

    /// Whether it is, or holds, a tensor.
    pub fn has_tensor(&self) -> bool {
        match self {
            Value::Tensor { .. } => true,
            Value::Tuple(parts) | Value::Array(parts) | Value::Made(_, parts) => parts.iter().any(Value::has_tensor),
            Value::Host(ty) | Value::Captured(_, ty) => ty.has_tensor(),
            _ => false,
        }
    }

    /// Whether it is, or holds, a host value in a variable of the emitted code.
    pub fn has_captured(&self) -> bool {
        match self {
            Value::Captured(..) => true,
            Value::Tuple(parts) | Value::Array(parts) | Value::Made(_, parts) => parts.iter().any(Value::has_captured),
            _ => false,
        }
    }

    /// Whether it is a number or flag that capture knows, or a group of such.
    pub fn is_number(&self) -> bool {
        match self {
            Value::Dim(_) | Value::Float(_) | Value::Bool(_) => true,
            Value::Tuple(parts) | Value::Array(parts) => !parts.is_empty() && parts.iter().all(Value::is_number),
            _ => false,
        }
    }

    /// The same value behind a reference.
    pub fn borrowed(self) -> Value {
        match self {
            Value::Tensor { key, .. } => Value::Tensor { key, by_ref: true },
            other => other,
        }
    }
}

/// What puts parts together.
#[derive(Clone, Debug)]
pub enum Maker {
    /// A function that only builds a value: `Ok`, `Some`.
    Call(TokenStream),
    /// `vec![..]`.
    Vec,
    /// A struct literal: its path and fields.
    Struct(TokenStream, Vec<syn::Member>),
}

impl Maker {
    /// The expression.
    pub fn tokens(&self, parts: Vec<TokenStream>) -> TokenStream {
        match self {
            Maker::Call(func) => quote!(#func(#(#parts),*)),
            Maker::Vec => quote!(::std::vec![#(#parts),*]),
            Maker::Struct(path, fields) => quote!(#path { #(#fields: #parts),* }),
        }
    }
}

/// A variable of the user.
#[derive(Clone, Debug)]
pub struct Var {
    /// Its name.
    pub name: Name,
    /// The user's identifier.
    pub ident: Ident,
    /// What it holds now.
    pub value: Value,
    /// Whether the emitted code has a variable of this name.
    pub bound: bool,
    /// Whether the emitted variable holds an older value.
    pub dirty: bool,
    /// Whether it was declared `mut`.
    pub mutable: bool,
    /// Whether it is a `&mut Tensor`, so that a new value is written through it.
    pub exclusive: bool,
    /// Whether its type is unknown because it comes from a call with tensors, and no annotation says it.
    pub needs_annotation: bool,
    /// What it is as a formula, if it is an integer of another type than `usize`: the emitted code has the user's own.
    pub formula: Option<Dim>,
    /// What to bind it to when host code first mentions it.
    pub source: Option<TokenStream>,
}

impl Var {
    /// A variable that the emitted code has.
    pub fn bound(ident: &Ident, value: Value, mutable: bool) -> Var {
        Var { bound: true, ..Var::unbound(ident, value, mutable) }
    }

    /// Whether it may be a tensor of an element type and rank that nothing tells.
    pub fn has_open_type(&self) -> bool {
        self.needs_annotation || matches!(&self.value, Value::Host(ty) if ty.is_open())
    }

    /// A variable that the emitted code does not have yet.
    pub fn unbound(ident: &Ident, value: Value, mutable: bool) -> Var {
        Var {
            name: Name::of(ident),
            ident: ident.clone(),
            value,
            bound: false,
            dirty: false,
            mutable,
            exclusive: false,
            needs_annotation: false,
            formula: None,
            source: None,
        }
    }
}
