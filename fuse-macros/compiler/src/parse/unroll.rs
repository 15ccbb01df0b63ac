//! Loops that run a known number of times: each iteration is walked, and graphs fuse across them.

use super::Walker;
use super::cont::{Cont, Outcome};
use super::names::{Name, Names, bound, free, mentions};
use super::syntax::{Jumps, is_flat, strip};
use super::types::HostTy;
use super::value::Value;
use crate::types::Dim;
use proc_macro2::Literal;
use quote::{format_ident, quote};
use syn::{Block, Expr, ExprForLoop, Lifetime, Lit, LitFloat, LitInt, Pat, RangeLimits, Stmt};

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
                if end - start > MAX_TURNS as i64 {
                    return None;
                }
                let bounds = [range.start.as_deref()?, range.end.as_deref()?];
                match bounds.iter().find(|bound| self.is_other_integer(bound)) {
                    Some(bound) => (start..end).map(|k| self.capture_like(k, bound)).collect(),
                    None => Some((start..end).map(|k| Value::Dim(Dim::Const(k))).collect()),
                }
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
            Expr::Array(array) => {
                let mut array = array.clone();
                write_suffixes(array.elems.iter_mut().collect());
                self.elements_of(&Expr::Array(array))
            }
            Expr::Path(_) => self.elements_of(expr),
            _ => None,
        }
    }

    fn elements_of(&mut self, array: &Expr) -> Option<Vec<Value>> {
        match self.attempt(array)? {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// A turn of a loop over integers of the type that a bound of it is written in.
    fn capture_like(&mut self, turn: i64, bound: &Expr) -> Option<Value> {
        let turn = Literal::i64_unsuffixed(turn);
        let typed = match strip(bound) {
            Expr::Cast(cast) => {
                let ty = &cast.ty;
                quote!((#turn) as #ty)
            }
            Expr::Lit(syn::ExprLit { lit: Lit::Int(int), .. }) => {
                let ty = format_ident!("{}", int.suffix());
                quote!((#turn) as #ty)
            }
            _ => return None,
        };
        Some(self.capture(&Expr::Verbatim(typed), HostTy::Unknown))
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

/// Numbers of one array have one type: a suffix that one of them has is written to all, in tuples place by place.
fn write_suffixes(mut elems: Vec<&mut Expr>) {
    let arity = match elems.first().map(|elem| strip(elem)) {
        Some(Expr::Tuple(tuple)) => Some(tuple.elems.len()),
        _ => None,
    };
    for place in 0..arity.unwrap_or(0) {
        let column = elems.iter_mut().filter_map(|elem| match elem {
            Expr::Tuple(tuple) => tuple.elems.iter_mut().nth(place),
            _ => None,
        });
        write_suffixes(column.collect());
    }
    let suffixes = elems.iter_mut().filter_map(|elem| match number(elem)? {
        Lit::Float(float) => Some(float.suffix().to_owned()),
        Lit::Int(int) => Some(int.suffix().to_owned()),
        _ => None,
    });
    let Some(suffix) = { suffixes }.find(|suffix| !suffix.is_empty()) else { return };
    for literal in elems.into_iter().filter_map(number) {
        match literal {
            Lit::Float(float) if float.suffix().is_empty() => {
                *float = LitFloat::new(&format!("{}{suffix}", float.base10_digits()), float.span());
            }
            Lit::Int(int) if int.suffix().is_empty() => {
                *int = LitInt::new(&format!("{}{suffix}", int.base10_digits()), int.span());
            }
            _ => {}
        }
    }
}

/// The literal of a number, also of one with a sign.
fn number(expr: &mut Expr) -> Option<&mut Lit> {
    match expr {
        Expr::Lit(literal) => Some(&mut literal.lit),
        Expr::Unary(unary) => number(&mut unary.expr),
        _ => None,
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
