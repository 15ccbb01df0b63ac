//! The gradients of programs: one graph of forward and backward against the tape.

use crate::common::{Rng, device, first_difference, lay_out, raw_of, value_of};
use crate::program::{Program, Step, Trace};
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::op::{Build, Class, Num};
use fuse_compiler::types::DType;
use fuse_runtime::rt::{run_graph, vjp_untyped};
use fuse_runtime::{Error, RawTensor};

/// Of sums that may be taken in another order, in units of the largest element.
const TOLERANCE: f64 = 1e-3;

/// Compares the gradients of a program's results of floats, each by itself and all of them together, with random cotangents;
/// `false` where it has none.
pub fn compare(program: &Program) -> Result<bool, String> {
    let Ok((graph, _)) = program.graph() else { return Ok(false) };
    let outs: Vec<usize> = (0..graph.outs.len()).filter(|&out| graph.ty(graph.outs[out]).dtype.is_float()).collect();
    let exact = !program
        .calls()
        .any(|op| ["matmul", "linear", "addmm", "baddbmm"].contains(&op.name) || op.class == Class::Matmul);
    let mut scales: Vec<f64> = vec![];
    for &out in &outs {
        let Some(pairs) = both(program, &[out])? else { return Ok(false) };
        scales.resize(pairs.len(), 0.0);
        for (k, (got, want)) in pairs.iter().enumerate() {
            let scale = largest(want);
            scales[k] += scale;
            let scale = if exact { 0.0 } else { scale };
            agree(got, want, scale).map_err(|text| format!("gradient {k} of result {out}: {text}"))?;
        }
    }
    if outs.len() > 1 {
        // Cotangents that meet in one value may be added in another order.
        let Some(pairs) = both(program, &outs)? else { return Ok(false) };
        for (k, ((got, want), &scale)) in pairs.iter().zip(&scales).enumerate() {
            agree(got, want, scale).map_err(|text| format!("gradient {k} of all results: {text}"))?;
        }
    }
    Ok(!outs.is_empty())
}

/// The gradients of results by one graph and by the tape; `None` where there are none.
fn both(program: &Program, outs: &[usize]) -> Result<Option<Vec<(RawTensor, RawTensor)>>, String> {
    let Ok((mut graph, scalars)) = program.graph() else { return Ok(None) };
    let inputs: Vec<RawTensor> = program.inputs().map(|(value, lay)| lay_out(value, lay, device())).collect();
    let wrt: Vec<u32> = (0..).zip(&inputs).filter(|(_, input)| input.dtype().is_float()).map(|(k, _)| k).collect();
    let mut cotangents = vec![];
    let Ok(by_tape) = on_tape(program, &inputs, outs, &mut cotangents) else { return Ok(None) };
    if wrt.is_empty() {
        return Ok(None);
    }
    graph.outs = outs.iter().map(|&out| graph.outs[out]).collect();
    let mut joint = autodiff::run(graph, &Request { wrt, seeds: vec![Seed::Input; outs.len()] });
    joint.outs.drain(..outs.len());
    let args: Vec<&RawTensor> = inputs.iter().chain(&cotangents).collect();
    let compiled = run_graph(&joint, &args, &scalars, device()).map_err(|error| format!("compiled fails: {error}"))?;
    Ok(Some(compiled.into_iter().zip(by_tape).collect()))
}

/// The gradients by the tape, of these results, for whose extents cotangents are made.
fn on_tape(
    program: &Program,
    inputs: &[RawTensor],
    outs: &[usize],
    cotangents: &mut Vec<RawTensor>,
) -> Result<Vec<RawTensor>, Error> {
    let floats: Vec<RawTensor> = inputs.iter().filter(|input| input.dtype().is_float()).cloned().collect();
    vjp_untyped(&floats, |vars| {
        let mut vars = vars.into_iter();
        let mut arguments = inputs.iter().map(|input| match input.dtype().is_float() {
            true => vars.next().expect("there is a variable for each input of floats"),
            false => input.clone(),
        });
        let mut trace: Trace = vec![];
        for step in &program.steps {
            let results = match step {
                Step::Input(..) => vec![arguments.next().expect("there is an argument for each input")],
                call => call.eager(&trace, device())?,
            };
            trace.push(results);
        }
        let result = |&out: &usize| trace[program.outs[out].step][program.outs[out].out].clone();
        let values: Vec<RawTensor> = outs.iter().map(result).collect();
        let mut rng = Rng::new(3);
        for value in &values {
            let made = raw_of(&rng.value(value.dtype(), value.shape(), (-1.0, 1.0))).to_device(device())?;
            cotangents.push(made);
        }
        Ok(values.into_iter().zip(cotangents.clone()).collect())
    })
}

/// The largest finite element.
fn largest(tensor: &RawTensor) -> f64 {
    value_of(tensor).as_floats().into_iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()))
}

/// Equal, or near in units of a scale, up to the sign of zero: a sum over an axis of one element loses it, and an extent known
/// to be 1 is not summed.
fn agree(got: &RawTensor, want: &RawTensor, scale: f64) -> Result<(), String> {
    let (got, want) = (value_of(got), value_of(want));
    let room = match want.dtype {
        DType::F16 | DType::BF16 => 10.0 * TOLERANCE * scale,
        _ => TOLERANCE * scale,
    };
    first_difference(&got, &want, |_, a, b| match (a, b) {
        (Num::F(a), Num::F(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= room,
        (a, b) => a == b,
    })
}
