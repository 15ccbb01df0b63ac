//! `while` on tensor data.

use super::{Inputs, Segment};
use crate::error::Result;
use crate::exec::{self, Call};
use crate::raw::RawTensor;
use crate::tape::is_traced;

/// A graph and what it is called with.
pub type Part<'a> = (&'static Segment, Inputs<'a>);

/// Runs a loop: a graph for the first test, then one for a turn with the test behind it as long as the test holds.
///
/// `state` are the tensors that a turn gives new values, with the place they have among the turn's arguments, if it reads
/// them. A turn gives the new state and the next test, in this order; a test is one bool. The result is the last state.
pub fn while_loop(state: &[(&RawTensor, Option<usize>)], test: Part<'_>, turn: Part<'_>) -> Result<Vec<RawTensor>> {
    if let Some(results) = on_device(state, &test, &turn)? {
        return Ok(results);
    }
    let mut held: Vec<RawTensor> = state.iter().map(|(tensor, _)| (*tensor).clone()).collect();
    let (segment, inputs) = turn;
    // What a turn was given by the one before it, nobody else reads.
    let mut given = vec![false; inputs.tensors.len()];
    state.iter().filter_map(|(_, read)| *read).for_each(|read| given[read] = true);
    let mut results = test.0.call(test.1)?;
    while holds(&mut results)? {
        if !results.is_empty() {
            held = results;
        }
        let mut tensors = inputs.tensors.to_vec();
        for (tensor, (_, read)) in held.iter().zip(state) {
            read.iter().for_each(|&read| tensors[read] = tensor);
        }
        results = segment.call(Inputs { tensors: &tensors, given: &given, ..inputs })?;
    }
    Ok(if results.is_empty() { held } else { results })
}

/// Has the device decide how many turns there are, or whether each of a few is one, if it can.
fn on_device(
    state: &[(&RawTensor, Option<usize>)],
    test: &Part<'_>,
    turn: &Part<'_>,
) -> Result<Option<Vec<RawTensor>>> {
    // Where gradients would not flow, the call of a turn says so.
    let arguments = [test, turn].into_iter().flat_map(|(_, inputs)| inputs.tensors);
    if arguments.copied().chain(state.iter().map(|(tensor, _)| *tensor)).any(is_traced) {
        return Ok(None);
    }
    let with_test = |turn: &Call<'_>| test.0.look(&test.1, |test| exec::run_loop(test, turn, state));
    turn.0.look(&turn.1, with_test)??
}

/// Takes the test off the results of a graph and reads it.
fn holds(results: &mut Vec<RawTensor>) -> Result<bool> {
    let test = results.pop().expect("a test is the last result of its graph");
    Ok(test.to_vec::<bool>()?[0])
}
