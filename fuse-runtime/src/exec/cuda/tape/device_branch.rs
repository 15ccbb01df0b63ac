//! `if` on tensor data as a tape: the launches of both arms, of which the device does those of one.

use super::Tape;
use super::build::TakenDown;
use super::device_loop::trace;
use crate::cuda::{Context, take_down};
use crate::error::Result;
use crate::exec::run::Call;
use crate::raw::RawTensor;
use crate::rt::Joined;
use std::sync::Arc;

/// A branch to be taken down.
pub(in crate::exec) struct DeviceBranch<'a> {
    /// The arms; one without a call does nothing.
    pub arms: [Option<&'a Call<'a>>; 2],
    /// Where everything the branch gives comes from in either arm.
    pub joined: &'a [[Joined<'a>; 2]],
    /// All arguments and scalars as those of one call: the arms', what variables were before, the test.
    pub whole: &'a Call<'a>,
}

impl DeviceBranch<'_> {
    /// The tape of the branch. `None` where the arms give results of different extents.
    ///
    /// What it gives lies where the first arm has it; the other copies its own there.
    pub fn take_down(&self, ordinal: usize) -> Result<Option<Tape>> {
        let context = Context::get(ordinal)?;
        take_down(&context, |tracing| {
            let arguments = Tape::stand_ins(self.whole)?;
            let (mut rest, mut of_arms) = (&arguments[..], [&arguments[..0]; 2]);
            for (own, arm) in of_arms.iter_mut().zip(&self.arms) {
                (*own, rest) = rest.split_at(arm.map_or(0, |arm| arm.tensors.len()));
            }
            let (test, olds) = rest.split_last().expect("the test is the last argument");
            tracing.trace_branch(test.address());
            let sources = self.sources(0, of_arms[0], olds, tracing, ordinal)?;
            let own = |tensor: RawTensor| if tensor.is_unique() { Ok(tensor) } else { tensor.copied() };
            let mut results = sources.into_iter().map(own).collect::<Result<Vec<_>>>()?;
            tracing.trace_otherwise();
            let others = self.sources(1, of_arms[1], olds, tracing, ordinal)?;
            if results.iter().zip(&others).any(|(result, other)| result.shape() != other.shape()) {
                return Ok(None);
            }
            for (result, other) in results.iter_mut().zip(&others) {
                let all = *result.layout();
                result.overwrite(&all, other)?;
            }
            drop(others);
            tracing.trace_end_of_branch();
            let taken = TakenDown {
                call: self.whole,
                arguments: &arguments,
                results: &results,
                written: vec![true; results.len()],
                draws: vec![],
                scalars: [0, self.arms[0].map_or(0, |arm| arm.scalars.len() as u32)],
            };
            Ok(Some(taken.tape(&context, ordinal, tracing)))
        })
    }

    /// Takes down an arm, and gives what the branch gives where it is taken.
    fn sources(
        &self,
        arm: usize,
        arguments: &[RawTensor],
        olds: &[RawTensor],
        tracing: &Arc<Context>,
        ordinal: usize,
    ) -> Result<Vec<RawTensor>> {
        let tensors: Vec<&RawTensor> = arguments.iter().collect();
        let results = match self.arms[arm] {
            Some(call) => trace(call, &tensors, &[], tracing, ordinal)?,
            None => vec![],
        };
        let mut results: Vec<Option<RawTensor>> = results.into_iter().map(Some).collect();
        let mut olds = olds.iter();
        let mut sources = Vec::new();
        for from in self.joined {
            for (of, from) in from.iter().enumerate() {
                let source = match from {
                    Joined::Old(_) => olds.next().cloned(),
                    Joined::Result(k) if of == arm => results[*k].take(),
                    Joined::Result(_) => None,
                };
                sources.extend(source.filter(|_| of == arm));
            }
        }
        Ok(sources)
    }
}
