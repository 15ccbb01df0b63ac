//! Code that is left for the host: what is launched and written back before it runs, and what it may change.

use super::Walker;
use super::cont::{Cont, HostCode, Outcome};
use super::eval::text;
use super::names::{Names, mentions};
use super::syntax::{Jumps, assigned, has_effects, strip};
use super::types::HostTy;
use super::value::Value;
use crate::diag::BreakKind;
use proc_macro2::TokenStream;
use quote::quote;
use syn::Expr;

impl Walker<'_> {
    /// Control flow that touches no tensor: it runs where it stands.
    pub fn host_statement(&mut self, expr: &Expr, cont: &Cont) {
        let code = self.host_code(expr, HostTy::Unknown, cont);
        self.apply_outcome(cont, Outcome::Host(code));
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
    fn has_open_effects(&self) -> bool {
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

    /// The type of a read: `x.item()` gives an element.
    fn read_type(&mut self, expr: &Expr) -> HostTy {
        let Expr::MethodCall(call) = strip(expr) else { return HostTy::Unknown };
        if !["item", "to_vec"].iter().any(|read| call.method == read) {
            return HostTy::Unknown;
        }
        let saved = self.save();
        let ty = match self.eval(&call.receiver, &HostTy::Unknown) {
            Ok(Value::Tensor { key, .. }) => HostTy::Scalar(self.tensor(key).ty.dtype),
            _ => HostTy::Unknown,
        };
        self.restore(saved);
        if call.method == "item" { ty } else { HostTy::List(Box::new(ty)) }
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
