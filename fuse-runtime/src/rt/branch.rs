//! `if` on tensor data.

use super::device_loop::Part;
use crate::error::Result;
use crate::exec::{self, Call};
use crate::raw::RawTensor;

/// Where something that a branch gives comes from.
#[derive(Clone, Copy)]
pub enum Joined<'a> {
    /// It is the n-th result of the arm.
    Result(usize),
    /// It is what it was before.
    Old(&'a RawTensor),
}

/// Runs one of two graphs: the first if the test, one bool, holds. An arm without a graph does nothing.
///
/// `joined` says of everything the branch gives where it comes from in either arm.
pub fn branch(test: &RawTensor, arms: [Option<Part<'_>>; 2], joined: &[[Joined<'_>; 2]]) -> Result<Vec<RawTensor>> {
    if let Some(results) = on_device(test, &arms, joined)? {
        return Ok(results);
    }
    let taken = usize::from(!test.to_vec::<bool>()?[0]);
    let results = match &arms[taken] {
        Some((segment, inputs)) => segment.call(*inputs)?,
        None => vec![],
    };
    let pick = |from: &[Joined<'_>; 2]| match from[taken] {
        Joined::Result(k) => results[k].clone(),
        Joined::Old(tensor) => tensor.clone(),
    };
    Ok(joined.iter().map(pick).collect())
}

/// Has the device decide which arm is taken, if the function wants graphs and the device can.
fn on_device(
    test: &RawTensor,
    [then, otherwise]: &[Option<Part<'_>>; 2],
    joined: &[[Joined<'_>; 2]],
) -> Result<Option<Vec<RawTensor>>> {
    if ![then, otherwise].into_iter().flatten().any(|(segment, _)| segment.mode().uses_graphs()) {
        return Ok(None);
    }
    look(then, |then| look(otherwise, |otherwise| exec::run_branch(test, [then, otherwise], joined)))??
}

/// Has the call of an arm looked at, if it has a graph.
fn look<R>(arm: &Option<Part<'_>>, look: impl FnOnce(Option<&Call<'_>>) -> R) -> Result<R> {
    match arm {
        Some((segment, inputs)) => segment.look(inputs, |call| look(Some(call))),
        None => Ok(look(None)),
    }
}
