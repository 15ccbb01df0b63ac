//! One call of a plan.

use super::buffers::Buffers;
use super::cpu;
use super::cuda;
use super::faults::{FaultCell, Faulted};
use super::program::Program;
use super::symbols::Sizes;
use crate::cuda::several_lanes;
use crate::device::Device;
use crate::error::Result;
use crate::raw::RawTensor;
use crate::rt::{CallFacts, Draw, DynBody, Scalar};
use fuse_compiler::plan::{Attention, Expr, Kernel, Plan, Step};

/// What a plan is called with.
pub(crate) struct Call<'a> {
    /// The plan and what belongs to it.
    pub program: &'a Program,
    /// Tensor arguments, all on `device`.
    pub tensors: &'a [&'a RawTensor],
    /// Whether the caller gives each of them up, so that a result may take over storage that nothing else holds; empty where it
    /// gives none.
    pub given: &'a [bool],
    /// Host scalars.
    pub scalars: &'a [Scalar],
    /// Host integers that sizes are made of.
    pub host_ints: &'a [i64],
    /// Where it runs.
    pub device: Device,
    /// The processor's side of every kernel, one a step; not read on other devices.
    pub bodies: &'a [&'a dyn DynBody],
}

impl Call<'_> {
    /// Whether a result may take over the storage of a tensor: the caller gives it up, and nothing else holds it.
    #[inline]
    pub fn gives(&self, tensor: usize) -> bool {
        self.given.get(tensor) == Some(&true) && self.tensors[tensor].is_unique()
    }

    /// Lets the launches of a call come behind what was done to its arguments on other streams of a GPU.
    #[inline]
    pub fn will_use(&self) -> Result<()> {
        if !several_lanes() {
            return Ok(());
        }
        for (k, tensor) in self.tensors.iter().enumerate() {
            let Some(memory) = tensor.storage().as_cuda() else { continue };
            if self.gives(k) { memory.buffer().will_write()? } else { memory.buffer().will_read()? }
        }
        Ok(())
    }
}

/// Runs a plan. After an error no tensor has changed.
pub(crate) fn run(call: &Call<'_>) -> Result<Vec<RawTensor>> {
    match call.device.cuda_ordinal() {
        None => run_on_cpu(call),
        Some(ordinal) => cuda::run(call, ordinal),
    }
}

/// Runs a plan as such a call was run before, if one was and the device remembers it. Then its guards hold, too.
pub(crate) fn run_again(call: &Call<'_>) -> Option<Result<Vec<RawTensor>>> {
    if call.device.is_cpu() { None } else { cuda::run_again(call) }
}

/// Whether the equalities hold that a plan was specialised for.
pub(crate) fn guards_hold(plan: &Plan, tensors: &[&RawTensor], host_ints: &[i64]) -> bool {
    let sizes = Sizes::read(plan, tensors, host_ints);
    plan.guards.iter().all(|guard| sizes.value(&guard.check.left) == sizes.value(&guard.check.right))
}

fn run_on_cpu(call: &Call<'_>) -> Result<Vec<RawTensor>> {
    let plan = &call.program.plan;
    let sizes = Sizes::of(plan, call.tensors, call.host_ints)?;
    let draws = draws(plan, &sizes, call.device);
    let mut buffers = Buffers::new(call, &sizes);
    let done = match cpu_steps(call, &mut buffers, &sizes, &draws) {
        Ok(None) => Ok(()),
        Ok(Some(fault)) => Err(fault.error),
        Err(error) => Err(error),
    };
    if done.is_err() {
        buffers.undo();
    }
    done?;
    plan.outs.iter().map(|out| buffers.operand(out)).collect()
}

/// All steps, and the fault of the op that the program comes to first: steps stand in another order than their ops, so those
/// behind a fault run, too. What they read is safe.
fn cpu_steps(call: &Call<'_>, buffers: &mut Buffers<'_>, sizes: &Sizes, draws: &[Draw]) -> Result<Option<Faulted>> {
    let plan = &call.program.plan;
    let mut faults = Vec::new();
    let mut k = 0;
    while k < plan.steps.len() {
        if !faults.is_empty() {
            buffers.keep_inputs();
        }
        buffers.start_step(k as u32);
        let steps = match plan.attention_at(k) {
            Some(attention) => {
                faults.extend(cpu_attention(call, *attention, buffers, sizes, draws)?);
                3
            }
            None => {
                if !buffers.takes_over(k as u32)? {
                    faults.extend(cpu_step(call, &plan.steps[k], call.bodies[k], buffers, sizes, draws)?);
                }
                1
            }
        };
        (k..k + steps).for_each(|done| buffers.end_step(done as u32));
        k += steps;
    }
    Ok(Faulted::earliest(faults))
}

/// Three steps at once.
fn cpu_attention(
    call: &Call<'_>,
    attention: Attention,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    draws: &[Draw],
) -> Result<Option<Faulted>> {
    let plan = &call.program.plan;
    let steps = [0, 1, 2].map(|step| attention.first as usize + step);
    let kernels = steps.map(|step| plan.steps[step].program());
    let faults = steps.map(|_| FaultCell::new());
    let values = kernels.map(|kernel| size_values(kernel, sizes));
    let facts = [0, 1, 2].map(|k| CallFacts { scalars: call.scalars, sizes: &values[k], draws, faults: &faults[k] });
    let parts = cpu::Parts { attention, bodies: steps.map(|step| call.bodies[step]), facts: facts.each_ref() };
    cpu::run_attention(plan, &parts, buffers, sizes)?;
    let faults = std::iter::zip(&faults, kernels).filter_map(|(cell, kernel)| cell.first(plan, kernel));
    Ok(Faulted::earliest(faults))
}

/// Takes the random numbers of a call from the generator, in program order.
pub(super) fn draws(plan: &Plan, sizes: &Sizes, device: Device) -> Vec<Draw> {
    let draw = |counters| {
        let (seed, offset) = device.draw_blocks(sizes.value(counters) as u64);
        Draw { seed, offset }
    };
    plan.draws.iter().map(draw).collect()
}

fn cpu_step(
    call: &Call<'_>,
    step: &Step,
    body: &dyn DynBody,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    draws: &[Draw],
) -> Result<Option<Faulted>> {
    let faults = FaultCell::new();
    let kernel = step.program();
    let values = size_values(kernel, sizes);
    let facts = CallFacts { scalars: call.scalars, sizes: &values, draws, faults: &faults };
    match step {
        Step::Kernel(kernel) => cpu::run_kernel(kernel, body, buffers, sizes, &facts)?,
        Step::Matmul(matmul) => cpu::run_matmul(matmul, body, buffers, sizes, &facts)?,
    }
    Ok(faults.first(&call.program.plan, kernel))
}

/// The values of the `Size` statements of a kernel, by number of the statement.
fn size_values(kernel: &Kernel, sizes: &Sizes) -> Vec<i64> {
    let value = |expr: &Expr| match expr {
        Expr::Size(dim) => sizes.value(dim),
        _ => 0,
    };
    kernel.stmts.iter().map(|stmt| value(&stmt.expr)).collect()
}
