//! `value_and_grad` inside of a captured function: its closure is read in place, between nodes that mark its variables and
//! one that holds the place of its gradients. The autodiff stage derives them there.
//!
//! This must not be seen: a closure that a graph cannot hold runs on the tape, as host code.

use super::Walker;
use super::cont::Cont;
use super::eval::{Eval, Stop, text};
use super::head::conjuncts;
use super::names::{Name, Names, mentions};
use super::program::Step;
use super::select::Arm;
use super::syntax::{Jumps, has_effects, is_flat, strip};
use super::types::HostTy;
use super::value::{Maker, TensorKey, Value};
use crate::diag::BreakKind;
use crate::op::{Op, Val};
use crate::types::Ty;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::cell::RefCell;
use syn::{Expr, ExprCall, ExprClosure, ExprIf, Member, Pat};

/// The closure that is being captured.
#[derive(Default)]
pub struct Closure {
    /// How many variables there are outside of it, if there is one.
    outside: Option<usize>,
    /// Why it cannot be: a graph does not hold it, or a host flag has to be known first.
    pub refused: Option<Stop>,
}

impl Closure {
    /// Whether the walk is inside of one.
    pub fn is_read(&self) -> bool {
        self.outside.is_some()
    }
}

/// The parameters and the function of `value_and_grad(params, function)`.
pub fn differentiation(call: &ExprCall) -> Option<(&Expr, &Expr)> {
    let Expr::Path(path) = strip(&call.func) else { return None };
    let segments = &path.path.segments;
    // Beside a function stands one of this name, too.
    let is_ours = segments.len() == 1 || segments.first().is_some_and(|first| first.ident == "fuse_runtime");
    let is_named = segments.last().is_some_and(|last| last.ident == "value_and_grad");
    let mut args = call.args.iter();
    let pair = args.next().zip(args.next()).filter(|_| args.next().is_none());
    pair.filter(|_| is_ours && is_named).map(|(params, function)| (params, strip(function)))
}

impl Walker<'_> {
    /// The value and the gradients of a closure that is written in the call.
    pub fn differentiated(&mut self, whole: &Expr, params: &Expr, function: &Expr) -> Eval<Value> {
        let Expr::Closure(closure) = function else {
            let reason = format!("`{}` is no closure that is written here", text(function));
            return Err(Stop::at(BreakKind::GRADIENT, function, reason));
        };
        let given = self.eval(params, &HostTy::Unknown)?;
        if matches!(given, Value::Poison) {
            return Ok(Value::Poison);
        }
        let Some(vars) = self.variables(&given, params)? else {
            let reason = format!("`{}` has parts that are not known to be tensors", text(params));
            return Err(Stop::at(BreakKind::TYPE, params, reason));
        };
        let value = self.closure_value(closure, vars.clone())?;
        self.with_gradients(whole, value, vars)
    }

    /// What gradients are taken for, a variable for each tensor. `None` if that is not seen.
    fn variables(&mut self, given: &Value, params: &Expr) -> Eval<Option<Value>> {
        let parts = |w: &mut Self, parts: &[Value]| {
            let vars = parts.iter().map(|part| w.variables(part, params));
            vars.collect::<Eval<Option<Vec<Value>>>>()
        };
        Ok(match given {
            Value::Tensor { key, .. } if self.tensor(*key).ty.dtype.is_float() => {
                let key = self.variable(*key, params);
                Some(Value::Tensor { key, by_ref: false })
            }
            // Integers have no gradients, which rustc says.
            Value::Tensor { .. } => return Err(Stop::Silent),
            Value::Tuple(list) => parts(self, list)?.map(Value::Tuple),
            Value::Array(list) => parts(self, list)?.map(Value::Array),
            _ => None,
        })
    }

    fn variable(&mut self, key: TensorKey, params: &Expr) -> TensorKey {
        let val = self.val(key);
        let ty = self.tensor(key).ty.clone();
        self.push_marker("variable", vec![val], vec![ty], params)
    }

    fn push_marker(&mut self, op: &str, args: Vec<Val>, outs: Vec<Ty>, at: &Expr) -> TensorKey {
        let pending = &mut self.flow.pending;
        pending.graph.places.push(crate::diag::place(at));
        let val = pending.graph.push_typed(Op::named(op), args, vec![], outs);
        self.add_pending(val)
    }

    /// Walks the closure in place.
    fn closure_value(&mut self, closure: &ExprClosure, vars: Value) -> Eval<Value> {
        let [pat] = closure.inputs.iter().collect::<Vec<_>>()[..] else { return Err(Stop::Silent) };
        let jumps = Jumps::of(&closure.body);
        if jumps.returns || jumps.tries {
            return Err(Stop::at(BreakKind::GRADIENT, closure, "the closure may return early"));
        }
        let outer = Outer::of(self);
        let outside = self.closure.outside.replace(outer.vars);
        let budget = std::mem::replace(&mut self.flow.budget, 1);
        let end = Arm { value: RefCell::new(None), live: outer.names.clone() };
        self.bind(pat, vars, &outer.names);
        match closure.body.as_ref() {
            Expr::Block(block) if block.label.is_none() => self.stmts(&block.block.stmts, &Cont::Arm(&end)),
            body => self.deliver(body, &Cont::Arm(&end)),
        }
        self.closure.outside = outside;
        self.live.clone_from(&outer.live);
        if let Some(stop) = self.closure.refused.take() {
            return Err(stop);
        }
        if self.silent {
            return Err(Stop::Silent);
        }
        if let Some((reason, at)) = outer.what_stops(self, pat, closure) {
            return Err(Stop::at(
                BreakKind::GRADIENT,
                &at,
                format!("{reason}, so a tape follows this `value_and_grad`"),
            ));
        }
        self.leave_scope(outer.vars);
        self.flow.budget = budget;
        let made_by_host = || Stop::at(BreakKind::GRADIENT, &closure.body, "host code makes the closure's value");
        end.value.take().ok_or_else(made_by_host)
    }

    /// Adds the gradients to a closure's value.
    fn with_gradients(&mut self, whole: &Expr, value: Value, vars: Value) -> Eval<Value> {
        match value {
            Value::Made(Maker::Call(ok), mut parts) if ok.to_string() == "Ok" && parts.len() == 1 => {
                let inner = self.with_gradients(whole, parts.remove(0), vars)?;
                Ok(Value::Made(Maker::Call(ok), vec![inner]))
            }
            Value::Poison => Ok(Value::Poison),
            value => {
                let loss = loss_of(&value).ok_or_else(|| {
                    Stop::at(BreakKind::GRADIENT, whole, "the closure's value is no tensor that is seen")
                })?;
                let ty = &self.tensor(loss).ty;
                // rustc says that a value is of one number.
                if ty.rank() != 0 || !ty.dtype.is_float() {
                    return Err(Stop::Silent);
                }
                let gradients = self.gradients(whole, loss, vars);
                Ok(Value::Tuple(vec![value, gradients]))
            }
        }
    }

    /// The gradients of a value, in the shape of its variables.
    fn gradients(&mut self, whole: &Expr, value: TensorKey, vars: Value) -> Value {
        let keys = vars.tensors();
        let args = std::iter::once(value).chain(keys.iter().copied()).map(|key| self.val(key)).collect();
        let types = keys.iter().map(|&key| self.tensor(key).ty.clone()).collect();
        let first = self.push_marker("gradients", args, types, whole);
        let node = self.val(first).node;
        let others = (1..keys.len() as u32).map(|out| self.add_pending(Val { node, out }));
        let mut keys = std::iter::once(first).chain(others.collect::<Vec<_>>());
        in_shape_of(&vars, &mut keys)
    }

    /// The closure is read again on each of two paths, on which a flag outside of it is known.
    pub fn leave_for_flag(&mut self, flag: &Expr) {
        let outside = self.closure.outside.unwrap_or_default();
        let is_outer = |name: &Name| self.var_index(name).is_none_or(|index| index < outside);
        let is_constant = |name: &Name| self.var(name).is_none_or(|var| !var.mutable && !var.exclusive);
        let stop = match mentions(flag).iter().all(|name| is_outer(name) && is_constant(name)) {
            true => Stop::Flag(Box::new(flag.clone())),
            false => {
                let reason = format!("`{}` decides inside of the closure what is computed", text(flag));
                Stop::at(BreakKind::GRADIENT, flag, reason)
            }
        };
        self.closure.refused.get_or_insert(stop);
    }

    /// A branch on a host value is a flag; one on tensor data is followed on the tape, since what is not taken must not
    /// have gradients.
    pub fn leave_for_branch(&mut self, branch: &ExprIf) {
        let mut parts = Vec::new();
        conjuncts(&branch.cond, &mut parts);
        let binds = parts.iter().any(|part| matches!(part, Expr::Let(_)));
        if !binds && !self.mentions_tensor(&branch.cond) && !has_effects(&branch.cond) {
            return self.leave_for_flag(&branch.cond);
        }
        let reason = format!("`{}` decides on the host which way the closure goes", text(&branch.cond));
        self.closure.refused.get_or_insert(Stop::at(BreakKind::GRADIENT, &branch.cond, reason));
    }

    /// `value_and_grad(..).1`, and parts of it.
    pub fn part_of_gradients(&mut self, expr: &Expr) -> Option<Eval<Value>> {
        match strip(expr) {
            Expr::Call(call) if differentiation(call).is_some() && self.mentions_tensor(expr) => {
                Some(self.eval(expr, &HostTy::Unknown))
            }
            Expr::Field(field) => {
                let Member::Unnamed(member) = &field.member else { return None };
                match self.part_of_gradients(&field.base)? {
                    Ok(Value::Tuple(parts)) => parts.into_iter().nth(member.index as usize).map(Ok),
                    Ok(Value::Poison) => Some(Ok(Value::Poison)),
                    Ok(_) => None,
                    Err(stop) => Some(Err(stop)),
                }
            }
            _ => None,
        }
    }

    /// The type of a call on the tape for these parameters, as far as they tell it.
    pub fn gradients_type(&self, params: &Value) -> HostTy {
        HostTy::Tuple(vec![HostTy::Unknown, owned(self.host_ty_of(params))])
    }
}

/// What there is before a closure is walked.
struct Outer {
    vars: usize,
    names: Names,
    live: Names,
    segments: usize,
    steps: usize,
    breaks: usize,
}

impl Outer {
    fn of(walker: &Walker) -> Outer {
        Outer {
            vars: walker.flow.vars.len(),
            names: walker.flow.vars.iter().map(|var| var.name.clone()).collect(),
            live: walker.live.clone(),
            segments: walker.segments.len(),
            steps: walker.flow.steps.len(),
            breaks: walker.diag.break_count(),
        }
    }

    /// Why what was walked since then cannot stand in the place of the call, and where that is.
    fn what_stops(&self, walker: &Walker, pat: &Pat, closure: &ExprClosure) -> Option<(String, TokenStream)> {
        if let Some(found) = walker.diag.break_after(self.breaks) {
            return Some(found);
        }
        let steps = walker.flow.steps.get(self.steps..).unwrap_or_default();
        let stays =
            |step: &Step| matches!(step, Step::Host(_) | Step::Capture { .. } | Step::Scalar { .. } | Step::Size(_));
        if walker.segments.len() != self.segments || !steps.iter().all(stays) {
            return Some(("the closure is more than one graph".to_owned(), closure.body.to_token_stream()));
        }
        // Its host bindings come to stand outside of it: they may hide nothing there, nor hold what is to be dropped.
        let host = steps.iter().filter_map(|step| if let Step::Host(tokens) = step { Some(tokens) } else { None });
        let bound: Vec<Names> = host.map(|tokens| bound_by(tokens.clone())).collect();
        let hides = bound.iter().flatten().any(|name| self.names.contains(name));
        let flat = match closure.body.as_ref() {
            Expr::Block(block) => bound.is_empty() || is_flat(&block.block.stmts, &Names::new()),
            _ => true,
        };
        (hides || !flat).then(|| ("the closure has host bindings of its own".to_owned(), pat.to_token_stream()))
    }
}

/// The names that a statement of the emitted code binds, if it is a `let`.
fn bound_by(statement: TokenStream) -> Names {
    let mut tokens = statement.into_iter();
    match tokens.next() {
        Some(TokenTree::Ident(first)) if first == "let" => {
            let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '=');
            mentions(&tokens.take_while(|token| !is_end(token)).collect::<TokenStream>())
        }
        _ => Names::new(),
    }
}

/// The tensor of a closure's value that gradients are of: the value, or the first of a tuple.
fn loss_of(value: &Value) -> Option<TensorKey> {
    match value {
        Value::Tensor { key, .. } => Some(*key),
        Value::Tuple(parts) if parts.len() > 1 => match parts[0] {
            Value::Tensor { key, .. } => Some(key),
            _ => None,
        },
        _ => None,
    }
}

/// Values in the place of the tensors of another.
fn in_shape_of(value: &Value, keys: &mut impl Iterator<Item = TensorKey>) -> Value {
    match value {
        Value::Tuple(parts) => Value::Tuple(parts.iter().map(|part| in_shape_of(part, keys)).collect()),
        Value::Array(parts) => Value::Array(parts.iter().map(|part| in_shape_of(part, keys)).collect()),
        _ => Value::Tensor { key: keys.next().expect("there is one for each tensor"), by_ref: false },
    }
}

/// The type of values where references to them are.
fn owned(ty: HostTy) -> HostTy {
    match ty {
        HostTy::Ref(inner, _) => owned(*inner),
        HostTy::Tuple(parts) => HostTy::Tuple(parts.into_iter().map(owned).collect()),
        HostTy::List(part) => HostTy::List(Box::new(owned(*part))),
        other => other,
    }
}
