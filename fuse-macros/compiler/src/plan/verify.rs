//! What must hold of every plan. A broken plan is a mistake of ours, so the checks panic with the kernel around the fault.

use super::abi::small::may_share;
use super::{
    Attention, BufClass, BufId, Expr, Kernel, Kind, Level, Matmul, Operand, Plan, Products, SmallKernels, Step, StmtId,
    print,
};
use crate::op::Literal;

/// Checks a plan.
///
/// # Panics
/// If an operand comes after its user, a level does not fit, a number points nowhere, or a buffer is read before it is written.
pub fn verify(plan: &Plan) {
    let mut written: Vec<bool> = plan.bufs.iter().map(|b| matches!(b.class, BufClass::In(_))).collect();
    for step in &plan.steps {
        match step {
            Step::Kernel(kernel) => verify_kernel(plan, kernel, &mut written),
            Step::Matmul(matmul) => {
                for operand in matmul.operands() {
                    read(plan, &matmul.epilogue, operand.buf.0, &written);
                }
                verify_kernel(plan, &matmul.epilogue, &mut written.clone());
                written[matmul.lib.product.buf.0 as usize] = true;
                if let Some(rest) = &matmul.lib.rest {
                    verify_kernel(plan, rest, &mut written);
                }
                matmul.epilogue.written().for_each(|buf| written[buf.0 as usize] = true);
            }
        }
    }
    plan.attention.iter().for_each(|attention| verify_attention(plan, attention, attention.steps(plan)));
    plan.fused.iter().for_each(|fused| verify_attention(plan, &fused.steps, fused.parts(plan)));
    for back in plan.fused.iter().filter_map(|fused| fused.back.as_ref()) {
        let (_, _, rows, ..) = back.steps(plan);
        check(plan, rows, rows.writes(back.of_scores), "a gradient of scores that the rows do not store");
        let holes = back.of_keys.stores.len() >= 2 && back.of_keys.stmts == back.of_queries.stmts;
        check(plan, &back.of_keys, holes, "kernels back that do not run one program");
    }
    for products in &plan.products {
        let program = &products.program;
        let count = products.steps(plan).count() as u32;
        let are_there = program.stmts.iter().all(|s| !matches!(s.expr, Expr::Product(n) if n >= count));
        check(plan, program, are_there && count <= Products::MOST, "products that are not there");
        verify_kernel(plan, program, &mut written.clone());
    }
    plan.small.iter().for_each(|small| verify_small(plan, small));
    let unwritten = |out: &&Operand| !written[out.buf.0 as usize];
    assert!(plan.outs.iter().find(unwritten).is_none(), "a result is never written\n{}", print::plan(plan));
}

/// No small kernel of a launch touches what another one writes.
fn verify_small(plan: &Plan, small: &SmallKernels) {
    for (n, kernel) in small.steps(plan).enumerate() {
        let has = |other: &Kernel, buf: BufId| other.reads(buf) || other.writes(buf);
        let mut others = small.steps(plan).enumerate().filter(|(k, _)| *k != n).map(|(_, other)| other);
        let alone = others.all(|other| !kernel.written().any(|buf| has(other, buf)));
        check(plan, kernel, may_share(kernel) && alone, "a kernel that others of its launch have to wait for");
    }
}

fn verify_attention(plan: &Plan, attention: &Attention, parts: (&Matmul, &Kernel, &Matmul)) {
    let (scores, weights, values) = parts;
    check(plan, weights, scores.epilogue.writes(attention.scores), "scores that the first product does not store");
    check(plan, weights, weights.writes(attention.weights), "weights that the rows do not store");
    check(plan, weights, values.a.buf == attention.weights, "weights that the second product does not read");
    for buf in [attention.scores, attention.weights] {
        check(
            plan,
            weights,
            plan.bufs[buf.0 as usize].class == BufClass::Temp,
            "attention that leaves its matrix behind",
        );
    }
}

fn verify_kernel(plan: &Plan, kernel: &Kernel, written: &mut [bool]) {
    kernel.read().for_each(|buf| read(plan, kernel, buf.0, written));
    kernel.ids().for_each(|s| verify_stmt(plan, kernel, s));
    for store in &kernel.stores {
        for used in kernel.store_operands(store) {
            check(plan, kernel, (used.0 as usize) < kernel.stmts.len(), "a store of a value that is not there");
        }
        check(plan, kernel, (store.to.buf.0 as usize) < plan.bufs.len(), "a store to a buffer that is not there");
        written[store.to.buf.0 as usize] = true;
    }
    check(plan, kernel, kernel.reduced as usize <= kernel.domain.len(), "more reduced axes than axes");
    check(plan, kernel, (kernel.kind == Kind::Map) == (kernel.reduced == 0), "only maps have no inner axis");
    let walks = kernel.phases().walks.len();
    check(plan, kernel, kernel.kind == Kind::Row || walks <= 1, "only rows are walked more than once");
}

fn verify_stmt(plan: &Plan, kernel: &Kernel, s: StmtId) {
    let stmt = kernel.stmt(s);
    let operands = stmt.expr.operands();
    check(plan, kernel, operands.iter().all(|o| o.0 < s.0), "an operand after its user");
    check(plan, kernel, (stmt.place as usize) < plan.places.len(), "a place that is not there");
    let highest = operands.iter().map(|o| level_of_operand(kernel, *o)).max();
    let rises = matches!(stmt.expr, Expr::Reduce(..));
    check(plan, kernel, rises || highest.is_none_or(|l| l <= stmt.level), "a value finer than its own level");
    match &stmt.expr {
        Expr::Load(leaf) | Expr::Gather { leaf, .. } => {
            let Some(source) = kernel.leaves.get(*leaf as usize) else {
                return check(plan, kernel, false, "a leaf that is not there");
            };
            check(plan, kernel, source.level <= stmt.level, "a leaf finer than its statement");
            let gathers = matches!(stmt.expr, Expr::Gather { .. });
            check(
                plan,
                kernel,
                source.indexed.is_some() == gathers,
                "a gather needs an indexed leaf and a load a plain one",
            );
            let is_own = source.indexed.is_none_or(|lookup| lookup.place == stmt.place);
            check(plan, kernel, is_own, "a leaf that another op reads, whose faults would be told as its own");
        }
        Expr::Reduce(..) => {
            let has_rows = matches!(kernel.kind, Kind::Row | Kind::Column);
            check(plan, kernel, has_rows && stmt.level < Level::Elem, "a reduction without something to reduce");
        }
        Expr::Scan(..) => check(plan, kernel, kernel.kind == Kind::Line, "a scan outside a line kernel"),
        Expr::Scalar(k) => check(plan, kernel, (*k as usize) < plan.scalars.len(), "a scalar that is not there"),
        Expr::Uniform(draw, _) | Expr::Normal(draw, _) => {
            check(plan, kernel, (*draw as usize) < plan.draws.len(), "a random draw that is not there");
        }
        Expr::Const(Literal::Float(_) | Literal::Int(_) | Literal::Bool(_)) => {}
        Expr::Size(_) | Expr::Apply(..) | Expr::Cast(_) | Expr::Product(_) => {}
    }
}

/// Constants, scalars and sizes are known everywhere, whatever level they carry.
fn level_of_operand(kernel: &Kernel, s: StmtId) -> Level {
    let stmt = kernel.stmt(s);
    if stmt.expr.is_uniform() { Level::All } else { stmt.level }
}

fn read(plan: &Plan, kernel: &Kernel, buf: u32, written: &[bool]) {
    check(plan, kernel, (buf as usize) < plan.bufs.len(), "a buffer that is not there");
    check(plan, kernel, written[buf as usize], "a buffer that is read before it is written");
}

fn check(plan: &Plan, kernel: &Kernel, holds: bool, fault: &str) {
    assert!(holds, "{fault} in {} of {}: {:#?}", kernel.name, plan.name, kernel);
}
