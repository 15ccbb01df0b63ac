//! The walk back over a tape.

use super::graphs::{GradientKey, GraphKey, program};
use super::record::{Entry, What, record, traced};
use crate::eager::{self, Arg};
use crate::error::Result;
use crate::raw::RawTensor;
use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;
use std::collections::HashMap;
use std::sync::Arc;

/// The gradients of the variables, which are the first values of the tape, for values of it with these cotangents.
pub(super) fn run(
    entries: Vec<Entry>,
    seeds: Vec<(usize, RawTensor)>,
    variables: Vec<RawTensor>,
) -> Result<Vec<RawTensor>> {
    let mut cotangents = HashMap::new();
    seeds.into_iter().try_for_each(|(value, seed)| accumulate(&mut cotangents, value, seed))?;
    // Entries go as they are walked, and with them what they hold.
    for entry in entries.into_iter().rev() {
        let ups: Vec<Option<RawTensor>> = entry.outs.iter().map(|out| cotangents.remove(out)).collect();
        if ups.iter().all(Option::is_none) {
            continue;
        }
        for (value, cotangent) in pull(&entry, &ups)? {
            accumulate(&mut cotangents, value, cotangent)?;
        }
    }
    let gradient = |(value, variable): (usize, &RawTensor)| match cotangents.remove(&value) {
        Some(gradient) => Ok(gradient),
        None => zeros(variable),
    };
    variables.iter().enumerate().map(gradient).collect()
}

fn accumulate(cotangents: &mut HashMap<usize, RawTensor>, value: usize, cotangent: RawTensor) -> Result<()> {
    let sum = match cotangents.remove(&value) {
        Some(before) => add(before, cotangent)?,
        None => cotangent,
    };
    cotangents.insert(value, sum);
    Ok(())
}

/// The cotangents of the operands that are values of the tape. To calls further outside they are values like others.
fn pull(entry: &Entry, ups: &[Option<RawTensor>]) -> Result<Vec<(usize, RawTensor)>> {
    let (forward, sizes) = entry.what.graph(&entry.args);
    let wanted: Vec<bool> = entry.from.iter().map(Option::is_some).collect();
    let compiled = match &entry.what {
        What::Segment(call) => call.pull(&wanted, ups)?,
        _ => None,
    };
    let key = Arc::new(GradientKey { forward, wanted, ups: ups.iter().map(Option::is_some).collect() });
    let ups = ups.iter().flatten().cloned().map(Arg::Tensor);
    let tapes = traced(&entry.args.iter().cloned().chain(ups.clone()).collect::<Vec<_>>());
    let cotangents = match compiled {
        Some(cotangents) if tapes.is_empty() => cotangents,
        compiled => {
            // Held here, no number drawn gives its storage to a cotangent: a tape further outside reads it.
            let drawn = entry.what.drawn()?;
            let further = drawn.iter().cloned().map(Arg::Tensor);
            let args: Vec<Arg> = entry.args.iter().cloned().chain(further).chain(ups).collect();
            let derived = || {
                let program = program(&key)?;
                eager::run_program(&program, entry.device, &args, &sizes)
            };
            let cotangents = compiled.map_or_else(derived, Ok)?;
            record(&tapes, &What::Graph(Arc::new(GraphKey::Gradient(key.clone())), sizes.clone()), &args, cotangents)
        }
    };
    Ok(entry.from.iter().flatten().copied().zip(cotangents).collect())
}

fn add(a: RawTensor, b: RawTensor) -> Result<RawTensor> {
    let device = a.device();
    Ok(eager::run(device, "add", &[Arg::Tensor(a), Arg::Tensor(b)], &[])?.remove(0))
}

fn zeros(like: &RawTensor) -> Result<RawTensor> {
    let dims = like.shape().iter().map(|&n| Dim::Const(n as i64)).collect();
    let attrs = [Attr::Dims(dims), Attr::DType(like.dtype())];
    Ok(eager::run(like.device(), "zeros", &[], &attrs)?.remove(0))
}
