//! Expressions: tensor ops go into the graph being built, shape arithmetic becomes formulas, the rest is host code.

use super::Walker;
use super::call::Call;
use super::hoist::value_reads;
use super::names::{Name, Names, as_ident, mentions};
use super::operand::Operand;
use super::syntax::{is_compound, strip};
use super::types::HostTy;
use super::value::{Maker, Value};
use crate::diag::BreakKind;
use crate::op::Op;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{BinOp, Expr, ExprBinary, ExprLit, ExprUnary, Lit, UnOp};

/// Why an expression does not simply have a value.
pub enum Stop {
    /// Host code has to run: the graph ends before it.
    Break(BreakKind, TokenStream, String),
    /// A host flag decides between two graphs.
    Flag(Box<Expr>),
    /// rustc rejects it, and says so at the original.
    Silent,
}

/// The value of an expression, or why it has none.
pub type Eval<T> = Result<T, Stop>;

impl Stop {
    /// A break at these tokens.
    pub fn at(kind: BreakKind, at: &impl ToTokens, reason: impl Into<String>) -> Stop {
        Stop::Break(kind, at.to_token_stream(), reason.into())
    }
}

impl Walker<'_> {
    /// The value of an expression. Nothing is emitted for host code: `Value::Host` says that the expression is that.
    pub fn eval(&mut self, expr: &Expr, expected: &HostTy) -> Eval<Value> {
        match strip(expr) {
            Expr::Lit(literal) => Ok(self.literal(literal)),
            Expr::Path(_) => Ok(self.path(expr)),
            Expr::Reference(reference) if reference.mutability.is_none() => {
                Ok(self.eval(&reference.expr, expected.behind_refs())?.borrowed())
            }
            Expr::Reference(reference) => {
                self.host_or(expr, BreakKind::WRITE, &reference.expr, "is borrowed exclusively")
            }
            Expr::Unary(unary) => self.unary(expr, unary),
            Expr::Binary(binary) if !is_compound(binary) => self.binary(expr, binary),
            Expr::MethodCall(call) => self.method(expr, call, expected),
            Expr::Call(call) => self.call(expr, call, expected),
            Expr::Tuple(tuple) => Ok(Value::Tuple(self.parts(&tuple.elems, expected)?)),
            Expr::Array(array) => {
                let parts = self.parts(&array.elems, expected)?;
                let are_others = array.elems.iter().any(|elem| self.is_other_integer(elem));
                Ok(Value::Array(if are_others { parts } else { self.sizes(parts) }))
            }
            Expr::Index(_) | Expr::Field(_) => self.projection(expr),
            Expr::Cast(_) => match self.dim(expr) {
                Some(dim) => Ok(Value::Dim(dim)),
                None => self.host(expr),
            },
            Expr::Macro(mac) => self.macro_call(expr, mac),
            Expr::Try(inner) => match self.eval(&inner.expr, &HostTy::Unknown)? {
                Value::Host(_) => Ok(Value::Host(HostTy::Unknown)),
                _ => Err(Stop::Silent),
            },
            Expr::Struct(literal) if literal.rest.is_none() && self.mentions_tensor(expr) => {
                let fields: Vec<_> = literal.fields.iter().map(|field| field.member.clone()).collect();
                let parts = self.parts(literal.fields.iter().map(|field| &field.expr), &HostTy::Unknown)?;
                Ok(Value::Made(Maker::Struct(literal.path.to_token_stream(), fields), parts))
            }
            Expr::Closure(_) => self.host_with(expr, BreakKind::CLOSURE, "a closure uses tensors"),
            Expr::Unsafe(_) | Expr::Async(_) | Expr::Const(_) | Expr::Await(_) => {
                self.host_with(expr, BreakKind::BLOCK, "tensors are used in a block that fuse does not look into")
            }
            _ => self.host(expr),
        }
    }

    /// Whether an expression reads a variable that is or holds a tensor.
    pub fn mentions_tensor(&self, expr: &Expr) -> bool {
        self.any_tensor(&value_reads(self, expr))
    }

    /// Whether one of these variables is or holds a tensor.
    pub fn any_tensor(&self, names: &Names) -> bool {
        names.iter().any(|name| self.var(name).is_some_and(|var| var.value.has_tensor()))
    }

    /// Host code that must not hold tensors.
    pub fn host(&mut self, expr: &Expr) -> Eval<Value> {
        self.host_with(expr, BreakKind::HOST, "host code uses tensors")
    }

    /// Host code, if it reads no tensor; else a break of this kind.
    pub fn host_with(&mut self, expr: &Expr, kind: BreakKind, reason: &str) -> Eval<Value> {
        match self.mentions_tensor(expr) {
            true => Err(Stop::at(kind, expr, reason)),
            false if self.comes_from_tensors(expr) => Ok(Value::Host(HostTy::TensorLike)),
            false => Ok(Value::Host(HostTy::Unknown)),
        }
    }

    /// The same, with a reason about a part of it.
    pub fn host_or(&mut self, expr: &Expr, kind: BreakKind, subject: &Expr, verb: &str) -> Eval<Value> {
        let reason = format!("`{}` {verb}", text(subject));
        self.host_with(expr, kind, &reason)
    }

    fn literal(&mut self, literal: &ExprLit) -> Value {
        match &literal.lit {
            Lit::Float(float) if float.suffix().is_empty() => Value::Float(float.base10_digits().to_owned()),
            Lit::Int(int) if int.suffix().is_empty() => {
                int.base10_parse().map_or(Value::Host(HostTy::Unknown), |k: i64| Value::Dim(k.into()))
            }
            Lit::Bool(flag) => Value::Bool(flag.value),
            _ => Value::Host(HostTy::Unknown),
        }
    }

    fn path(&mut self, expr: &Expr) -> Value {
        let known = as_ident(expr).and_then(|ident| self.var(&Name::of(ident))).map(|var| var.value.clone());
        match known {
            Some(Value::Host(HostTy::Size)) | None => self.dim(expr).map_or(Value::Host(HostTy::Unknown), Value::Dim),
            Some(value) => value,
        }
    }

    fn unary(&mut self, expr: &Expr, unary: &ExprUnary) -> Eval<Value> {
        if let UnOp::Deref(_) = unary.op {
            return match self.eval(&unary.expr, &HostTy::Unknown)? {
                Value::Tensor { key, .. } => Ok(Value::Tensor { key, by_ref: false }),
                Value::Host(_) => Ok(Value::Host(HostTy::Unknown)),
                other => Ok(other),
            };
        }
        if let Some(dim) = self.dim(expr) {
            return Ok(Value::Dim(dim));
        }
        let symbol = if matches!(unary.op, UnOp::Neg(_)) { "-" } else { "!" };
        match self.eval(&unary.expr, &HostTy::Unknown)? {
            Value::Tensor { key, .. } => {
                let operand = (Operand::Tensor(key), unary.expr.as_ref());
                self.apply(Op::operator(symbol, 1).ok_or(Stop::Silent)?, Call::of(expr, Some(operand), vec![]))
            }
            Value::Float(text) if symbol == "-" => Ok(Value::Float(match text.strip_prefix('-') {
                Some(positive) => positive.to_owned(),
                None => format!("-{text}"),
            })),
            Value::Bool(flag) => Ok(Value::Bool(!flag)),
            Value::Poison => Ok(Value::Poison),
            Value::Host(ty) | Value::Captured(_, ty) if self.may_be_tensor(&unary.expr, &ty) => {
                self.host(expr)?;
                Ok(Value::Host(HostTy::TensorLike))
            }
            _ => self.host(expr),
        }
    }

    fn binary(&mut self, expr: &Expr, binary: &ExprBinary) -> Eval<Value> {
        if let Some(dim) = self.dim(expr) {
            return Ok(Value::Dim(dim));
        }
        if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) {
            // The right side may not run, so what it computes is no part of a graph.
            let left = self.eval(&binary.left, &HostTy::Unknown)?;
            return if left.has_tensor() { Err(Stop::Silent) } else { self.host(expr) };
        }
        self.operation(expr, &binary.left, &symbol(&binary.op), &binary.right)
    }

    /// `left op right`, also of a compound assignment.
    pub fn operation(&mut self, whole: &Expr, left: &Expr, symbol: &str, right: &Expr) -> Eval<Value> {
        if let Some(read) = self.scalar_read(whole) {
            return Err(self.read_stop(&read));
        }
        let first = self.operand(left)?;
        let held = self.hold(&first);
        let second = self.operand(right);
        self.release(held);
        let second = second?;
        match (&first, &second) {
            (Operand::Poison, _) | (_, Operand::Poison) => Ok(Value::Poison),
            (Operand::Unknown, other) | (other, Operand::Unknown) if !matches!(other, Operand::Tensor(_)) => {
                self.host(whole)?;
                Ok(Value::Host(HostTy::TensorLike))
            }
            (Operand::Tensor(_), _) | (_, Operand::Tensor(_)) => match Op::operator(symbol, 2) {
                Some(op) => self.apply(op, Call::of(whole, Some((first, left)), vec![(second, right)])),
                None => Err(Stop::at(BreakKind::HOST, whole, format!("`{symbol}` is not a tensor op"))),
            },
            _ => self.host(whole),
        }
    }

    /// The values of the parts of a tuple, array or the like. Host values are read now, for later.
    pub fn parts<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>, expected: &HostTy) -> Eval<Vec<Value>> {
        let before = self.flow.temps.len();
        let mut parts = Vec::new();
        for (k, expr) in exprs.into_iter().enumerate() {
            let ty = match expected {
                HostTy::Tuple(types) => types.get(k).cloned().unwrap_or(HostTy::Unknown),
                HostTy::List(ty) => ty.as_ref().clone(),
                _ => HostTy::Unknown,
            };
            match self.eval(expr, &ty) {
                Ok(Value::Host(known)) => {
                    parts.push(self.capture(expr, if known == HostTy::Unknown { ty } else { known }))
                }
                Ok(Value::Dim(_)) if self.is_other_integer(expr) => parts.push(self.capture_number(expr)),
                Ok(value) => {
                    self.flow.temps.extend(value.tensors());
                    parts.push(value);
                }
                Err(stop) => {
                    self.release(before);
                    return Err(stop);
                }
            }
        }
        self.release(before);
        Ok(parts)
    }

    /// Beside an extent, what else stands in an array is an integer too.
    pub fn sizes(&mut self, parts: Vec<Value>) -> Vec<Value> {
        if !parts.iter().any(|part| matches!(part, Value::Dim(_))) {
            return parts;
        }
        let mut size = |part: Value| match part {
            Value::Captured(local, _) => Value::Dim(self.host_int(local.to_string(), quote!(#local))),
            part => part,
        };
        parts.into_iter().map(&mut size).collect()
    }

    /// An integer of another type than `usize` as the user's own expression, read now.
    pub fn capture_number(&mut self, expr: &Expr) -> Value {
        let number = self.without_queries(expr);
        self.capture(&number, HostTy::Unknown)
    }

    /// Reads a host expression now, for later.
    pub fn capture(&mut self, expr: &Expr, ty: HostTy) -> Value {
        let value = self.host_tokens(expr);
        let local = self.fresh("h");
        self.flow.steps.push(super::program::Step::Capture { local: local.clone(), value });
        match ty.behind_refs() {
            HostTy::Tensor(tensor) => {
                let by_ref = matches!(ty, HostTy::Ref(..));
                let key = self.add_host(*tensor, super::value::Place { tokens: quote!(#local), by_ref, name: None });
                Value::Tensor { key, by_ref }
            }
            _ => Value::Captured(local, ty),
        }
    }

    /// A host expression that mentions no tensors, after the variables it reads are brought up to date.
    pub fn host_tokens(&mut self, expr: &Expr) -> TokenStream {
        let names = mentions(expr);
        self.sync(&names, &names);
        quote!(#expr)
    }
}

/// A binary operator as written, also without the `=` of a compound assignment.
pub fn symbol(op: &BinOp) -> String {
    let written = op.to_token_stream().to_string();
    match written.strip_suffix('=') {
        Some(plain) if !["=", "!", "<", ">"].contains(&plain) => plain.to_owned(),
        _ => written,
    }
}

/// An expression as the user wrote it, on one line.
pub fn text(tokens: &impl ToTokens) -> String {
    crate::diag::place(tokens).text
}
