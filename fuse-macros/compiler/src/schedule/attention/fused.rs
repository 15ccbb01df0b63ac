//! Whether attention is one kernel of a GPU, and what happens to a score there.
//!
//! The kernel knows the softmax and skips keys behind a query; everything else between the first product and the softmax,
//! such as masks, biases and the user's own expressions, becomes a program of its own that the kernel runs on every score.

use super::program::Program;
use super::side::Side;
use crate::op::Reduction;
use crate::plan::{Attention, Fused, Matmul, Plan, StmtId};
use crate::types::DType;

/// The three steps as one kernel, if they are a softmax of such scores, and perhaps of each weight a multiple.
pub fn of(plan: &Plan, attention: Attention, values: &Matmul) -> Option<Fused> {
    let (scores, _) = attention.weights_of(plan);
    let is_there = values.dtype.is_half() || matches!(values.dtype, DType::F32 | DType::Param(_));
    if !is_there || scores.epilogue.stores.len() != 1 || values.lib.bias.is_some() || values.lib.relu {
        return None;
    }
    let found = Weights::find(plan, attention)?;
    let mut program = Program::new(plan, attention, &values.epilogue);
    let (score, factor) = found.copy_score(&mut program)?;
    program.give(score, attention.weights);
    found.copy_weight(&mut program)?;
    let score = program.finish();
    let Softmax { empty_is_zero, .. } = found.softmax;
    Some(Fused { steps: attention, values: None, score, factor, is_causal: found.is_causal, empty_is_zero, back: None })
}

/// What the rows of attention are.
pub struct Weights<'p> {
    plan: &'p Plan,
    attention: Attention,
    /// The rows.
    pub side: Side<'p>,
    /// The softmax among them.
    pub softmax: Softmax,
    /// What of it the second product multiplies: each weight, or a multiple of it.
    pub weight: StmtId,
    is_causal: bool,
    factor: Option<StmtId>,
    score: StmtId,
}

impl<'p> Weights<'p> {
    /// Those of attention, if they are a softmax.
    pub fn find(plan: &'p Plan, attention: Attention) -> Option<Self> {
        let (_, weights) = attention.weights_of(plan);
        let side = Side { kernel: weights };
        let weight = weights.stores.iter().find(|store| store.to.buf == attention.weights)?.value;
        let softmax =
            weights.ids().find_map(|s| Softmax::at(side, s)).filter(|found| side.is_multiple(weight, found.is))?;
        let (is_causal, score) = without_causal(side, softmax.of);
        let (factor, score) = without_factor(side, score);
        Some(Weights { plan, attention, side, softmax, weight, is_causal, factor, score })
    }

    /// Copies what a score is before what it is multiplied by, and that factor.
    pub fn copy_score(&self, program: &mut Program<'_>) -> Option<(StmtId, Option<StmtId>)> {
        let (side, factor, score) = self.last();
        let factor = program.optional(side, factor)?;
        Some((program.copy(side, score)?, factor))
    }

    /// What scores are multiplied by last, in the rows or in the epilogue of the first product.
    pub fn factor(&self) -> Option<(Side<'p>, StmtId)> {
        let (side, factor, _) = self.last();
        factor.map(|factor| (side, factor))
    }

    /// What happens to a score last, and where: what it is multiplied by, and what is.
    fn last(&self) -> (Side<'p>, Option<StmtId>, StmtId) {
        // Where the last thing the first step does is to scale, so much the better.
        if self.factor.is_none() && self.side.loads(self.score, self.attention.scores) {
            let (scores, _) = self.attention.weights_of(self.plan);
            let epilogue = Side { kernel: &scores.epilogue };
            let (factor, value) = without_factor(epilogue, scores.epilogue.stores[0].value);
            return (epilogue, factor, value);
        }
        (self.side, self.factor, self.score)
    }

    /// Copies what becomes of a weight, if that is not the weight. It is rounded once, behind that.
    pub fn copy_weight(&self, program: &mut Program<'_>) -> Option<()> {
        program.exactly();
        if self.side.unrounded(self.weight) != self.softmax.is {
            program.given(self.side, self.softmax.is, self.attention.weights);
            let weight = program.copy(self.side, self.weight)?;
            program.give(weight, self.attention.weights);
        }
        Some(())
    }
}

/// A softmax along the rows.
pub struct Softmax {
    /// The statement that is it.
    pub is: StmtId,
    /// What it is of.
    pub of: StmtId,
    /// Whether rows of -inf are 0.
    pub empty_is_zero: bool,
}

impl Softmax {
    fn at(side: Side<'_>, is: StmtId) -> Option<Softmax> {
        let [exps, sum] = side.apply(is, "div")?[..] else { return None };
        let [shifted] = side.apply(exps, "exp")?[..] else { return None };
        let [of, shift] = side.apply(shifted, "sub")?[..] else { return None };
        let largest = side.reduction(shift, Reduction::Max);
        let plain = largest == Some(of) && side.reduction(sum, Reduction::Sum) == Some(exps);
        let is_guarded = || {
            side.is_guarded(shift, 0.0, (of, Reduction::Max), of)
                && side.is_guarded(sum, 1.0, (exps, Reduction::Sum), of)
        };
        let is_f32 = matches!(side.kernel.stmt(of).dtype, DType::F32 | DType::Compute(_));
        match (is_f32, plain) {
            (true, true) => Some(Softmax { is, of, empty_is_zero: false }),
            (true, false) if is_guarded() => Some(Softmax { is, of, empty_is_zero: true }),
            _ => None,
        }
    }
}

/// Whether keys behind a query are masked last of all, and the scores before that.
fn without_causal(side: Side<'_>, score: StmtId) -> (bool, StmtId) {
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
fn without_factor(side: Side<'_>, score: StmtId) -> (Option<StmtId>, StmtId) {
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
