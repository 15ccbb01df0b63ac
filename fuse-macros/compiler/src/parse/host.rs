//! Code that is left for the host: what is launched and written back before it runs, and what it may change.

use super::Walker;
use super::closure::differentiation;
use super::cont::{Cont, HostCode, Outcome};
use super::eval::text;
use super::names::{Names, mentions};
use super::program::Step;
use super::region::joint;
use super::syntax::{Jumps, assigned, diverges, has_effects, is_comparison, of_scalars, strip};
use super::types::{HostTy, TensorTy};
use super::value::{Maker, Value};
use crate::diag::BreakKind;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Expr;

impl Walker<'_> {
    /// Control flow that touches no tensor: it runs where it stands. True if nothing after it runs.
    pub fn host_statement(&mut self, expr: &Expr, cont: &Cont) -> bool {
        let code = self.host_code(expr, HostTy::Unknown, cont);
        if diverges(expr) {
            self.end_path(code);
            return true;
        }
        self.apply_outcome(cont, Outcome::Host(code));
        false
    }

    /// Host code that never comes to an end is the last of its path; it has no value to bind.
    pub fn end_path(&mut self, code: HostCode) {
        let tokens = code.tokens;
        self.flow.steps.push(Step::Host(quote!(#tokens;)));
    }

    /// Host code that reads no tensor, before what comes after it.
    pub fn host_code(&mut self, expr: &Expr, ty: HostTy, cont: &Cont) -> HostCode {
        let live = self.live_with(expr, cont);
        self.host_code_with(expr, ty, &live)
    }

    /// Host code that reads no tensor: it runs in its place, and the graph goes on.
    pub fn host_code_with(&mut self, expr: &Expr, ty: HostTy, live: &Names) -> HostCode {
        if Jumps::of(expr).any() {
            self.before_exit(expr, live);
        } else if self.has_open_effects() && has_effects(expr) {
            self.diag.graph_break(BreakKind::EFFECT, expr, "an op before this statement must keep its place");
            self.flush(live, &[]);
            self.sync_dirty(live);
        }
        self.sync(&mentions(expr), live);
        let changes = self.changed(expr);
        let may_hold = mentions(expr).iter().any(|name| self.var(name).is_some_and(|var| var.needs_annotation));
        HostCode { tokens: quote!(#expr), ty, needs_annotation: may_hold, changes }
    }

    /// Whether random draws, ops that may fail or writes to `&mut` tensors are still to come about.
    pub fn has_open_effects(&self) -> bool {
        self.flow.pending.effects || self.flow.vars.iter().any(|var| var.exclusive && var.dirty)
    }

    /// A graph never spans a host statement that may leave.
    fn before_exit(&mut self, expr: &Expr, live: &Names) {
        if !self.flow.pending.is_empty() {
            self.diag.graph_break(BreakKind::EXIT, expr, format!("`{}` may leave the function or loop", text(expr)));
            self.flush(live, &[]);
        }
        self.sync_dirty(live);
    }

    /// Host code that reads tensors, before what comes after it.
    pub fn broken(&mut self, kind: BreakKind, at: TokenStream, reason: &str, expr: &Expr, cont: &Cont) -> HostCode {
        self.broken_with(kind, at, reason, expr, &cont.free())
    }

    /// Host code that reads tensors: the graph ends before it.
    pub fn broken_with(
        &mut self,
        kind: BreakKind,
        at: TokenStream,
        reason: &str,
        expr: &Expr,
        after: &Names,
    ) -> HostCode {
        self.diag.graph_break(kind, at, reason);
        let ty = self.read_type(expr);
        let mut rest = expr.clone();
        let hoisted = self.hoist(&mut rest);
        let mut live = after.clone();
        live.extend(mentions(&rest));
        self.flush(&live, &hoisted);
        self.settle(&hoisted);
        self.sync(&mentions(&rest), &live);
        if Jumps::of(expr).any() {
            self.sync_dirty(&live);
        }
        let changes = self.changed(&rest);
        for name in &changes {
            self.protect(name);
        }
        HostCode { tokens: quote!(#rest), ty, needs_annotation: true, changes }
    }

    /// The type of what host code reads: `x.item()` gives an element, `parts[i]` one of equal parts.
    pub fn read_type(&mut self, expr: &Expr) -> HostTy {
        match strip(expr) {
            Expr::Reference(reference) if reference.mutability.is_none() => match self.read_type(&reference.expr) {
                HostTy::Unknown => HostTy::Unknown,
                ty => HostTy::Ref(Box::new(ty), false),
            },
            Expr::Index(index) => self.part_type(&index.expr),
            Expr::Call(call) => match differentiation(call) {
                Some((params, _)) => self.peek(params, |w, params| w.gradients_type(&params)),
                None => HostTy::Unknown,
            },
            Expr::MethodCall(call) => match call.method.to_string().as_str() {
                "item" => self.element_type_of(&call.receiver),
                "unbind" => self.peek(&call.receiver, |w, value| match value {
                    Value::Tensor { key, .. } => {
                        let whole = w.tensor(key).tensor_ty();
                        let part = TensorTy { rank: whole.rank.saturating_sub(1), ..whole };
                        HostTy::List(Box::new(HostTy::Tensor(part)))
                    }
                    _ => HostTy::Unknown,
                }),
                "to_vec" => HostTy::List(Box::new(self.element_type_of(&call.receiver))),
                "clone" => self.read_type(&call.receiver).behind_refs().clone(),
                method if of_scalars(method) => match self.read_type(&call.receiver) {
                    number @ HostTy::Scalar(_) => number,
                    _ => HostTy::Unknown,
                },
                _ => HostTy::Unknown,
            },
            Expr::Cast(cast) => self.generics.dtype(&cast.ty).map_or(HostTy::Unknown, HostTy::Scalar),
            Expr::Unary(unary) => self.read_type(&unary.expr),
            Expr::Binary(binary) if !is_comparison(&binary.op) => {
                let number = |ty: &HostTy| matches!(ty, HostTy::Scalar(_));
                [self.read_type(&binary.left), self.read_type(&binary.right)]
                    .into_iter()
                    .find(number)
                    .unwrap_or(HostTy::Unknown)
            }
            _ => HostTy::Unknown,
        }
    }

    fn element_type_of(&mut self, tensor: &Expr) -> HostTy {
        self.peek(tensor, |w, value| match value {
            Value::Tensor { key, .. } => HostTy::Scalar(w.tensor(key).ty.dtype),
            _ => HostTy::Unknown,
        })
    }

    /// The type that all parts of an array have.
    fn part_type(&mut self, array: &Expr) -> HostTy {
        self.peek(array, |w, value| match value {
            Value::Array(parts) | Value::Made(Maker::Vec, parts) => {
                joint(parts.iter().map(|part| w.host_ty_of(part)).collect())
            }
            _ => HostTy::Unknown,
        })
    }

    /// What an expression's value tells; it is not evaluated by this.
    fn peek(&mut self, expr: &Expr, tell: impl FnOnce(&Self, Value) -> HostTy) -> HostTy {
        let saved = self.save();
        let ty = match self.eval(expr, &HostTy::Unknown) {
            Ok(value) => tell(self, value),
            Err(_) => HostTy::Unknown,
        };
        self.restore(saved);
        ty
    }

    fn live_with(&self, expr: &Expr, cont: &Cont) -> Names {
        let mut live = cont.free();
        live.extend(mentions(expr));
        live
    }

    /// The variables that host code may change.
    pub fn changed(&self, expr: &Expr) -> Names {
        let mut names = assigned(expr);
        names.retain(|name| self.var(name).is_some_and(|var| var.mutable || var.exclusive));
        names
    }

    /// Writes back every variable whose emitted counterpart holds an older value and is read later.
    pub fn sync_dirty(&mut self, live: &Names) {
        let dirty: Names = self
            .flow
            .vars
            .iter()
            .filter(|var| var.bound && var.dirty && (live.contains(&var.name) || var.exclusive))
            .map(|var| var.name.clone())
            .collect();
        self.sync(&dirty, live);
    }

    /// After host code that may have changed variables: what is known about them is their types.
    pub fn forget_all(&mut self, changes: &Names) {
        for name in changes {
            if let Some(index) = self.var_index(name) {
                self.forget(index);
            }
        }
    }
}
