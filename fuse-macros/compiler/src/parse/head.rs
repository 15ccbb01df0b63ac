//! Conditions and scrutinees of the host, and the types of what their patterns match.

use super::Walker;
use super::cont::HostCode;
use super::eval::{Stop, text};
use super::names::Names;
use super::syntax::strip;
use super::types::HostTy;
use crate::diag::BreakKind;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{BinOp, Expr, Pat};

/// A host condition or scrutinee, and the patterns it binds with the types of what they match.
pub struct Head {
    /// The expression; every variable it reads is up to date.
    pub tokens: TokenStream,
    /// The patterns, with the types of what they match.
    pub binds: Vec<(Pat, HostTy)>,
    /// Whether what they match may be tensors whose types nothing tells.
    pub needs_annotation: bool,
}

impl Walker<'_> {
    /// A condition as host code, with the patterns of its `let`s.
    pub fn condition(&mut self, cond: &Expr, live: &Names) -> Head {
        let mut parts = Vec::new();
        conjuncts(cond, &mut parts);
        let mut binds = Vec::new();
        let mut reads = false;
        for part in &parts {
            match part {
                Expr::Let(matched) => {
                    let ty = self.place_type(&matched.expr);
                    reads |= ty.is_none() && self.mentions_tensor(&matched.expr);
                    binds.push((matched.pat.as_ref().clone(), ty.unwrap_or(HostTy::Unknown)));
                }
                part => reads |= self.mentions_tensor(part),
            }
        }
        for (pat, _) in &binds {
            self.shadow(pat);
        }
        let code = self.head_code(cond, reads, live);
        Head { tokens: code.tokens, binds, needs_annotation: reads }
    }

    /// A scrutinee as host code, with the type that the patterns of its arms match.
    pub fn scrutinee(&mut self, scrutinee: &Expr, live: &Names) -> Head {
        let ty = self.place_type(scrutinee);
        let reads = ty.is_none() && self.mentions_tensor(scrutinee);
        let code = self.head_code(scrutinee, reads, live);
        // The type stands in for every arm's pattern.
        let any = Pat::Wild(syn::PatWild { attrs: vec![], underscore_token: Default::default() });
        Head { tokens: code.tokens, binds: vec![(any, ty.unwrap_or(HostTy::Unknown))], needs_annotation: reads }
    }

    fn head_code(&mut self, expr: &Expr, reads: bool, live: &Names) -> HostCode {
        if !reads {
            return self.host_code_with(expr, HostTy::Unknown, live);
        }
        let stop = match self.attempt_stop(expr) {
            Some(Stop::Break(kind, at, reason)) => (kind, at, reason),
            _ => (BreakKind::HOST, expr.to_token_stream(), format!("`{}` reads a tensor on the host", text(expr))),
        };
        self.broken_with(stop.0, stop.1, &stop.2, expr, live)
    }

    /// Why evaluating an expression stops, without doing it.
    fn attempt_stop(&mut self, expr: &Expr) -> Option<Stop> {
        let saved = self.save();
        let stop = self.eval(expr, &HostTy::Unknown).err();
        self.restore(saved);
        stop
    }
}

/// The parts of `a && b && let p = c`.
pub fn conjuncts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match strip(expr) {
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            conjuncts(&binary.left, parts);
            conjuncts(&binary.right, parts);
        }
        other => parts.push(other),
    }
}
