//! `if` on tensor data with cheap arms: both arms are computed, and the device selects. No break, no wait for the device.
//!
//! This must not be seen: an arm that is not taken may have no effect, fail on no value and check no extents, and what it
//! reads of the host must be there anyhow. Everything else stays a branch of the host.

use super::Walker;
use super::call::Call;
use super::cont::{Cont, Outcome};
use super::names::Names;
use super::operand::Operand;
use super::program::Step;
use super::syntax::{Jumps, has_effects, is_flat, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value, Var};
use crate::op::{Class, Op, OpEffect};
use crate::types::DType;
use proc_macro2::{TokenStream, TokenTree};
use std::cell::RefCell;
use syn::{BinOp, Expr, ExprBinary, ExprIf, UnOp};

/// The most ops an arm may have to be worth computing for nothing.
const MAX_OPS: usize = 8;

/// Where the value of an arm goes.
pub struct Arm {
    /// The value, once the arm was walked to its end.
    pub value: RefCell<Option<Value>>,
    /// The names read after it.
    pub live: Names,
}

/// What a graph and its host code had before an arm.
struct Before {
    nodes: usize,
    checks: usize,
    steps: usize,
    segments: usize,
}

impl Walker<'_> {
    /// Makes a branch a select, and walks what comes after it. False: nothing has happened.
    pub fn select(&mut self, branch: &ExprIf, cont: &Cont) -> bool {
        if self.differentiated {
            return false;
        }
        let saved = self.save();
        match self.selected(branch, &cont.free()) {
            Some(value) => {
                self.resume(cont, Outcome::Value(value));
                true
            }
            None => {
                self.restore(saved);
                false
            }
        }
    }

    fn selected(&mut self, branch: &ExprIf, live: &Names) -> Option<Value> {
        let (_, otherwise) = branch.else_branch.as_ref()?;
        let arms = [
            &Expr::Block(syn::ExprBlock { attrs: vec![], label: None, block: branch.then_branch.clone() }),
            otherwise.as_ref(),
        ];
        if arms.iter().any(|arm| !is_pure(arm, live)) {
            return None;
        }
        let condition = self.device_condition(&branch.cond)?;
        let vars = self.flow.vars.clone();
        let (then, then_vars) = self.cheap_arm(arms[0], live)?;
        self.flow.vars.clone_from(&vars);
        let (otherwise, other_vars) = self.cheap_arm(arms[1], live)?;
        let chosen = self.choose(branch, condition, &then, &otherwise)?;
        for (index, (then, otherwise)) in then_vars.iter().zip(&other_vars).enumerate() {
            self.flow.vars[index].value = self.choose(branch, condition, &then.value, &otherwise.value)?;
            self.flow.vars[index].dirty = then.dirty || otherwise.dirty;
        }
        Some(chosen)
    }

    /// `x.item() > 0.2`, `flag.item()` or `!flag.item()` as a tensor.
    pub fn device_condition(&mut self, cond: &Expr) -> Option<TensorKey> {
        match strip(cond) {
            Expr::Binary(binary) => self.device_comparison(cond, binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let operand = self.device_condition(&unary.expr)?;
                let call = Call::of(cond, Some((Operand::Tensor(operand), &unary.expr)), vec![]);
                self.tensor_of(Op::named("logical_not"), call)
            }
            flag => match self.device_scalar(flag)? {
                Operand::Tensor(key) if self.tensor(key).ty.dtype == DType::Bool => Some(key),
                _ => None,
            },
        }
    }

    fn device_comparison(&mut self, cond: &Expr, binary: &ExprBinary) -> Option<TensorKey> {
        let name = match binary.op {
            BinOp::Lt(_) => "lt",
            BinOp::Le(_) => "le",
            BinOp::Gt(_) => "gt",
            BinOp::Ge(_) => "ge",
            BinOp::Eq(_) => "eq",
            BinOp::Ne(_) => "ne",
            _ => return None,
        };
        let left = self.device_scalar(&binary.left)?;
        let right = self.device_scalar(&binary.right)?;
        if !matches!((&left, &right), (Operand::Tensor(_), _) | (_, Operand::Tensor(_))) {
            return None;
        }
        let call = Call::of(cond, Some((left, &binary.left)), vec![(right, &binary.right)]);
        self.tensor_of(Op::named(name), call)
    }

    fn tensor_of(&mut self, op: Op, call: Call) -> Option<TensorKey> {
        match self.apply(op, call).ok()? {
            Value::Tensor { key, .. } => Some(key),
            _ => None,
        }
    }

    /// `x.item()` as the tensor it reads, or a host scalar.
    fn device_scalar(&mut self, side: &Expr) -> Option<Operand> {
        match strip(side) {
            Expr::MethodCall(call) if call.method == "item" => {
                match self.eval(&call.receiver, &HostTy::Unknown).ok()? {
                    Value::Tensor { key, .. } if self.tensor(key).ty.rank() == 0 => Some(Operand::Tensor(key)),
                    _ => None,
                }
            }
            _ if self.mentions_tensor(side) || has_effects(side) => None,
            _ => self.operand(side).ok(),
        }
    }

    /// Walks an arm; gives its value and the variables after it, if it is worth computing for nothing.
    fn cheap_arm(&mut self, arm: &Expr, live: &Names) -> Option<(Value, Vec<Var>)> {
        let before = self.before();
        let end = Arm { value: RefCell::new(None), live: live.clone() };
        self.deliver(arm, &Cont::Arm(&end));
        let value = end.value.take()?;
        self.is_cheap_since(&before).then(|| (value, self.flow.vars.clone()))
    }

    /// An arm has come to its end.
    pub fn end_arm(&mut self, arm: &Arm, outcome: Outcome) {
        if let Outcome::Value(value) = outcome {
            arm.value.replace(Some(value));
        }
    }

    fn before(&self) -> Before {
        let graph = &self.flow.pending.graph;
        Before {
            nodes: graph.nodes.len(),
            checks: graph.checks.len(),
            steps: self.flow.steps.len(),
            segments: self.segments.len(),
        }
    }

    fn is_cheap_since(&self, before: &Before) -> bool {
        let graph = &self.flow.pending.graph;
        let (Some(nodes), Some(steps)) = (graph.nodes.get(before.nodes..), self.flow.steps.get(before.steps..)) else {
            return false;
        };
        let ops = nodes.iter().filter(|node| !matches!(node.op.class, Class::Source(_))).count();
        ops <= MAX_OPS
            && nodes.iter().all(|node| is_cheap(node.op) && node.op.effect != OpEffect::Rng)
            && (before.nodes..graph.nodes.len()).all(|node| !graph.may_fault(node as u32))
            && steps.iter().all(is_harmless)
            && graph.checks.len() == before.checks
            && self.segments.len() == before.segments
    }

    /// The value of the arm that is taken. `None`: the two differ in more than their elements.
    fn choose(&mut self, branch: &ExprIf, condition: TensorKey, then: &Value, otherwise: &Value) -> Option<Value> {
        match (then, otherwise) {
            (Value::Tensor { key: a, by_ref }, Value::Tensor { key: b, .. }) if a == b => {
                Some(Value::Tensor { key: *a, by_ref: *by_ref })
            }
            (Value::Tensor { key: a, .. }, Value::Tensor { key: b, .. }) => {
                if self.tensor(*a).ty != self.tensor(*b).ty {
                    return None;
                }
                let cond = branch.cond.as_ref();
                let operands = vec![(Operand::Tensor(*a), cond), (Operand::Tensor(*b), cond)];
                let call = Call::of(cond, Some((Operand::Tensor(condition), cond)), operands);
                self.apply(Op::named("where_cond"), call).ok()
            }
            (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
                let parts = a.iter().zip(b).map(|(a, b)| self.choose(branch, condition, a, b));
                parts.collect::<Option<Vec<_>>>().map(Value::Tuple)
            }
            (then, otherwise) => (format!("{then:?}") == format!("{otherwise:?}")).then(|| then.clone()),
        }
    }
}

/// Whether an arm does nothing but compute, as far as its syntax tells.
pub fn is_pure(arm: &Expr, live: &Names) -> bool {
    let flat = match strip(arm) {
        Expr::Block(block) => is_flat(&block.block.stmts, live),
        Expr::If(_) => false,
        _ => true,
    };
    flat && !Jumps::of(arm).any() && !has_effects_but_assignments(arm)
}

/// Assignments to tensor variables are what an arm may do; any other host effect shows as a step.
fn has_effects_but_assignments(arm: &Expr) -> bool {
    match strip(arm) {
        Expr::Block(block) => block.block.stmts.iter().any(|stmt| match stmt {
            syn::Stmt::Expr(Expr::Assign(assign), _) => has_effects(&assign.right),
            syn::Stmt::Expr(Expr::Binary(binary), _) => has_effects(&binary.right),
            syn::Stmt::Expr(expr, _) => has_effects(expr),
            syn::Stmt::Local(local) => local.init.as_ref().is_some_and(|init| has_effects(&init.expr)),
            _ => true,
        }),
        other => has_effects(other),
    }
}

/// Elementwise ops of a few instructions (conversions have no text of their own), views and constants.
fn is_cheap(op: Op) -> bool {
    match op.class {
        Class::Elementwise => op.scalar.as_ref().is_none_or(|scalar| !scalar.heavy),
        Class::View(_) | Class::Source(_) => true,
        _ => false,
    }
}

/// Reading a size or a plain scalar variable cannot fail and changes nothing.
pub fn is_harmless(step: &Step) -> bool {
    match step {
        Step::Size(_) => true,
        Step::Scalar { value, .. } => is_plain(value.clone()),
        _ => false,
    }
}

fn is_plain(tokens: TokenStream) -> bool {
    tokens.into_iter().all(|tree| match tree {
        TokenTree::Ident(_) | TokenTree::Literal(_) => true,
        TokenTree::Punct(punct) => ['.', '-', '&', '*'].contains(&punct.as_char()),
        TokenTree::Group(_) => false,
    })
}
