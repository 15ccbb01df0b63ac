//! Whether attention is one kernel of a GPU, and what happens to a score there.
//!
//! The kernel knows the softmax and skips keys behind a query; everything else between the first product and the softmax,
//! such as masks, biases and the user's own expressions, becomes a program of its own that the kernel runs on every score.

use crate::op::{Literal, Reduction};
use crate::plan::abi::divides_integers;
use crate::plan::{
    Attention, BufId, Expr, Fused, Kernel, Kind, Leaf, LeafSource, Level, Operand, Plan, Stmt, StmtId, Store, View,
};
use crate::types::DType;
use std::collections::BTreeMap;

/// The three steps as one kernel, if they are a softmax of such scores.
pub fn of(plan: &Plan, attention: Attention) -> Option<Fused> {
    let (scores, weights, values) = attention.steps(plan);
    let is_there = values.dtype.is_half() || matches!(values.dtype, DType::F32 | DType::Param(_));
    if !is_there || scores.epilogue.stores.len() != 1 || values.lib.bias.is_some() || values.lib.relu {
        return None;
    }
    let softmax = Softmax::find(weights)?;
    let rows = Side { kernel: weights };
    let (is_causal, score) = without_causal(&rows, softmax.of);
    let (factor, score) = without_factor(&rows, score);
    // Where the last thing the first step does is to scale, so much the better.
    let mut program = Program::new(plan, attention, weights);
    let (factor, value) = match (factor, rows.loads(score, attention.scores)) {
        (None, true) => {
            let epilogue = Side { kernel: &scores.epilogue };
            let (factor, value) = without_factor(&epilogue, scores.epilogue.stores[0].value);
            (program.optional(&epilogue, factor)?, program.copy(&epilogue, value)?)
        }
        (factor, _) => (program.optional(&rows, factor)?, program.copy(&rows, score)?),
    };
    let score = program.finish(value);
    Some(Fused { steps: attention, score, factor, is_causal, empty_is_zero: softmax.empty_is_zero })
}

/// A softmax along the rows that is all a kernel stores.
struct Softmax {
    /// What it is of.
    of: StmtId,
    empty_is_zero: bool,
}

impl Softmax {
    fn find(kernel: &Kernel) -> Option<Softmax> {
        let side = Side { kernel };
        let [store] = &kernel.stores[..] else { return None };
        let [exps, sum] = side.apply(side.narrowed(store.value), "div")?[..] else { return None };
        let [shifted] = side.apply(exps, "exp")?[..] else { return None };
        let [of, shift] = side.apply(shifted, "sub")?[..] else { return None };
        let largest = side.reduction(shift, Reduction::Max);
        let plain = largest == Some(of) && side.reduction(sum, Reduction::Sum) == Some(exps);
        let is_guarded = || {
            side.is_guarded(shift, 0.0, (of, Reduction::Max), of)
                && side.is_guarded(sum, 1.0, (exps, Reduction::Sum), of)
        };
        let is_f32 = matches!(kernel.stmt(of).dtype, DType::F32 | DType::Compute(_));
        match (is_f32, plain) {
            (true, true) => Some(Softmax { of, empty_is_zero: false }),
            (true, false) if is_guarded() => Some(Softmax { of, empty_is_zero: true }),
            _ => None,
        }
    }
}

/// Statements of one kernel, looked at.
struct Side<'k> {
    kernel: &'k Kernel,
}

impl Side<'_> {
    fn expr(&self, s: StmtId) -> &Expr {
        &self.kernel.stmt(s).expr
    }

    /// The operands of a statement that applies this op.
    fn apply(&self, s: StmtId, name: &str) -> Option<&[StmtId]> {
        match self.expr(s) {
            Expr::Apply(op, args) if op.name == name => Some(args),
            _ => None,
        }
    }

    /// What a value was before it was rounded to the type that is stored.
    fn narrowed(&self, s: StmtId) -> StmtId {
        match self.expr(s) {
            Expr::Cast(x) => *x,
            _ => s,
        }
    }

    /// What a statement reduces in this way.
    fn reduction(&self, s: StmtId, reduction: Reduction) -> Option<StmtId> {
        match self.expr(s) {
            Expr::Reduce(kind, of) if *kind == reduction => Some(*of),
            _ => None,
        }
    }

    fn constant(&self, s: StmtId) -> Option<f64> {
        match self.expr(s) {
            Expr::Const(Literal::Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// Whether a statement reduces something, but is another value where all of these scores are -inf.
    fn is_guarded(&self, s: StmtId, otherwise: f64, (of, reduction): (StmtId, Reduction), scores: StmtId) -> bool {
        let Some(&[nothing, other, value]) = self.apply(s, "where_cond") else { return false };
        let Some(&[largest, never]) = self.apply(nothing, "eq") else { return false };
        self.constant(other) == Some(otherwise)
            && self.reduction(value, reduction) == Some(of)
            && self.reduction(largest, Reduction::Max) == Some(scores)
            && self.constant(never) == Some(f64::NEG_INFINITY)
    }

    /// Whether a statement is what another step has left in a buffer.
    fn loads(&self, s: StmtId, buf: BufId) -> bool {
        match self.expr(s) {
            Expr::Load(leaf) => self.kernel.leaves[*leaf as usize].source == LeafSource::Buf(buf),
            _ => false,
        }
    }

    /// Whether a value is positive and one for the whole kernel: a constant, or one over a root of a size.
    fn is_positive(&self, s: StmtId) -> bool {
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
    fn is_of_size(&self, s: StmtId) -> bool {
        match self.expr(s) {
            Expr::Size(_) => true,
            Expr::Apply(op, args) => op.name == "sqrt" && self.is_of_size(args[0]),
            _ => false,
        }
    }

    /// Whether a statement counts the positions along an axis of the domain, from the last one.
    fn is_position(&self, s: StmtId, from_last: usize) -> bool {
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

/// Whether keys behind a query are masked last of all, and the scores before that.
fn without_causal(side: &Side<'_>, score: StmtId) -> (bool, StmtId) {
    let inside = || {
        let &[past, score, never] = side.apply(score, "where_cond")? else { return None };
        let &[key, query] = side.apply(past, "le")? else { return None };
        let masks = side.constant(never) == Some(f64::NEG_INFINITY);
        (masks && side.is_position(key, 0) && side.is_position(query, 1)).then_some(score)
    };
    inside().map_or((false, score), |score| (true, score))
}

/// A positive factor that comes last, and what it multiplies. Where the product is rounded to a half, the factor has to be
/// a power of two, by which rounding does not change.
fn without_factor(side: &Side<'_>, score: StmtId) -> (Option<StmtId>, StmtId) {
    let inside = || {
        let product = side.narrowed(score);
        let &[a, b] = side.apply(product, "mul")? else { return None };
        let (value, factor) = if side.is_positive(b) { (a, b) } else { (b, a) };
        let is_exact = || side.constant(factor).is_some_and(|factor| factor.log2().fract() == 0.0);
        let in_f32 = |s: StmtId| matches!(side.kernel.stmt(s).dtype, DType::F32 | DType::Compute(_));
        (side.is_positive(factor) && (in_f32(product) || is_exact())).then_some((factor, value))
    };
    inside().map_or((None, score), |(factor, value)| (Some(factor), value))
}

/// The program of a score, copied together from the two steps.
struct Program<'p> {
    plan: &'p Plan,
    attention: Attention,
    kernel: Kernel,
    /// Where statements have gone, by the kernel they come from.
    copied: BTreeMap<(String, StmtId), StmtId>,
}

impl<'p> Program<'p> {
    fn new(plan: &'p Plan, attention: Attention, weights: &Kernel) -> Self {
        let (first, _, last) = attention.steps(plan);
        let stem = first.epilogue.name.split('_').next().unwrap_or_default();
        let ops = [&first.epilogue.ops[..], &weights.ops, &last.epilogue.ops].concat();
        let kernel = Kernel {
            name: format!("{stem}_attention"),
            kind: Kind::Map,
            domain: weights.domain.clone(),
            reduced: 0,
            leaves: vec![],
            stmts: vec![],
            stores: vec![],
            ops,
        };
        Program { plan, attention, kernel, copied: BTreeMap::new() }
    }

    fn optional(&mut self, side: &Side<'_>, s: Option<StmtId>) -> Option<Option<StmtId>> {
        match s {
            Some(s) => self.copy(side, s).map(Some),
            None => Some(None),
        }
    }

    /// Copies a statement and what it needs; `None` if that is more than a score may be made of.
    fn copy(&mut self, side: &Side<'_>, s: StmtId) -> Option<StmtId> {
        let key = (side.kernel.name.clone(), s);
        if let Some(copied) = self.copied.get(&key) {
            return Some(*copied);
        }
        let stmt = side.kernel.stmt(s);
        let copied = match &stmt.expr {
            Expr::Load(_) if side.loads(s, self.attention.scores) => {
                let (first, ..) = self.attention.steps(self.plan);
                let [store] = &first.epilogue.stores[..] else { return None };
                // What is read is what was stored, in the type of the buffer.
                let stored = first.epilogue.stmt(store.value).dtype;
                if stored != stmt.dtype {
                    return None;
                }
                self.copy(&Side { kernel: &first.epilogue }, store.value)?
            }
            expr => {
                let expr = self.expr(side, expr)?;
                self.push(Stmt { expr, ..stmt.clone() })
            }
        };
        self.copied.insert(key, copied);
        Some(copied)
    }

    fn expr(&mut self, side: &Side<'_>, expr: &Expr) -> Option<Expr> {
        Some(match expr {
            Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_) | Expr::Product => expr.clone(),
            Expr::Load(leaf) => Expr::Load(self.leaf(&side.kernel.leaves[*leaf as usize])?),
            Expr::Cast(x) => Expr::Cast(self.copy(side, *x)?),
            Expr::Apply(op, args) if !divides_integers(*op, side.kernel.stmt(args[0]).dtype) => {
                let args = args.iter().map(|arg| self.copy(side, *arg)).collect::<Option<Vec<_>>>()?;
                Expr::Apply(*op, args)
            }
            _ => return None,
        })
    }

    /// A leaf of the program; one that is read once a row is spread along it.
    fn leaf(&mut self, leaf: &Leaf) -> Option<u32> {
        if leaf.indexed.is_some() {
            return None;
        }
        let mut leaf = leaf.clone();
        if leaf.level == Level::Row {
            let last = self.kernel.domain.len() as u32 - 1;
            leaf.views.extend([View::Unsqueeze(last), View::Expand(self.kernel.domain.clone())]);
            leaf.level = Level::Elem;
        }
        let known = self.kernel.leaves.iter().position(|other| *other == leaf);
        Some(known.unwrap_or_else(|| {
            self.kernel.leaves.push(leaf);
            self.kernel.leaves.len() - 1
        }) as u32)
    }

    /// Appends a statement; what follows from constants, sizes and scalars alone is computed once.
    fn push(&mut self, stmt: Stmt) -> StmtId {
        let operands = stmt.expr.operands();
        let once = |s: &StmtId| self.kernel.stmt(*s).level == Level::All;
        let level = match &stmt.expr {
            Expr::Const(_) | Expr::Scalar(_) | Expr::Size(_) => Level::All,
            Expr::Load(leaf) => self.kernel.leaves[*leaf as usize].level,
            Expr::Product => Level::Elem,
            _ if operands.iter().all(once) => Level::All,
            _ => Level::Elem,
        };
        self.kernel.stmts.push(Stmt { level, ..stmt });
        StmtId(self.kernel.stmts.len() as u32 - 1)
    }

    fn finish(mut self, score: StmtId) -> Kernel {
        let to = Operand { buf: self.attention.weights, views: vec![] };
        self.kernel.stores.push(Store { to, value: score, scatter: None });
        self.kernel
    }
}
