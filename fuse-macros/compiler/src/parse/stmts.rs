//! Statements, one after the other, and what happens with the value of each.

use super::Walker;
use super::branch;
use super::eval::{Stop, symbol, text};
use super::flow::Saved;
use super::loops::{Region, Unrolled};
use super::names::{Name, Names, as_ident, bound, free, mentions};
use super::program::{Piece, Step};
use super::select::Arm;
use super::syntax::{Jumps, assigned, has_effects, is_compound, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value, Var};
use crate::diag::BreakKind;
use crate::op::{self, Op};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprMethodCall, Item, Lifetime, Local, Pat, Stmt};

/// What is done with the value of an expression, and what comes after.
pub enum Cont<'a> {
    /// It is the function's.
    Return,
    /// It is bound.
    Let(&'a Local, Rest<'a>),
    /// It is dropped.
    Then(Rest<'a>),
    /// It is assigned to a variable.
    Assign(&'a Ident, Rest<'a>),
    /// It is the value of a block without braces, whose variables go.
    Scope(usize, &'a Cont<'a>),
    /// An iteration of an unrolled loop ends.
    Turn(&'a Unrolled<'a>, usize, &'a Cont<'a>),
    /// A block of host control flow ends.
    End(&'a Region<'a>),
    /// It is one of two that the device selects from.
    Arm(&'a Arm),
    /// `break` with a value.
    Leave(&'a Region<'a>, Option<&'a Lifetime>),
}

/// The statements after one, and what comes after them.
#[derive(Clone, Copy)]
pub struct Rest<'a> {
    stmts: &'a [Stmt],
    next: &'a Cont<'a>,
}

/// What an expression came to.
pub enum Outcome {
    /// A value capture sees through.
    Value(Value),
    /// Host code.
    Host(HostCode),
}

/// An expression that is left for the host.
pub struct HostCode {
    /// The expression; every variable it reads is up to date.
    pub tokens: TokenStream,
    /// Its type.
    pub ty: HostTy,
    /// Whether it may be a tensor, so that a binding needs an annotation before tensor ops use it.
    pub needs_annotation: bool,
    /// Variables that it may change.
    pub changes: Names,
}

impl<'a> Cont<'a> {
    /// The names that are read after the value.
    pub fn free(&self) -> Names {
        match self {
            Cont::Return => Names::new(),
            Cont::Let(local, rest) => {
                let mut names = rest.free();
                for ident in bound(&local.pat) {
                    names.remove(&Name::of(&ident));
                }
                names
            }
            Cont::Then(rest) => rest.free(),
            Cont::Assign(target, rest) => {
                let mut names = rest.free();
                names.remove(&Name::of(target));
                names
            }
            Cont::Scope(_, next) => next.free(),
            Cont::Turn(unrolled, turn, next) => {
                let mut names = next.free();
                if turn + 1 < unrolled.items.len() {
                    names.extend(mentions(unrolled.body));
                }
                names
            }
            Cont::End(region) | Cont::Leave(region, _) => region.live.clone(),
            Cont::Arm(arm) => arm.live.clone(),
        }
    }

    /// The loop a jump with this label means.
    pub fn target(&self, label: Option<&Lifetime>) -> Option<&Cont<'a>> {
        let own = match self {
            Cont::Turn(unrolled, ..) => label.is_none_or(|label| unrolled.label.as_ref() == Some(label)),
            Cont::End(region) => region.is_loop && label.is_none_or(|label| region.label.as_ref() == Some(label)),
            _ => false,
        };
        if own { Some(self) } else { self.next().and_then(|next| next.target(label)) }
    }

    fn next(&self) -> Option<&Cont<'a>> {
        match self {
            Cont::Return | Cont::Arm(_) => None,
            Cont::Let(_, rest) | Cont::Then(rest) | Cont::Assign(_, rest) => Some(rest.next),
            Cont::Scope(_, next) | Cont::Turn(_, _, next) => Some(next),
            Cont::End(region) | Cont::Leave(region, _) => region.outside(),
        }
    }
}

impl Rest<'_> {
    fn free(&self) -> Names {
        free(self.stmts, self.next.free())
    }
}

impl Walker<'_> {
    /// Walks a block in place, and goes on with `cont` and its value.
    pub fn block(&mut self, block: &Block, cont: &Cont) {
        let scope = Cont::Scope(self.flow.vars.len(), cont);
        self.stmts(&block.stmts, &scope);
    }

    /// Walks statements, and goes on with `cont` and the value of the last.
    pub fn stmts(&mut self, mut stmts: &[Stmt], cont: &Cont) {
        while let Some((stmt, rest)) = stmts.split_first() {
            if self.is_over() {
                return;
            }
            let after = Rest { stmts: rest, next: cont };
            let done = match stmt {
                Stmt::Local(local) => self.local(local, after),
                Stmt::Item(item) => self.item(item),
                Stmt::Expr(expr, None) if rest.is_empty() => {
                    self.deliver(expr, cont);
                    return;
                }
                Stmt::Expr(expr, _) => self.expression(expr, after),
                Stmt::Macro(mac) => {
                    let expr = Expr::Macro(syn::ExprMacro { attrs: mac.attrs.clone(), mac: mac.mac.clone() });
                    if rest.is_empty() && mac.semi_token.is_none() {
                        self.deliver(&expr, cont);
                        return;
                    }
                    self.expression(&expr, after)
                }
            };
            if done {
                return;
            }
            stmts = rest;
        }
        self.resume(cont, Outcome::Value(Value::Tuple(vec![])));
    }

    /// Walks a `let`; true if what comes after was walked too.
    fn local(&mut self, local: &Local, rest: Rest) -> bool {
        match &local.init {
            None => {
                for ident in bound(&local.pat) {
                    let mutable = matches!(&local.pat, Pat::Ident(pat) if pat.mutability.is_some());
                    self.declare(Var::unbound(&ident, Value::Unset, mutable));
                }
                // Its type may be all that tells what a later assignment gives.
                false
            }
            Some(init) if init.diverge.is_some() => {
                self.verbatim(local, &init.expr, rest);
                false
            }
            Some(init) => self.one(&init.expr, &Cont::Let(local, rest)),
        }
    }

    /// A `let .. else`: host code as a whole.
    fn verbatim(&mut self, local: &Local, init: &Expr, rest: Rest) {
        let names = mentions(local);
        let mut live = rest.free();
        live.extend(names.iter().cloned());
        let ty = self.place_type(init);
        let reads = ty.is_none() && self.mentions_tensor(init);
        if self.any_tensor(&names) || !self.flow.pending.is_empty() {
            self.diag.graph_break(BreakKind::EXIT, init, "a `let .. else` may leave the function or loop");
        }
        self.flush(&live, &[]);
        self.sync(&names, &live);
        self.sync_dirty(&live);
        self.shadow(&local.pat);
        self.flow.steps.push(Step::Host(quote!(#local)));
        self.bind_typed(&local.pat, &ty.unwrap_or(HostTy::Unknown), reads);
    }

    fn item(&mut self, item: &Item) -> bool {
        self.flow.steps.push(Step::Host(item.to_token_stream()));
        if let Item::Const(constant) = item
            && let Some(dim) = self.dim(&constant.expr)
        {
            self.declare(Var::bound(&constant.ident, Value::Dim(dim), false));
        }
        false
    }

    /// Walks an expression statement; true if what comes after was walked too.
    fn expression(&mut self, expr: &Expr, rest: Rest) -> bool {
        match strip(expr) {
            Expr::Assign(assign) => match self.target(&assign.left) {
                Some(target) => self.one(&assign.right, &Cont::Assign(&target, rest)),
                None => self.one(expr, &Cont::Then(rest)),
            },
            Expr::Binary(binary) if is_compound(binary) => match self.target(&binary.left) {
                Some(target) => {
                    let symbol = symbol(&binary.op);
                    let cont = Cont::Assign(&target, rest);
                    self.live = mentions(expr);
                    self.live.extend(cont.free());
                    let saved = self.save();
                    let value = self.operation(expr, &binary.left, &symbol, &binary.right);
                    self.settle_value(value, expr, &Cont::Then(rest), saved, Some(&cont))
                }
                None => self.one(expr, &Cont::Then(rest)),
            },
            Expr::MethodCall(call) => match self.write(call) {
                Some((op, target, key)) => {
                    let cont = Cont::Assign(&target, rest);
                    self.live = mentions(expr);
                    self.live.extend(cont.free());
                    let saved = self.save();
                    let args = call.args.iter().collect();
                    let value = self.named_op(op, expr, Some((key, &call.receiver)), args, None, None);
                    self.settle_value(value, expr, &Cont::Then(rest), saved, Some(&cont))
                }
                None => self.one(expr, &Cont::Then(rest)),
            },
            _ => self.one(expr, &Cont::Then(rest)),
        }
    }

    /// A method that writes to a tensor variable: the op gives the variable its new value.
    fn write(&self, call: &ExprMethodCall) -> Option<(Op, Ident, TensorKey)> {
        let op = Op::find(&call.method.to_string()).filter(|op| op.call == op::Call::Mutating)?;
        let ident = as_ident(strip(&call.receiver))?;
        let var = self.var(&Name::of(ident))?;
        match var.value {
            Value::Tensor { key, by_ref } if var.exclusive || (var.mutable && !by_ref) => {
                Some((op, ident.clone(), key))
            }
            _ => None,
        }
    }

    /// The tensor variable that an assignment gives a new value: `y`, or `*y` of a `&mut Tensor`.
    fn target(&self, left: &Expr) -> Option<Ident> {
        let inner = match strip(left) {
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => &unary.expr,
            other => other,
        };
        let ident = as_ident(inner)?;
        let var = self.var(&Name::of(ident))?;
        let through = !std::ptr::eq(inner, strip(left));
        let tensor = match &var.value {
            Value::Tensor { .. } | Value::Unset | Value::Poison => var.exclusive == through,
            value => value.has_tensor() && !through && !matches!(value, Value::Host(_)),
        };
        tensor.then(|| ident.clone())
    }

    /// Walks one expression; true if what comes after was walked too.
    fn one(&mut self, expr: &Expr, cont: &Cont) -> bool {
        if branch::is_control(expr) {
            if self.touches(expr, cont) {
                self.control(expr, cont);
                return true;
            }
            self.host_statement(expr, cont);
            return false;
        }
        self.simple(expr, cont)
    }

    /// Walks an expression and goes on with its value.
    pub fn deliver(&mut self, expr: &Expr, cont: &Cont) {
        if self.is_over() {
            return;
        }
        if branch::is_control(expr) && self.touches(expr, cont) {
            return self.control(expr, cont);
        }
        let saved = self.save();
        self.live = mentions(expr);
        self.live.extend(cont.free());
        let value = self.eval(expr, &self.expected(cont));
        if let Some(outcome) = self.outcome(value, expr, cont, saved) {
            self.resume(cont, outcome);
        }
    }

    /// Control flow that touches no tensor: it runs where it stands.
    fn host_statement(&mut self, expr: &Expr, cont: &Cont) {
        let code = self.host_code(expr, HostTy::Unknown, cont);
        self.apply_outcome(cont, Outcome::Host(code));
    }

    /// Walks an expression that is no control flow; true if what comes after was walked too.
    fn simple(&mut self, expr: &Expr, cont: &Cont) -> bool {
        let saved = self.save();
        self.live = mentions(expr);
        self.live.extend(cont.free());
        self.expected_count = expected_count(cont);
        let value = self.eval(expr, &self.expected(cont));
        self.expected_count = None;
        self.settle_value(value, expr, cont, saved, None)
    }

    fn settle_value(
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

    /// What an evaluation came to. `None`: what comes after was walked too.
    fn outcome(&mut self, value: Result<Value, Stop>, expr: &Expr, cont: &Cont, saved: Saved) -> Option<Outcome> {
        match value {
            Ok(Value::Host(ty)) => {
                let code = self.host_code(expr, ty, cont);
                Some(Outcome::Host(code))
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

    fn host_code(&mut self, expr: &Expr, ty: HostTy, cont: &Cont) -> HostCode {
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

    fn broken(&mut self, kind: BreakKind, at: TokenStream, reason: &str, expr: &Expr, cont: &Cont) -> HostCode {
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
    fn changed(&self, expr: &Expr) -> Names {
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

    pub fn forget_all(&mut self, changes: &Names) {
        for name in changes {
            if let Some(index) = self.var_index(name) {
                self.forget(index);
            }
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
            self.flow.steps.push(Step::Host(quote!(#(#attrs)* let #pat = #init;)));
            return self.bind_numbers(pat, value);
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

    fn apply_outcome(&mut self, cont: &Cont, outcome: Outcome) {
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

    /// Two paths, on one of which a flag is true; both walk the expression again.
    fn split(&mut self, flag: &Expr, expr: &Expr, cont: &Cont) -> Option<Outcome> {
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

    /// The type that the place of a value has, if it is written.
    pub fn expected(&self, cont: &Cont) -> HostTy {
        match cont {
            Cont::Return => self.returns.clone(),
            Cont::Let(local, _) => match &local.pat {
                Pat::Type(typed) => self.generics.host_ty(&typed.ty),
                _ => HostTy::Unknown,
            },
            Cont::Assign(target, _) => {
                self.var(&Name::of(target)).map_or(HostTy::Unknown, |var| self.host_ty_of(&var.value))
            }
            Cont::Scope(_, next) => self.expected(next),
            Cont::Then(_) | Cont::Turn(..) | Cont::Arm(_) => HostTy::Unknown,
            Cont::End(region) | Cont::Leave(region, _) => region.expected.clone(),
        }
    }
}

/// The variable of `flag` or `config.flag`.
fn root(flag: &Expr) -> Option<&Ident> {
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

/// How many parts a `let [a, b] = ..` takes.
fn expected_count(cont: &Cont) -> Option<usize> {
    let Cont::Let(local, _) = cont else { return None };
    let pat = match &local.pat {
        Pat::Type(typed) => &typed.pat,
        pat => pat,
    };
    match pat {
        Pat::Slice(slice) if !slice.elems.iter().any(|elem| matches!(elem, Pat::Rest(_))) => Some(slice.elems.len()),
        _ => None,
    }
}
