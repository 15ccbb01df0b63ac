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
    plan.kernels_mut().for_each(in_kernel);
    plan.steps.iter_mut().filter_map(Step::matmul_mut).for_each(|matmul| set(&mut matmul.dtype));
    for values in plan.fused.iter_mut().filter_map(|fused| fused.values.as_mut()) {
        set(&mut values.dtype);
        in_kernel(&mut values.epilogue);
    }
    plan
}
