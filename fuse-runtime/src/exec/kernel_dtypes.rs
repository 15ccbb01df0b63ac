//! Element types of a plan.

use fuse_compiler::plan::{Expr, Kernel, Plan, Step, Stmt};
use fuse_compiler::types::DType;

/// The plan with concrete element types in the place of the generic ones.
pub(crate) fn instantiate(plan: &Plan, params: &[DType]) -> Plan {
    let mut plan = plan.clone();
    let set = |dtype: &mut DType| *dtype = dtype.instantiate(params);
    plan.bufs.iter_mut().for_each(|buf| set(&mut buf.ty.dtype));
    plan.scalars.iter_mut().for_each(set);
    let in_kernel = |kernel: &mut Kernel| kernel.stmts.iter_mut().for_each(|stmt| set(&mut stmt.dtype));
    for step in &mut plan.steps {
        match step {
            Step::Kernel(kernel) => in_kernel(kernel),
            Step::Matmul(matmul) => {
                set(&mut matmul.dtype);
                in_kernel(&mut matmul.epilogue);
                matmul.lib.rest.iter_mut().for_each(in_kernel);
            }
        }
    }
    plan
}

/// Whether a statement faults where its second operand is 0: an integer division.
pub(super) fn faults_on_zero(stmt: &Stmt, kernel: &Kernel) -> bool {
    match &stmt.expr {
        Expr::Apply(op, args) => {
            let zero_fault = op.scalar.as_ref().is_some_and(|scalar| scalar.zero_fault);
            zero_fault && kernel.stmts[args[0].0 as usize].dtype.is_int()
        }
        _ => false,
    }
}
