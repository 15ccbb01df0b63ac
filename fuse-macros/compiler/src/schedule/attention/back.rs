//! Whether the way back through attention is two kernels of a GPU, and what happens to a score's gradient there.
//!
//! They compute the weights again from the scores and what each row's exponentials sum to, so neither the weights nor any
//! gradient of their size is ever in memory.

use super::fused::Weights;
use super::program::Program;
use super::side::Side;
use crate::op::{Op, Reduction};
use crate::plan::{
    BufClass, BufId, Expr, Fused, FusedBack, FusedDrops, Kernel, Matmul, Operand, Plan, Step, Stmt, StmtId, View, abi,
};
use crate::schedule::buffers::{takes_no_memory, touchers};
use crate::schedule::frame::dims_after;
use crate::schedule::names::variation;
use crate::schedule::together::{STEPS, exchange};
use crate::schedule::views::normal;
use crate::types::{DType, Dim, Ty};
use std::ops::Range;

/// Finds the steps of the way back and makes two kernels of them; `false` if they are none, and nothing has changed.
pub fn run(plan: &mut Plan, fused: &mut Fused) -> bool {
    let after = fused.steps.first as usize + fused.count()..(plan.steps.len() + 1).saturating_sub(STEPS);
    let Some(back) = after.clone().find_map(|first| Back::at(plan, fused, first)) else { return false };
    let Some(program) = back.program(plan, fused) else { return false };
    let dims = fused.score.domain[..fused.score.domain.len() - 1].to_vec();
    let (first, end) = (back.first as u32, (back.first + STEPS - 1) as u32);
    // Of large logarithms there is a rest behind all of them.
    let twice = [&[Dim::Const(2)], &dims[..]].concat();
    let logs = plan.temporary("logs", Ty::new(DType::F32, twice), (fused.steps.first, end));
    let sums = plan.temporary("sums", Ty::new(DType::F32, dims), (first, end));
    let (of_queries, of_keys) = (variation(&program.kernel, "queries"), variation(&program.kernel, "keys"));
    let (of_scores, factor) = (back.of_scores, program.factor);
    fused.back = Some(FusedBack { first, logs, sums, of_scores, of_queries, of_keys, factor, drops: None });
    let drops = drops(plan, fused, end);
    fused.back.iter_mut().for_each(|back| back.drops = drops.clone());
    keep_alive(plan, fused, end);
    true
}

/// What is drawn for all kernels, if weights are dropped.
fn drops(plan: &mut Plan, fused: &Fused, end: u32) -> Option<FusedDrops> {
    abi::drops(&fused.score, fused.weight()?)?;
    let [batch @ .., m, n] = &fused.score.domain[..] else { return None };
    let words = Dim::ceil_div(n.clone(), Dim::Const(32));
    let rows = Dim::mul(Dim::ceil_div(m.clone(), Dim::Const(2)), Dim::Const(2));
    let ty = Ty::new(DType::I32, [batch, &[words, rows]].concat());
    let bits = plan.temporary("kept", ty, (fused.steps.first, end));
    Some(FusedDrops { bits, program: variation(&fused.score, "drops") })
}

/// Steps that are the way back.
struct Back {
    first: usize,
    /// The gradient of the scores, dense.
    of_scores: BufId,
    /// The gradient of the weights, dense.
    of_weights: BufId,
}

/// The program of both kernels, and what a score is multiplied by behind it.
struct Found {
    kernel: Kernel,
    factor: Option<StmtId>,
}

impl Back {
    fn at(plan: &Plan, fused: &Fused, first: usize) -> Option<Back> {
        let [
            Step::Matmul(values),
            Step::Matmul(of_weights),
            Step::Kernel(rows),
            Step::Matmul(queries),
            Step::Matmul(keys),
        ] = &plan.steps[first..first + STEPS]
        else {
            return None;
        };
        let (_, weights, result) = fused.parts(plan);
        let [of_scores] = &rows.stores[..] else { return None };
        let back = Back { first, of_scores: of_scores.to.buf, of_weights: of_weights.lib.product.buf };
        let products = [values, of_weights, queries, keys];
        let alike = back.multiplies(plan, fused, products);
        let one_kind = products.iter().all(|product| {
            product.dtype == result.dtype
                && product.batch == result.batch
                && !product.lib.relu
                && product.lib.bias.is_none()
        });
        let dtype = |buf: BufId| plan.bufs[buf.0 as usize].ty.dtype;
        let kept = dtype(result.lib.product.buf) == result.dtype && dtype(of_weights.a.buf) == result.dtype;
        // One kernel writes both; where heads of queries share one of keys, in floats, which are summed before they are rounded.
        let alike_written = dtype(keys.lib.product.buf) == dtype(values.lib.product.buf);
        let dense = of_weights.lib.product.views.is_empty()
            && of_weights.lib.rest.is_none()
            && of_scores.to.views.is_empty()
            && rows.domain == weights.domain;
        (alike && one_kind && kept && alike_written && dense && back.is_closed(plan, fused)).then_some(back)
    }

    /// Whether the products that give the gradients of values, weights, queries and keys multiply what they have to.
    fn multiplies(&self, plan: &Plan, fused: &Fused, [values, of_weights, queries, keys]: [&Matmul; 4]) -> bool {
        let (scores, _, result) = fused.parts(plan);
        let swapped = |operand: &Operand| turned(plan, operand);
        let plain = |buf: BufId| Operand { buf, views: vec![] };
        let operands = [
            (&values.a, swapped(&plain(fused.steps.weights))),
            (&values.b, of_weights.a.clone()),
            (&of_weights.b, swapped(&result.b)),
            (&queries.a, plain(self.of_scores)),
            (&queries.b, swapped(&scores.b)),
            (&keys.a, swapped(&plain(self.of_scores))),
            (&keys.b, scores.a.clone()),
        ];
        operands.iter().all(|(operand, expected)| canonical(plan, operand) == canonical(plan, expected))
    }

    /// Whether nobody but these steps and those forward has to do with the matrices of weights and their gradients.
    fn is_closed(&self, plan: &Plan, fused: &Fused) -> bool {
        let (scores, weights, _) = fused.parts(plan);
        let forward = fused.steps.first as usize..fused.steps.first as usize + fused.count();
        let stored = scores.epilogue.stores.iter().chain(&weights.stores);
        stored.map(|store| store.to.buf).chain([self.of_weights, self.of_scores]).all(|id| {
            let buf = &plan.bufs[id.0 as usize];
            let is_inner = buf.class == BufClass::Temp && takes_no_memory(plan, buf);
            is_inner && touchers(plan, id).all(|step| self.is_one(step, &forward))
        })
    }

    fn is_one(&self, step: usize, forward: &Range<usize>) -> bool {
        forward.contains(&step) || (self.first..self.first + STEPS).contains(&step)
    }

    /// What happens to a score, a weight and a score's gradient, if these are the gradients of the softmax.
    fn program(&self, plan: &Plan, fused: &Fused) -> Option<Found> {
        let weights = Weights::find(plan, fused.steps)?;
        let kernel = plan.steps[self.first + 2].kernel()?;
        let rows = Side { kernel };
        let slope = kernel.ids().find(|s| self.is_slope(&weights, rows, *s))?;
        let (.., result) = fused.parts(plan);
        let mut program = Program::new(plan, fused.steps, &result.epilogue);
        program.with(kernel);
        let (mut score, mut factor) = weights.copy_score(&mut program)?;
        let stored = kernel.stores[0].value;
        let unscaled = weights.factor().and_then(|factor| unscaled(rows, stored, slope, factor));
        let value = match (factor, unscaled) {
            (Some(_), Some(value)) => value,
            // What is not the last thing forward is not the first one backward: then it is part of both programs.
            (Some(by), None) => {
                let stmt = Stmt { expr: Expr::Apply(Op::named("mul"), vec![score, by]), ..kernel.stmt(slope).clone() };
                score = program.push(Stmt { name: None, ..stmt });
                factor = None;
                stored
            }
            (None, _) => stored,
        };
        program.give(score, fused.steps.weights);
        weights.copy_weight(&mut program)?;
        program.given(rows, slope, self.of_scores);
        let value = program.copy(rows, value)?;
        program.give(value, self.of_scores);
        Some(Found { kernel: program.finish(), factor })
    }

    /// Whether a statement is `P (dP - sum(dP P))`, the gradient of a softmax, with dP made of the second product's operand's
    /// gradient as that operand is made of P.
    fn is_slope(&self, weights: &Weights<'_>, rows: Side<'_>, s: StmtId) -> bool {
        let kept = |s: StmtId| {
            let buf = rows.loaded(rows.unrounded(s));
            let store = weights.side.kernel.stores.iter().find(|store| Some(store.to.buf) == buf);
            store.is_some_and(|store| weights.side.unrounded(store.value) == weights.softmax.is)
        };
        let inside = || {
            let &[a, b] = rows.apply(s, "mul")? else { return None };
            let centred = if kept(a) { b } else { a };
            let &[gradient, sum] = rows.apply(rows.unrounded(centred), "sub")? else { return None };
            let &[c, d] = rows.apply(rows.unrounded(rows.reduction(sum, Reduction::Sum)?), "mul")? else { return None };
            let summed = if kept(d) { c } else { d };
            let whole = (kept(a) || kept(b)) && (kept(c) || kept(d));
            let gradient = rows.unrounded(gradient);
            (whole && rows.unrounded(summed) == gradient).then_some(gradient)
        };
        let Some(gradient) = inside() else { return false };
        let hole = rows.kernel.ids().find(|s| rows.loaded(*s) == Some(self.of_weights));
        hole.is_some_and(|hole| {
            let holes = [hole, weights.softmax.is];
            rows.is_like(gradient, (weights.side, weights.weight), holes)
        })
    }
}

/// The gradient of a score without the factor of the scores: what multiplies it last, or what multiplies all there is.
fn unscaled(rows: Side<'_>, stored: StmtId, slope: StmtId, factor: (Side<'_>, StmtId)) -> Option<StmtId> {
    let never = [StmtId(u32::MAX); 2];
    let &[a, b] = rows.apply(rows.unrounded(stored), "mul")? else { return None };
    if rows.unrounded(stored) == slope {
        return None;
    }
    let is_factor = |s: StmtId| rows.is_like(s, factor, never);
    if is_factor(b) { Some(a) } else { is_factor(a).then_some(b) }
}

/// An operand with its last two axes exchanged.
pub fn turned(plan: &Plan, operand: &Operand) -> Operand {
    let dims = dims_after(&plan.bufs[operand.buf.0 as usize].ty.dims, &operand.views);
    let views = [&operand.views[..], &[View::Permute(exchange(dims.len()))]].concat();
    Operand { buf: operand.buf, views }
}

fn canonical(plan: &Plan, operand: &Operand) -> Operand {
    let views = normal(&plan.bufs[operand.buf.0 as usize].ty.dims, &operand.views);
    Operand { buf: operand.buf, views }
}

/// Lets what the way back reads live until its end, in case that the kernels read it there.
fn keep_alive(plan: &mut Plan, fused: &Fused, end: u32) {
    let Some(back) = &fused.back else { return };
    let (scores, _, result) = fused.parts(plan);
    let (_, of_weights, ..) = back.steps(plan);
    let leaves = back.of_keys.read().filter(|buf| !back.of_keys.writes(*buf));
    let operands = [&scores.a, &scores.b, &result.b, &result.lib.product, &of_weights.a];
    let read: Vec<BufId> = leaves.chain(operands.map(|operand| operand.buf)).collect();
    for buf in read {
        let longer = plan.bufs[buf.0 as usize].live.1 < end;
        if longer {
            plan.bufs[buf.0 as usize].live.1 = end;
            plan.bufs.iter_mut().filter(|other| other.donor == Some(buf)).for_each(|other| other.donor = None);
        }
    }
}
