//! Making the kernels of a plan ready side by side, before its first call launches them one after another.
//!
//! A kernel is a program of its own, and compiling one takes as long as thousands of launches. Which variant a kernel needs
//! follows from the layouts of a call, so a first pass finds and binds the operands of every step as the call will, and
//! launches nothing. What fails here fails again in the call, which says why.

use super::bind::bind;
use super::call::CudaCall;
use super::matmul::template_axes;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use fuse_compiler::plan::abi::Geometry;
use fuse_compiler::plan::{Kernel, Matmul, Plan, Step};
use rayon::prelude::*;

impl CudaCall<'_> {
    /// Whether the call is the first of its plan on this device and launches several kernels. A call that is taken down is not
    /// the first, and only the first pays for finding its operands twice.
    pub fn has_to_warm(&self, plan: &Plan) -> bool {
        plan.steps.len() > 1 && !self.context.is_tracing() && !self.functions.has_some(self.ordinal)
    }

    /// Compiles what the call will launch, if that [has to be](Self::has_to_warm), and opens the library meanwhile.
    pub fn warm<'b>(&self, plan: &Plan, buffers: impl FnOnce() -> Buffers<'b>) {
        if self.has_to_warm(plan) {
            let needed = self.needed(plan, &mut buffers());
            let multiplies = plan.steps.iter().any(|step| matches!(step, Step::Matmul(_)));
            let open = || {
                if multiplies {
                    self.context.open_library()
                }
            };
            let load = || {
                needed.par_iter().for_each(|needed| match needed {
                    // What is to be timed is compiled when all its candidates are.
                    Needed::Kernel(kernel, geometry) if self.tunes && !self.is_tuned(kernel, geometry) => {}
                    Needed::Kernel(kernel, geometry) => drop(self.functions.prepare(self, kernel, geometry)),
                    Needed::Template(matmul, axes) => drop(self.functions.prepare_product(self, matmul, axes)),
                })
            };
            rayon::join(open, load);
        }
    }

    /// The kernels of a call and how their operands lie, as far as they can be found.
    fn needed<'p>(&self, plan: &'p Plan, buffers: &mut Buffers<'_>) -> Vec<Needed<'p>> {
        let mut needed = Vec::new();
        for (k, step) in (0..).zip(&plan.steps) {
            let Ok(found) = self.needed_by(step, buffers) else { break };
            needed.extend(found);
            buffers.end_step(k);
        }
        needed
    }

    /// What a step most likely launches: behind a product by the library what is left to do.
    fn needed_by<'p>(&self, step: &'p Step, buffers: &mut Buffers<'_>) -> Result<Option<Needed<'p>>> {
        let kernel = match step {
            Step::Kernel(kernel) => kernel,
            Step::Matmul(matmul) => match (template_axes(self, matmul, buffers)?, &matmul.lib.rest) {
                (Some(axes), _) => return Ok(Some(Needed::Template(matmul, axes))),
                (None, Some(rest)) => rest,
                (None, None) => return Ok(None),
            },
        };
        Ok(Some(Needed::Kernel(kernel, bind(kernel, buffers, self.sizes)?.geometry)))
    }
}

/// What is to be compiled, and over which axes it will be launched.
enum Needed<'p> {
    Kernel(&'p Kernel, Geometry),
    Template(&'p Matmul, Geometry),
}
