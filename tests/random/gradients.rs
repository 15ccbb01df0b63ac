//! The gradients of programs: one graph of forward and backward against the tape.

use crate::common::{Rng, device, first_difference, lay_out, raw_of, value_of};
use crate::program::{Program, Step, Trace};
use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::op::{Class, Num};
use fuse_compiler::types::DType;
use fuse_runtime::rt::{run_graph, vjp_untyped};
use fuse_runtime::{Error, RawTensor};

/// Of sums of products, in units of the largest element: they may be taken in another order.
const TOLERANCE: f64 = 1e-3;

/// Compares the gradients of a program's first result of floats, with a random cotangent; `false` where it has none.
pub fn compare(program: &Program) -> Result<bool, String> {
    let Ok((mut graph, scalars)) = program.graph() else { return Ok(false) };
    let is_float = |step: &Step| matches!(step, Step::Input(value, _) if value.dtype.is_float());
    let inputs: Vec<RawTensor> = program.inputs().map(|(value, lay)| lay_out(value, lay, device())).collect();
    let wrt: Vec<u32> = (0..).zip(&inputs).filter(|(_, input)| input.dtype().is_float()).map(|(k, _)| k).collect();
    let Some(out) = graph.outs.iter().position(|&out| graph.node(out).outs[out.out as usize].dtype.is_float()) else {
        return Ok(false);
    };
    if wrt.is_empty() || !program.steps.iter().any(is_float) {
        return Ok(false);
    }
    let mut cotangent = None;
    let Ok(by_tape) = on_tape(program, &inputs, out, &mut cotangent) else { return Ok(false) };
    let cotangent = cotangent.expect("the tape was walked");

    graph.outs = vec![graph.outs[out]];
    let mut joint = autodiff::run(graph, &Request { wrt, seeds: vec![Seed::Input] });
    joint.outs.remove(0);
    let args: Vec<&RawTensor> = inputs.iter().chain([&cotangent]).collect();
    let compiled = run_graph(&joint, &args, &scalars, device()).map_err(|error| format!("compiled fails: {error}"))?;
    let exact = !program
        .calls()
        .any(|op| ["matmul", "linear", "addmm", "baddbmm"].contains(&op.name) || op.class == Class::Matmul);
    for (k, (got, want)) in compiled.iter().zip(&by_tape).enumerate() {
        agree(got, want, exact).map_err(|text| format!("gradient {k}: {text}"))?;
    }
    Ok(true)
}

/// The gradients by the tape, of the result `out`, for whose extents a cotangent is made.
fn on_tape(
    program: &Program,
    inputs: &[RawTensor],
    out: usize,
    cotangent: &mut Option<RawTensor>,
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
        let at = program.outs[out];
        let value = trace[at.step][at.out].clone();
        let made = raw_of(&Rng::new(3).value(value.dtype(), value.shape(), (-1.0, 1.0))).to_device(device())?;
        *cotangent = Some(made.clone());
        Ok((value, made))
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
