//! Loops that run a known number of times: each iteration is walked, and graphs fuse across them.

use super::Walker;
use super::cont::{Cont, Outcome};
use super::names::{Name, Names, bound, free, mentions};
use super::syntax::{Jumps, is_flat, strip};
use super::value::Value;
use crate::types::Dim;
use syn::{Block, Expr, ExprForLoop, Lifetime, Pat, RangeLimits, Stmt};

/// The most iterations a loop is unrolled to.
const MAX_TURNS: usize = 64;

/// A loop that is unrolled.
pub struct Unrolled<'a> {
    /// The pattern of an element.
    pub pat: &'a Pat,
    /// The body.
    pub body: &'a Block,
    /// What it runs over.
    pub items: Vec<Value>,
    /// Its label.
    pub label: Option<Lifetime>,
    /// How many variables there are outside of it.
    pub vars: usize,
}

impl Walker<'_> {
    /// What a loop runs over, if it can be unrolled.
    pub fn items(&mut self, each: &ExprForLoop, cont: &Cont) -> Option<Vec<Value>> {
        let label = each.label.as_ref().map(|label| &label.name);
        let body: &[Stmt] = &each.body.stmts;
        let after: Names = free(body, cont.free());
        let hides = bound(&each.pat).iter().any(|ident| cont.free().contains(&Name::of(ident)));
        // A jump from a loop inside could not be followed.
        if hides || !is_flat(body, &after) || label.is_some_and(|label| jumps_from_inside(&each.body, label)) {
            return None;
        }
        let items = self.elements(&each.expr)?;
        (items.len() <= MAX_TURNS).then_some(items)
    }

    fn elements(&mut self, expr: &Expr) -> Option<Vec<Value>> {
        match strip(expr) {
            Expr::Range(range) => {
                let start = self.dim(range.start.as_ref()?)?.as_const()?;
                let end = self.dim(range.end.as_ref()?)?.as_const()?;
                let end = if matches!(range.limits, RangeLimits::Closed(_)) { end + 1 } else { end };
                (end - start <= MAX_TURNS as i64)
                    .then(|| (start..end).map(|k| Value::Dim(Dim::Const(k))).collect::<Vec<_>>())
            }
            Expr::MethodCall(call) if call.args.is_empty() => {
                let items = self.elements(&call.receiver)?;
                match call.method.to_string().as_str() {
                    "rev" => Some(items.into_iter().rev().collect()),
                    "iter" => Some(items.into_iter().map(Value::borrowed).collect()),
                    "into_iter" => Some(items),
                    "enumerate" => {
                        let pair = |(k, item)| Value::Tuple(vec![Value::Dim(Dim::Const(k as i64)), item]);
                        Some(items.into_iter().enumerate().map(pair).collect())
                    }
                    _ => None,
                }
            }
            Expr::MethodCall(call) if call.method == "zip" && call.args.len() == 1 => {
                let (left, right) = (self.elements(&call.receiver)?, self.elements(&call.args[0])?);
                Some(left.into_iter().zip(right).map(|(left, right)| Value::Tuple(vec![left, right])).collect())
            }
            Expr::Reference(reference) => {
                Some(self.elements(&reference.expr)?.into_iter().map(Value::borrowed).collect())
            }
            Expr::Array(_) | Expr::Path(_) => match self.attempt(expr)? {
                Value::Array(items) => Some(items),
                _ => None,
            },
            _ => None,
        }
    }

    /// One iteration of an unrolled loop, or what comes after the last.
    pub fn turn(&mut self, unrolled: &Unrolled, turn: usize, next: &Cont) {
        let Some(item) = unrolled.items.get(turn) else {
            return self.resume(next, Outcome::Value(Value::Tuple(vec![])));
        };
        let cont = Cont::Turn(unrolled, turn, next);
        let mut live = cont.free();
        live.extend(mentions(unrolled.body));
        self.bind(unrolled.pat, item.clone(), &live);
        self.stmts(&unrolled.body.stmts, &cont);
    }

    /// Why a `for` stays a loop, for the report.
    pub fn why_not_unrolled(&mut self, each: &ExprForLoop) -> String {
        let steps = self.flow.steps.len();
        let mut constant = |bound: &Expr| self.dim(bound).and_then(|dim| dim.as_const());
        let turns = match strip(&each.expr) {
            Expr::Range(range) => range.start.as_deref().zip(range.end.as_deref()).and_then(|(start, end)| {
                let last = i64::from(matches!(range.limits, RangeLimits::Closed(_)));
                Some(constant(end)? + last - constant(start)?)
            }),
            _ => None,
        };
        self.flow.steps.truncate(steps);
        match turns {
            Some(turns) if turns > MAX_TURNS as i64 => {
                format!("the loop runs {turns} times, which is too often to unroll")
            }
            Some(_) => "the loop's body has host bindings or jumps of its own".to_owned(),
            None => "how often the loop runs is known only at run time".to_owned(),
        }
    }
}

/// Whether a loop inside the body jumps to this label.
fn jumps_from_inside(body: &Block, label: &Lifetime) -> bool {
    struct Inner<'l>(&'l Lifetime, bool);
    impl<'ast> syn::visit::Visit<'ast> for Inner<'_> {
        fn visit_expr(&mut self, expr: &'ast Expr) {
            if matches!(expr, Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_)) {
                self.1 |= Jumps::of(expr).loops.iter().any(|target| target.as_ref() == Some(self.0));
            }
            syn::visit::visit_expr(self, expr);
        }
    }
    let mut inner = Inner(label, false);
    syn::visit::Visit::visit_block(&mut inner, body);
    inner.1
}
