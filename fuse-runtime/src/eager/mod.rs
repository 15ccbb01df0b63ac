//! Running one op at once.
//!
//! An eager op is a compiled function of one node: the same decomposition, the same scheduler and the same plan runner,
//! with an interpreter in the place of emitted loops. So eager and compiled cannot drift apart. Plans are kept by op,
//! element types, ranks and attributes; sizes stay symbols, so a plan serves every shape.

mod build;
mod key;

use crate::cuda::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::exec::{self, Call, Program};
use crate::raw::RawTensor;
use crate::rt::Scalar;
use crate::storage::CudaBuffer;
use crate::tape::{self, What};
pub(crate) use build::graph;
use fuse_compiler::op::{Attr, Literal, Op, OpEffect};
use fuse_compiler::types::DType;
pub(crate) use key::Key;
use key::sizes_of;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// An operand of an eager op.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor. If nothing else holds its storage, the result may take it over; a call that fails leaves it unchanged.
    Tensor(RawTensor),
    /// A host scalar of this element type; beside halves f32, their compute type.
    Scalar(Literal, DType),
}

/// Runs the op called `op` on `device`, where all tensors among `args` are.
///
/// Operands come in the order of the row's signature, receiver first; `attrs` are the row's other parameters in order.
pub fn run(device: Device, op: &str, args: &[Arg], attrs: &[Attr]) -> Result<Vec<RawTensor>> {
    let row = Op::find(op).ok_or_else(|| Error::compile(format!("no op is called `{op}`")))?;
    let tapes = tape::traced(args);
    if tapes.is_empty() {
        return run_row(device, row, args, attrs);
    }
    if row.effect == OpEffect::Rng {
        return Ok(tape::run_draws(device, row, args, attrs));
    }
    // Held here, no operand gives its storage to the result: the walk back reads it.
    let held = args.to_vec();
    let results = run_row(device, row, args, attrs)?;
    Ok(tape::record(&tapes, &What::Op(row, attrs.to_vec()), &held, results))
}

fn run_row(device: Device, row: Op, args: &[Arg], attrs: &[Attr]) -> Result<Vec<RawTensor>> {
    let (program, host_ints) = match recent(row.name, args, attrs) {
        Some(program) => (program, sizes_of(attrs)),
        None => {
            let (key, host_ints) = Key::of(row, args, attrs);
            let program = program(key.clone())?;
            remember(row.name, args, key, &program);
            (program, host_ints)
        }
    };
    run_program(&program, device, args, &host_ints)
}

/// Runs a program of one op, or of its gradient, on these operands.
pub(crate) fn run_program(
    program: &Program,
    device: Device,
    args: &[Arg],
    host_ints: &[i64],
) -> Result<Vec<RawTensor>> {
    let tensors: Vec<&RawTensor> = args.iter().filter_map(tensor).collect();
    let scalars: Vec<Scalar> = args.iter().filter_map(scalar).collect();
    let call = Call {
        program,
        given: &all_given(tensors.len()),
        tensors: &tensors,
        scalars: &scalars,
        host_ints,
        device,
        bodies: &if device.is_cpu() { program.interpreted() } else { Vec::new() },
    };
    exec::run(&call)
}

/// Why the rule of an op refuses these operands, in the words that a compiled function has for it; `None` if it does not.
pub(crate) fn refusal(op: &str, args: &[Arg], attrs: &[Attr]) -> Option<Error> {
    let (key, host_ints) = Key::of(Op::find(op)?, args, attrs);
    let tensors: Vec<&RawTensor> = args.iter().filter_map(tensor).collect();
    program(key).and_then(|program| exec::check_sizes(&program.plan, &tensors, &host_ints)).err()
}

/// An op gives all its operands up.
fn all_given(tensors: usize) -> Cow<'static, [bool]> {
    const MANY: [bool; 16] = [true; 16];
    MANY.get(..tensors).map_or_else(|| Cow::Owned(vec![true; tensors]), Cow::Borrowed)
}

static PROGRAMS: LazyLock<RwLock<HashMap<Key, Arc<Program>>>> = LazyLock::new(Default::default);

/// Programs that a thread has asked for, each at the place that its key and op have there.
const RECENT: usize = 64;

type Recent = Option<(Key, Arc<Program>)>;

thread_local! {
    static RECENT_PROGRAMS: RefCell<Vec<Recent>> = const { RefCell::new(Vec::new()) };
}

/// The place of a call among the recent ones: where the name of the op lies tells it from most others.
fn place(op: &str, args: &[Arg]) -> usize {
    (op.as_ptr().addr() / 2 + args.len()) % RECENT
}

/// The program of a call, if this thread has made such a call lately: found without hashing or building a key.
fn recent(op: &str, args: &[Arg], attrs: &[Attr]) -> Option<Arc<Program>> {
    RECENT_PROGRAMS.with_borrow(|recent| {
        let (key, program) = recent.get(place(op, args))?.as_ref()?;
        key.is_of(op, args, attrs).then(|| program.clone())
    })
}

fn remember(op: &str, args: &[Arg], key: Key, program: &Arc<Program>) {
    RECENT_PROGRAMS.with_borrow_mut(|recent| {
        recent.resize_with(RECENT, || None);
        recent[place(op, args)] = Some((key, program.clone()));
    });
}

/// The program of a key, from the cache or newly made. Two threads may make the same one; the first to finish is kept.
fn program(key: Key) -> Result<Arc<Program>> {
    if let Some(program) = PROGRAMS.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&key) {
        return Ok(program.clone());
    }
    let program = Arc::new(Program::new(&build::plan(&key)?, &[]));
    let mut programs = PROGRAMS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(programs.entry(key).or_insert(program).clone())
}

fn tensor(arg: &Arg) -> Option<&RawTensor> {
    match arg {
        Arg::Tensor(tensor) => Some(tensor),
        Arg::Scalar(..) => None,
    }
}

fn scalar(arg: &Arg) -> Option<Scalar> {
    match arg {
        Arg::Tensor(_) => None,
        Arg::Scalar(literal, _) => Some(*literal),
    }
}

/// Returns the first fault that the data of `memory` depends on, once. The stream must have been waited for.
pub(crate) fn check_faults(memory: &CudaBuffer) -> Result<()> {
    check_calls(memory.buffer().context(), memory.last_call())
}

/// Returns the first fault of the calls up to this one, once.
pub(crate) fn check_calls(context: &Context, call: u64) -> Result<()> {
    match context.take_fault(call) {
        None => Ok(()),
        Some(fault) => Err(exec::describe_fault(context.facts().ordinal, &fault)),
    }
}

#[cfg(test)]
mod tests;
