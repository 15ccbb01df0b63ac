//! Plans of generic functions for concrete element types.

use super::{Kernel, Plan, Step};
use crate::types::DType;

/// The plan with concrete element types in the place of the generic ones.
pub fn instantiate(plan: &Plan, params: &[DType]) -> Plan {
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
    for values in plan.fused.iter_mut().filter_map(|fused| fused.values.as_mut()) {
        set(&mut values.dtype);
        in_kernel(&mut values.epilogue);
    }
    plan.programs_mut().for_each(in_kernel);
    plan
}
