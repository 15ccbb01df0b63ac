//! `while` on tensor data as a tape: the first test, and a turn with its test as a part that the device repeats.

use super::Tape;
use super::build::TakenDown;
use crate::cuda::{Context, Mark, Traced, block_of, take_down};
use crate::device::Device;
use crate::error::Result;
use crate::exec::cuda::run::steps;
use crate::exec::run::Call;
use crate::exec::symbols::Sizes;
use crate::raw::RawTensor;
use std::sync::Arc;

/// So many turns are launched before anybody looks whether there is another: that takes 5 us, the driver's condition as well as the
/// host's look, and a small turn 2.5. One that is not to be finds out by itself.
const TURNS_AT_ONCE: usize = 4;
/// Blocks that one may have: they all have to be started to find that there is nothing to do.
const MOST_BLOCKS: u32 = 1024;

/// A loop to be taken down.
pub(in crate::exec) struct DeviceLoop<'a> {
    /// The first test.
    pub test: &'a Call<'a>,
    /// A turn: its results are the new state, then the next test.
    pub turn: &'a Call<'a>,
    /// What a turn changes, and its place among the turn's arguments.
    pub state: &'a [(&'a RawTensor, Option<usize>)],
    /// All arguments and scalars as those of one call: the turn's, the test's, the state.
    pub whole: &'a Call<'a>,
}

impl DeviceLoop<'_> {
    /// The tape of the loop, whose results are the last state.
    ///
    /// The state lies in the results from the start. A turn writes it where it can read and write in one place; else it is
    /// copied there behind the turn.
    pub fn take_down(&self, ordinal: usize) -> Result<Tape> {
        let context = Context::get(ordinal)?;
        take_down(&context, |tracing| {
            let arguments = Tape::stand_ins(self.whole)?;
            let (of_turn, others) = arguments.split_at(self.turn.tensors.len());
            let (of_test, state) = others.split_at(self.test.tensors.len());
            let mut state = state.iter().map(RawTensor::copied).collect::<Result<Vec<_>>>()?;
            let of_test: Vec<&RawTensor> = of_test.iter().collect();
            let first = trace(self.test, &of_test, &[], tracing, ordinal)?;
            tracing.trace_loop(first.last().expect("a test has a result").address());
            let mut results = self.turn(of_turn, &state, tracing, ordinal)?;
            let next = results.pop().expect("a turn has results");
            let new = results.into_iter().enumerate().map(|(k, new)| apart(new, k, &state));
            let new = new.collect::<Result<Vec<_>>>()?;
            for (state, new) in state.iter_mut().zip(&new) {
                if state.address() != new.address() {
                    let all = *state.layout();
                    state.overwrite(&all, new)?;
                }
            }
            tracing.trace_end_of_loop(next.address());
            let taken = TakenDown {
                call: self.whole,
                arguments: &arguments,
                results: &state,
                written: vec![true; state.len()],
                draws: vec![],
                scalars: [self.turn.scalars.len() as u32, 0],
            };
            Ok(taken.tape(&context, ordinal, tracing))
        })
    }

    /// Launches a turn on the state.
    fn turn(
        &self,
        arguments: &[RawTensor],
        state: &[RawTensor],
        tracing: &Arc<Context>,
        ordinal: usize,
    ) -> Result<Vec<RawTensor>> {
        let mut tensors: Vec<&RawTensor> = arguments.iter().collect();
        let mut given = vec![false; tensors.len()];
        for (tensor, read) in state.iter().zip(self.state.iter().map(|(_, read)| *read)) {
            let Some(read) = read else { continue };
            (tensors[read], given[read]) = (tensor, true);
        }
        trace(self.turn, &tensors, &given, tracing, ordinal)
    }
}

/// The new value of the k-th tensor, copied if it lies where another one is to be written, as where two are exchanged.
fn apart(new: RawTensor, k: usize, state: &[RawTensor]) -> Result<RawTensor> {
    let others = state.iter().enumerate().filter(|(other, _)| *other != k);
    let crosses = others.map(|(_, state)| state.address()).any(|address| address == new.address());
    if crosses { new.copied() } else { Ok(new) }
}

/// Takes down the launches of a part, on other tensors.
pub(super) fn trace(
    call: &Call<'_>,
    tensors: &[&RawTensor],
    given: &[bool],
    tracing: &Arc<Context>,
    ordinal: usize,
) -> Result<Vec<RawTensor>> {
    let sizes = Sizes::of(&call.program.plan, call.tensors, call.host_ints)?;
    let traced = Call { tensors, given, device: Device::tracing(), ..*call };
    steps(&traced, tracing, ordinal, &sizes, &[], 0)
}

/// Puts further turns behind the one of a loop, if each of its launches asks whether it has anything to do. The answer must not
/// change within a turn, so only the last launch may write it.
pub(super) fn with_further_turns(mut events: Vec<Traced>) -> Vec<Traced> {
    let Some(start) = events.iter().position(|event| matches!(event, Traced::Loop(_))) else { return events };
    let end = events.iter().position(|event| matches!(event, Traced::EndOfLoop(_))).expect("a loop that begins ends");
    let Traced::EndOfLoop(next) = events[end] else { unreachable!("it is the end of one") };
    let turn: Vec<&Traced> = events[start + 1..end].iter().filter(|event| event.is_op()).collect();
    let Some(further) = turn.iter().map(|launch| asking(launch, next)).collect::<Option<Vec<_>>>() else {
        return events;
    };
    let blocks: u32 = turn.iter().map(|launch| blocks(launch)).fold(0, u32::saturating_add);
    let writers = turn.iter().filter(|launch| writes(launch, next)).count();
    if writers == 1 && turn.last().is_some_and(|last| writes(last, next)) && blocks <= MOST_BLOCKS {
        events.splice(end..end, (1..TURNS_AT_ONCE).flat_map(|_| further.clone()));
    }
    events
}

/// A launch that looks at a bool first; `None` if it is none that can.
fn asking(launch: &Traced, at: u64) -> Option<Traced> {
    let mut launch = launch.clone();
    let Traced::Launch { args, marks, .. } = &mut launch else { return None };
    let (place, mark) = marks.iter_mut().find(|(_, mark)| *mark == Mark::Asked)?;
    args[*place..][..8].copy_from_slice(&at.to_ne_bytes());
    *mark = Mark::Read;
    Some(launch)
}

fn blocks(launch: &Traced) -> u32 {
    match launch {
        Traced::Launch { grid, .. } => grid[0],
        _ => 0,
    }
}

/// Whether a launch writes the block of memory that an address lies in.
fn writes(launch: &Traced, address: u64) -> bool {
    let Traced::Launch { args, marks, .. } = launch else { return false };
    let block = |address: u64| block_of(address).map(|(block, _)| block);
    let written = |at: usize| u64::from_ne_bytes(args[at..at + 8].try_into().expect("an address has eight bytes"));
    marks.iter().any(|&(at, mark)| mark == Mark::Write && block(written(at)) == block(address))
}
