//! What an expression came to, and what becomes of it.

use super::Walker;
use super::cont::{Cont, HostCode, Outcome};
use super::eval::Stop;
use super::flow::Saved;
use super::names::{Name, Names, mentions};
use super::program::Step;
use super::syntax::{diverges, single_binding};
use super::value::Value;
use proc_macro2::Ident;
use quote::quote;
use syn::Expr;

impl Walker<'_> {
    /// Goes on with what an evaluation came to; true if what comes after was walked too. `on_value`: what is done with
    /// a value, where that is not what is done with host code.
    pub fn settle_value(
        &mut self,
        value: Result<Value, Stop>,
        expr: &Expr,
        cont: &Cont,
        saved: Saved,
        on_value: Option<&Cont>,
    ) -> bool {
        match self.outcome(value, expr, cont, saved) {
            Some(Outcome::Value(value)) => {
                self.apply_value(on_value.unwrap_or(cont), value, expr);
                false
            }
            Some(outcome) => {
                self.apply_outcome(cont, outcome);
                false
            }
            None => true,
        }
    }

    /// What an evaluation came to. `None`: what comes after was walked too, or never runs.
    pub fn outcome(&mut self, value: Result<Value, Stop>, expr: &Expr, cont: &Cont, saved: Saved) -> Option<Outcome> {
        match self.value_or_code(value, expr, cont, saved) {
            Some(Outcome::Host(code)) if diverges(expr) => {
                self.end_path(code);
                None
            }
            outcome => outcome,
        }
    }

    fn value_or_code(&mut self, value: Result<Value, Stop>, expr: &Expr, cont: &Cont, saved: Saved) -> Option<Outcome> {
        match value {
            Ok(Value::Host(ty)) => {
                let code = self.host_code(expr, ty, cont);
                Some(Outcome::Host(code))
            }
            Ok(Value::Dim(_)) if !matches!(cont, Cont::Let(..)) && self.is_other_integer(expr) => {
                Some(Outcome::Value(self.capture_number(expr)))
            }
            Ok(value) => Some(Outcome::Value(value)),
            Err(Stop::Silent) => {
                self.silent = true;
                None
            }
            Err(Stop::Flag(flag)) => {
                self.restore(saved);
                self.split(&flag, expr, cont)
            }
            Err(Stop::Break(kind, at, reason)) => {
                self.restore(saved);
                Some(Outcome::Host(self.broken(kind, at, &reason, expr, cont)))
            }
        }
    }

    /// Does with a value what `cont` says, and walks what comes after.
    pub fn resume(&mut self, cont: &Cont, outcome: Outcome) {
        if self.is_over() {
            return;
        }
        if self.is_mistyped(cont, &outcome) {
            return;
        }
        match cont {
            Cont::Return => self.finish(outcome),
            Cont::Let(_, rest) | Cont::Then(rest) | Cont::Assign(_, rest) => {
                self.apply_outcome(cont, outcome);
                self.stmts(rest.stmts, rest.next);
            }
            Cont::Scope(vars, next) => {
                self.leave_scope(*vars);
                self.resume(next, outcome);
            }
            Cont::Turn(unrolled, turn, next) => {
                self.run_host(outcome);
                self.leave_scope(unrolled.vars);
                self.turn(unrolled, turn + 1, next);
            }
            Cont::End(region) => self.end_region(region, outcome),
            Cont::Leave(region, label) => self.leave(region, *label, outcome),
            Cont::Arm(arm) => self.end_arm(arm, outcome),
        }
    }

    /// Runs host code for its effect.
    pub fn run_host(&mut self, outcome: Outcome) {
        if let Outcome::Host(HostCode { tokens, changes, .. }) = outcome {
            self.flow.steps.push(Step::Host(quote!(#tokens;)));
            self.forget_all(&changes);
        }
    }

    fn apply_value(&mut self, cont: &Cont, value: Value, expr: &Expr) {
        // Numbers and flags stay variables of the host too, for their types follow from how they are used.
        if let Cont::Let(local, _) = cont
            && value.is_number()
        {
            let init = self.without_queries(expr);
            self.sync(&mentions(&init), &Names::new());
            self.shadow(&local.pat);
            let (attrs, pat) = (&local.attrs, &local.pat);
            let is_other = self.is_other_integer(expr);
            self.flow.steps.push(Step::Host(quote!(#(#attrs)* let #pat = #init;)));
            return match (is_other, single_binding(pat), value) {
                (true, Some(binding), Value::Dim(dim)) if binding.mutability.is_none() => {
                    self.declare_number(&binding.ident, dim, false)
                }
                (_, _, value) => self.bind_numbers(pat, value),
            };
        }
        self.apply_outcome(cont, Outcome::Value(value));
    }

    /// Whether a value is not what its place is written as; rustc says so.
    fn is_mistyped(&mut self, cont: &Cont, outcome: &Outcome) -> bool {
        if let Outcome::Value(value) = outcome
            && self.host_ty_of(value).contradicts(&self.expected(cont))
        {
            self.silent = true;
        }
        self.silent
    }

    /// Does with an outcome what `cont` says, and nothing after it.
    pub fn apply_outcome(&mut self, cont: &Cont, outcome: Outcome) {
        if self.is_mistyped(cont, &outcome) {
            return;
        }
        match (cont, outcome) {
            (Cont::Let(local, rest), outcome) => {
                match outcome {
                    Outcome::Value(value) => self.bind(&local.pat, value, &rest.free()),
                    Outcome::Host(code) => self.bind_host(local, code),
                }
                self.learn_from_use(&local.pat, rest.stmts);
            }
            (Cont::Assign(target, _), outcome) => self.assign(target, outcome),
            (_, outcome) => self.run_host(outcome),
        }
    }

    fn assign(&mut self, target: &Ident, outcome: Outcome) {
        let Some(index) = self.var_index(&Name::of(target)) else { return };
        match outcome {
            Outcome::Value(value) => {
                self.name_node(&value, target);
                let var = &mut self.flow.vars[index];
                var.value = value;
                var.source = None;
                var.dirty = var.bound;
            }
            Outcome::Host(HostCode { tokens, ty, needs_annotation, changes }) => {
                self.protect(&Name::of(target));
                let var = self.flow.vars[index].clone();
                let mutability = var.mutable.then(|| quote!(mut));
                self.flow.steps.push(Step::Host(match (var.bound, var.exclusive) {
                    (true, true) => quote!(*#target = #tokens;),
                    (true, false) => quote!(#target = #tokens;),
                    (false, _) => quote!(let #mutability #target = #tokens;),
                }));
                let var = &mut self.flow.vars[index];
                (var.bound, var.dirty) = (true, false);
                if matches!(var.value, Value::Unset) {
                    var.value = Value::Host(ty);
                    var.needs_annotation = needs_annotation;
                } else {
                    self.forget(index);
                }
                self.forget_all(&changes);
            }
        }
    }

    /// The function's value.
    fn finish(&mut self, outcome: Outcome) {
        let tokens = match outcome {
            Outcome::Value(value) => {
                let wanted = value.tensors();
                self.flush(&Names::new(), &wanted);
                self.sync_dirty(&Names::new());
                self.returned = self.returned(&value);
                match &value {
                    Value::Tuple(parts) if parts.is_empty() => quote!(),
                    Value::Poison => return,
                    value => self.moved_tokens(value),
                }
            }
            Outcome::Host(HostCode { tokens, .. }) => {
                self.flush(&Names::new(), &[]);
                self.sync_dirty(&Names::new());
                tokens
            }
        };
        match (self.regions > 0, tokens.is_empty()) {
            (true, _) => self.flow.steps.push(Step::Host(quote!(return #tokens;))),
            (false, true) => self.flow.steps.push(Step::Host(quote!(return;))),
            (false, false) => self.flow.steps.push(Step::Value(tokens)),
        }
    }
}
