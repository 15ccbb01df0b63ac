//! `while` on tensor data whose turns are tensor ops alone: a graph for the first test, and one for a turn with the test
//! behind it. Which of them runs is decided by the runtime; it may be the device.
//!
//! This must not be seen: a turn may do nothing but give tensor variables new values of the types they had. Everything
//! else stays a loop of the host around graphs of its own.

use super::Walker;
use super::cont::{Cont, Outcome};
use super::flow::Flow;
use super::names::{Name, Names, mentions};
use super::program::{Launch, Loop, State, Step};
use super::region::header;
use super::select::{Arm, is_harmless, is_pure};
use super::value::{Home, Place, TensorInfo, TensorKey, Value};
use crate::diag::BreakKind;
use quote::quote;
use std::cell::RefCell;
use syn::{Expr, ExprBlock, ExprWhile};

/// Why the graph ends before such a loop.
pub const REASON: &str = "how often the loop runs is known only at run time";

impl Walker<'_> {
    /// Captures a loop and walks what comes after it. False: nothing has happened.
    pub fn device_loop(&mut self, expr: &Expr, each: &ExprWhile, cont: &Cont) -> bool {
        // A tape follows the turns that a host takes.
        if self.differentiated {
            return false;
        }
        let saved = self.save();
        match self.captured_loop(expr, each, cont) {
            Some(()) => {
                self.diag.graph_break(BreakKind::LOOP, header(expr), REASON);
                self.resume(cont, Outcome::Value(Value::Tuple(vec![])));
                true
            }
            None => {
                self.restore(saved);
                false
            }
        }
    }

    fn captured_loop(&mut self, expr: &Expr, each: &ExprWhile, cont: &Cont) -> Option<()> {
        let names = mentions(expr);
        let mut live = cont.free();
        live.extend(names.iter().cloned());
        let body = Expr::Block(ExprBlock { attrs: vec![], label: None, block: each.body.clone() });
        // A name that is bound in every turn anew hides none outside.
        let outside: Names = live.iter().filter(|name| self.var(name).is_some()).cloned().collect();
        if each.label.is_some() || !is_pure(&body, &outside) {
            return None;
        }
        self.flush(&live, &[]);
        self.sync(&names, &live);
        let (first, _, test) = self.aside(|w| Some((w.device_condition(&each.cond)?, vec![])))?;
        let (turn_first, state, turn) = self.aside(|w| {
            let state = w.turn_of(&body, outside)?;
            Some((w.device_condition(&each.cond)?, state))
        })?;
        self.flow.steps.extend(first.into_iter().chain(turn_first));
        self.run_loop(state, test, turn)
    }

    /// Walks what is one graph with a test as its last result, without going on from there: what to do before the launch,
    /// the variables it gives new values, in the order of the results, and the launch.
    fn aside(
        &mut self,
        walk: impl FnOnce(&mut Self) -> Option<(TensorKey, Vec<(Name, TensorKey)>)>,
    ) -> Option<(Vec<Step>, Vec<Name>, Launch)> {
        let outside = self.flow.clone();
        self.flow = Flow { steps: vec![], ..outside.clone() };
        let (test, state) = walk(self)?;
        let (state, mut wanted): (Vec<Name>, Vec<TensorKey>) = state.into_iter().unzip();
        wanted.push(test);
        let is_pending = |key: &TensorKey| matches!(self.tensor(*key).home, Home::Pending(_));
        if !wanted.iter().all(is_pending) {
            return None;
        }
        self.flush(&Names::new(), &wanted);
        let mut steps = std::mem::replace(&mut self.flow, outside).steps;
        match steps.pop() {
            // One tensor for two variables would be one result.
            Some(Step::Launch(launch)) if launch.outs.len() == wanted.len() && steps.iter().all(is_harmless) => {
                Some((steps, state, launch))
            }
            _ => None,
        }
    }

    /// Walks a turn: the variables that have new values after it, in the order of their declaration. `None` if it does
    /// anything else, or a value has another type than the variable.
    fn turn_of(&mut self, body: &Expr, live: Names) -> Option<Vec<(Name, TensorKey)>> {
        let before = self.flow.vars.clone();
        let end = Arm { value: RefCell::new(None), live };
        self.deliver(body, &Cont::Arm(&end));
        end.value.take()?;
        self.changed_since(&before).filter(|state| !state.is_empty())
    }

    /// Emits the loop; the variables it changes hold their last values behind it.
    fn run_loop(&mut self, names: Vec<Name>, test: Launch, turn: Launch) -> Option<()> {
        let mut state = Vec::new();
        for name in names {
            self.protect(&name);
            let index = self.var_index(&name)?;
            let var = &self.flow.vars[index];
            let Value::Tensor { key, .. } = var.value else { return None };
            let (ident, ty) = (var.ident.clone(), self.tensor(key).ty.clone());
            let own = ident.to_string();
            let read = turn.inputs.iter().position(|input| input.to_string() == own);
            state.push(State { local: ident.clone(), read, dtype: ty.dtype, rank: ty.rank() });
            let place = Place { tokens: quote!(#ident), by_ref: false, name: Some(name) };
            let key = self.add_tensor(TensorInfo { ty, home: Home::Host(place) });
            self.flow.vars[index].value = Value::Tensor { key, by_ref: false };
        }
        self.turns.insert(turn.segment);
        self.flow.steps.push(Step::Loop(Loop { state, test, turn }));
        Some(())
    }
}
