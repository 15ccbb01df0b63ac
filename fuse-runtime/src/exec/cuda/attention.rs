//! Attention in one kernel and its way back in two, where the device, the element type and the layouts have them.
//!
//! What the way back does is decided by the way forward, which either stores the weights or the logarithms that they are made of again.

use super::bind::{Bound, WIDEST, bind};
use super::call::CudaCall;
use super::launch::{launch_kernel, unless_steps_may_be_compiled};
use crate::env::is_without;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::log::{self, Topic};
use crate::raw::RawTensor;
use fuse_compiler::plan::abi::{Access, BATCH_AXES, Geometry, Part, Target, Variant};
use fuse_compiler::plan::{BufId, Fused, FusedBack, Kernel, Operand, Plan};
use fuse_compiler::types::DType;
use std::sync::LazyLock;

/// Launches attention as one kernel, and what follows it; `false` if it has to be run in steps, and nothing was launched.
pub(super) fn launch_attention(
    call: &CudaCall<'_>,
    plan: &Plan,
    fused: &Fused,
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    if !launch_parts(call, plan, fused, Part::forward(fused), buffers)? {
        return Ok(false);
    }
    let (_, _, values) = fused.parts(plan);
    launch_rest(call, values.lib.rest.as_ref(), buffers)?;
    Ok(true)
}

/// Launches the way back as two kernels, and what follows its products; `false` if its first step has to be run as any other,
/// and nothing is missing for that.
pub(super) fn launch_back(
    call: &CudaCall<'_>,
    plan: &Plan,
    (fused, back): (&Fused, &FusedBack),
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    if !buffers.has(back.logs) {
        return Ok(false);
    }
    if !launch_parts(call, plan, fused, &Part::BACK, buffers)? {
        // The gradients do not lie as the kernels need them, and the steps read weights that were never stored.
        let first = fused.steps.first as usize;
        plan.steps[first..first + 2].iter().try_for_each(|step| call.step(step, buffers))?;
        buffers.end_again(fused.steps.scores, back.first);
        return Ok(false);
    }
    let (values, _, _, queries, keys) = back.steps(plan);
    [values, queries, keys]
        .into_iter()
        .try_for_each(|product| launch_rest(call, product.lib.rest.as_ref(), buffers))?;
    Ok(true)
}

fn launch_rest(call: &CudaCall<'_>, rest: Option<&Kernel>, buffers: &mut Buffers<'_>) -> Result<()> {
    rest.map_or(Ok(()), |rest| launch_kernel(call, rest, buffers))
}

/// Launches kernels of attention one after the other, or none of them.
fn launch_parts(
    call: &CudaCall<'_>,
    plan: &Plan,
    fused: &Fused,
    parts: &[Part],
    buffers: &mut Buffers<'_>,
) -> Result<bool> {
    let mut found = Vec::new();
    for &part in parts {
        let Some(heads) = Heads::find(call, plan, fused, part, buffers)? else { return Ok(false) };
        found.push((part, heads));
    }
    let mut launches = Vec::new();
    for (part, heads) in found {
        let prepared = call.functions.prepare_attention(call, fused, part, &heads.axes);
        let Some(prepared) = unless_steps_may_be_compiled(prepared)? else { return Ok(false) };
        launches.push((part, heads, prepared));
    }
    let beside = beside(fused, buffers)?;
    for (part, heads, prepared) in launches {
        let kernel = part.program(fused);
        log::line(Topic::Launch, format_args!("{} in one kernel", kernel.name));
        let matrices = heads.matrices.iter().map(RawTensor::address);
        let addresses: Vec<u64> = matrices.chain(beside.clone()).collect();
        prepared.launch(call, kernel, &heads.program, &addresses)?;
    }
    Ok(true)
}

/// Where the logarithms and sums of rows lie, and what is kept of the weights, where there is a way back.
fn beside(fused: &Fused, buffers: &mut Buffers<'_>) -> Result<Vec<u64>> {
    let Some(back) = &fused.back else { return Ok(vec![]) };
    let mut address = |buf: BufId| buffers.get(buf).map(|tensor| tensor.address());
    let kept = back.drops.as_ref().map_or(Ok(0), |drops| address(drops.bits))?;
    Ok(vec![address(back.logs)?, address(back.sums)?, kept])
}

/// The axes of kernels of attention, if they will be launched as such.
pub(super) fn attention_axes(
    call: &CudaCall<'_>,
    plan: &Plan,
    fused: &Fused,
    parts: &[Part],
    buffers: &mut Buffers<'_>,
) -> Result<Option<Vec<Geometry>>> {
    let mut all = Vec::new();
    for &part in parts {
        let Some(heads) = Heads::find(call, plan, fused, part, buffers)? else { return Ok(None) };
        all.push(heads.axes);
    }
    beside(fused, buffers)?;
    Ok(Some(all))
}

/// What a kernel of attention reads and writes.
struct Heads {
    /// See [`Part::matrices`].
    matrices: Vec<RawTensor>,
    /// What its program reads beside what it is given.
    program: Bound,
    /// The axes that [`Variant::attention`] takes.
    axes: Geometry,
}

impl Heads {
    fn find(
        call: &CudaCall<'_>,
        plan: &Plan,
        fused: &Fused,
        part: Part,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<Heads>> {
        let target = target_of_attention(call);
        if !uses_kernels() || !may_have_kernel(plan, fused, &target) {
            return Ok(None);
        }
        let (read, written) = operands(plan, fused, part);
        let Some(mut heads) = Heads::reading(call, plan, (fused, part), read, buffers)? else { return Ok(None) };
        // Asked before there is memory for results. They are most likely laid out as the queries are; where they are not, a second
        // look tells.
        let before = heads.axes.operands.len();
        let likely = heads.axes.operands.get(before - heads.matrices.len()).cloned().unwrap_or_default();
        heads.axes.operands.extend(written.iter().map(|_| likely.clone()));
        if Variant::attention(fused, part, &heads.axes, &target).is_none() {
            return Ok(None);
        }
        heads.axes.operands.truncate(before);
        for operand in written {
            let matrix = buffers.operand(operand)?;
            let Some(access) = rows(&matrix, rank(plan, fused), false) else { return Ok(None) };
            heads.axes.operands.push(access);
            heads.matrices.push(matrix);
        }
        let is_there = Variant::attention(fused, part, &heads.axes, &target).is_some();
        Ok(is_there.then_some(heads))
    }

    /// What a kernel reads, if rows lie as it needs them.
    fn reading(
        call: &CudaCall<'_>,
        plan: &Plan,
        (fused, part): (&Fused, Part),
        read: Vec<(&Operand, bool)>,
        buffers: &mut Buffers<'_>,
    ) -> Result<Option<Heads>> {
        let (mut matrices, mut accesses) = (Vec::new(), Vec::new());
        for (operand, is_turned) in read {
            let matrix = buffers.operand(operand)?;
            let Some(access) = rows(&matrix, rank(plan, fused), is_turned) else { return Ok(None) };
            matrices.push(matrix);
            accesses.push(access);
        }
        let program = bind_program(call, fused, part, buffers)?;
        let mut axes = super::matmul::padded(&program.geometry)?;
        let (scores, _, values) = fused.parts(plan);
        axes.inner = [&scores.k, &values.n].map(|dim| call.sizes.value(dim)).to_vec();
        debug_assert_eq!(axes.outer[BATCH_AXES..], [&scores.m, &scores.n].map(|dim| call.sizes.value(dim)));
        axes.operands.extend(accesses);
        Ok(Some(Heads { matrices, program, axes }))
    }
}

/// Whether some layouts have a kernel of attention on a device.
fn may_have_kernel(plan: &Plan, fused: &Fused, target: &Target) -> bool {
    let (scores, _, values) = fused.parts(plan);
    let has_type = values.dtype.is_half() || values.dtype == DType::F32;
    has_type && target.capability >= 80 && scores.batch.len() <= BATCH_AXES
}

/// How many axes the matrices have.
fn rank(plan: &Plan, fused: &Fused) -> usize {
    fused.parts(plan).0.batch.len() + 2
}

/// `FUSE_WITHOUT=attention` runs attention in steps.
fn uses_kernels() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("attention"));
    *USED
}

/// What the choice of a kernel of attention may know of the device; `FUSE_WITHOUT=wgmma` leaves Hopper the kernels of other devices.
pub(super) fn target_of_attention(call: &CudaCall<'_>) -> Target {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("wgmma"));
    let target = call.context.facts().target();
    if *USED { target } else { Target { capability: target.capability.min(89), ..target } }
}

/// The matrices that a kernel of attention reads, and whether their columns are the rows it wants; and those it writes.
fn operands<'p>(plan: &'p Plan, fused: &'p Fused, part: Part) -> (Vec<(&'p Operand, bool)>, Vec<&'p Operand>) {
    let (scores, _, values) = fused.parts(plan);
    if part == Part::Drops {
        return (vec![], vec![]);
    }
    let forward = vec![(&scores.a, false), (&scores.b, true), (&values.b, false)];
    let result = &values.lib.product;
    let Some(back) = fused.back.as_ref().filter(|_| part != Part::Forward) else { return (forward, vec![result]) };
    let (of_values, of_weights, _, of_queries, of_keys) = back.steps(plan);
    let further = if part == Part::Queries { vec![(result, false)] } else { vec![] };
    let read = [forward, further, vec![(&of_weights.a, false)]].concat();
    let written = match part {
        Part::Queries => vec![&of_queries.lib.product],
        _ => vec![&of_keys.lib.product, &of_values.lib.product],
    };
    (read, written)
}

/// Binds the program of a kernel. What it stores is stored nowhere, and read nowhere.
fn bind_program(call: &CudaCall<'_>, fused: &Fused, part: Part, buffers: &mut Buffers<'_>) -> Result<Bound> {
    let program = part.program(fused);
    let mut nowhere: Vec<BufId> = program.written().collect();
    nowhere.dedup();
    nowhere.iter().try_for_each(|buf| buffers.stand_in(*buf))?;
    let bound = bind(program, buffers, call.sizes);
    nowhere.iter().for_each(|buf| buffers.forget_stand_in(*buf));
    bound
}

/// How a matrix over the last two of these axes is walked row by row, if elements of a row lie next to each other; `turned`: its
/// rows are the last axis.
fn rows(tensor: &RawTensor, rank: usize, turned: bool) -> Option<Access> {
    let (rows, columns) = if turned { (rank - 1, rank - 2) } else { (rank - 2, rank - 1) };
    let (layout, strides, shape) = (tensor.layout(), tensor.layout().strides(), tensor.shape());
    if strides[columns] != 1 && shape[columns] != 1 {
        return None;
    }
    let stride = |axis: usize| if shape[axis] == 1 { 0 } else { strides[axis] as i64 };
    let mut all = vec![0; BATCH_AXES + 2 - layout.rank()];
    all.extend((0..layout.rank() - 2).map(stride));
    all.push(stride(rows));
    Some(Access { strides: all, address: tensor.address() % WIDEST, bytes: tensor.dtype().bytes(), indexed: false })
}
