//! Small kernels that do not depend on one another in one launch.

use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::launch::{Prepared, grid};
use crate::cuda::{Args, Function};
use crate::env::is_without;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::log::{self, Topic};
use fuse_compiler::plan::abi::{Step, THREADS, Variant, Walk, ends, small};
use fuse_compiler::plan::{Kernel, Plan, SmallKernels};
use std::sync::LazyLock;

/// Launches kernels at once; `false` if each is to be launched for itself, and nothing was.
pub(super) fn launch_small(
    call: &CudaCall<'_>,
    plan: &Plan,
    small: &SmallKernels,
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    let Some(beside) = SmallLaunch::find(call, plan, small, buffers)? else { return Ok(false) };
    beside.launch(call)?;
    Ok(true)
}

/// Small kernels that one launch runs.
pub(super) struct SmallLaunch<'p> {
    small: &'p SmallKernels,
    of: Vec<Part<'p>>,
}

/// One of them.
struct Part<'p> {
    kernel: &'p Kernel,
    bound: Bound,
    variant: Variant,
}

impl<'p> SmallLaunch<'p> {
    /// Kernels of a call, if one launch runs them: where all have few points, and none may write over what the caller gives up, which
    /// is worth more.
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
        for kernel in small.steps(plan) {
            let points = call.sizes.extents(&kernel.domain)?.into_iter().map(|extent| extent as i64).product::<i64>();
            if points > small::FEW_POINTS {
                return Ok(None);
            }
        }
        let of = small.steps(plan).map(|kernel| Part::bind(call, kernel, buffers)).collect::<Result<Vec<_>>>()?;
        Ok(of.iter().all(|part| !part.variant.wide).then_some(SmallLaunch { small, of }))
    }

    /// The kernel in the variants that are best, unless it has so many already that one for any layouts has to do.
    pub(super) fn prepare(&self, call: &CudaCall<'_>) -> Result<(Function, Vec<Variant>)> {
        let best: Vec<Variant> = self.of.iter().map(|part| part.variant.clone()).collect();
        let variants = match call.functions.has_room_for_small(call, &self.small.name, &best) {
            true => best,
            false => self.of.iter().map(|map| small::plainest(part.kernel)).collect(),
        };
        let pairs: Vec<(&Kernel, &Variant)> = self.of.iter().map(|part| part.kernel).zip(&variants).collect();
        let function = call.functions.small(call, &self.small.name, &pairs)?;
        Ok((function, variants))
    }

    fn launch(&self, call: &CudaCall<'_>) -> Result<()> {
        let (function, variants) = self.prepare(call)?;
        log::line(Topic::Launch, format_args!("{} for {} kernels", self.small.name, self.small.count));
        let ready = |(part, variant): (&Part<'p>, &Variant)| part.prepare(call, variant);
        let ready: Vec<(Prepared, u64)> = self.of.iter().zip(&variants).map(ready).collect::<Result<_>>()?;
        let blocks = ready.iter().map(|(_, blocks)| blocks).sum();
        if blocks == 0 {
            return Ok(());
        }
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
    fn bind(call: &CudaCall<'_>, kernel: &'p Kernel, buffers: &mut Buffers<'_>) -> Result<Self> {
        let bound = bind(kernel, buffers, call.sizes)?;
        let axes = bound.geometry.collapse(kernel);
        let best = Variant::choose(kernel, &axes, &call.context.facts().target());
        let variant = match best.walk {
            Walk::Plain => best,
            // Few points are not worth turning.
            _ => Variant { walk: Walk::Plain, vec: 1, steps: vec![Step::Apart; best.steps.len()], ..best },
        };
        Ok(Part { kernel, bound, variant })
    }

    /// Its launch in a variant, and how many blocks that has.
    fn prepare(&self, call: &CudaCall<'_>, variant: &Variant) -> Result<(Prepared, u64)> {
        let axes = self.bound.geometry.collapse(self.kernel).padded(variant.outer, variant.inner);
        let prepared = Prepared::for_list(call, self.kernel, &axes, variant)?;
        let blocks = if axes.rows() > 0 { prepared.blocks() } else { 0 };
        Ok((prepared, blocks))
    }
}

/// `FUSE_WITHOUT=small` launches every kernel for itself.
fn is_used() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("small"));
    *USED
}
