//! Operands: tensors, scalars, and values of which nothing tells what they are.

use super::Walker;
use super::call::Call;
use super::eval::{Eval, Stop, text};
use super::names::{Name, as_ident, mentions};
use super::syntax::{has_effects, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value, Var};
use crate::diag::BreakKind;
use crate::op::{Literal, Op, ParamKind};
use crate::types::{DType, Dim};
use proc_macro2::TokenStream;
use quote::quote;
use syn::Expr;

/// An operand of an op.
#[derive(Clone)]
pub enum Operand {
    /// A tensor.
    Tensor(TensorKey),
    /// A scalar known at compile time.
    Constant(Constant),
    /// A host integer as a formula.
    Size(Dim),
    /// A host scalar, read where the op is.
    Scalar(TokenStream),
    /// What may be a tensor, but nothing tells its type.
    Unknown,
    /// The result of a mistake that was reported.
    Poison,
}

/// A scalar known at compile time.
#[derive(Clone)]
pub enum Constant {
    /// A float as written.
    Float(String),
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
}

impl Constant {
    /// The constant as rustc would read it for this element type.
    pub fn literal(&self, dtype: DType) -> Literal {
        match self {
            // Narrow floats take their scalars in f32; a decimal must be rounded once, not by way of f64.
            Constant::Float(text) if dtype.compute() == DType::F32 => {
                Literal::Float(text.parse::<f32>().unwrap_or(f32::NAN).into())
            }
            Constant::Float(text) => Literal::Float(text.parse().unwrap_or(f64::NAN)),
            Constant::Int(k) => Literal::Int(*k),
            Constant::Bool(flag) => Literal::Bool(*flag),
        }
    }
}

/// What an expression borrows, or itself.
fn plain(expr: &Expr) -> &Expr {
    match strip(expr) {
        Expr::Reference(reference) => plain(&reference.expr),
        other => other,
    }
}

impl Walker<'_> {
    /// An operand: a tensor, a constant, a formula, or a host scalar that is read now.
    pub fn operand(&mut self, expr: &Expr) -> Eval<Operand> {
        // A value read on the host may be a scalar of the next op.
        if let Some(read) = self.scalar_read(expr) {
            let stop = self.read_stop(&read);
            if let Stop::Break(kind, at, reason) = stop {
                self.diag.graph_break(kind, at, reason);
            }
            return Ok(Operand::Scalar(self.launch_reads(expr)));
        }
        match self.eval(expr, &HostTy::Unknown).map(|value| self.made(plain(expr), value)) {
            Ok(Value::Tensor { key, .. }) => Ok(Operand::Tensor(key)),
            Ok(Value::Float(text)) => Ok(Operand::Constant(Constant::Float(text))),
            Ok(Value::Bool(flag)) => Ok(Operand::Constant(Constant::Bool(flag))),
            Ok(Value::Dim(Dim::Const(k))) => Ok(Operand::Constant(Constant::Int(k))),
            Ok(Value::Dim(dim)) => Ok(Operand::Size(dim)),
            Ok(Value::Host(ty) | Value::Captured(_, ty)) if self.may_be_tensor(expr, &ty) => Ok(Operand::Unknown),
            Ok(Value::Captured(local, _)) => Ok(Operand::Scalar(quote!(#local))),
            Ok(Value::Host(_)) => Ok(Operand::Scalar(self.host_tokens(expr))),
            Ok(Value::Poison) => Ok(Operand::Poison),
            Ok(Value::Tuple(_) | Value::Array(_) | Value::Made(..) | Value::Unset) => Err(Stop::Silent),
            Err(stop) => Err(stop),
        }
    }

    /// An operand that is a tensor or, where the op allows it, a scalar.
    pub fn tensor_operand(&mut self, kind: ParamKind, arg: &Expr) -> Eval<Operand> {
        let needs_tensor = matches!(kind, ParamKind::Tensor | ParamKind::TensorOf(_));
        match self.operand(arg)? {
            Operand::Scalar(_) if needs_tensor => Ok(Operand::Unknown),
            Operand::Constant(_) | Operand::Size(_) if needs_tensor => Err(Stop::Silent),
            operand => Ok(operand),
        }
    }

    /// Whether a host value is a tensor because it is borrowed or used as one, or may be one because a call with tensors
    /// made it.
    pub fn may_be_tensor(&self, expr: &Expr, ty: &HostTy) -> bool {
        let var = as_ident(strip(expr)).and_then(|ident| self.var(&Name::of(ident)));
        ty.is_open()
            || ty.may_be_tensor()
            || var.is_some_and(Var::has_open_type)
            || matches!(strip(expr), Expr::Reference(_))
    }

    /// Tensors of unknown type beside known ones: the binding to annotate is named, or the op runs on the host.
    pub fn refuse_unknown(&mut self, op: Op, call: &Call) -> Eval<bool> {
        let like = call.operands.iter().find_map(|(operand, _)| match operand {
            Operand::Tensor(key) => Some(*key),
            _ => None,
        });
        let mut reported = false;
        for (_, expr) in call.operands.iter().filter(|(operand, _)| matches!(operand, Operand::Unknown)) {
            if !self.report_unknown(expr, like) {
                let reason = format!("`{}` takes `{}`, whose type is not known here", op.name, text(expr));
                return Err(Stop::at(BreakKind::TYPE, expr, reason));
            }
            reported = true;
        }
        Ok(reported)
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

    /// The read in an expression that is a scalar read from a tensor: `x.mean_all().item() * 2.0`.
    pub fn scalar_read(&self, expr: &Expr) -> Option<Expr> {
        match strip(expr) {
            Expr::MethodCall(call) if call.method == "item" && self.mentions_tensor(&call.receiver) => {
                Some(strip(expr).clone())
            }
            Expr::MethodCall(call) if !has_effects(expr) => self.scalar_read(&call.receiver),
            Expr::Unary(unary) => self.scalar_read(&unary.expr),
            Expr::Cast(cast) => self.scalar_read(&cast.expr),
            Expr::Binary(binary) => {
                let (left, right) = (self.scalar_read(&binary.left), self.scalar_read(&binary.right));
                let host = |side: &Expr, read: &Option<Expr>| read.is_some() || !self.mentions_tensor(side);
                (host(&binary.left, &left) && host(&binary.right, &right)).then(|| left.or(right))?
            }
            _ => None,
        }
    }

    /// The break that a read on the host is.
    pub fn read_stop(&self, read: &Expr) -> Stop {
        Stop::at(BreakKind::ITEM, read, "`item` needs the value on the host")
    }

    /// Launches what a scalar read needs, and gives the host expression that is left.
    fn launch_reads(&mut self, expr: &Expr) -> TokenStream {
        let mut expr = expr.clone();
        let hoisted = self.hoist(&mut expr);
        let mut live = self.live.clone();
        live.extend(mentions(&expr));
        self.flush(&live, &hoisted);
        self.sync(&mentions(&expr), &live);
        quote!(#expr)
    }
}
