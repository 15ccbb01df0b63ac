//! Loops. Over a constant range or an array they are unrolled, and graphs fuse across iterations. Other loops stay loops
//! of the host, whose bodies are graphs of their own; what they change lives in variables between iterations.

use super::Walker;
use super::cont::Cont;
use super::device_loop::REASON;
use super::names::mentions;
use super::program::{Piece, Step};
use super::syntax::strip;
use super::types::HostTy;
use super::unroll::Unrolled;
use crate::diag::BreakKind;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprForLoop, ExprLoop, ExprWhile, Stmt, parse_quote};

impl Walker<'_> {
    /// Walks a `for`.
    pub fn for_loop(&mut self, expr: &Expr, each: &ExprForLoop, cont: &Cont) {
        if let Some(items) = self.items(each, cont) {
            let vars = self.flow.vars.len();
            let label = each.label.as_ref().map(|label| label.name.clone());
            let unrolled = Unrolled { pat: &each.pat, body: &each.body, items, label, vars };
            let saved = self.save();
            self.turn(&unrolled, 0, cont);
            if !std::mem::take(&mut self.cannot_unroll) {
                return;
            }
            self.restore(saved);
            self.whole = false;
        }
        let reason = self.why_not_unrolled(each);
        self.region(expr, cont, Some((BreakKind::LOOP, &reason)), |w, end| {
            let ty = w.element_type(&each.expr);
            let reads = ty.is_none() && w.mentions_tensor(&each.expr);
            let iterated = w.iterated(&each.expr, end);
            w.shadow(&each.pat);
            let (label, pat) = (&each.label, &each.pat);
            let body = w.body(expr, |w| {
                w.bind_typed(pat, &ty.unwrap_or(HostTy::Unknown), reads);
                w.block(&each.body, end);
            });
            vec![Piece::Tokens(quote!(#label for #pat in #iterated)), Piece::Block(body)]
        });
    }

    /// `while c { .. }` is `loop { if c { .. } else { break; } }`.
    pub fn while_loop(&mut self, expr: &Expr, each: &ExprWhile, cont: &Cont) {
        if self.device_loop(expr, each, cont) {
            return;
        }
        let (cond, body) = (&each.cond, &each.body);
        let turn: Stmt = parse_quote!(if #cond #body else { break; });
        let reason = (BreakKind::LOOP, REASON);
        self.region(expr, cont, Some(reason), |w, end| {
            let label = &each.label;
            let body = w.body(expr, |w| w.stmts(std::slice::from_ref(&turn), end));
            vec![Piece::Tokens(quote!(#label loop)), Piece::Block(body)]
        });
    }

    /// Walks a `loop`.
    pub fn endless_loop(&mut self, expr: &Expr, each: &ExprLoop, cont: &Cont) {
        let reason = (BreakKind::LOOP, REASON);
        self.region(expr, cont, Some(reason), |w, end| {
            let label = &each.label;
            let body = w.body(expr, |w| w.block(&each.body, end));
            vec![Piece::Tokens(quote!(#label loop)), Piece::Block(body)]
        });
    }

    /// The body of a loop: what it changes is known by type only when an iteration starts.
    pub fn body(&mut self, expr: &Expr, walk: impl FnOnce(&mut Self)) -> Vec<Step> {
        let saved = self.flow.clone();
        self.flow.steps = vec![];
        self.forget_all(&self.changed(expr));
        walk(self);
        std::mem::replace(&mut self.flow, saved).steps
    }

    /// The type of an element of a host list whose type the signature tells.
    fn element_type(&mut self, expr: &Expr) -> Option<HostTy> {
        match strip(expr) {
            Expr::MethodCall(call) if call.method == "unbind" => match self.read_type(expr) {
                HostTy::List(part) => Some(*part),
                _ => None,
            },
            Expr::MethodCall(call) => {
                let inner = self.element_type(&call.receiver)?;
                match (call.method.to_string().as_str(), call.args.first()) {
                    ("rev" | "into_iter", None) | ("take" | "skip" | "step_by", Some(_)) => Some(inner),
                    ("iter", None) => Some(by_ref(inner)),
                    ("cloned" | "copied", None) => Some(inner.behind_refs().clone()),
                    ("enumerate", None) => Some(HostTy::Tuple(vec![HostTy::Size, inner])),
                    ("zip", Some(other)) => Some(HostTy::Tuple(vec![inner, self.zipped_type(other)?])),
                    ("windows" | "chunks" | "chunks_exact", Some(_)) => {
                        Some(by_ref(HostTy::List(Box::new(inner.behind_refs().clone()))))
                    }
                    _ => (inner == HostTy::TensorLike).then_some(inner),
                }
            }
            Expr::Reference(reference) => Some(by_ref(self.element_type(&reference.expr)?)),
            Expr::Range(_) => Some(HostTy::Size),
            _ => {
                let ty = self.place_type(expr)?;
                if *ty.behind_refs() == HostTy::TensorLike {
                    return Some(HostTy::TensorLike);
                }
                let HostTy::List(elem) = ty.behind_refs() else { return None };
                let elem = elem.as_ref().clone();
                Some(if matches!(ty, HostTy::Ref(..)) { by_ref(elem) } else { elem })
            }
        }
    }

    /// The type of an element of the other list of a `zip`; of one without tensors it does not matter.
    fn zipped_type(&mut self, other: &Expr) -> Option<HostTy> {
        match self.element_type(other) {
            None if !self.mentions_tensor(other) => Some(HostTy::Unknown),
            known => known,
        }
    }

    /// What a host loop runs over, as host code. A typed list is handed over as it is.
    fn iterated(&mut self, expr: &Expr, end: &Cont) -> TokenStream {
        let mut live = end.free();
        live.extend(mentions(expr));
        if self.element_type(expr).is_some() || !self.mentions_tensor(expr) {
            return self.host_code_with(expr, HostTy::Unknown, &live).tokens;
        }
        let kind = (BreakKind::HOST, quote!(#expr), "the loop runs over tensors");
        self.broken_with(kind.0, kind.1, kind.2, expr, &live).tokens
    }
}

fn by_ref(ty: HostTy) -> HostTy {
    match ty {
        HostTy::Ref(..) => ty,
        HostTy::Tuple(parts) => HostTy::Ref(Box::new(HostTy::Tuple(parts)), false),
        other => HostTy::Ref(Box::new(other), false),
    }
}
