//! Host flags that decide what is computed: paths on which their value is known.

use super::Walker;
use super::cont::{Cont, Outcome};
use super::eval::text;
use super::names::{Name, as_ident};
use super::program::{Piece, Step};
use super::syntax::strip;
use super::types::HostTy;
use super::value::Value;
use crate::diag::BreakKind;
use proc_macro2::Ident;
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{BinOp, Expr, ExprBinary, UnOp};

impl Walker<'_> {
    /// Two paths, on one of which a flag is true; both walk the expression again.
    pub fn split(&mut self, flag: &Expr, expr: &Expr, cont: &Cont) -> Option<Outcome> {
        if self.closure.is_read() {
            self.leave_for_flag(flag);
            return None;
        }
        if self.flow.budget < 2 {
            let reason = format!("`{}` decides what is computed, and there are too many paths", text(flag));
            return Some(Outcome::Host(self.broken(BreakKind::PATHS, expr.to_token_stream(), &reason, expr, cont)));
        }
        let condition = self.host_tokens(flag);
        let steps = std::mem::take(&mut self.flow.steps);
        let start = super::flow::Flow { budget: self.flow.budget / 2, ..self.flow.clone() };
        let mut path = |value: bool| {
            self.flow = start.clone();
            self.learn(flag, value);
            self.deliver(&with_flag(expr, flag, value), cont);
            std::mem::take(&mut self.flow.steps)
        };
        let (then, otherwise) = (path(true), path(false));
        self.flow.steps = steps;
        self.flow.steps.push(Step::Nest(vec![
            Piece::Tokens(quote!(if #condition)),
            Piece::Block(then),
            Piece::Tokens(quote!(else)),
            Piece::Block(otherwise),
        ]));
        None
    }

    /// Remembers on this path what a flag is, if nothing can change it.
    pub fn learn(&mut self, flag: &Expr, value: bool) {
        if self.is_fixed(flag) {
            self.flow.facts.insert(flag.to_token_stream().to_string(), value);
        }
    }

    /// Whether an expression is a variable, or a field of one, that nothing can change.
    pub fn is_fixed(&self, expr: &Expr) -> bool {
        let var = root(expr).and_then(|ident| self.var(&Name::of(ident)));
        var.is_some_and(|var| !var.mutable && !var.exclusive && !matches!(var.value, Value::Host(HostTy::Ref(_, true))))
    }

    /// A flag that is known on this path.
    pub fn known_flag(&mut self, cond: &Expr) -> Option<bool> {
        if let Some(&known) = self.flow.facts.get(&cond.to_token_stream().to_string()) {
            return Some(known);
        }
        match strip(cond) {
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => self.known_flag(&unary.expr).map(|flag| !flag),
            Expr::Binary(binary) => self.known_comparison(binary),
            Expr::Path(_) | Expr::Lit(_) => match self.eval(cond, &HostTy::Unknown) {
                Ok(Value::Bool(flag)) => Some(flag),
                _ => None,
            },
            _ => None,
        }
    }

    /// `i == 0` in an unrolled loop.
    fn known_comparison(&mut self, binary: &ExprBinary) -> Option<bool> {
        // Reading a variable for the comparison would leave traces; only what is known counts.
        let saved = self.save();
        let mut constant = |side: &Expr| self.dim(side).and_then(|dim| dim.as_const());
        let sides = constant(&binary.left).zip(constant(&binary.right));
        self.restore(saved);
        let (left, right) = sides?;
        match binary.op {
            BinOp::Eq(_) => Some(left == right),
            BinOp::Ne(_) => Some(left != right),
            BinOp::Lt(_) => Some(left < right),
            BinOp::Le(_) => Some(left <= right),
            BinOp::Gt(_) => Some(left > right),
            BinOp::Ge(_) => Some(left >= right),
            _ => None,
        }
    }
}

/// The variable of `flag` or `config.flag`.
pub fn root(flag: &Expr) -> Option<&Ident> {
    match strip(flag) {
        Expr::Field(field) => root(&field.base),
        other => as_ident(other),
    }
}

/// An expression in which a flag is known.
fn with_flag(expr: &Expr, flag: &Expr, value: bool) -> Expr {
    struct Known<'e>(String, &'e Expr);
    impl VisitMut for Known<'_> {
        fn visit_expr_mut(&mut self, expr: &mut Expr) {
            if expr.to_token_stream().to_string() == self.0 {
                *expr = self.1.clone();
            } else {
                syn::visit_mut::visit_expr_mut(self, expr);
            }
        }
    }
    let mut expr = expr.clone();
    Known(flag.to_token_stream().to_string(), &syn::parse_quote!(#value)).visit_expr_mut(&mut expr);
    expr
}
