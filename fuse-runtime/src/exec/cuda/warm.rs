//! Making the kernels of a plan ready side by side, before its first call launches them one after another.
//!
//! A kernel is a program of its own, and compiling one takes as long as thousands of launches. Which variant a kernel needs
//! follows from the layouts of a call, so a first pass finds and binds the operands of every step as the call will, and
//! launches nothing. What fails here fails again in the call, which says why.

use super::bind::bind;
use super::call::CudaCall;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use fuse_compiler::plan::abi::Geometry;
use fuse_compiler::plan::{Kernel, Plan, Step};
use rayon::prelude::*;

impl CudaCall<'_> {
    /// Compiles what the call will launch, if it is the first of its plan on this device and launches several kernels.
    pub fn warm<'b>(&self, plan: &Plan, buffers: impl FnOnce() -> Buffers<'b>) {
        if plan.steps.len() > 1 && !self.functions.has_some(self.ordinal) {
            let needed = self.needed(plan, &mut buffers());
            needed.par_iter().for_each(|(kernel, geometry)| drop(self.functions.prepare(self, kernel, geometry)));
        }
    }

    /// The kernels of a call and how their operands lie, as far as they can be found.
    fn needed<'p>(&self, plan: &'p Plan, buffers: &mut Buffers<'_>) -> Vec<(&'p Kernel, Geometry)> {
        let mut needed = Vec::new();
        for (k, step) in (0..).zip(&plan.steps) {
            let Ok(bound) = kernel(step).map(|kernel| self.geometry(kernel, buffers)).transpose() else { break };
            needed.extend(kernel(step).zip(bound));
            buffers.end_step(k);
        }
        needed
    }

    fn geometry(&self, kernel: &Kernel, buffers: &mut Buffers<'_>) -> Result<Geometry> {
        bind(kernel, buffers, self.sizes).map(|bound| bound.geometry)
    }
}

/// The kernel a step most likely launches: behind a product by the library what is left to do.
fn kernel(step: &Step) -> Option<&Kernel> {
    match step {
        Step::Kernel(kernel) => Some(kernel),
        Step::Matmul(matmul) => matmul.lib.rest.as_ref(),
    }
}
