//! One call of a plan.

use super::buffers::Buffers;
use super::cpu;
use super::faults::{Fault, FaultCell};
use super::program::cpu_kernel;
use super::symbols::Sizes;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::raw::RawTensor;
use crate::rt::{CallFacts, Draw, DynBody, Scalar};
use fuse_compiler::plan::{Expr, Kernel, LeafSource, Plan, Step};

/// What a plan is called with.
pub(crate) struct Call<'a> {
    /// The plan, with concrete element types.
    pub plan: &'a Plan,
    /// Tensor arguments, all on `device`.
    pub tensors: &'a [&'a RawTensor],
    /// Whether the caller gives each of them up, so that a result may take over storage that nothing else holds.
    pub given: &'a [bool],
    /// Host scalars.
    pub scalars: &'a [Scalar],
    /// Host integers that sizes are made of.
    pub host_ints: &'a [i64],
    /// Where it runs.
    pub device: Device,
    /// The processor's side of every kernel, one a step.
    pub bodies: &'a [&'a dyn DynBody],
}

/// Runs a plan. After an error no tensor has changed.
pub(crate) fn run(call: &Call<'_>) -> Result<Vec<RawTensor>> {
    let plan = call.plan;
    let sizes = Sizes::of(plan, call.tensors, call.host_ints)?;
    let draws = draws(plan, &sizes, call.device);
    let mut buffers = Buffers::new(call, &sizes);
    for (k, step) in plan.steps.iter().enumerate() {
        buffers.start_step(k as u32);
        run_on_cpu(call, step, call.bodies[k], &mut buffers, &sizes, &draws)?;
        buffers.end_step(k as u32);
    }
    plan.outs.iter().map(|out| buffers.operand(out)).collect()
}

/// Takes the random numbers of a call from the generator, in program order.
fn draws(plan: &Plan, sizes: &Sizes, device: Device) -> Vec<Draw> {
    let draw = |counters| {
        let (seed, offset) = device.draw_blocks(sizes.value(counters) as u64);
        Draw { seed, offset }
    };
    plan.draws.iter().map(draw).collect()
}

fn run_on_cpu(
    call: &Call<'_>,
    step: &Step,
    body: &dyn DynBody,
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
    draws: &[Draw],
) -> Result<()> {
    let faults = FaultCell::new();
    let kernel = cpu_kernel(step);
    let values = size_values(kernel, sizes);
    let facts = CallFacts { scalars: call.scalars, sizes: &values, draws, faults: &faults };
    match step {
        Step::Kernel(kernel) => cpu::run_kernel(kernel, body, buffers, sizes, &facts)?,
        Step::Matmul(matmul) => cpu::run_matmul(matmul, body, buffers, sizes, &facts)?,
    }
    faults.first().map_or(Ok(()), |fault| Err(describe(call.plan, kernel, fault)))
}

/// The values of the `Size` statements of a kernel, by number of the statement.
fn size_values(kernel: &Kernel, sizes: &Sizes) -> Vec<i64> {
    let value = |expr: &Expr| match expr {
        Expr::Size(dim) => sizes.value(dim),
        _ => 0,
    };
    kernel.stmts.iter().map(|stmt| value(&stmt.expr)).collect()
}

/// A fault in words.
fn describe(plan: &Plan, kernel: &Kernel, fault: Fault) -> Error {
    match fault {
        Fault::Division(_) => Error::index(&plan.name, "an integer is divided by zero"),
        Fault::Index { operand, index, extent } => {
            let what = match kernel.leaves.get(operand as usize).map(|leaf| &leaf.source) {
                Some(LeafSource::Buf(buf)) => plan.bufs[buf.0 as usize].name.as_str(),
                _ => "the result",
            };
            Error::index(
                &plan.name,
                format!("index {index} is out of range for an axis of `{what}` with extent {extent}"),
            )
        }
    }
}
