//! A plan made ready: concrete element types, and the interpreted side of its kernels.

use super::instantiate;
use super::interp::Interp;
use crate::rt::DynBody;
use fuse_compiler::plan::{Kernel, Plan, Step};
use fuse_compiler::types::DType;
use std::sync::OnceLock;

/// A plan that can be run any number of times.
pub(crate) struct Program {
    /// The plan, with concrete element types.
    pub plan: Plan,
    interpreted: OnceLock<Vec<Interp>>,
}

impl Program {
    /// A plan for these generic element types.
    pub fn new(plan: &Plan, params: &[DType]) -> Self {
        Program { plan: instantiate(plan, params), interpreted: OnceLock::new() }
    }

    /// The interpreted kernels, one a step, for plans that come without compiled ones.
    pub fn interpreted(&self) -> Vec<&dyn DynBody> {
        let make = || self.plan.steps.iter().map(|step| Interp::new(cpu_kernel(step).clone())).collect();
        self.interpreted.get_or_init(make).iter().map(|interp| interp as &dyn DynBody).collect()
    }
}

/// The kernel of a step as the processor runs it.
pub(super) fn cpu_kernel(step: &Step) -> &Kernel {
    match step {
        Step::Kernel(kernel) => kernel,
        Step::Matmul(matmul) => &matmul.epilogue,
    }
}
