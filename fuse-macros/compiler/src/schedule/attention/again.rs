//! Attention in a graph that only walks back through it, as the backward part is where a tape or a graph break lies between.
//!
//! Scores and weights are made again there, but not their product with the values, which no gradient reads. The kernels make it all
//! the same: that gives the logarithms of the rows, and the sum of a row's weights times their gradients is that of its result
//! times the result's gradient.

use super::back::{self, turned};
use super::{fused, is_by_row, weights};
use crate::plan::{
    Attention, Expr, Fused, Kernel, Kind, Level, LibForm, Matmul, Operand, Plan, Step, Stmt, StmtId, Store,
};
use crate::schedule::together::STEPS;
use crate::types::{DType, Dim, Ty};

/// Attention that begins with a step, if the plan walks back through it.
pub fn run(plan: &mut Plan, first: usize) -> Option<Fused> {
    let before = plan.bufs.len();
    let found = found(plan, first);
    if found.is_none() {
        plan.bufs.truncate(before);
    }
    found
}

fn found(plan: &mut Plan, first: usize) -> Option<Fused> {
    let (attention, of_weights) = begins(plan, first)?;
    let values = values(plan, attention, of_weights);
    let fused = fused::of(plan, attention, &values)?;
    let mut fused = Fused { values: Some(Box::new(values)), ..fused };
    back::run(plan, &mut fused).then_some(fused)
}

/// Scores and weights, and the step that makes the gradient of these weights.
fn begins(plan: &Plan, first: usize) -> Option<(Attention, usize)> {
    let [Step::Matmul(scores), Step::Kernel(rows)] = &plan.steps[first..][..2] else { return None };
    let extents = [scores.batch.as_slice(), &[scores.m.clone(), scores.n.clone()]].concat();
    if !is_by_row(rows, &extents) {
        return None;
    }
    (first + 2..(plan.steps.len() + 1).saturating_sub(STEPS)).find_map(|at| match &plan.steps[at..at + 2] {
        [Step::Matmul(of_values), Step::Matmul(_)] => Some((weights(plan, first, of_values.a.buf)?, at + 1)),
        _ => None,
    })
}

/// The product of weights and values, as the gradient of the weights, a product with the values turned around, tells it.
fn values(plan: &mut Plan, attention: Attention, of_weights: usize) -> Matmul {
    let Step::Matmul(of_weights) = &plan.steps[of_weights] else { unreachable!("it was found as a product") };
    let Matmul { batch, m, n: k, k: n, dtype, b, epilogue, .. } = of_weights.clone();
    let b = turned(plan, &b);
    let domain = [batch.as_slice(), &[m.clone(), n.clone()]].concat();
    let buf = plan.temporary("attended", Ty::new(dtype, domain.clone()), (attention.first, attention.first));
    let product = Operand { buf, views: vec![] };
    let epilogue = as_it_is(&epilogue, domain, dtype, product.clone());
    let lib = LibForm { bias: None, relu: false, product, rest: None };
    let a = Operand { buf: attention.weights, views: vec![] };
    Matmul { a, b, batch, m, n, k, dtype, tf32: false, epilogue, lib }
}

/// An epilogue that stores a product in its element type, beside that of another product.
fn as_it_is(beside: &Kernel, domain: Vec<Dim>, dtype: DType, to: Operand) -> Kernel {
    let stmt = |expr, dtype| Stmt { expr, dtype, round: false, level: Level::Elem, name: None, place: 0 };
    Kernel {
        name: format!("{}_again", beside.name),
        kind: Kind::Map,
        domain,
        reduced: 0,
        leaves: vec![],
        stmts: vec![stmt(Expr::Product(0), dtype.compute()), stmt(Expr::Cast(StmtId(0)), dtype)],
        stores: vec![Store { to, value: StmtId(1), scatter: None }],
        ops: vec![],
        asks: false,
        heeds: false,
    }
}
