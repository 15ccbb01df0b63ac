//! Finds attention: a product, rows over it, and a product with them, whose values in between nobody else reads.
//!
//! It comes last, since it only describes what has been scheduled. The composite op and the written-out form end up as the
//! same three steps. Where a graph only walks back, the last of them is missing (`again`).

mod again;
mod back;
mod fused;
mod program;
mod side;

use super::buffers::takes_no_memory;
use crate::plan::{Attention, BufClass, BufId, Fused, Kernel, Kind, Leaf, Level, Matmul, Plan, Step, Store};
use crate::types::Dim;

/// Lists what attention a plan has.
pub fn run(mut plan: Plan) -> Plan {
    let found = (0..plan.steps.len().saturating_sub(2)).filter_map(|first| at(&plan, first));
    plan.attention = found.collect();
    for first in 0..plan.steps.len().saturating_sub(2) {
        let fused = fused(&mut plan, first);
        plan.fused.extend(fused);
    }
    plan
}

/// Attention that one kernel may do, with its way back where its weights are read there.
fn fused(plan: &mut Plan, first: usize) -> Option<Fused> {
    if let Some(attention) = plan.attention_at(first) {
        return fused::of(plan, *attention, attention.steps(plan).2);
    }
    let Some(attention) = of_training(plan, first) else { return again::run(plan, first) };
    let mut fused = fused::of(plan, attention, attention.steps(plan).2)?;
    back::run(plan, &mut fused).then_some(fused)
}

/// Three steps that would be attention if nobody else read what comes between them.
fn of_training(plan: &Plan, first: usize) -> Option<Attention> {
    let (_, _, values) = three(plan, first)?;
    weights(plan, first, values.a.buf)
}

/// A product and rows over it that store these weights.
fn weights(plan: &Plan, first: usize, weights: BufId) -> Option<Attention> {
    let [Step::Matmul(scores), Step::Kernel(rows)] = &plan.steps[first..][..2] else { return None };
    let [store] = &scores.epilogue.stores[..] else { return None };
    let buf = store.to.buf;
    let plain = |store: &Store| store.to.views.is_empty() && store.scatter.is_none();
    let fits = rows.writes(weights) && plain(store) && rows.stores.iter().all(plain) && reads_by_row(rows, buf);
    fits.then_some(Attention { first: first as u32, scores: buf, weights })
}

/// A product, rows over it, and the product of them with something else.
fn three(plan: &Plan, first: usize) -> Option<(&Matmul, &Kernel, &Matmul)> {
    let [Step::Matmul(scores), Step::Kernel(weights), Step::Matmul(values)] = &plan.steps[first..][..3] else {
        return None;
    };
    let extents = [scores.batch.as_slice(), &[scores.m.clone(), scores.n.clone()]].concat();
    let of_product = [values.batch.as_slice(), &[values.m.clone(), values.k.clone()]].concat();
    let fits = extents == of_product
        && scores.dtype == values.dtype
        && values.a.views.is_empty()
        && values.b.buf != values.a.buf
        && !values.epilogue.reads(values.a.buf)
        && is_by_row(weights, &extents);
    fits.then_some((scores, weights, values))
}

fn at(plan: &Plan, first: usize) -> Option<Attention> {
    let (scores, weights, values) = three(plan, first)?;
    let first = first as u32;
    let between =
        |kernel: &Kernel, step: u32| kernel.stores.iter().find(|s| is_between(plan, s, step)).map(|s| s.to.buf);
    let buf = between(&scores.epilogue, first).filter(|buf| reads_by_row(weights, *buf))?;
    (between(weights, first + 1)? == values.a.buf).then_some(Attention { first, scores: buf, weights: values.a.buf })
}

/// Whether a kernel makes each row of a matrix from the same row of its operands.
fn is_by_row(kernel: &Kernel, extents: &[Dim]) -> bool {
    let over_rows = kernel.stmts.iter().any(|stmt| stmt.level == Level::All);
    kernel.kind == Kind::Row && kernel.reduced == 1 && kernel.domain == extents && !over_rows
}

/// Whether a store fills a dense temporary that only this step and the next one touch.
fn is_between(plan: &Plan, store: &Store, step: u32) -> bool {
    let buf = &plan.bufs[store.to.buf.0 as usize];
    buf.class == BufClass::Temp
        && buf.live == (step, step + 1)
        && takes_no_memory(plan, buf)
        && store.to.views.is_empty()
        && store.scatter.is_none()
}

/// Whether a kernel reads a buffer, and only where it is.
fn reads_by_row(kernel: &Kernel, buf: BufId) -> bool {
    let mut leaves = kernel.leaves.iter().filter(|leaf| leaf.buf() == Some(buf));
    kernel.reads(buf) && leaves.all(Leaf::is_in_place)
}
