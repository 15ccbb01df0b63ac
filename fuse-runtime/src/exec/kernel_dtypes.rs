//! Element types of statements.

use fuse_compiler::plan::{Expr, Kernel, Stmt};

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
