//! Statements, one after the other.

use super::cont::{Cont, Outcome, Rest, expected_count};
use super::eval::{Eval, symbol, text};
use super::names::{Name, as_ident, bound, mentions};
use super::program::Step;
use super::shape::is_index_type;
use super::syntax::{is_compound, strip};
use super::types::HostTy;
use super::value::{TensorKey, Value, Var};
use super::{Walker, branch};
use crate::diag::BreakKind;
use crate::op::{self, Build, Op, Rules};
use crate::types::Sym;
use proc_macro2::Ident;
use quote::{ToTokens, quote};
use syn::{Block, Expr, ExprBinary, ExprMethodCall, Item, Local, Pat, Stmt};

impl Walker<'_> {
    /// Walks a block in place, and goes on with `cont` and its value.
    pub fn block(&mut self, block: &Block, cont: &Cont) {
        let scope = Cont::Scope(self.flow.vars.len(), cont);
        self.all_stmts(&block.stmts, &scope);
    }

    /// Walks all statements of a block. Its items come first: they are visible before they are declared, and what is
    /// emitted behind a branch may stand in blocks of its own.
    pub fn all_stmts(&mut self, stmts: &[Stmt], cont: &Cont) {
        for stmt in stmts {
            if let Stmt::Item(item) = stmt {
                self.item(item);
            }
        }
        self.stmts(stmts, cont);
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
                Stmt::Item(_) => false,
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
    pub fn local(&mut self, local: &Local, rest: Rest) -> bool {
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

    fn item(&mut self, item: &Item) {
        self.flow.steps.push(Step::Host(item.to_token_stream()));
        if let Item::Const(constant) = item
            && let Some(dim) = self.dim(&constant.expr)
        {
            self.declare_number(&constant.ident, dim, is_index_type(&constant.ty));
        }
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
                    self.keeps_extents(&value, binary);
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

    /// What a compound assignment gives a variable has the extents the variable has: the other operand broadcasts to them.
    fn keeps_extents(&mut self, value: &Eval<Value>, binary: &ExprBinary) {
        let Ok(Value::Tensor { key, .. }) = value else { return };
        let result = self.val(*key);
        let graph = &self.flow.pending.graph;
        let node = graph.node(result);
        let [target, other] = node.args[..] else { return };
        let (target, other) = (&graph.ty(target).dims, &graph.ty(other).dims);
        let names = |sym: Sym| self.sym_name(sym);
        let mut rules = Rules { op: node.op.name, names: Some(&names), ..Rules::default() };
        if other.len() > target.len() || rules.all_stretch(other, target) {
            let checks = std::mem::take(&mut rules.checks);
            return self.flow.pending.graph.checks.extend(checks.into_iter().map(|check| (result.node, check)));
        }
        let (target, other) = (rules.show_all(target), rules.show_all(other));
        let (left, right, symbol) = (text(&binary.left), text(&binary.right), symbol(&binary.op));
        let message = format!("`{symbol}=` keeps the extents of `{left}`, which is {target}; `{right}` is {other}");
        let help = "each extent must be the one of the left side or 1, counted from the last axis";
        self.diag.error(&binary.right, message, Some(help));
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
    pub fn target(&self, left: &Expr) -> Option<Ident> {
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
            return self.host_statement(expr, cont);
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
}
