//! The gradients of programs: one graph of forward and backward against the tape.

use crate::common::{Rng, device, first_difference, lay_out, raw_of, value_of};
use crate::program::{Program, Step, Trace};
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::op::{Build, Class, Num};
use fuse_compiler::types::DType;
use fuse_runtime::rt::{run_graph, vjp_untyped};
use fuse_runtime::{Error, RawTensor};

/// Of sums of products, in units of the largest element: they may be taken in another order.
const TOLERANCE: f64 = 1e-3;

/// Compares the gradients of all of a program's results of floats, each with a random cotangent, and of the first of them and
/// its first input of floats once more; `false` where there are none.
pub fn compare(program: &Program) -> Result<bool, String> {
    let Ok((mut graph, scalars)) = program.graph() else { return Ok(false) };
    let inputs: Vec<RawTensor> = program.inputs().map(|(value, lay)| lay_out(value, lay, device())).collect();
    let wrt: Vec<u32> = (0..).zip(&inputs).filter(|(_, input)| input.dtype().is_float()).map(|(k, _)| k).collect();
    let is_float = |&out: &usize| graph.ty(graph.outs[out]).dtype.is_float();
    let mut outs: Vec<usize> = (0..graph.outs.len()).filter(is_float).collect();
    let (Some(&first), Some(&input)) = (outs.first(), wrt.first()) else { return Ok(false) };
    outs.push(first);
    let mut cotangents = vec![];
    let Ok(by_tape) = on_tape(program, &inputs, &outs, &mut cotangents) else { return Ok(false) };

    graph.outs = outs.iter().map(|&out| graph.outs[out]).chain([graph.inputs[input as usize]]).collect();
    let results = graph.outs.len();
    let mut joint = autodiff::run(graph, &Request { wrt, seeds: vec![Seed::Input; results] });
    joint.outs.drain(..results);
    let args: Vec<&RawTensor> = inputs.iter().chain(&cotangents).collect();
    let compiled = run_graph(&joint, &args, &scalars, device()).map_err(|error| format!("compiled fails: {error}"))?;
    let exact = !program
        .calls()
        .any(|op| ["matmul", "linear", "addmm", "baddbmm"].contains(&op.name) || op.class == Class::Matmul);
    for (k, (got, want)) in compiled.iter().zip(&by_tape).enumerate() {
        agree(got, want, exact).map_err(|text| format!("gradient {k}: {text}"))?;
    }
    Ok(true)
}

/// The gradients by the tape, of these results and the first input of floats, for whose extents cotangents are made.
fn on_tape(
    program: &Program,
    inputs: &[RawTensor],
    outs: &[usize],
    cotangents: &mut Vec<RawTensor>,
) -> Result<Vec<RawTensor>, Error> {
    let floats: Vec<RawTensor> = inputs.iter().filter(|input| input.dtype().is_float()).cloned().collect();
    vjp_untyped(&floats, |vars| {
        let first = vars[0].clone();
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
        let values: Vec<RawTensor> = outs.iter().map(result).chain([first]).collect();
        let mut rng = Rng::new(3);
        for value in &values {
            let made = raw_of(&rng.value(value.dtype(), value.shape(), (-1.0, 1.0))).to_device(device())?;
            cotangents.push(made);
        }
        Ok(values.into_iter().zip(cotangents.clone()).collect())
    })
}

/// Equal up to the sign of zero: a sum over an axis of one element loses it, and an extent known to be 1 is not summed.
fn agree(got: &RawTensor, want: &RawTensor, exact: bool) -> Result<(), String> {
    let (got, want) = (value_of(got), value_of(want));
    let largest = want.as_floats().into_iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    let room = match (exact, want.dtype) {
        (true, _) => 0.0,
        (_, DType::F16 | DType::BF16) => 10.0 * TOLERANCE * largest,
        _ => TOLERANCE * largest,
    };
    first_difference(&got, &want, |_, a, b| match (a, b) {
        (Num::F(a), Num::F(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= room,
        (a, b) => a == b,
    })
}
