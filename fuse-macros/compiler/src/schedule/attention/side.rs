//! What a statement of a kernel is, for those who look for attention.

use crate::op::{Literal, Reduction};
use crate::plan::{BufId, Expr, Kernel, Leaf, LeafSource, StmtId, View};
use crate::types::DType;
use std::collections::BTreeSet;

/// Statements of one kernel, looked at.
#[derive(Clone, Copy)]
pub struct Side<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
}

impl<'k> Side<'k> {
    /// How a value comes about.
    pub fn expr(self, s: StmtId) -> &'k Expr {
        &self.kernel.stmt(s).expr
    }

    fn is_float(self, s: StmtId) -> bool {
        let dtype = self.kernel.stmt(s).dtype;
        dtype.is_float() || matches!(dtype, DType::Param(_) | DType::Compute(_))
    }

    /// A value before it was brought from one element type of floats to another.
    pub fn unrounded(self, mut s: StmtId) -> StmtId {
        while let Expr::Cast(from) = self.expr(s)
            && self.is_float(s)
            && self.is_float(*from)
        {
            s = *from;
        }
        s
    }

    /// The buffer that a statement reads where it is.
    pub fn loaded(self, s: StmtId) -> Option<BufId> {
        let Expr::Load(leaf) = self.expr(s) else { return None };
        let leaf = &self.kernel.leaves[*leaf as usize];
        leaf.buf().filter(|_| leaf.is_in_place())
    }

    /// Whether a value is that of `of` times something that does not depend on it.
    pub fn is_multiple(self, s: StmtId, of: StmtId) -> bool {
        let s = self.unrounded(s);
        if s == of {
            return true;
        }
        let Expr::Apply(op, args) = self.expr(s) else { return false };
        let depends = self.dependent(of);
        let depends = |s: StmtId| depends[s.0 as usize];
        match (op.name, &args[..]) {
            ("mul", &[a, b]) if depends(a) != depends(b) => self.is_multiple(if depends(a) { a } else { b }, of),
            ("div", &[a, b]) => !depends(b) && self.is_multiple(a, of),
            ("where_cond", &[cond, a, b]) if !depends(cond) && depends(a) != depends(b) => {
                let (arm, other) = if depends(a) { (a, b) } else { (b, a) };
                self.constant(other) == Some(0.0) && self.is_multiple(arm, of)
            }
            _ => false,
        }
    }

    /// Which statements depend on one.
    fn dependent(self, on: StmtId) -> Vec<bool> {
        let mut found = vec![false; self.kernel.stmts.len()];
        for s in self.kernel.ids() {
            found[s.0 as usize] = s == on || self.expr(s).operands().iter().any(|operand| found[operand.0 as usize]);
        }
        found
    }

    /// Whether two values are the same function of the two `holes`, but for roundings on the way.
    pub fn is_like(self, s: StmtId, other: (Side<'_>, StmtId), holes: [StmtId; 2]) -> bool {
        self.is_alike(s, other, holes, &mut BTreeSet::new())
    }

    fn is_alike(
        self,
        s: StmtId,
        other: (Side<'_>, StmtId),
        holes: [StmtId; 2],
        seen: &mut BTreeSet<[StmtId; 2]>,
    ) -> bool {
        let (side, t) = (other.0, other.0.unrounded(other.1));
        let s = self.unrounded(s);
        if s == holes[0] || t == holes[1] {
            return [s, t] == holes;
        }
        // What was looked at before is alike, or nobody would ask any more.
        if !seen.insert([s, t]) {
            return true;
        }
        let mut all = |a: &[StmtId], b: &[StmtId]| {
            a.len() == b.len() && std::iter::zip(a, b).all(|(a, b)| self.is_alike(*a, (side, *b), holes, seen))
        };
        match (self.expr(s), side.expr(t)) {
            (Expr::Load(a), Expr::Load(b)) => self.kernel.leaves[*a as usize] == side.kernel.leaves[*b as usize],
            (Expr::Apply(a, of_a), Expr::Apply(b, of_b)) => a.name == b.name && all(of_a, of_b),
            (Expr::Cast(a), Expr::Cast(b)) => all(&[*a], &[*b]),
            (Expr::Uniform(a, at), Expr::Uniform(b, to)) => a == b && all(&[*at], &[*to]),
            (Expr::Normal(a, at), Expr::Normal(b, to)) => a == b && all(&[*at], &[*to]),
            (a, b) => a == b && a.operands().is_empty(),
        }
    }

    /// The operands of a statement that applies this op.
    pub fn apply(&self, s: StmtId, name: &str) -> Option<&[StmtId]> {
        match self.expr(s) {
            Expr::Apply(op, args) if op.name == name => Some(args),
            _ => None,
        }
    }

    /// What a value was before it was rounded to the type that is stored.
    pub fn narrowed(&self, s: StmtId) -> StmtId {
        match self.expr(s) {
            Expr::Cast(x) => *x,
            _ => s,
        }
    }

    /// What a statement reduces in this way.
    pub fn reduction(&self, s: StmtId, reduction: Reduction) -> Option<StmtId> {
        match self.expr(s) {
            Expr::Reduce(kind, of) if *kind == reduction => Some(*of),
            _ => None,
        }
    }

    pub fn constant(&self, s: StmtId) -> Option<f64> {
        match self.expr(s) {
            Expr::Const(Literal::Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// Whether a statement reduces something, but is another value where all of these scores are -inf.
    pub fn is_guarded(&self, s: StmtId, otherwise: f64, (of, reduction): (StmtId, Reduction), scores: StmtId) -> bool {
        let Some(&[nothing, other, value]) = self.apply(s, "where_cond") else { return false };
        let Some(&[largest, never]) = self.apply(nothing, "eq") else { return false };
        self.constant(other) == Some(otherwise)
            && self.reduction(value, reduction) == Some(of)
            && self.reduction(largest, Reduction::Max) == Some(scores)
            && self.constant(never) == Some(f64::NEG_INFINITY)
    }

    /// Whether a statement is what another step has left in a buffer.
    pub fn loads(&self, s: StmtId, buf: BufId) -> bool {
        matches!(self.expr(s), Expr::Load(leaf) if self.kernel.leaves[*leaf as usize].buf() == Some(buf))
    }

    /// Whether a value is positive and one for the whole kernel: a constant, or one over a root of a size.
    pub fn is_positive(&self, s: StmtId) -> bool {
        match self.expr(s) {
            Expr::Const(Literal::Float(value)) => *value > 0.0 && value.is_finite(),
            Expr::Apply(op, args) => match op.name {
                "recip" | "rsqrt" => self.is_positive(args[0]) || self.is_of_size(args[0]),
                name => name == "sqrt" && self.is_positive(args[0]),
            },
            _ => false,
        }
    }

    /// Whether a value is a size or a root of one, which may be 0.
    pub fn is_of_size(&self, s: StmtId) -> bool {
        match self.expr(s) {
            Expr::Size(_) => true,
            Expr::Apply(op, args) => op.name == "sqrt" && self.is_of_size(args[0]),
            _ => false,
        }
    }

    /// Whether a statement counts the positions along an axis of the domain, from the last one.
    pub fn is_position(&self, s: StmtId, from_last: usize) -> bool {
        let Expr::Load(leaf) = self.expr(s) else { return false };
        let leaf = &self.kernel.leaves[*leaf as usize];
        let LeafSource::Index(extents) = &leaf.source else { return false };
        let rank = self.kernel.domain.len();
        extents.len() == 1 && axis_of_positions(leaf, rank) == Some(rank - 1 - from_last)
    }
}

/// The axis of the domain along which a leaf of positions counts, if only new axes came before or behind it.
fn axis_of_positions(leaf: &Leaf, rank: usize) -> Option<usize> {
    let (mut axes, mut at) = (1, 0);
    for view in &leaf.views {
        match view {
            View::Unsqueeze(axis) => {
                at += usize::from(*axis as usize <= at);
                axes += 1;
            }
            View::Expand(dims) => {
                at += dims.len() - axes;
                axes = dims.len();
            }
            _ => return None,
        }
    }
    (axes == rank).then_some(at)
}
