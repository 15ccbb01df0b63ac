//! What is written on a tape.

use super::graphs::GraphKey;
use super::segments::SegmentCall;
use crate::device::Device;
use crate::eager::{Arg, Key};
use crate::error::Result;
use crate::raw::RawTensor;
use fuse_compiler::op::{Attr, Gradient, Op};
use std::cell::Cell;
use std::cmp::Reverse;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What ran on the variables of one call.
pub(crate) struct Tape {
    /// The later a tape was made, the further inside is its call.
    number: u64,
    pages: Mutex<Pages>,
}

/// The entries, and how many values they have met; `None` behind the call, when variables that are still around are constants.
struct Pages {
    entries: Option<Vec<Entry>>,
    values: usize,
    variables: Vec<RawTensor>,
}

/// Something that ran.
pub(super) struct Entry {
    /// The device it ran on.
    pub device: Device,
    /// What ran.
    pub what: What,
    /// Its operands: constants of this tape, and perhaps variables of calls further outside.
    pub args: Vec<Arg>,
    /// Which value of the tape each operand is, if it is one.
    pub from: Vec<Option<usize>>,
    /// Which values of the tape its results are.
    pub outs: Vec<usize>,
}

/// What ran: how to find the graph of it again, from which its gradient is derived.
#[derive(Clone)]
pub(crate) enum What {
    /// An op with these parameters that are no operands.
    Op(Op, Vec<Attr>),
    /// A graph that is known by its key, with these sizes.
    Graph(Arc<GraphKey>, Vec<i64>),
    /// A graph of a compiled function.
    Segment(Arc<SegmentCall>),
}

impl What {
    /// The key of the graph of a call, and its sizes.
    pub fn graph(&self, args: &[Arg]) -> (GraphKey, Vec<i64>) {
        match self {
            What::Op(op, attrs) => {
                let (key, sizes) = Key::of(*op, args, attrs);
                (GraphKey::Op(key), sizes)
            }
            What::Graph(key, sizes) => (GraphKey::clone(key), sizes.clone()),
            What::Segment(call) => (GraphKey::Segment(call.graph.clone()), call.host_ints.clone()),
        }
    }

    /// What was drawn and stays as numbers: further operands of the graph.
    pub fn drawn(&self) -> Result<Vec<RawTensor>> {
        match self {
            What::Segment(call) => call.drawn(),
            What::Op(..) | What::Graph(..) => Ok(vec![]),
        }
    }

    /// Whether cotangents go through it to these results.
    fn is_smooth(&self, outs: &[RawTensor]) -> bool {
        let is_float = |out: &RawTensor| out.dtype().is_float();
        match self {
            What::Op(op, _) => {
                matches!(op.gradient, Gradient::Built(_) | Gradient::Opened) && outs.iter().all(is_float)
            }
            What::Graph(..) | What::Segment(_) => outs.iter().any(is_float),
        }
    }
}

/// What makes a tensor a variable: the value of a tape that it is, and that of tapes of calls further outside.
#[derive(Clone)]
pub(crate) struct Var {
    tape: Arc<Tape>,
    value: usize,
    outer: Option<Arc<Var>>,
}

impl Tape {
    pub fn new() -> Arc<Tape> {
        static TAPES: AtomicU64 = AtomicU64::new(0);
        let pages = Pages { entries: Some(vec![]), values: 0, variables: vec![] };
        Arc::new(Tape { number: TAPES.fetch_add(1, Ordering::Relaxed), pages: Mutex::new(pages) })
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether the call still runs.
    fn is_open(&self) -> bool {
        self.pages().entries.is_some()
    }

    /// A new variable with the values of a tensor. Variables are the first values of a tape, in order.
    pub fn variable(self: &Arc<Tape>, tensor: &RawTensor) -> RawTensor {
        self.pages().variables.push(tensor.clone().with_var(None));
        let outer = tensor.var().cloned();
        tensor.clone().with_var(Some(self.value(outer)))
    }

    fn value(self: &Arc<Tape>, outer: Option<Var>) -> Var {
        let mut pages = self.pages();
        pages.values += 1;
        Var { tape: self.clone(), value: pages.values - 1, outer: outer.map(Arc::new) }
    }

    /// Ends the recording; the entries in program order, and the variables.
    pub(super) fn close(&self) -> (Vec<Entry>, Vec<RawTensor>) {
        let mut pages = self.pages();
        (pages.entries.take().unwrap_or_default(), std::mem::take(&mut pages.variables))
    }
}

impl Var {
    /// It and what it is on tapes further outside.
    fn chain(&self) -> impl Iterator<Item = &Var> {
        std::iter::successors(Some(self), |var| var.outer.as_deref())
    }

    /// Which value of a tape it is.
    pub fn on(&self, tape: &Tape) -> Option<usize> {
        self.chain().find(|var| var.tape.number == tape.number).map(|var| var.value)
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {} of tape {}", self.value, self.tape.number)
    }
}

/// The tapes that variables among operands are on, the innermost first.
pub(crate) fn traced(args: &[Arg]) -> Vec<Arc<Tape>> {
    let mut tapes: Vec<Arc<Tape>> = vec![];
    for var in args.iter().filter_map(var_of).flat_map(Var::chain) {
        if !tapes.iter().any(|tape| tape.number == var.tape.number) && var.tape.is_open() {
            tapes.push(var.tape.clone());
        }
    }
    tapes.sort_by_key(|tape| Reverse(tape.number));
    tapes
}

/// Whether a tensor is a variable of a call that still runs.
pub(crate) fn is_traced(tensor: &RawTensor) -> bool {
    tensor.var().is_some_and(|var| var.chain().any(|var| var.tape.is_open()))
}

/// The tensor without the tapes of calls that are over.
pub(super) fn settled(tensor: RawTensor) -> RawTensor {
    let open = tensor.var().and_then(|var| var.chain().find(|var| var.tape.is_open()).cloned());
    tensor.with_var(open)
}

/// Writes down what ran on operands of these tapes, of which the innermost comes first; its results of floats become
/// variables, if it has a gradient.
pub(crate) fn record(tapes: &[Arc<Tape>], what: &What, args: &[Arg], outs: Vec<RawTensor>) -> Vec<RawTensor> {
    if !what.is_smooth(&outs) {
        return outs;
    }
    let mut vars: Vec<Option<Var>> = vec![None; outs.len()];
    for tape in tapes.iter().rev() {
        vars = vars.into_iter().map(|outer| Some(tape.value(outer))).collect();
        let entry = Entry {
            device: outs[0].device(),
            what: what.clone(),
            args: args.iter().map(|arg| outside_of(tape, arg)).collect(),
            from: args.iter().map(|arg| var_of(arg)?.on(tape)).collect(),
            outs: vars.iter().flatten().map(|var| var.value).collect(),
        };
        if let Some(entries) = &mut tape.pages().entries {
            entries.push(entry);
        }
    }
    let variable = |(out, var): (RawTensor, Option<Var>)| match out.dtype().is_float() {
        true => out.with_var(var),
        false => out,
    };
    outs.into_iter().zip(vars).map(variable).collect()
}

/// An operand without a tape and those further inside: entries that held it would keep it alive for ever.
fn outside_of(tape: &Tape, arg: &Arg) -> Arg {
    match arg {
        Arg::Tensor(tensor) => {
            let outer = tensor.var().and_then(|var| var.chain().find(|var| var.tape.number < tape.number).cloned());
            Arg::Tensor(tensor.clone().with_var(outer))
        }
        scalar => scalar.clone(),
    }
}

fn var_of(arg: &Arg) -> Option<&Var> {
    match arg {
        Arg::Tensor(tensor) if tensor.dtype().is_float() => tensor.var(),
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
