//! Brings the steps of the way back through attention together, so that they can be one kernel or two.
//!
//! The gradient of `weights @ values` and the softmax before is five steps, which the program leaves among others:
//!
//! | what it makes | from |
//! |---|---|
//! | the values' gradient | the weights and the result's gradient |
//! | the weights' gradient | the result's gradient and the values |
//! | the scores' gradient, row by row | that and the weights |
//! | the queries' gradient | that and the keys |
//! | the keys' gradient | that and the queries |
//!
//! The values' gradient comes first, since the weights are not read again behind the rows.

use super::buffers::{touched, touchers, written};
use super::frame::dims_after;
use super::views::{inverse, normal};
use crate::plan::{BufId, Expr, FusedBack, Kernel, Kind, Matmul, Operand, Plan, Step, View};

/// How many steps it is.
pub const STEPS: usize = FusedBack::STEPS;

/// Moves the steps of each way back to where the first of them stands.
pub fn run(mut plan: Plan) -> Plan {
    let mut k = 0;
    while k < plan.steps.len() {
        if let Some(steps) = steps_of(&plan, k).filter(|steps| may_move(&plan, steps)) {
            let first = steps.into_iter().min().expect("there are five");
            gather(&mut plan, steps);
            store_by_rows(&mut plan, first + STEPS - 1);
            k = k.max(first + STEPS - 1);
        }
        k += 1;
    }
    plan
}

/// The steps of a way back in the order of the table, if a step makes the scores' gradient of one.
fn steps_of(plan: &Plan, rows: usize) -> Option<[usize; STEPS]> {
    let kernel = plan.steps[rows].kernel()?;
    let [store] = &kernel.stores[..] else { return None };
    if kernel.kind != Kind::Row {
        return None;
    }
    let of_scores = store.to.buf;
    let &[one, other] = &readers(plan, of_scores)[..] else { return None };
    let reads_first =
        |step: usize| product(plan, step).is_some_and(|product| product.a.buf == of_scores && !is_turned(&product.a));
    let (queries, keys) = if reads_first(one) { (one, other) } else { (other, one) };
    product(plan, queries)?;
    product(plan, keys)?;
    let sources: Vec<usize> = kernel.read().filter_map(|buf| writer(plan, buf)).collect();
    let made_of_gradient =
        |&step: &usize| product(plan, step).is_some_and(|product| readers(plan, product.lib.product.buf) == [rows]);
    let weights_gradient = sources.iter().copied().find(made_of_gradient)?;
    let softmax = |&step: &usize| plan.steps[step].kernel().is_some_and(|kernel| kernel.kind == Kind::Row);
    let softmax = sources.iter().copied().find(softmax)?;
    let made = plan.steps[softmax].kernel()?;
    // The product with the values reads them as they are; it may be missing, where all else is done again to walk back.
    let turns =
        |&step: &usize| product(plan, step).is_some_and(|product| made.writes(product.a.buf) && is_turned(&product.a));
    let values = made.written().flat_map(|buf| readers(plan, buf)).find(turns)?;
    Some([values, weights_gradient, rows, queries, keys])
}

/// Whether the last two axes of an operand are exchanged.
fn is_turned(operand: &Operand) -> bool {
    matches!(operand.views.last(), Some(View::Permute(order)) if order.last() != Some(&(order.len() as u32 - 1)))
}

fn product(plan: &Plan, step: usize) -> Option<&Matmul> {
    plan.steps[step].matmul()
}

/// The step that writes a buffer.
fn writer(plan: &Plan, buf: BufId) -> Option<usize> {
    plan.steps.iter().position(|step| written(step).contains(&buf))
}

/// The steps that read a buffer others have written.
fn readers(plan: &Plan, buf: BufId) -> Vec<usize> {
    touchers(plan, buf).filter(|step| !written(&plan.steps[*step]).contains(&buf)).collect()
}

/// Whether all that these steps read is there before the first of them, or made by one of them.
fn may_move(plan: &Plan, steps: &[usize; STEPS]) -> bool {
    let first = *steps.iter().min().expect("there are five");
    let is_there = |buf: &BufId| writer(plan, *buf).is_none_or(|step| step < first || steps.contains(&step));
    let distinct = (1..STEPS).all(|k| !steps[..k].contains(&steps[k]));
    distinct && steps.iter().all(|&step| touched(&plan.steps[step]).iter().all(is_there))
}

fn gather(plan: &mut Plan, steps: [usize; STEPS]) {
    let first = steps.into_iter().min().expect("there are five");
    let moved = steps.map(|step| plan.steps[step].clone());
    let mut at = 0..;
    plan.steps.retain(|_| !steps.contains(&at.next().expect("it has no end")));
    plan.steps.splice(first..first, moved);
}

/// The gradient of keys that were transposed is a transposed product, whose columns would be rows of keys. Turns it around,
/// and lays it out as the next one wants it, so that the elements of a key lie together.
fn store_by_rows(plan: &mut Plan, step: usize) {
    let [Step::Kernel(rows), _, Step::Matmul(matmul)] = &plan.steps[step - 2..=step] else { return };
    let (buf, epilogue, of_scores) = (matmul.lib.product.buf, &matmul.epilogue, rows.stores[0].to.buf);
    let is_plain = epilogue.leaves.is_empty()
        && epilogue.stmts.iter().all(|stmt| matches!(stmt.expr, Expr::Product(_) | Expr::Cast(_)))
        && matches!(&epilogue.stores[..], [store] if store.to.buf == buf && store.to.views.is_empty())
        && matmul.lib.rest.is_none();
    if matmul.b.buf != of_scores || matmul.a.buf == of_scores || !is_plain {
        return;
    }
    let order = order_of_readers(plan, buf, epilogue.domain.len());
    turn(plan, step);
    lay_out(plan, buf, &order);
}

/// Exchanges the rows and the columns of a product.
fn turn(plan: &mut Plan, step: usize) {
    let (bufs, Step::Matmul(matmul)) = (&plan.bufs, &mut plan.steps[step]) else { return };
    let rank = matmul.epilogue.domain.len();
    std::mem::swap(&mut matmul.a, &mut matmul.b);
    std::mem::swap(&mut matmul.m, &mut matmul.n);
    matmul.epilogue.domain.swap(rank - 1, rank - 2);
    let stores = matmul.epilogue.stores.iter_mut().map(|store| &mut store.to);
    for operand in [&mut matmul.a, &mut matmul.b, &mut matmul.lib.product].into_iter().chain(stores) {
        operand.views.push(View::Permute(exchange(rank)));
        operand.views = normal(&bufs[operand.buf.0 as usize].ty.dims, &operand.views);
    }
}

/// The order of axes with the last two exchanged; what has fewer axes is no matrix, and keeps its order.
pub fn exchange(rank: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rank as u32).collect();
    if let [.., rows, columns] = &mut order[..] {
        std::mem::swap(rows, columns);
    }
    order
}

/// The order of axes in which a transposed product is read, if its rows come last there, else with the last two exchanged.
fn order_of_readers(plan: &Plan, buf: BufId, rank: usize) -> Vec<u32> {
    let mut found = exchange(rank);
    each_view(&mut plan.clone(), |of, views| {
        if let (true, Some(View::Permute(order))) = (of == buf, views.first())
            && order.last() == Some(&(rank as u32 - 2))
        {
            found.clone_from(order);
        }
    });
    found
}

/// Lays a buffer out in another order of its axes.
fn lay_out(plan: &mut Plan, buf: BufId, order: &[u32]) {
    let ty = &mut plan.bufs[buf.0 as usize].ty;
    ty.dims = dims_after(&ty.dims, &[View::Permute(order.to_vec())]);
    let dims = ty.dims.clone();
    let back = inverse(order);
    each_view(plan, |of, views| {
        if of == buf {
            views.insert(0, View::Permute(back.clone()));
            *views = normal(&dims, views);
        }
    });
}

/// Visits every operand of a plan.
fn each_view(plan: &mut Plan, mut f: impl FnMut(BufId, &mut Vec<View>)) {
    let in_kernel = |kernel: &mut Kernel, f: &mut dyn FnMut(BufId, &mut Vec<View>)| {
        for leaf in &mut kernel.leaves {
            if let Some(buf) = leaf.buf() {
                f(buf, &mut leaf.views);
            }
        }
        kernel.stores.iter_mut().for_each(|store| f(store.to.buf, &mut store.to.views));
    };
    for step in &mut plan.steps {
        step.kernels_mut().for_each(|kernel| in_kernel(kernel, &mut f));
        if let Step::Matmul(matmul) = step {
            let operands = [&mut matmul.a, &mut matmul.b, &mut matmul.lib.product];
            operands.into_iter().chain(&mut matmul.lib.bias).for_each(|o| f(o.buf, &mut o.views));
        }
    }
    plan.outs.iter_mut().for_each(|out| f(out.buf, &mut out.views));
}
