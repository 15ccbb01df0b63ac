//! A plan made ready: concrete element types, and the interpreted side of its kernels.

use super::cuda::{Ahead, Functions, ListText, Names, Tapes};
use super::interp::Interp;
use crate::rt::DynBody;
use fuse_compiler::options::Mode;
use fuse_compiler::plan::{BufClass, Matmul, Plan, Step, abi, instantiate};
use fuse_compiler::types::DType;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

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
    /// What a fault of it is about, if it may have one.
    pub names: Option<Arc<Names>>,
    /// Calls on GPUs that were made ready.
    pub tapes: Tapes,
    /// Loops and branches on GPUs, a part of which is such a call, that were made ready.
    pub loops: Tapes,
    /// By argument, up to which power of two its alignment matters, as an exponent.
    pub alignments: Vec<u32>,
    interpreted: OnceLock<Vec<Interp>>,
    /// The CUDA text, which compiled functions bring along and eager ops make when they first need it.
    source: OnceLock<Cow<'static, str>>,
    /// The CUDA text for calls that go together, made when there first are some; `None` where they cannot.
    list_text: OnceLock<Option<Arc<ListText>>>,
}

impl Program {
    /// A plan for these generic element types.
    pub fn new(plan: &Plan, params: &[DType]) -> Self {
        let plan = instantiate(plan, params);
        let may_fault = plan.steps.iter().any(|step| abi::may_fault(step.program()));
        Program {
            may_fault,
            names: may_fault.then(|| Arc::new(Names::of(&plan))),
            tapes: Tapes::default(),
            loops: Tapes::default(),
            alignments: alignments(&plan),
            plan,
            params: params.to_vec(),
            mode: Mode::Default,
            functions: Functions::new(None, Ahead::default()),
            interpreted: OnceLock::new(),
            source: OnceLock::new(),
            list_text: OnceLock::new(),
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

    /// The same with kernels as the attribute wants them, some of which may be compiled already.
    pub fn with_functions(self, functions: Functions) -> Self {
        Program { functions, ..self }
    }

    /// The CUDA text.
    pub fn source(&self) -> &str {
        self.source.get_or_init(|| Cow::Owned(fuse_compiler::emit::cuda::text(&self.plan)))
    }

    /// The CUDA text for calls that go together.
    pub fn list_text(&self) -> Option<&Arc<ListText>> {
        self.list_text.get_or_init(|| ListText::of(self)).as_ref()
    }

    /// The interpreted kernels, one a step, for plans that come without compiled ones.
    pub fn interpreted(&self) -> Vec<&dyn DynBody> {
        let make = || self.plan.steps.iter().map(|step| Interp::new(step.program().clone())).collect();
        self.interpreted.get_or_init(make).iter().map(|interp| interp as &dyn DynBody).collect()
    }
}

/// Kernels look at 16 bytes of alignment, which is their widest access, the library looks at 256.
fn alignments(plan: &Plan) -> Vec<u32> {
    let mut alignments: Vec<u32> = Vec::new();
    for buf in &plan.bufs {
        alignments.extend(matches!(buf.class, BufClass::In(_)).then_some(4));
    }
    for operand in plan.steps.iter().filter_map(Step::matmul).flat_map(Matmul::operands) {
        if let BufClass::In(k) = plan.bufs[operand.buf.0 as usize].class {
            alignments[k as usize] = 8;
        }
    }
    alignments
}
