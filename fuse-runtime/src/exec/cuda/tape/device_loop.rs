//! `while` on tensor data as a tape: the first test, and a turn with its test as a part that the device repeats.

use super::Tape;
use super::build::TakenDown;
use crate::cuda::{Context, take_down};
use crate::device::Device;
use crate::error::Result;
use crate::exec::cuda::run::steps;
use crate::exec::run::Call;
use crate::exec::symbols::Sizes;
use crate::raw::RawTensor;
use std::sync::Arc;

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
            let results = self.turn(of_turn, &state, tracing, ordinal)?;
            let (next, new) = results.split_last().expect("a turn has results");
            for (state, new) in state.iter_mut().zip(new) {
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
