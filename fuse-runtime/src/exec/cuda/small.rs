//! Small kernels that do not depend on one another in one launch.

use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::launch::{Prepared, grid, launch_kernel};
use crate::cuda::{Args, Function};
use crate::env::is_without;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::log::{self, Topic};
use fuse_compiler::plan::abi::{Geometry, THREADS, Variant, ends, small};
use fuse_compiler::plan::{Kernel, Plan, SmallKernels};
use std::sync::LazyLock;

/// Launches those kernels at once that are small in this call, and the others each for itself; `false` if nothing was launched.
pub(super) fn launch_small(
    call: &CudaCall<'_>,
    plan: &Plan,
    small: &SmallKernels,
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    let Some(found) = SmallLaunch::find(call, plan, small, buffers)? else { return Ok(false) };
    found.launch(call)?;
    found.large().try_for_each(|(kernel, _)| launch_kernel(call, kernel, buffers))?;
    Ok(true)
}

/// Kernels of which one launch runs those that are small.
pub(super) struct SmallLaunch<'p> {
    small: &'p SmallKernels,
    of: Vec<Part<'p>>,
}

/// One of them.
struct Part<'p> {
    kernel: &'p Kernel,
    bound: Bound,
    variant: Variant,
    is_small: bool,
}

impl<'p> SmallLaunch<'p> {
    /// Kernels of a call, if one launch runs them: where several have few points, and none may write over what the caller gives up,
    /// which is worth more.
    pub(super) fn find(
        call: &CudaCall<'_>,
        plan: &'p Plan,
        small: &'p SmallKernels,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<Self>> {
        let is_last = small.first as usize + small.count as usize == plan.steps.len();
        let is_compiled = call.functions.has_ahead() || !call.compiles();
        if !is_used() || is_compiled || is_last && buffers.may_give() {
            return Ok(None);
        }
        let has_few = |kernel: &Kernel| -> Result<bool> {
            let extents = call.sizes.extents(&kernel.domain)?;
            Ok(extents.into_iter().map(|extent| extent as i64).product::<i64>() <= small::FEW_POINTS)
        };
        let few = small.steps(plan).map(has_few).collect::<Result<Vec<bool>>>()?;
        if few.iter().filter(|few| **few).count() < 2 {
            return Ok(None);
        }
        let parts = small.steps(plan).zip(few);
        let of = parts.map(|(kernel, few)| Part::bind(call, kernel, few, buffers)).collect::<Result<Vec<_>>>()?;
        Ok(SmallLaunch { small, of }.with_text(call))
    }

    /// With a text for its kernels: the best, unless there are so many already that one for any layouts has to do. `None` if there is
    /// no such text, or fewer than two kernels are small.
    fn with_text(mut self, call: &CudaCall<'_>) -> Option<Self> {
        let best: Vec<Variant> = self.of.iter().map(|part| part.variant.clone()).collect();
        if !call.functions.has_room_for_small(call, &self.small.name, &best) {
            for part in &mut self.of {
                part.variant = small::plainest(part.kernel)?;
            }
        }
        (self.of.iter().filter(|part| part.is_small).count() > 1).then_some(self)
    }

    /// The kernels that are launched for themselves, and the axes they run over.
    pub(super) fn large(&self) -> impl Iterator<Item = (&'p Kernel, &Geometry)> {
        self.of.iter().filter(|part| !part.is_small).map(|part| (part.kernel, &part.bound.geometry))
    }

    /// The kernel that runs all, compiled if it has not been.
    pub(super) fn prepare(&self, call: &CudaCall<'_>) -> Result<Function> {
        let pairs: Vec<(&Kernel, &Variant)> = self.of.iter().map(|part| (part.kernel, &part.variant)).collect();
        call.functions.small(call, &self.small.name, &pairs)
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<()> {
        let function = self.prepare(call)?;
        let ready: Vec<(Prepared, u64)> = self.of.iter().map(|part| part.prepare(call)).collect::<Result<_>>()?;
        let blocks = ready.iter().map(|(_, blocks)| blocks).sum();
        if blocks == 0 {
            return Ok(());
        }
        let count = self.of.iter().filter(|part| part.is_small).count();
        log::line(Topic::Launch, format_args!("{} for {count} kernels", self.small.name));
        let mut args = Args::new();
        args.push_bytes(&ends(small::room(self.of.len()), ready.iter().map(|(_, blocks)| *blocks as u32)), 4);
        for (part, (prepared, _)) in self.of.iter().zip(&ready) {
            prepared.append(&mut args, call, part.kernel, &part.bound)?;
        }
        let blocks = grid(self.of[0].kernel, blocks)?;
        call.context.launch(&function, [blocks, 1, 1], [THREADS, 1, 1], 0, &args)
    }
}

impl<'p> Part<'p> {
    fn bind(call: &CudaCall<'_>, kernel: &'p Kernel, few: bool, buffers: &mut Buffers<'_>) -> Result<Self> {
        let bound = bind(kernel, buffers, call.sizes)?;
        let axes = bound.geometry.collapse(kernel);
        let variant = small::variant(kernel, &axes, &call.context.facts().target());
        let is_small = few && variant.as_ref().is_some_and(|variant| !variant.wide);
        let variant = variant.unwrap_or_else(|| small::unused(kernel, &axes));
        Ok(Part { kernel, bound, variant: Variant { wide: false, ..variant }, is_small })
    }

    /// Its arguments, and how many blocks it has.
    fn prepare(&self, call: &CudaCall<'_>) -> Result<(Prepared, u64)> {
        let axes = self.bound.geometry.collapse(self.kernel).padded(self.variant.outer, self.variant.inner);
        let prepared = Prepared::for_list(call, self.kernel, &axes, &self.variant)?;
        let blocks = if self.is_small { small::blocks(&axes, &self.variant) } else { 0 };
        Ok((prepared, blocks))
    }
}

/// `FUSE_WITHOUT=small` launches every kernel for itself.
fn is_used() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("small"));
    *USED
}
