//! `if`, `match`, blocks and jumps.
//!
//! A branch on a host value gives each arm everything that comes after it, so that graphs fuse through the branch. Where
//! that would be too many paths, or a block's own bindings matter, the branch stays one of the host between graphs.

use super::Walker;
use super::cont::{Cont, Outcome};
use super::head::{Head, conjuncts};
use super::names::{Name, Names, bound, mentions};
use super::program::{Piece, Step};
use super::syntax::{Jumps, is_flat, strip};
use super::types::HostTy;
use super::value::Value;
use crate::diag::BreakKind;
use quote::quote;
use syn::{Arm, Block, Expr, ExprBreak, ExprIf, ExprMatch, Pat, Stmt};

/// Whether an expression is control flow.
pub fn is_control(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Block(block) => block.label.is_none(),
        Expr::If(_) | Expr::Match(_) | Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => true,
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        _ => false,
    }
}

impl Walker<'_> {
    /// Whether control flow has to be walked, rather than left as it stands.
    pub fn touches(&self, expr: &Expr, cont: &Cont) -> bool {
        if matches!(strip(expr), Expr::Return(_) | Expr::Break(_) | Expr::Continue(_)) {
            return true;
        }
        let names = mentions(expr);
        let unset = |name: &Name| self.var(name).is_some_and(|var| matches!(var.value, Value::Unset));
        let open = !self.flow.pending.is_empty() || self.flow.vars.iter().any(|var| var.bound && var.dirty);
        let jumps = Jumps::of(expr);
        let unrolled = |label: &Option<syn::Lifetime>| matches!(cont.target(label.as_ref()), Some(Cont::Turn(..)));
        self.any_tensor(&names)
            || names.iter().any(unset)
            || jumps.loops.iter().any(unrolled)
            || (open && jumps.leaves())
    }

    /// Walks control flow and what comes after it.
    pub fn control(&mut self, expr: &Expr, cont: &Cont) {
        match strip(expr) {
            Expr::If(branch) => self.if_(expr, branch, cont),
            Expr::Match(branch) => self.match_(expr, branch, cont),
            Expr::Block(block) => self.nested_block(expr, &block.block, cont),
            Expr::ForLoop(each) => self.for_loop(expr, each, cont),
            Expr::While(each) => self.while_loop(expr, each, cont),
            Expr::Loop(each) => self.endless_loop(expr, each, cont),
            Expr::Return(jump) => match &jump.expr {
                Some(value) => self.deliver(value, &Cont::Return),
                None => self.resume(&Cont::Return, Outcome::Value(Value::Tuple(vec![]))),
            },
            Expr::Break(jump) => self.break_(jump, cont),
            Expr::Continue(jump) => match cont.target(jump.label.as_ref()) {
                Some(Cont::Turn(unrolled, turn, next)) => {
                    self.leave_scope(unrolled.vars);
                    self.turn(unrolled, turn + 1, next);
                }
                Some(Cont::End(region)) => self.jump(region, quote!(#jump;)),
                _ => self.silent = true,
            },
            _ => unreachable!("control flow only"),
        }
    }

    fn break_(&mut self, jump: &ExprBreak, cont: &Cont) {
        match (cont.target(jump.label.as_ref()), &jump.expr) {
            (Some(Cont::Turn(unrolled, _, next)), None) => {
                self.leave_scope(unrolled.vars);
                self.resume(next, Outcome::Value(Value::Tuple(vec![])));
            }
            (Some(Cont::End(region)), None) => self.jump(region, quote!(#jump;)),
            (Some(Cont::End(region)), Some(value)) => self.deliver(value, &Cont::Leave(region, jump.label.as_ref())),
            _ => self.silent = true,
        }
    }

    fn if_(&mut self, expr: &Expr, branch: &ExprIf, cont: &Cont) {
        if let Some(known) = self.known_flag(&branch.cond) {
            return match (known, &branch.else_branch) {
                (true, _) => self.nested_block(expr, &branch.then_branch, cont),
                (false, Some((_, otherwise))) => self.deliver(otherwise, cont),
                (false, None) => self.resume(cont, Outcome::Value(Value::Tuple(vec![]))),
            };
        }
        if self.closure.is_read() {
            return self.leave_for_branch(branch);
        }
        let on_data = self.scalar_read(&branch.cond).is_some();
        if on_data && (self.select(branch, cont) || self.device_branch(expr, branch, cont)) {
            return;
        }
        let leaves = leaves(branch);
        if self.flow.budget < leaves {
            let why = "there are too many paths through the function";
            return self.if_region(expr, branch, cont, BreakKind::PATHS, why);
        }
        if !self.arms_are_flat(branch, &cont.free()) {
            return self.if_region(expr, branch, cont, BreakKind::SCOPE, "the branch has host bindings of its own");
        }
        // A path that returns splits no further.
        let budget = if returns(&branch.then_branch) { 1 } else { self.flow.budget / leaves };
        self.paths(expr, branch, cont, budget);
    }

    /// A path for either arm, the first of which may split so many times.
    fn paths(&mut self, expr: &Expr, branch: &ExprIf, cont: &Cont, budget: usize) {
        let mut live = cont.free();
        live.extend(mentions(expr));
        let head = self.condition(&branch.cond, &live);
        let then = self.arm(budget.max(1), Some(&head), |w| {
            w.learn(&branch.cond, true);
            w.block(&branch.then_branch, cont)
        });
        let rest = (self.flow.budget - budget).max(1);
        let otherwise = self.arm(rest, None, |w| {
            w.learn(&branch.cond, false);
            match &branch.else_branch {
                Some((_, otherwise)) => w.deliver(otherwise, cont),
                None => w.resume(cont, Outcome::Value(Value::Tuple(vec![]))),
            }
        });
        let condition = head.tokens;
        self.flow.steps.push(Step::Nest(vec![
            Piece::Tokens(quote!(if #condition)),
            Piece::Block(then),
            Piece::Tokens(quote!(else)),
            Piece::Block(otherwise),
        ]));
    }

    /// Walks one arm from the current state, and gives its code. The state stays as it was.
    fn arm(&mut self, budget: usize, head: Option<&Head>, walk: impl FnOnce(&mut Self)) -> Vec<Step> {
        let saved = self.flow.clone();
        self.flow.steps = vec![];
        self.flow.budget = budget;
        for (pat, ty) in head.iter().flat_map(|head| &head.binds) {
            self.bind_typed(pat, ty, head.is_some_and(|head| head.needs_annotation));
        }
        walk(self);
        std::mem::replace(&mut self.flow, saved).steps
    }

    fn match_(&mut self, expr: &Expr, branch: &ExprMatch, cont: &Cont) {
        let after = cont.free();
        let guarded = branch.arms.iter().any(|arm| self.any_tensor(&mentions(&arm.pat)));
        let hides = |arm: &Arm| bound(&arm.pat).iter().any(|ident| after.contains(&Name::of(ident)));
        let flat = branch.arms.iter().all(|arm| !hides(arm) && self.arm_is_flat(&arm.body, &after));
        let region = match () {
            _ if self.flow.budget < branch.arms.len() => {
                Some((BreakKind::PATHS, "there are too many paths through the function"))
            }
            _ if guarded || !flat => Some((BreakKind::SCOPE, "the branch has host bindings of its own")),
            _ => None,
        };
        if let Some((kind, reason)) = region {
            return self.region(expr, cont, Some((kind, reason)), |w, end| w.match_pieces(branch, end, 1));
        }
        let pieces = self.match_pieces(branch, cont, branch.arms.len());
        self.flow.steps.push(Step::Nest(pieces));
    }

    fn match_pieces(&mut self, branch: &ExprMatch, cont: &Cont, share: usize) -> Vec<Piece> {
        let mut live = cont.free();
        live.extend(mentions(branch));
        let head = self.scrutinee(&branch.expr, &live);
        for arm in &branch.arms {
            self.shadow(&arm.pat);
        }
        let budget = (self.flow.budget / share).max(1);
        let mut arms = Vec::new();
        for arm in &branch.arms {
            let pat = &arm.pat;
            let inner = match pat {
                Pat::Guard(guard) => guard.pat.as_ref(),
                pat => pat,
            };
            let ty = head.binds.first().map_or(HostTy::Unknown, |(_, ty)| ty.clone());
            let binds = vec![(inner.clone(), ty)];
            let arm_head = Head { tokens: quote!(), binds, needs_annotation: head.needs_annotation };
            let steps = self.arm(budget, Some(&arm_head), |w| w.deliver(&arm.body, cont));
            arms.push(Piece::Tokens(quote!(#pat =>)));
            arms.push(Piece::Block(steps));
        }
        let scrutinee = head.tokens;
        vec![Piece::Tokens(quote!(match #scrutinee)), Piece::Braces(arms)]
    }

    fn nested_block(&mut self, expr: &Expr, block: &Block, cont: &Cont) {
        if is_flat(&block.stmts, &cont.free()) {
            return self.block(block, cont);
        }
        let reason = (BreakKind::SCOPE, "the block has host bindings of its own");
        self.region(expr, cont, Some(reason), |w, end| {
            let steps = w.arm(w.flow.budget, None, |w| w.block(block, end));
            vec![Piece::Block(steps)]
        });
    }

    fn if_region(&mut self, expr: &Expr, branch: &ExprIf, cont: &Cont, kind: BreakKind, reason: &str) {
        self.region(expr, cont, Some((kind, reason)), |w, end| w.if_pieces(branch, end));
    }

    fn if_pieces(&mut self, branch: &ExprIf, end: &Cont) -> Vec<Piece> {
        let mut live = end.free();
        live.extend(mentions(branch));
        let head = self.condition(&branch.cond, &live);
        let then = self.arm(self.flow.budget, Some(&head), |w| w.block(&branch.then_branch, end));
        let condition = &head.tokens;
        let mut pieces = vec![Piece::Tokens(quote!(if #condition)), Piece::Block(then)];
        let otherwise = self.arm(self.flow.budget, None, |w| match &branch.else_branch {
            Some((_, otherwise)) => w.deliver(otherwise, end),
            None => w.resume(end, Outcome::Value(Value::Tuple(vec![]))),
        });
        pieces.extend([Piece::Tokens(quote!(else)), Piece::Block(otherwise)]);
        pieces
    }

    fn arms_are_flat(&self, branch: &ExprIf, after: &Names) -> bool {
        let mut parts = Vec::new();
        conjuncts(&branch.cond, &mut parts);
        let hides = parts.iter().any(|part| match part {
            Expr::Let(matched) => bound(&matched.pat).iter().any(|ident| after.contains(&Name::of(ident))),
            _ => false,
        });
        let otherwise = branch.else_branch.as_ref().is_none_or(|(_, expr)| match strip(expr) {
            Expr::If(inner) => self.arms_are_flat(inner, after),
            other => self.arm_is_flat(other, after),
        });
        !hides && otherwise && is_flat(&branch.then_branch.stmts, after)
    }

    fn arm_is_flat(&self, body: &Expr, after: &Names) -> bool {
        match strip(body) {
            Expr::Block(block) => is_flat(&block.block.stmts, after),
            _ => true,
        }
    }
}

/// Whether a block ends with `return`.
pub fn returns(block: &Block) -> bool {
    matches!(block.stmts.last(), Some(Stmt::Expr(Expr::Return(_), _)))
}

/// How many arms an `if` with its `else if`s has.
pub fn leaves(branch: &ExprIf) -> usize {
    match branch.else_branch.as_ref().map(|(_, otherwise)| strip(otherwise)) {
        Some(Expr::If(inner)) => 1 + leaves(inner),
        _ => 2,
    }
}
