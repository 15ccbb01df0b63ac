//! Host control flow around blocks: graphs end at its edges, and variables carry tensors in and out.

use super::Walker;
use super::cont::{Cont, HostCode, Outcome};
use super::names::{Name, Names, mentions};
use super::program::{Piece, Step};
use super::syntax::{Jumps, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value};
use crate::diag::BreakKind;
use proc_macro2::TokenStream;
use quote::quote;
use std::cell::RefCell;
use std::collections::BTreeMap;
use syn::{Expr, Lifetime};

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
        let region = self.enter(expr, cont);
        let changes = self.changed(expr);
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

    /// The region of an expression: the graph before it is launched, and what it mentions is where the host has it.
    fn enter<'c>(&mut self, expr: &Expr, cont: &'c Cont<'c>) -> Region<'c> {
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
        Region {
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
        }
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

    /// Leaves a block of a region for a jump.
    pub fn jump(&mut self, region: &Region, tokens: TokenStream) {
        self.write_back(region, &[]);
        self.flow.steps.push(Step::Host(tokens));
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
pub fn joint(types: Vec<HostTy>) -> HostTy {
    match types.split_first() {
        Some((first, rest)) if rest.iter().all(|ty| ty == first) => first.clone(),
        _ => HostTy::Unknown,
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
pub fn header(expr: &Expr) -> TokenStream {
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
