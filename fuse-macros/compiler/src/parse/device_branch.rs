//! `if` on tensor data whose arms are tensor ops alone, but too many to compute for nothing: a graph for each arm, of which
//! the device may run the one that is taken. Asked for where calls are CUDA graphs, since the ops behind it are not fused
//! with those of the arms.
//!
//! This must not be seen: an arm may do nothing but give a value, and tensor variables new ones of the types they had.
//! Everything else stays a branch of the host.

use super::Walker;
use super::cont::{Cont, Outcome};
use super::flow::Flow;
use super::names::{Name, Names, mentions};
use super::program::{Branch, Joined, Launch, Out, State, Step};
use super::region::header;
use super::select::{Arm, is_harmless, is_pure};
use super::value::{Home, Place, TensorInfo, TensorKey, Value, Var};
use crate::diag::BreakKind;
use crate::types::Ty;
use quote::quote;
use std::cell::RefCell;
use syn::{Expr, ExprBlock, ExprIf};

/// Why the graph ends before such a branch.
const REASON: &str = "which arm is taken is known only at run time";

/// What an arm comes to.
struct Walked {
    /// Its graph, if it has one.
    launch: Option<Launch>,
    /// The variables it gives new values, in the order of their declaration, with the types of these.
    changed: Vec<(Name, Ty)>,
    /// The types of its value, which come behind those in the results of the graph.
    value: Vec<Ty>,
    /// Whether the value is a tuple.
    is_tuple: bool,
}

impl Walker<'_> {
    /// Captures a branch and walks what comes after it. False: nothing has happened.
    pub fn device_branch(&mut self, expr: &Expr, branch: &ExprIf, cont: &Cont) -> bool {
        if !self.graphs || self.differentiated || self.regions > 0 {
            return false;
        }
        let saved = self.save();
        match self.captured_branch(expr, branch, cont) {
            Some(value) => {
                self.diag.graph_break(BreakKind::ITEM, header(expr), REASON);
                self.resume(cont, Outcome::Value(value));
                true
            }
            None => {
                self.restore(saved);
                false
            }
        }
    }

    fn captured_branch(&mut self, expr: &Expr, branch: &ExprIf, cont: &Cont) -> Option<Value> {
        let names = mentions(expr);
        let mut live = cont.free();
        live.extend(names.iter().cloned());
        let outside: Names = live.iter().filter(|name| self.var(name).is_some()).cloned().collect();
        let then = Expr::Block(ExprBlock { attrs: vec![], label: None, block: branch.then_branch.clone() });
        let otherwise = branch.else_branch.as_ref().map(|(_, otherwise)| otherwise.as_ref());
        if [Some(&then), otherwise].into_iter().flatten().any(|arm| !is_pure(arm, &outside)) {
            return None;
        }
        let test = self.device_condition(&branch.cond)?;
        self.flush(&live, &[test]);
        self.sync(&names, &live);
        let then = self.arm_aside(Some(&then), &outside)?;
        let otherwise = self.arm_aside(otherwise, &outside)?;
        if (&then.value, then.is_tuple) != (&otherwise.value, otherwise.is_tuple) {
            return None;
        }
        self.run_branch(test, then, otherwise)
    }

    /// Walks an arm as a graph of its own, without going on from there.
    fn arm_aside(&mut self, arm: Option<&Expr>, live: &Names) -> Option<Walked> {
        let Some(arm) = arm else {
            return Some(Walked { launch: None, changed: vec![], value: vec![], is_tuple: true });
        };
        let outside = self.flow.clone();
        self.flow = Flow { steps: vec![], ..outside.clone() };
        let end = Arm { value: RefCell::new(None), live: live.clone() };
        self.deliver(arm, &Cont::Arm(&end));
        let value = end.value.take()?;
        let (is_tuple, parts) = match value {
            Value::Tuple(parts) => (true, parts),
            part => (false, vec![part]),
        };
        let tensor = |part: &Value| match part {
            Value::Tensor { key, by_ref: false } => Some(*key),
            _ => None,
        };
        let parts: Vec<TensorKey> = parts.iter().map(tensor).collect::<Option<_>>()?;
        let changed = self.changed_since(&outside.vars)?;
        let wanted: Vec<TensorKey> = changed.iter().map(|(_, key)| *key).chain(parts.iter().copied()).collect();
        let types =
            |w: &Self, keys: &[TensorKey]| keys.iter().map(|key| w.tensor(*key).ty.clone()).collect::<Vec<Ty>>();
        let value = types(self, &parts);
        let changed = changed.into_iter().map(|(name, key)| (name, self.tensor(key).ty.clone())).collect();
        let launch = self.launched_aside(&wanted, outside)?;
        Some(Walked { launch, changed, value, is_tuple })
    }

    /// The tensor variables that have new values. `None` where one has another type, or is no plain variable.
    pub fn changed_since(&self, before: &[Var]) -> Option<Vec<(Name, TensorKey)>> {
        let mut changed = Vec::new();
        for (old, new) in before.iter().zip(&self.flow.vars) {
            let (Value::Tensor { key: old_key, .. }, Value::Tensor { key, by_ref }) = (&old.value, &new.value) else {
                continue;
            };
            if key == old_key {
                continue;
            }
            let same = self.tensor(*key).ty == self.tensor(*old_key).ty;
            if !same || *by_ref || !old.bound || old.exclusive {
                return None;
            }
            changed.push((old.name.clone(), *key));
        }
        Some(changed)
    }

    /// Ends the graph of an arm, whose results are these, and goes back to the flow outside.
    fn launched_aside(&mut self, wanted: &[TensorKey], outside: Flow) -> Option<Option<Launch>> {
        let is_pending = |key: &TensorKey| matches!(self.tensor(*key).home, Home::Pending(_));
        if !wanted.iter().all(is_pending) || self.flow.pending.effects {
            return None;
        }
        self.flush(&Names::new(), wanted);
        let mut steps = std::mem::replace(&mut self.flow, outside).steps;
        let launch = match steps.pop() {
            None => None,
            Some(Step::Launch(launch)) => Some(launch),
            Some(other) => {
                steps.push(other);
                None
            }
        };
        // One tensor for two variables would be one result.
        let outs = launch.as_ref().map_or(0, |launch| launch.outs.len());
        if outs != wanted.len() || !steps.iter().all(is_harmless) {
            return None;
        }
        self.flow.steps.extend(steps);
        Some(launch)
    }

    /// Emits the branch: its value, and the variables it may change with the values they then have.
    fn run_branch(&mut self, test: TensorKey, then: Walked, otherwise: Walked) -> Option<Value> {
        let test = self.place(test).tokens.clone();
        let arms = [&then, &otherwise];
        let mut joined = Vec::new();
        let vars: Vec<Name> = self.flow.vars.iter().map(|var| var.name.clone()).collect();
        let is_changed = |name: &Name| arms.iter().any(|arm| arm.changed.iter().any(|(own, _)| own == name));
        for name in vars.iter().filter(|name| is_changed(name)) {
            let from = arms.map(|arm| arm.changed.iter().position(|(own, _)| own == name));
            self.protect(name);
            let index = self.var_index(name)?;
            let var = &self.flow.vars[index];
            let Value::Tensor { key, .. } = var.value else { return None };
            let (ident, ty) = (var.ident.clone(), self.tensor(key).ty.clone());
            let state = State { local: ident.clone(), read: None, dtype: ty.dtype, rank: ty.rank() };
            joined.push(Joined::Variable { state, from });
            let place = Place { tokens: quote!(#ident), by_ref: false, name: Some(name.clone()) };
            let key = self.add_tensor(TensorInfo { ty, home: Home::Host(place) });
            self.flow.vars[index].value = Value::Tensor { key, by_ref: false };
        }
        let mut parts = Vec::new();
        for (k, ty) in then.value.iter().enumerate() {
            let local = self.fresh("b");
            let out = Out { local: local.clone(), mutable: false, dtype: ty.dtype, rank: ty.rank() };
            joined.push(Joined::Value { out, from: arms.map(|arm| arm.changed.len() + k) });
            let place = Place { tokens: quote!(#local), by_ref: false, name: None };
            let key = self.add_tensor(TensorInfo { ty: ty.clone(), home: Home::Host(place) });
            parts.push(Value::Tensor { key, by_ref: false });
        }
        let is_tuple = then.is_tuple;
        if joined.is_empty() {
            return None;
        }
        let arms = [then.launch, otherwise.launch];
        self.flow.steps.push(Step::Branch(Branch { test, arms, joined }));
        match is_tuple {
            true => Some(Value::Tuple(parts)),
            false => parts.pop(),
        }
    }
}
