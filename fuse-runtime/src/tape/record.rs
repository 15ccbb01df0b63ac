//! What is written on a tape.

use crate::device::Device;
use crate::eager::Arg;
use crate::error::{Error, Result};
use crate::raw::RawTensor;
use fuse_compiler::op::{Attr, Gradient, Op};
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// The ops that ran on the variables of one call.
pub(crate) struct Tape(Mutex<Pages>);

/// The entries, and how many values they have met; `None` behind the call, when variables that are still around are constants.
struct Pages {
    entries: Option<Vec<Entry>>,
    values: usize,
    variables: Vec<RawTensor>,
}

/// One op that ran.
pub(super) struct Entry {
    /// The device it ran on.
    pub device: Device,
    /// The op.
    pub op: Op,
    /// Its operands, as constants.
    pub args: Vec<Arg>,
    /// Which value of the tape each operand is, if it is one.
    pub from: Vec<Option<usize>>,
    /// Its other parameters.
    pub attrs: Vec<Attr>,
    /// Which values of the tape its results are.
    pub outs: Vec<usize>,
}

/// What makes a tensor a variable: the value of a tape it is.
#[derive(Clone)]
pub(crate) struct Var {
    tape: Arc<Tape>,
    value: usize,
}

impl Tape {
    pub fn new() -> Arc<Tape> {
        Arc::new(Tape(Mutex::new(Pages { entries: Some(vec![]), values: 0, variables: vec![] })))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A new variable with the values of a tensor. Variables are the first values of a tape, in order.
    pub fn variable(self: &Arc<Tape>, tensor: &RawTensor) -> Result<RawTensor> {
        if tensor.var().is_some_and(Var::is_open) {
            return Err(nested());
        }
        let constant = tensor.clone().with_var(None);
        self.pages().variables.push(constant.clone());
        Ok(constant.with_var(Some(self.value())))
    }

    fn value(self: &Arc<Tape>) -> Var {
        let mut pages = self.pages();
        pages.values += 1;
        Var { tape: self.clone(), value: pages.values - 1 }
    }

    /// Ends the recording; the entries in program order, and the variables.
    pub(super) fn close(&self) -> (Vec<Entry>, Vec<RawTensor>) {
        let mut pages = self.pages();
        (pages.entries.take().unwrap_or_default(), std::mem::take(&mut pages.variables))
    }
}

impl Var {
    /// The number of the value.
    pub fn value(&self) -> usize {
        self.value
    }

    /// Whether the call whose variable this is still runs.
    fn is_open(&self) -> bool {
        self.tape.pages().entries.is_some()
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {}", self.value)
    }
}

/// The tape that the variables among operands are on.
pub(crate) fn traced(args: &[Arg]) -> Result<Option<Arc<Tape>>> {
    let mut tapes = args.iter().filter_map(|arg| match arg {
        Arg::Tensor(tensor) => tensor.var().filter(|var| var.is_open()).map(|var| &var.tape),
        Arg::Scalar(..) => None,
    });
    let Some(first) = tapes.next() else { return Ok(None) };
    match tapes.all(|tape| Arc::ptr_eq(tape, first)) {
        true => Ok(Some(first.clone())),
        false => Err(nested()),
    }
}

/// Whether a tensor is a variable of a call that still runs.
pub(crate) fn is_traced(tensor: &RawTensor) -> bool {
    tensor.var().is_some_and(Var::is_open)
}

fn nested() -> Error {
    Error::compile("variables of two `value_and_grad` calls meet; gradients of gradients are not supported on the tape")
}

/// Writes an op that ran on operands of a tape; its results become variables, if it has a gradient.
pub(crate) fn record(tape: &Arc<Tape>, op: Op, args: &[Arg], attrs: &[Attr], outs: Vec<RawTensor>) -> Vec<RawTensor> {
    let smooth = matches!(op.gradient, Gradient::Built(_) | Gradient::Opened);
    if !smooth || !outs.iter().all(|out| out.dtype().is_float()) {
        return outs;
    }
    let outs: Vec<RawTensor> = outs.into_iter().map(|out| out.with_var(Some(tape.value()))).collect();
    let entry = Entry {
        device: outs[0].device(),
        op,
        args: args.iter().map(constant).collect(),
        from: args.iter().map(value_of).collect(),
        attrs: attrs.to_vec(),
        outs: outs.iter().filter_map(|out| out.var().map(Var::value)).collect(),
    };
    if let Some(entries) = &mut tape.pages().entries {
        entries.push(entry);
    }
    outs
}

/// An operand without the tape: entries that held it would keep it alive for ever.
pub(super) fn constant(arg: &Arg) -> Arg {
    match arg {
        Arg::Tensor(tensor) => Arg::Tensor(tensor.clone().with_var(None)),
        scalar => scalar.clone(),
    }
}

fn value_of(arg: &Arg) -> Option<usize> {
    match arg {
        Arg::Tensor(tensor) if tensor.dtype().is_float() => tensor.var().map(Var::value),
        _ => None,
    }
}

thread_local! {
    static RECORDINGS: Cell<usize> = const { Cell::new(0) };
}

/// Marks this thread as one on which compiled functions run op by op.
pub(super) struct Recording;

impl Recording {
    pub fn start() -> Recording {
        RECORDINGS.with(|count| count.set(count.get() + 1));
        Recording
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDINGS.with(|count| count.set(count.get() - 1));
    }
}

/// Whether this thread records on a tape.
pub(crate) fn is_recording() -> bool {
    RECORDINGS.with(|count| count.get() > 0)
}
