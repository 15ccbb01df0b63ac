//! Loops. Over a constant range or an array they are unrolled, and graphs fuse across iterations. Other loops stay loops
//! of the host, whose bodies are graphs of their own; what they change lives in variables between iterations.

use super::Walker;
use super::names::{Name, Names, bound, free, mentions};
use super::program::{Piece, Step};
use super::stmts::{Cont, HostCode, Outcome};
use super::syntax::{Jumps, assigned, is_flat, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value};
use crate::diag::BreakKind;
use crate::types::Dim;
use proc_macro2::TokenStream;
use quote::quote;
use std::cell::RefCell;
use std::collections::BTreeMap;
use syn::{Block, Expr, ExprForLoop, ExprLoop, ExprWhile, Lifetime, Pat, RangeLimits, Stmt, parse_quote};

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

/// Host control flow around blocks of graphs.
pub struct Region<'a> {
    /// How many variables there are outside of it.
    pub vars: usize,
    /// The names read after a block of it.
    pub live: Names,
    /// Whether it is a loop.
    pub is_loop: bool,
    /// Its label.
    pub label: Option<Lifetime>,
    /// Whether its blocks have a value.
    pub has_value: bool,
    /// The type of that value, if it is written.
    pub expected: HostTy,
    /// The types its blocks gave.
    pub results: RefCell<Vec<HostTy>>,
    /// The types of variables that are first assigned inside.
    pub first_types: RefCell<BTreeMap<Name, HostTy>>,
    /// What comes after it.
    outer: &'a Cont<'a>,
}

impl<'a> Region<'a> {
    /// What comes after it.
    pub fn outside(&self) -> Option<&Cont<'a>> {
        Some(self.outer)
    }
}

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

    fn why_not_unrolled(&mut self, each: &ExprForLoop) -> String {
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

    /// `while c { .. }` is `loop { if c { .. } else { break; } }`.
    pub fn while_loop(&mut self, expr: &Expr, each: &ExprWhile, cont: &Cont) {
        let (cond, body) = (&each.cond, &each.body);
        let turn: Stmt = parse_quote!(if #cond #body else { break; });
        let reason = (BreakKind::LOOP, "how often the loop runs is known only at run time");
        self.region(expr, cont, Some(reason), |w, end| {
            let label = &each.label;
            let body = w.body(expr, |w| w.stmts(std::slice::from_ref(&turn), end));
            vec![Piece::Tokens(quote!(#label loop)), Piece::Block(body)]
        });
    }

    /// Walks a `loop`.
    pub fn endless_loop(&mut self, expr: &Expr, each: &ExprLoop, cont: &Cont) {
        let reason = (BreakKind::LOOP, "how often the loop runs is known only at run time");
        self.region(expr, cont, Some(reason), |w, end| {
            let label = &each.label;
            let body = w.body(expr, |w| w.block(&each.body, end));
            vec![Piece::Tokens(quote!(#label loop)), Piece::Block(body)]
        });
    }

    /// The body of a loop: what it changes is known by type only when an iteration starts.
    fn body(&mut self, expr: &Expr, walk: impl FnOnce(&mut Self)) -> Vec<Step> {
        let saved = self.flow.clone();
        self.flow.steps = vec![];
        self.forget_all(&self.changeable(expr));
        walk(self);
        std::mem::replace(&mut self.flow, saved).steps
    }

    fn changeable(&self, expr: &Expr) -> Names {
        let mut names = assigned(expr);
        names.retain(|name| self.var(name).is_some_and(|var| var.mutable || var.exclusive));
        names
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

    /// What a loop runs over, if it can be unrolled.
    fn items(&mut self, each: &ExprForLoop, cont: &Cont) -> Option<Vec<Value>> {
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

    /// The type of an element of a host list whose type the signature tells.
    fn element_type(&mut self, expr: &Expr) -> Option<HostTy> {
        match strip(expr) {
            Expr::MethodCall(call) if call.args.is_empty() => {
                let inner = self.element_type(&call.receiver)?;
                match call.method.to_string().as_str() {
                    "rev" | "into_iter" => Some(inner),
                    "iter" => Some(by_ref(inner)),
                    "enumerate" => Some(HostTy::Tuple(vec![HostTy::Size, inner])),
                    _ => None,
                }
            }
            Expr::Reference(reference) => Some(by_ref(self.element_type(&reference.expr)?)),
            Expr::Range(_) => Some(HostTy::Size),
            _ => {
                let ty = self.place_type(expr)?;
                let HostTy::List(elem) = ty.behind_refs() else { return None };
                let elem = elem.as_ref().clone();
                Some(if matches!(ty, HostTy::Ref(..)) { by_ref(elem) } else { elem })
            }
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

    /// Host control flow around blocks: the graph ends before it, and variables carry tensors in and out.
    pub fn region(
        &mut self,
        expr: &Expr,
        cont: &Cont,
        why: Option<(BreakKind, &str)>,
        build: impl FnOnce(&mut Self, &Cont) -> Vec<Piece>,
    ) {
        let jumps = Jumps::of(expr);
        if jumps.loops.iter().any(|label| matches!(cont.target(label.as_ref()), Some(Cont::Turn(..)))) {
            // The loop around it stays a loop of the host.
            (self.cannot_unroll, self.whole) = (true, true);
            return;
        }
        if let Some((kind, reason)) = why {
            self.diag.graph_break(kind, header(expr), reason);
        }
        let names = mentions(expr);
        let is_loop = matches!(strip(expr), Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_));
        let mut live = cont.free();
        if is_loop {
            live.extend(names.iter().cloned());
        }
        let mut read = live.clone();
        read.extend(names.iter().cloned());
        self.flush(&read, &[]);
        self.sync(&names, &read);
        self.declare_unset(&names);
        let region = Region {
            vars: self.flow.vars.len(),
            live,
            is_loop,
            label: label_of(expr),
            has_value: !matches!(cont, Cont::Then(_) | Cont::Turn(..))
                && !matches!(strip(expr), Expr::ForLoop(_) | Expr::While(_)),
            expected: self.expected(cont),
            results: RefCell::default(),
            first_types: RefCell::default(),
            outer: cont,
        };
        let changes = self.changeable(expr);
        let saved = self.flow.clone();
        self.flow.steps = vec![];
        self.regions += 1;
        let pieces = build(self, &Cont::End(&region));
        self.regions -= 1;
        let before = std::mem::replace(&mut self.flow, saved).steps;
        self.flow.steps.extend(before);
        if self.is_over() {
            return;
        }
        self.after_region(region, pieces, changes, cont);
    }

    fn after_region(&mut self, region: Region, mut pieces: Vec<Piece>, changes: Names, cont: &Cont) {
        let result = self.fresh("r");
        if region.has_value {
            pieces.insert(0, Piece::Tokens(quote!(let #result =)));
            pieces.push(Piece::Tokens(quote!(;)));
        }
        self.flow.steps.push(Step::Nest(pieces));
        for (name, ty) in region.first_types.take() {
            self.set_first_type(&name, ty);
        }
        self.forget_all(&changes);
        let outcome = match region.has_value {
            true => {
                let ty = joint(region.results.take());
                let needs_annotation = ty == HostTy::Unknown;
                Outcome::Host(HostCode { tokens: quote!(#result), ty, needs_annotation, changes: Names::new() })
            }
            false => Outcome::Value(Value::Tuple(vec![])),
        };
        self.resume(cont, outcome);
    }

    /// Declares variables that are first assigned inside a region.
    fn declare_unset(&mut self, names: &Names) {
        for index in 0..self.flow.vars.len() {
            let var = &mut self.flow.vars[index];
            if names.contains(&var.name) && matches!(var.value, Value::Unset) && !var.bound {
                var.bound = true;
                let ident = &var.ident;
                let mutability = var.mutable.then(|| quote!(mut));
                self.flow.steps.push(Step::Host(quote!(let #mutability #ident;)));
            }
        }
    }

    fn set_first_type(&mut self, name: &Name, ty: HostTy) {
        let Some(index) = self.var_index(name) else { return };
        if !matches!(self.flow.vars[index].value, Value::Unset) {
            return;
        }
        self.flow.vars[index].value = match ty {
            HostTy::Tensor(tensor) => {
                let ident = &self.flow.vars[index].ident;
                let place = super::value::Place { tokens: quote!(#ident), by_ref: false, name: Some(name.clone()) };
                let key = self.add_host(tensor, place);
                Value::Tensor { key, by_ref: false }
            }
            ty => Value::Host(ty),
        };
    }

    /// A block of a region ends.
    pub fn end_region(&mut self, region: &Region, outcome: Outcome) {
        // The value of a loop is that of its `break`s.
        match (outcome, region.has_value && !region.is_loop) {
            (Outcome::Value(value), true) => {
                region.results.borrow_mut().push(self.host_ty_of(&value));
                self.write_back(region, &value.tensors());
                if !matches!(&value, Value::Tuple(parts) if parts.is_empty()) {
                    let tokens = self.moved_tokens(&value);
                    self.flow.steps.push(Step::Value(tokens));
                }
            }
            (Outcome::Host(code), true) => {
                region.results.borrow_mut().push(code.ty);
                self.write_back(region, &[]);
                self.flow.steps.push(Step::Value(code.tokens));
            }
            (outcome, false) => {
                self.run_host(outcome);
                self.write_back(region, &[]);
            }
        }
    }

    /// `break` with a value.
    pub fn leave(&mut self, region: &Region, label: Option<&Lifetime>, outcome: Outcome) {
        let tokens = match outcome {
            Outcome::Value(value) => {
                region.results.borrow_mut().push(self.host_ty_of(&value));
                self.write_back(region, &value.tensors());
                self.moved_tokens(&value)
            }
            Outcome::Host(code) => {
                region.results.borrow_mut().push(code.ty);
                self.write_back(region, &[]);
                code.tokens
            }
        };
        self.flow.steps.push(Step::Host(quote!(break #label #tokens;)));
    }

    /// Gives the variables outside of a region the values they have at the end of a block.
    pub fn write_back(&mut self, region: &Region, wanted: &[TensorKey]) {
        let dirty: Names = self.flow.vars[..region.vars]
            .iter()
            .filter(|var| var.bound && var.dirty && (region.live.contains(&var.name) || var.exclusive))
            .map(|var| var.name.clone())
            .collect();
        for var in &self.flow.vars[..region.vars] {
            if dirty.contains(&var.name) {
                region.first_types.borrow_mut().insert(var.name.clone(), self.host_ty_of(&var.value));
            }
        }
        self.flush(&dirty, wanted);
        self.sync(&dirty, &dirty);
    }
}

/// The one type that all blocks gave.
fn joint(types: Vec<HostTy>) -> HostTy {
    match types.split_first() {
        Some((first, rest)) if rest.iter().all(|ty| ty == first) => first.clone(),
        _ => HostTy::Unknown,
    }
}

fn by_ref(ty: HostTy) -> HostTy {
    match ty {
        HostTy::Ref(..) => ty,
        HostTy::Tuple(parts) => HostTy::Ref(Box::new(HostTy::Tuple(parts)), false),
        other => HostTy::Ref(Box::new(other), false),
    }
}

fn label_of(expr: &Expr) -> Option<Lifetime> {
    let label = match strip(expr) {
        Expr::ForLoop(each) => &each.label,
        Expr::While(each) => &each.label,
        Expr::Loop(each) => &each.label,
        _ => return None,
    };
    label.as_ref().map(|label| label.name.clone())
}

/// The tokens that a report about control flow points at: all but its blocks.
fn header(expr: &Expr) -> TokenStream {
    match strip(expr) {
        Expr::ForLoop(each) => {
            let (pat, iterated) = (&each.pat, &each.expr);
            let (keyword, between) = (each.for_token, each.in_token);
            quote!(#keyword #pat #between #iterated)
        }
        Expr::While(each) => {
            let (keyword, cond) = (each.while_token, &each.cond);
            quote!(#keyword #cond)
        }
        Expr::Loop(each) => {
            let keyword = each.loop_token;
            quote!(#keyword)
        }
        Expr::If(branch) => {
            let (keyword, cond) = (branch.if_token, &branch.cond);
            quote!(#keyword #cond)
        }
        Expr::Match(branch) => {
            let (keyword, scrutinee) = (branch.match_token, &branch.expr);
            quote!(#keyword #scrutinee)
        }
        other => quote!(#other),
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
