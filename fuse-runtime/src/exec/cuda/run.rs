//! Running a plan on a GPU: by its tape where such a call was taken down before, else step by step.

use super::call::CudaCall;
use super::list;
use super::tape::{DeviceBranch, DeviceLoop, Found, Tape};
use crate::cuda::{Context, take_down};
use crate::device::Device;
use crate::env::is_without;
use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::run::{Call, draws};
use crate::exec::symbols::Sizes;
use crate::log::{self, Topic};
use crate::raw::RawTensor;
use crate::rt::{Draw, Joined};
use fuse_compiler::options::Mode;
use std::sync::{Arc, LazyLock};

/// Runs a plan on the GPU with this number.
///
/// The first call of its kind is run step by step; the second is taken down as a [`Tape`], which it and those after it run.
pub(crate) fn run(call: &Call<'_>, ordinal: usize) -> Result<Vec<RawTensor>> {
    if let Some(results) = list::join(call, ordinal) {
        return results;
    }
    if !uses_tapes() {
        return run_steps(call, ordinal);
    }
    match call.program.tapes.find(call) {
        Found::Tape(tape) => tape.run(call),
        found if matches!(found, Found::Seen) || !uses_steps() => {
            make_ready_again(call, ordinal)?;
            let tape = Arc::new(Tape::take_down(call, ordinal)?);
            call.program.tapes.keep(call, Some(tape.clone()));
            tape.run(call)
        }
        _ => {
            let results = run_steps(call, ordinal)?;
            call.program.tapes.keep(call, None);
            Ok(results)
        }
    }
}

/// Runs a plan by its tape, if such a call was taken down before.
pub(crate) fn run_again(call: &Call<'_>) -> Option<Result<Vec<RawTensor>>> {
    if list::is_open() {
        return None;
    }
    match call.program.tapes.find(call) {
        Found::Tape(tape) if uses_tapes() => Some(tape.run(call)),
        _ => None,
    }
}

/// Runs a loop where nothing in it needs the host: as one graph in functions that want graphs, else several turns at a time if each
/// can be left out. The results are the last state. `None` where the host has to run it, turn by turn.
pub(crate) fn run_loop(
    test: &Call<'_>,
    turn: &Call<'_>,
    state: &[(&RawTensor, Option<usize>)],
) -> Result<Option<Vec<RawTensor>>> {
    let Some(ordinal) = turn.device.cuda_ordinal().filter(|_| test.device == turn.device && uses_tapes()) else {
        return Ok(None);
    };
    let on_device = turn.program.mode.uses_graphs() || turn.program.plan.asks();
    if !on_device || [test, turn].into_iter().any(needs_host) {
        return Ok(None);
    }
    let state_tensors = state.iter().map(|(tensor, _)| *tensor);
    let tensors: Vec<&RawTensor> = turn.tensors.iter().chain(test.tensors).copied().chain(state_tensors).collect();
    let (scalars, host_ints) = ([turn.scalars, test.scalars].concat(), [turn.host_ints, test.host_ints].concat());
    let whole = Call { tensors: &tensors, given: &[], scalars: &scalars, host_ints: &host_ints, ..*turn };
    let tape = match turn.program.loops.find(&whole) {
        Found::Tape(tape) => tape,
        _ => {
            let tape = Arc::new(DeviceLoop { test, turn, state, whole: &whole }.take_down(ordinal)?);
            turn.program.loops.keep(&whole, Some(tape.clone()));
            tape
        }
    };
    tape.run(&whole).map(Some)
}

/// Whether something in a call is for the host to do each time.
fn needs_host(call: &Call<'_>) -> bool {
    call.program.may_fault || !call.program.plan.draws.is_empty()
}

/// Runs a branch of a function that wants graphs as one, where nothing in it needs the host. `None` where the host has to read
/// the test. An arm without a call does nothing.
pub(crate) fn run_branch(
    test: &RawTensor,
    arms: [Option<&Call<'_>>; 2],
    joined: &[[Joined<'_>; 2]],
) -> Result<Option<Vec<RawTensor>>> {
    let calls = || arms.into_iter().flatten();
    let Some(first) = calls().next() else { return Ok(None) };
    let Some(ordinal) = first.device.cuda_ordinal().filter(|_| uses_tapes()) else { return Ok(None) };
    let olds = joined.iter().flatten().filter_map(|from| if let Joined::Old(old) = from { Some(*old) } else { None });
    let others: Vec<&RawTensor> = olds.chain([test]).collect();
    let elsewhere = others.iter().any(|tensor| tensor.device() != first.device);
    if elsewhere || calls().any(|call| call.device != first.device || needs_host(call)) {
        return Ok(None);
    }
    let tensors: Vec<&RawTensor> = calls().flat_map(|call| call.tensors.iter().copied()).chain(others).collect();
    let scalars: Vec<_> = calls().flat_map(|call| call.scalars.iter().copied()).collect();
    let host_ints: Vec<_> = calls().flat_map(|call| call.host_ints.iter().copied()).collect();
    let whole = Call { tensors: &tensors, given: &[], scalars: &scalars, host_ints: &host_ints, ..*first };
    let tape = match first.program.loops.find(&whole) {
        Found::Tape(tape) => tape,
        _ => {
            let Some(tape) = DeviceBranch { arms, joined, whole: &whole }.take_down(ordinal)? else {
                return Ok(None);
            };
            let tape = Arc::new(tape);
            first.program.loops.keep(&whole, Some(tape.clone()));
            tape
        }
    };
    tape.run(&whole).map(Some)
}

/// `FUSE_WITHOUT=tape` runs every call step by step; tests that force a choice of the steps do so too.
fn uses_tapes() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("tape"));
    *USED && !super::matmul::template_is_forced()
}

/// `FUSE_WITHOUT=steps` takes every call down at once, so that tests that call a function once run its tape.
fn uses_steps() -> bool {
    static USED: LazyLock<bool> = LazyLock::new(|| !is_without("steps"));
    *USED
}

/// Runs a plan step by step.
pub(in crate::exec) fn run_steps(call: &Call<'_>, ordinal: usize) -> Result<Vec<RawTensor>> {
    let (program, context) = (call.program, Context::get(ordinal)?);
    log::line(Topic::Launch, format_args!("`{}`, mode {}", program.plan.name, program.mode.word()));
    let sizes = Sizes::of(&program.plan, call.tensors, call.host_ints)?;
    let draws = draws(&program.plan, &sizes, call.device);
    call.will_use()?;
    let number = context.next_call();
    if let Some(names) = &program.names {
        names.announce(ordinal, number);
    }
    steps(call, &context, ordinal, &sizes, &draws, number)
}

/// Compiles the texts that layouts get because they have come again, before the call that is their second is taken down: that
/// looks at one launch after the other, and would compile them so.
pub(super) fn make_ready_again(call: &Call<'_>, ordinal: usize) -> Result<()> {
    let (plan, context) = (&call.program.plan, Context::get(ordinal)?);
    let sizes = Sizes::of(plan, call.tensors, call.host_ints)?;
    make_ready(&cuda_call(call, &context, ordinal, &sizes, &[], 0), call)
}

/// Compiles what a call will launch. Operands are found as the call will find them, but nowhere: where that takes a copy, the
/// call makes it and not the looking.
fn make_ready(cuda: &CudaCall<'_>, call: &Call<'_>) -> Result<()> {
    if !cuda.has_to_warm(&call.program.plan) {
        return Ok(());
    }
    take_down(cuda.context, |_| {
        let arguments = Tape::stand_ins(call)?;
        let tensors: Vec<&RawTensor> = arguments.iter().collect();
        let looked_at = Call { tensors: &tensors, given: &[], device: Device::tracing(), ..*call };
        cuda.warm(&call.program.plan, || Buffers::new(&looked_at, cuda.sizes));
        Ok(())
    })
}

/// Launches every step. What the kernels write is noted to come from this call, so that reading it finds their faults.
pub(super) fn steps(
    call: &Call<'_>,
    context: &Arc<Context>,
    ordinal: usize,
    sizes: &Sizes,
    draws: &[Draw],
    number: u64,
) -> Result<Vec<RawTensor>> {
    let program = call.program;
    let cuda = cuda_call(call, context, ordinal, sizes, draws, number);
    make_ready(&cuda, call)?;
    let mut buffers = Buffers::new(call, sizes);
    let mut k = 0;
    while k < program.plan.steps.len() {
        buffers.start_step(k as u32);
        let done = if buffers.takes_over(k as u32)? { 1 } else { cuda.steps_at(&program.plan, k, &mut buffers)? };
        (k..k + done).for_each(|step| buffers.end_step(step as u32));
        k += done;
    }
    buffers.note_call(number);
    program.plan.outs.iter().map(|out| buffers.operand(out)).collect()
}

/// What every step of a call needs.
fn cuda_call<'a>(
    call: &Call<'a>,
    context: &'a Arc<Context>,
    ordinal: usize,
    sizes: &'a Sizes,
    draws: &'a [Draw],
    number: u64,
) -> CudaCall<'a> {
    let program = call.program;
    CudaCall {
        context,
        ordinal,
        source: program.source(),
        contract: program.plan.contract,
        params: &program.params,
        tunes: program.mode == Mode::MaxAutotune,
        functions: &program.functions,
        sizes,
        scalars: call.scalars,
        draws,
        number,
    }
}
