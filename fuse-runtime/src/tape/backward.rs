//! The walk back over a tape.

use super::record::{Entry, Var};
use crate::eager::{self, Arg, Key};
use crate::error::Result;
use crate::exec::Program;
use crate::raw::RawTensor;
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::op::Attr;
use fuse_compiler::types::Dim;
use fuse_compiler::{optimise, schedule};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock};

/// The gradients of the variables, which are the first values of the tape, for a value of it with this cotangent.
pub(super) fn run(
    entries: Vec<Entry>,
    value: Option<&Var>,
    seed: RawTensor,
    variables: Vec<RawTensor>,
) -> Result<Vec<RawTensor>> {
    let mut cotangents: HashMap<usize, RawTensor> = value.map(|value| (value.value(), seed)).into_iter().collect();
    // Entries go as they are walked, and with them what they hold.
    for entry in entries.into_iter().rev() {
        let ups: Vec<Option<RawTensor>> = entry.outs.iter().map(|out| cotangents.remove(out)).collect();
        if ups.iter().all(Option::is_none) {
            continue;
        }
        for (value, cotangent) in pull(&entry, &ups)? {
            let sum = match cotangents.remove(&value) {
                Some(before) => add(before, cotangent)?,
                None => cotangent,
            };
            cotangents.insert(value, sum);
        }
    }
    let gradient = |(value, variable): (usize, &RawTensor)| match cotangents.remove(&value) {
        Some(gradient) => Ok(gradient),
        None => zeros(variable),
    };
    variables.iter().enumerate().map(gradient).collect()
}

/// The cotangents of an op's operands that are values of the tape.
fn pull(entry: &Entry, ups: &[Option<RawTensor>]) -> Result<Vec<(usize, RawTensor)>> {
    let (forward, host_ints) = Key::of(entry.op, &entry.args, &entry.attrs);
    let wanted = entry.from.iter().map(Option::is_some).collect();
    let key = BackwardKey { forward, wanted, ups: ups.iter().map(Option::is_some).collect() };
    let program = program(key)?;
    let ups = ups.iter().flatten().cloned().map(Arg::Tensor);
    let args: Vec<Arg> = entry.args.iter().cloned().chain(ups).collect();
    let cotangents = eager::run_program(&program, entry.device, &args, &host_ints)?;
    Ok(entry.from.iter().flatten().copied().zip(cotangents).collect())
}

/// What decides the plan of an op's cotangents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackwardKey {
    forward: Key,
    /// The operands whose cotangents are wanted.
    wanted: Vec<bool>,
    /// The results that have a cotangent.
    ups: Vec<bool>,
}

static PROGRAMS: LazyLock<RwLock<HashMap<BackwardKey, Arc<Program>>>> = LazyLock::new(Default::default);

fn program(key: BackwardKey) -> Result<Arc<Program>> {
    if let Some(program) = PROGRAMS.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&key) {
        return Ok(program.clone());
    }
    let program = Arc::new(make(&key)?);
    let mut programs = PROGRAMS.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(programs.entry(key).or_insert(program).clone())
}

/// The graph of the op and its gradient, of which only the cotangents are results.
fn make(key: &BackwardKey) -> Result<Program> {
    let graph = eager::graph(&key.forward)?;
    let results = graph.outs.len();
    let inputs = key.forward.inputs();
    let wrt = inputs.into_iter().zip(&key.wanted).filter(|(_, wanted)| **wanted).filter_map(|(input, _)| input);
    let seeds = key.ups.iter().map(|&has| if has { Seed::Input } else { Seed::Nothing }).collect();
    let mut joint = autodiff::run(graph, &Request { wrt: wrt.collect(), seeds });
    joint.name = format!("{}_backward", joint.name);
    joint.outs.drain(..results);
    let joint = optimise::run(joint, optimise::Options::default());
    Ok(Program::new(&schedule::run(&joint, schedule::Options::default()), &[]))
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
