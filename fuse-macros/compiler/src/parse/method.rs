//! Calls of methods, functions and macros: which are ops, which only build a value, and which are code of the host.

use super::Walker;
use super::closure::differentiation;
use super::eval::{Eval, Stop, text};
use super::names::{Name, as_ident};
use super::syntax::{FORMAT_MACROS, SAME_VALUE, only_of_tensors, strip};
use super::types::{HostTy, TensorTy};
use super::value::{Maker, Value};
use crate::diag::BreakKind;
use crate::op::{self, Class, Op, OpEffect, ParamKind};
use crate::types::DType;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprCall, ExprMacro, ExprMethodCall, Token};

impl Walker<'_> {
    /// A method: an op, a question about the shape, or code of the host.
    pub fn method(&mut self, whole: &Expr, call: &ExprMethodCall, expected: &HostTy) -> Eval<Value> {
        if let Some(value) = self.shape_query(whole) {
            return Ok(value);
        }
        let name = call.method.to_string();
        let receiver = self.eval(&call.receiver, &HostTy::Unknown)?;
        let receiver = match self.made(&call.receiver, receiver) {
            Value::Tensor { key, .. } => key,
            Value::Poison => return Ok(Value::Poison),
            Value::Host(_) | Value::Captured(..) if only_of_tensors(&name) => {
                return self.unknown_receiver(whole, call);
            }
            Value::Host(ty) | Value::Captured(_, ty)
                if Op::find(&name).is_some() && *ty.behind_refs() == HostTy::TensorLike =>
            {
                return self.like_its_receiver(whole);
            }
            Value::Float(_) | Value::Dim(_) | Value::Bool(_) | Value::Host(_) | Value::Captured(..) => {
                return self.host_or(whole, BreakKind::CALL, whole, "hands a tensor to code fuse cannot see into");
            }
            _ => return self.host(whole),
        };
        if SAME_VALUE.contains(&name.as_str()) && call.args.is_empty() {
            return Ok(Value::Tensor { key: receiver, by_ref: false });
        }
        match Op::find(&name) {
            Some(op) if op.class == Class::Host => Err(host_read(whole, op)),
            Some(op) if op.call == op::Call::Method => {
                let count = self.expected_count;
                let args = call.args.iter().collect();
                let type_arg = self.type_argument(call, expected);
                self.named_op(op, whole, Some((receiver, &call.receiver)), args, type_arg, count)
            }
            Some(op) if op.call == op::Call::Mutating => Err(Stop::at(
                BreakKind::WRITE,
                whole,
                format!("`{name}` writes to `{}` in place", text(&call.receiver)),
            )),
            _ => Err(Stop::at(BreakKind::CALL, whole, format!("`{name}` is not an op that fuse knows"))),
        }
    }

    /// An op on what may be a tensor gives what may be one.
    fn like_its_receiver(&mut self, whole: &Expr) -> Eval<Value> {
        self.host_or(whole, BreakKind::CALL, whole, "hands a tensor to code fuse cannot see into")?;
        Ok(Value::Host(HostTy::TensorLike))
    }

    /// A tensor method on a value whose type is not known.
    fn unknown_receiver(&mut self, whole: &Expr, call: &ExprMethodCall) -> Eval<Value> {
        if self.report_unknown(&call.receiver, None) {
            return Ok(Value::Poison);
        }
        self.host_or(whole, BreakKind::TYPE, &call.receiver, "has a type that is not known here")?;
        Ok(Value::Host(HostTy::TensorLike))
    }

    /// A function: an op, one that only builds a value, or code of the host.
    pub fn call(&mut self, whole: &Expr, call: &ExprCall, expected: &HostTy) -> Eval<Value> {
        if let Some((params, function)) = differentiation(call)
            && self.mentions_tensor(whole)
        {
            return self.differentiated(whole, params, function);
        }
        if let Some((op, type_arg)) = self.associated(&call.func) {
            let type_arg = type_arg.or_else(|| tensor_dtype(expected)).or_else(|| self.dtype_of_values(op, call));
            let draws = op.effect == OpEffect::Rng;
            let made = match op.class {
                Class::Host => Err(host_read(whole, op)),
                _ => self.named_op(op, whole, None, call.args.iter().collect(), type_arg, self.expected_count),
            };
            return match made {
                // A constructor that a graph cannot hold reads no tensors: it runs in its place, a draw in its turn.
                Err(Stop::Break(..)) if !(self.mentions_tensor(whole) || draws && self.has_open_effects()) => {
                    let ty = self.made_type(op, call, type_arg, expected);
                    // What a list is uploaded as is often told by what its elements are.
                    let is_guess = op.class == Class::Host && ty == HostTy::AnyRank;
                    Ok(Value::Host(if is_guess { HostTy::Unknown } else { ty }))
                }
                Err(Stop::Break(..)) if op.class == Class::Host => {
                    self.host_or(whole, BreakKind::CALL, &call.func, "is code that fuse cannot see into")
                }
                other => other,
            };
        }
        if let Some(value) = self.float_constant(call) {
            return Ok(value);
        }
        if is_wrapper(&call.func) && self.mentions_tensor(whole) {
            let inner = match expected {
                HostTy::Option(inner) => inner.as_ref(),
                other => other,
            };
            let parts = self.parts(&call.args, &HostTy::List(Box::new(inner.clone())))?;
            return Ok(Value::Made(Maker::Call(call.func.to_token_stream()), parts));
        }
        self.host_or(whole, BreakKind::CALL, &call.func, "is code that fuse cannot see into")
    }

    /// `Tensor::zeros`, `Tensor::<f32, 2>::zeros`: the op and the element type, if it is written.
    fn associated(&self, func: &Expr) -> Option<(Op, Option<DType>)> {
        let Expr::Path(path) = strip(func) else { return None };
        let segments: Vec<_> = path.path.segments.iter().collect();
        let [.., tensor, name] = segments.as_slice() else { return None };
        if tensor.ident != "Tensor" {
            return None;
        }
        let op = Op::find(&name.ident.to_string()).filter(|op| op.call == op::Call::Function)?;
        let type_arg = match &tensor.arguments {
            syn::PathArguments::AngleBracketed(list) => list.args.first().and_then(|arg| match arg {
                syn::GenericArgument::Type(ty) => self.generics.dtype(ty),
                _ => None,
            }),
            _ => None,
        };
        Some((op, type_arg))
    }

    /// The element type that the values a constructor takes are written with.
    fn dtype_of_values(&self, op: Op, call: &ExprCall) -> Option<DType> {
        let takes_list = op.class == Class::Host;
        let is_value = |kind: ParamKind| matches!(kind, ParamKind::Scalar | ParamKind::Bound);
        let values = call.args.iter().enumerate().filter(|(k, _)| match takes_list {
            true => *k == 0,
            false => op.params.get(*k).is_some_and(|param| is_value(param.kind)),
        });
        values.map(|(_, arg)| arg).find_map(|arg| match (self.generics.literal_dtype(arg), as_ident(strip(arg))) {
            (None, Some(ident)) => match self.var(&Name::of(ident)).map(|var| &var.value) {
                Some(Value::Host(HostTy::Scalar(dtype))) => Some(*dtype),
                Some(Value::Host(ty)) => match ty.behind_refs() {
                    HostTy::List(elem) => match elem.behind_refs() {
                        HostTy::Scalar(dtype) => Some(*dtype),
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            },
            (dtype, _) => dtype,
        })
    }

    /// The type of a constructor's result: its rank is written in the type, the op's own, or that of the list of extents.
    fn made_type(&self, op: Op, call: &ExprCall, dtype: Option<DType>, expected: &HostTy) -> HostTy {
        let extents = || match call.args.iter().nth(usize::from(op.class == Class::Host)).map(strip) {
            Some(Expr::Array(extents)) => Some(extents.elems.len()),
            _ => None,
        };
        let rank = match (expected.behind_refs(), op.params.first().map(|param| param.kind)) {
            (HostTy::Tensor(tensor), _) => Some(tensor.rank),
            (_, Some(ParamKind::Bound)) => Some(1),
            (_, Some(ParamKind::Dim)) => Some(2),
            _ => extents().or_else(|| written_rank(&call.func)),
        };
        match (dtype, rank) {
            (Some(dtype), Some(rank)) => HostTy::Tensor(TensorTy { dtype, rank }),
            _ => HostTy::AnyRank,
        }
    }

    /// A tensor of known type that an expression in the middle of another makes on the host: it is made now.
    pub fn made(&mut self, expr: &Expr, value: Value) -> Value {
        match value {
            Value::Host(ty @ HostTy::Tensor(_)) if matches!(strip(expr), Expr::Call(_)) => self.capture(expr, ty),
            value => value,
        }
    }

    /// `T::from_f64(2.0)` of a generic element type.
    fn float_constant(&mut self, call: &ExprCall) -> Option<Value> {
        let Expr::Path(path) = strip(&call.func) else { return None };
        let segments: Vec<_> = path.path.segments.iter().collect();
        let [ty, name] = segments.as_slice() else { return None };
        if name.ident != "from_f64" || !self.generics.floats.contains(&ty.ident) || call.args.len() != 1 {
            return None;
        }
        match self.eval(&call.args[0], &HostTy::Unknown) {
            // Any other is rounded to what the type turns out to be.
            Ok(Value::Float(text)) if text.parse().is_ok_and(is_exact_in_all) => Some(Value::Float(text)),
            _ => None,
        }
    }

    fn type_argument(&self, call: &ExprMethodCall, expected: &HostTy) -> Option<DType> {
        let written = call.turbofish.as_ref().and_then(|turbofish| turbofish.args.first()).and_then(|arg| match arg {
            syn::GenericArgument::Type(ty) => self.generics.dtype(ty),
            _ => None,
        });
        written.or_else(|| tensor_dtype(expected))
    }

    /// A macro: `vec!` is seen through, any other is code of the host.
    pub fn macro_call(&mut self, whole: &Expr, mac: &ExprMacro) -> Eval<Value> {
        if mac.mac.path.is_ident("vec")
            && self.mentions_tensor(whole)
            && let Ok(elems) = mac.mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        {
            return Ok(Value::Made(Maker::Vec, self.parts(&elems, &HostTy::Unknown)?));
        }
        let name = mac.mac.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let (kind, reason) = match FORMAT_MACROS.contains(&name.as_str()) {
            true => (BreakKind::PRINT, format!("`{name}!` reads a tensor")),
            false => (BreakKind::MACRO, format!("`{name}!` may use any tensor it names")),
        };
        self.host_with(whole, kind, &reason)
    }
}

/// Whether a function only wraps its arguments.
fn is_wrapper(func: &Expr) -> bool {
    match strip(func) {
        Expr::Path(path) => {
            path.path.segments.last().is_some_and(|last| ["Ok", "Some", "Err"].iter().any(|w| last.ident == w))
        }
        _ => false,
    }
}

/// Whether every type of floats has this number: `bf16` keeps 7 bits of a fraction, `f16` the least exponents.
fn is_exact_in_all(number: f64) -> bool {
    let in_range = (2f64.powi(-14)..=65504.0).contains(&number.abs());
    number == 0.0 || (in_range && number.to_bits().trailing_zeros() >= 52 - 7)
}

/// The rank in `Tensor::<f32, 2>::zeros`.
fn written_rank(func: &Expr) -> Option<usize> {
    let Expr::Path(path) = strip(func) else { return None };
    let tensor = path.path.segments.iter().rev().nth(1)?;
    let syn::PathArguments::AngleBracketed(list) = &tensor.arguments else { return None };
    match list.args.iter().nth(1)? {
        syn::GenericArgument::Const(Expr::Lit(literal)) => match &literal.lit {
            syn::Lit::Int(rank) => rank.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// The break of an op that reads values on the host.
fn host_read(whole: &Expr, op: Op) -> Stop {
    let kind = match op.name {
        "item" => BreakKind::ITEM,
        "to_vec" => BreakKind::READ,
        _ => BreakKind::CALL,
    };
    Stop::at(kind, whole, format!("`{}` needs the value on the host", op.name))
}

/// The element type of the tensor that a place is written as.
pub fn tensor_dtype(ty: &HostTy) -> Option<DType> {
    match ty.behind_refs() {
        HostTy::Tensor(tensor) => Some(tensor.dtype),
        _ => None,
    }
}
