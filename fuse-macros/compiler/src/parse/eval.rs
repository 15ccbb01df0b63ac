//! Expressions: tensor ops go into the graph being built, shape arithmetic becomes formulas, the rest is host code.

use super::Walker;
use super::call::{Call, Operand};
use super::hoist::value_reads;
use super::names::{Name, Names, as_ident, mentions};
use super::syntax::{FORMAT_MACROS, SAME_VALUE, is_compound, only_of_tensors, strip};
use super::types::{HostTy, TensorTy};
use super::value::{Maker, TensorKey, Value, Var};
use crate::diag::BreakKind;
use crate::op::{self, Class, Op};
use crate::types::DType;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{BinOp, Expr, ExprBinary, ExprCall, ExprLit, ExprMacro, ExprMethodCall, ExprUnary, Lit, Token, UnOp};

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
                Ok(Value::Array(self.sizes(parts)))
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
    fn host(&mut self, expr: &Expr) -> Eval<Value> {
        self.host_with(expr, BreakKind::HOST, "host code uses tensors")
    }

    fn host_with(&mut self, expr: &Expr, kind: BreakKind, reason: &str) -> Eval<Value> {
        match self.mentions_tensor(expr) {
            true => Err(Stop::at(kind, expr, reason)),
            false => Ok(Value::Host(HostTy::Unknown)),
        }
    }

    fn host_or(&mut self, expr: &Expr, kind: BreakKind, subject: &Expr, verb: &str) -> Eval<Value> {
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
            (Operand::Tensor(_), _) | (_, Operand::Tensor(_)) => match Op::operator(symbol, 2) {
                Some(op) => self.apply(op, Call::of(whole, Some((first, left)), vec![(second, right)])),
                None => Err(Stop::at(BreakKind::HOST, whole, format!("`{symbol}` is not a tensor op"))),
            },
            _ => self.host(whole),
        }
    }

    /// Keeps a tensor alive while the rest of its expression is evaluated.
    pub fn hold(&mut self, operand: &Operand) -> usize {
        let before = self.flow.temps.len();
        if let Operand::Tensor(key) = operand {
            self.flow.temps.push(*key);
        }
        before
    }

    /// Ends what [`Walker::hold`] began.
    pub fn release(&mut self, before: usize) {
        self.flow.temps.truncate(before);
    }

    fn parts<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>, expected: &HostTy) -> Eval<Vec<Value>> {
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
    fn sizes(&mut self, parts: Vec<Value>) -> Vec<Value> {
        if !parts.iter().any(|part| matches!(part, Value::Dim(_))) {
            return parts;
        }
        let mut size = |part: Value| match part {
            Value::Captured(local, _) => Value::Dim(self.host_int(local.to_string(), quote!(#local))),
            part => part,
        };
        parts.into_iter().map(&mut size).collect()
    }

    /// Reads a host expression now, for later.
    fn capture(&mut self, expr: &Expr, ty: HostTy) -> Value {
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

    fn projection(&mut self, expr: &Expr) -> Eval<Value> {
        if let Some(value) = self.shape_query(expr) {
            return Ok(value);
        }
        match self.typed_place(expr) {
            Some((tokens, ty)) if ty.has_tensor() => Ok(self.read_place(tokens, &ty).unwrap_or(Value::Host(ty))),
            Some((_, ty)) => Ok(Value::Host(ty)),
            None => self.host(expr),
        }
    }

    /// The type of a host variable, or of a part of one, if the signature tells it.
    pub fn place_type(&mut self, expr: &Expr) -> Option<HostTy> {
        match strip(expr) {
            Expr::Reference(reference) if reference.mutability.is_none() => {
                self.place_type(&reference.expr).map(|ty| HostTy::Ref(Box::new(ty), false))
            }
            Expr::MethodCall(call) if call.args.is_empty() && call.method == "as_ref" => {
                match self.place_type(&call.receiver)?.behind_refs() {
                    HostTy::Option(inner) => Some(HostTy::Option(Box::new(HostTy::Ref(inner.clone(), false)))),
                    _ => None,
                }
            }
            other => {
                let saved = self.save();
                let ty = self.typed_place(other).map(|(_, ty)| ty);
                self.restore(saved);
                ty.filter(|ty| *ty != HostTy::Unknown)
            }
        }
    }

    /// A part of a host variable whose type the signature tells: `pair.0`, `weights[i]`.
    fn typed_place(&mut self, expr: &Expr) -> Option<(TokenStream, HostTy)> {
        match strip(expr) {
            Expr::Path(_) => {
                let ident = as_ident(expr)?;
                match &self.var(&Name::of(ident))?.value {
                    Value::Host(ty) => Some((quote!(#ident), ty.clone())),
                    _ => None,
                }
            }
            Expr::Field(field) => {
                let (base, ty) = self.typed_place(&field.base)?;
                let syn::Member::Unnamed(member) = &field.member else { return None };
                match ty.behind_refs() {
                    HostTy::Tuple(parts) => Some((quote!(#base.#member), parts.get(member.index as usize)?.clone())),
                    _ => None,
                }
            }
            Expr::Index(index) => {
                let (base, ty) = self.typed_place(&index.expr)?;
                let HostTy::List(elem) = ty.behind_refs() else { return None };
                if matches!(strip(&index.index), Expr::Range(_)) || self.mentions_tensor(&index.index) {
                    return None;
                }
                let at = self.host_tokens(&index.index);
                Some((quote!(#base[#at]), elem.as_ref().clone()))
            }
            _ => None,
        }
    }

    /// A tensor that a part of a host variable holds: its handle is cloned now.
    fn read_place(&mut self, tokens: TokenStream, ty: &HostTy) -> Option<Value> {
        let HostTy::Tensor(tensor) = ty.behind_refs() else { return None };
        let local = self.fresh("p");
        self.flow.steps.push(super::program::Step::Capture { local: local.clone(), value: quote!(#tokens.clone()) });
        let place = super::value::Place { tokens: quote!(#local), by_ref: matches!(ty, HostTy::Ref(..)), name: None };
        let key = self.add_host(*tensor, place);
        Some(Value::Tensor { key, by_ref: matches!(ty, HostTy::Ref(..)) })
    }

    fn method(&mut self, whole: &Expr, call: &ExprMethodCall, expected: &HostTy) -> Eval<Value> {
        if let Some(value) = self.shape_query(whole) {
            return Ok(value);
        }
        let name = call.method.to_string();
        let receiver = match self.eval(&call.receiver, &HostTy::Unknown)? {
            Value::Tensor { key, .. } => key,
            Value::Poison => return Ok(Value::Poison),
            Value::Host(_) | Value::Captured(..) if only_of_tensors(&name) => {
                return self.unknown_receiver(whole, call);
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

    /// A tensor method on a value whose type is not known.
    fn unknown_receiver(&mut self, whole: &Expr, call: &ExprMethodCall) -> Eval<Value> {
        if self.report_unknown(&call.receiver, None) {
            return Ok(Value::Poison);
        }
        self.host_or(whole, BreakKind::TYPE, &call.receiver, "has a type that is not known here")?;
        Ok(Value::Host(HostTy::TensorLike))
    }

    /// Reports a value that must be a tensor but whose type nothing tells; says which binding to annotate.
    pub fn report_unknown(&mut self, expr: &Expr, like: Option<TensorKey>) -> bool {
        let example = match like.map(|key| self.tensor(key).tensor_ty()) {
            Some(ty) => format!("Tensor<{}, {}>", ty.dtype, ty.rank),
            None => "Tensor<f32, 2>".to_owned(),
        };
        let inner = match strip(expr) {
            Expr::Reference(reference) => &reference.expr,
            other => other,
        };
        let written = text(inner);
        let help = match as_ident(inner) {
            Some(ident) if self.var(&Name::of(ident)).is_some_and(Var::has_open_type) => {
                format!("write its type where it is bound, or bind it again: `let {ident}: {example} = {ident};`")
            }
            _ if matches!(strip(expr), Expr::Reference(_))
                && matches!(strip(inner), Expr::Field(_) | Expr::Index(_)) =>
            {
                let name = written.rsplit('.').next().unwrap_or("w").trim();
                let name = if syn::parse_str::<syn::Ident>(name).is_ok() { name } else { "w" };
                format!("bind it first: `let {name}: &{example} = &{written};`")
            }
            _ => return false,
        };
        self.diag.error(expr, format!("the element type and rank of `{written}` are not known here"), Some(&help));
        true
    }

    fn call(&mut self, whole: &Expr, call: &ExprCall, expected: &HostTy) -> Eval<Value> {
        if let Some((op, type_arg)) = self.associated(&call.func)
            && op.class != Class::Host
        {
            let args = call.args.iter().collect();
            let type_arg = type_arg.or_else(|| tensor_dtype(expected));
            let count = self.expected_count;
            return match self.named_op(op, whole, None, args, type_arg, count) {
                // A constructor that a graph cannot hold reads no tensors: it runs in its place.
                Err(Stop::Break(..)) if !self.mentions_tensor(whole) => {
                    Ok(Value::Host(made_type(call, type_arg, expected)))
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

    /// `T::from_f64(2.0)` of a generic element type.
    fn float_constant(&mut self, call: &ExprCall) -> Option<Value> {
        let Expr::Path(path) = strip(&call.func) else { return None };
        let segments: Vec<_> = path.path.segments.iter().collect();
        let [ty, name] = segments.as_slice() else { return None };
        if name.ident != "from_f64" || !self.generics.floats.contains(&ty.ident) || call.args.len() != 1 {
            return None;
        }
        match self.eval(&call.args[0], &HostTy::Unknown) {
            Ok(value @ Value::Float(_)) => Some(value),
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

    fn macro_call(&mut self, whole: &Expr, mac: &ExprMacro) -> Eval<Value> {
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

/// The type of a constructor's result: its rank may be that of the list of extents.
fn made_type(call: &ExprCall, dtype: Option<DType>, expected: &HostTy) -> HostTy {
    let rank = match (expected.behind_refs(), call.args.first().map(strip)) {
        (HostTy::Tensor(tensor), _) => Some(tensor.rank),
        (_, Some(Expr::Array(extents))) => Some(extents.elems.len()),
        _ => None,
    };
    match (dtype, rank) {
        (Some(dtype), Some(rank)) => HostTy::Tensor(TensorTy { dtype, rank }),
        _ => HostTy::AnyRank,
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

/// The break of an op that reads values on the host.
fn host_read(whole: &Expr, op: Op) -> Stop {
    let kind = match op.name {
        "item" => BreakKind::ITEM,
        "to_vec" => BreakKind::READ,
        _ => BreakKind::CALL,
    };
    Stop::at(kind, whole, format!("`{}` needs the value on the host", op.name))
}

fn tensor_dtype(ty: &HostTy) -> Option<DType> {
    match ty.behind_refs() {
        HostTy::Tensor(tensor) => Some(tensor.dtype),
        _ => None,
    }
}

/// An expression as the user wrote it, on one line.
pub fn text(tokens: &impl ToTokens) -> String {
    crate::diag::place(tokens).text
}
