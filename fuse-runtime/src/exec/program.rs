//! A plan made ready: concrete element types, and the interpreted side of its kernels.

use super::cuda::Functions;
use super::instantiate;
use super::interp::Interp;
use crate::rt::DynBody;
use fuse_compiler::options::Mode;
use fuse_compiler::plan::{Kernel, Plan, Step, abi};
use fuse_compiler::types::DType;
use std::borrow::Cow;
use std::sync::OnceLock;

/// A plan that can be run any number of times.
pub(crate) struct Program {
    /// The plan, with concrete element types.
    pub plan: Plan,
    /// What the generic element types of the plan's text stand for.
    pub params: Vec<DType>,
    /// What its calls are tuned for.
    pub mode: Mode,
    /// The plan's kernels that have been loaded on GPUs.
    pub functions: Functions,
    /// Whether one of its kernels may meet an index out of range or an integer division by zero.
    pub may_fault: bool,
    interpreted: OnceLock<Vec<Interp>>,
    /// The CUDA text, which compiled functions bring along and eager ops make when they first need it.
    source: OnceLock<Cow<'static, str>>,
}

impl Program {
    /// A plan for these generic element types.
    pub fn new(plan: &Plan, params: &[DType]) -> Self {
        let plan = instantiate(plan, params);
        Program {
            may_fault: plan.steps.iter().any(|step| abi::may_fault(cpu_kernel(step))),
            plan,
            params: params.to_vec(),
            mode: Mode::Default,
            functions: Functions::default(),
            interpreted: OnceLock::new(),
            source: OnceLock::new(),
        }
    }

    /// The same with the CUDA text that was emitted for it.
    pub fn with_source(self, source: &'static str) -> Self {
        Program { source: OnceLock::from(Cow::Borrowed(source)), ..self }
    }

    /// The same with calls tuned for something.
    pub fn with_mode(self, mode: Mode) -> Self {
        Program { mode, ..self }
    }

    /// The CUDA text.
    pub fn source(&self) -> &str {
        self.source.get_or_init(|| Cow::Owned(fuse_compiler::emit::cuda::text(&self.plan)))
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
