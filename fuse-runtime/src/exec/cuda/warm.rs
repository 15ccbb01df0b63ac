//! Making the kernels of a plan ready side by side, before its first call launches them one after another.
//!
//! A kernel is a program of its own, and compiling one takes as long as thousands of launches. Which variant a kernel needs
//! follows from the layouts of a call, so a first pass finds and binds the operands of every step as the call will, and
//! launches nothing. What fails here fails again in the call, which says why.

use super::attention::attention_axes;
use super::bind::bind;
use super::call::CudaCall;
use super::matmul::template_axes;
use super::products::Together;
use super::small::SmallLaunch;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use fuse_compiler::plan::abi::{Geometry, Part};
use fuse_compiler::plan::{Fused, FusedBack, Kernel, LibForm, Matmul, Plan, Step};
use rayon::prelude::*;

impl CudaCall<'_> {
    /// Whether the call launches several kernels, some of which may have to be compiled: it is the first of its plan on this
    /// device, or one of a few that followed such a one. A call that is taken down has been run before, and once its kernels
    /// serve all layouts that come, a call does not pay for finding its operands twice.
    pub fn has_to_warm(&self, plan: &Plan) -> bool {
        plan.steps.len() > 1 && !self.context.is_tracing() && self.functions.may_grow(self.ordinal)
    }

    /// Compiles what the call will launch, if that [has to be](Self::has_to_warm), and opens the library meanwhile if a product
    /// most likely is its.
    pub fn warm<'b>(&self, plan: &Plan, buffers: impl FnOnce() -> Buffers<'b>) {
        if self.has_to_warm(plan) {
            let needed = self.needed(plan, &mut buffers());
            let by_library = needed.iter().any(|needed| matches!(needed, Needed::Library));
            let open = || {
                if by_library {
                    self.context.open_library()
                }
            };
            let load = || {
                needed.par_iter().for_each(|needed| match needed {
                    // What is to be timed is compiled when all its candidates are.
                    Needed::Kernel(kernel, geometry) if self.tunes && !self.is_tuned(kernel, geometry) => {}
                    Needed::Kernel(kernel, geometry) => drop(self.functions.prepare(self, kernel, geometry)),
                    Needed::Template(matmul, axes) => drop(self.functions.prepare_product(self, matmul, axes)),
                    Needed::Library => {}
                    Needed::Products(together) => drop(together.prepare(self)),
                    Needed::Small(small) => drop(small.prepare(self)),
                    Needed::Attention(fused, part, axes) => {
                        drop(self.functions.prepare_attention(self, fused, *part, axes));
                    }
                })
            };
            let before = self.functions.count();
            rayon::join(open, load);
            self.functions.note_growth(self.functions.count() > before);
        }
    }

    /// The kernels of a call and how their operands lie, as far as they can be found.
    fn needed<'p>(&self, plan: &'p Plan, buffers: &mut Buffers<'_>) -> Vec<Needed<'p>> {
        let mut needed = Vec::new();
        let mut k = 0;
        while k < plan.steps.len() {
            let Ok((found, steps)) = self.needed_at(plan, k, buffers) else { break };
            needed.extend(found);
            (k..k + steps).for_each(|step| buffers.end_step(step as u32));
            k += steps;
        }
        needed
    }

    /// What a step launches, or attention in one kernel with what follows it, and how many steps that are.
    fn needed_at<'p>(&self, plan: &'p Plan, k: usize, buffers: &mut Buffers<'_>) -> Result<(Vec<Needed<'p>>, usize)> {
        let forward = plan.fused_at(k);
        let back = plan.back_at(k).filter(|(_, back)| buffers.has(back.logs));
        let (fused, parts): (_, &[Part]) = match (forward, back) {
            (Some(fused), _) => (fused, Part::forward(fused)),
            (_, Some((fused, _))) => (fused, &Part::BACK),
            _ => return self.needed_without_attention(plan, k, buffers),
        };
        let Some(axes) = attention_axes(self, plan, fused, parts, buffers)? else {
            return self.needed_without_attention(plan, k, buffers);
        };
        let mut needed: Vec<Needed> =
            std::iter::zip(parts, axes).map(|(part, axes)| Needed::Attention(fused, *part, axes)).collect();
        let steps = if forward.is_some() { fused.count() } else { FusedBack::STEPS };
        for step in &plan.steps[k..k + steps] {
            if let Step::Matmul(Matmul { lib: LibForm { product, rest: Some(rest), .. }, .. }) = step
                && buffers.has(product.buf)
            {
                needed.push(Needed::Kernel(rest, bind(rest, buffers, self.sizes)?.geometry));
            }
        }
        Ok((needed, steps))
    }

    /// What a step launches, or products or small kernels in one, and how many steps that are.
    fn needed_without_attention<'p>(
        &self,
        plan: &'p Plan,
        k: usize,
        buffers: &mut Buffers<'_>,
    ) -> Result<(Vec<Needed<'p>>, usize)> {
        let products = plan.products_at(k);
        let together = products.map_or(Ok(None), |products| Together::find(self, plan, products, buffers))?;
        if let (Some(products), Some(together)) = (products, together) {
            return Ok((vec![Needed::Products(together)], products.count as usize));
        }
        let listed = plan.small_at(k);
        let small = listed.map_or(Ok(None), |listed| SmallLaunch::find(self, plan, listed, buffers))?;
        Ok(match (listed, small) {
            (Some(listed), Some(small)) => {
                let large = small.large().map(|(kernel, axes)| Needed::Kernel(kernel, axes.clone()));
                let mut needed: Vec<Needed> = large.collect();
                needed.push(Needed::Small(small));
                (needed, listed.count as usize)
            }
            _ => (self.needed_by(&plan.steps[k], buffers)?, 1),
        })
    }

    /// What a step most likely launches: behind a product by the library what is left to do.
    fn needed_by<'p>(&self, step: &'p Step, buffers: &mut Buffers<'_>) -> Result<Vec<Needed<'p>>> {
        let (mut needed, kernel) = match step {
            Step::Kernel(kernel) => (vec![], Some(kernel)),
            Step::Matmul(matmul) => match template_axes(self, matmul, buffers)? {
                Some(axes) => (vec![Needed::Template(matmul, axes)], None),
                None => (vec![Needed::Library], matmul.lib.rest.as_ref()),
            },
        };
        if let Some(kernel) = kernel {
            needed.push(Needed::Kernel(kernel, bind(kernel, buffers, self.sizes)?.geometry));
        }
        Ok(needed)
    }
}

/// What is to be compiled, and over which axes it will be launched.
enum Needed<'p> {
    Kernel(&'p Kernel, Geometry),
    Template(&'p Matmul, Geometry),
    Library,
    Products(Together<'p>),
    Small(SmallLaunch<'p>),
    Attention(&'p Fused, Part, Geometry),
}
