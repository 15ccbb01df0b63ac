//! Every op of the table, for every element type, layout and kind of size: run at once by the runtime and compared with the
//! reference evaluator, which computes in f64, element by element, from the same rows. `FUSE_OPS=sum,softmax` asks for some.

#[path = "oracle/bounds.rs"]
mod bounds;
#[path = "oracle/by_hand.rs"]
mod by_hand;
mod common;
#[path = "oracle/samples.rs"]
mod samples;

use bounds::Room;
use common::{Lay, device, first_difference, lay_out, on_all_cores, report_programs, value_of};
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Host, Value, eval};
use fuse_compiler::op::{Call, Class, Literal, Num, Op, OpEffect, Val, table};
use fuse_compiler::types::{DType, Dim};
use fuse_runtime::eager::{self, Arg};
use samples::{Operand, Sample, samples};
use std::collections::BTreeSet;
use std::panic::catch_unwind;

/// Receiver extents: ranks 0 to 5, with the sizes at which vectors, blocks and tails begin and end.
const SHAPES: &[&[usize]] = &[
    &[],
    &[0],
    &[1],
    &[3],
    &[17],
    &[257],
    &[1025],
    &[3, 0],
    &[0, 3],
    &[1, 1],
    &[17, 3],
    &[3, 257],
    &[257, 5],
    &[2, 1025],
    &[2, 3, 17],
    &[17, 1, 3],
    &[2, 0, 3],
    &[3, 2, 1, 17],
    &[2, 1, 3, 1, 5],
];

macro_rules! dtypes {
    ($($name:ident: $dtype:ident),*) => {$(
        #[test]
        fn $name() {
            every_op(DType::$dtype);
        }
    )*};
}

dtypes! {
    every_op_in_f32: F32,
    every_op_in_f64: F64,
    every_op_in_f16: F16,
    every_op_in_bf16: BF16,
    every_op_in_f8e4m3: F8E4M3,
    every_op_in_i64: I64,
    every_op_in_i32: I32,
    every_op_in_u8: U8,
    every_op_in_bool: Bool
}

/// The ops that give tensors and whose values follow from their operands. `unbind` has as many results as an axis has
/// positions, so it is no op of its own at run time: its method narrows.
fn ops() -> impl Iterator<Item = Op> {
    let random = |op: &Op| op.effect == OpEffect::Rng && op.call == Call::Function;
    let not_run = |op: &Op| op.call == Call::Internal || op.class == Class::Host || op.name == "unbind";
    let only = std::env::var("FUSE_OPS").ok();
    let asked_for = move |op: &Op| only.as_ref().is_none_or(|names| names.split(',').any(|name| name == op.name));
    table().iter().copied().filter(move |op| !not_run(op) && !random(op) && asked_for(op))
}

fn every_op(dtype: DType) {
    let with_shapes = |op: Op| SHAPES.iter().map(move |dims| (op, *dims));
    let work: Vec<(Op, &[usize])> = ops().filter(|op| op.accepts.contains(dtype)).flat_map(with_shapes).collect();
    let failures: Vec<String> = on_all_cores(&work, |&(op, dims)| wrong_calls(op, dtype, dims)).concat();
    report_programs(&format!("every op in {dtype}"));
    let shown = failures.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} calls in {dtype} are wrong:\n{shown}", failures.len());
}

/// What is wrong with the calls of an op whose receiver has these extents.
fn wrong_calls(op: Op, dtype: DType, dims: &[usize]) -> Vec<String> {
    let verdict = |sample: &Sample| {
        catch_unwind(|| compare(op, sample)).unwrap_or_else(|_| Err(format!("panic\n    {}", show(sample))))
    };
    let failures = samples(op, dtype, dims).into_iter().filter_map(|sample| verdict(&sample).err());
    failures.map(|text| format!("{}: {text}", op.name)).collect()
}

/// Compares one call in every layout.
fn compare(op: Op, sample: &Sample) -> Result<(), String> {
    let mut reference = None;
    let verdicts = Lay::ALL.map(|lay| {
        let call = in_layout(sample, lay);
        let want = match &reference {
            Some(known) if lay != Lay::Broadcast => Clone::clone(known),
            _ => evaluate(op, &call),
        };
        let got = run(op, &call, lay);
        let verdict = match (&want, &got) {
            (Ok(want), Ok(got)) => near(op, &call, want, got),
            (Err(_), Err(_)) => Ok(()),
            (Ok(_), Err(error)) => Err(format!("refused: {error}")),
            (Err(reason), Ok(_)) => Err(format!("not refused: {reason}")),
        };
        reference = Some(want);
        verdict.map_err(|text| format!("{text}\n    {lay:?} {}", show(sample)))
    });
    verdicts.into_iter().collect()
}

fn in_layout(sample: &Sample, lay: Lay) -> Sample {
    let operand = |arg: &Operand| match arg {
        Operand::Tensor(value) => Operand::Tensor(lay.adapt(value.clone())),
        scalar => scalar.clone(),
    };
    Sample { args: sample.args.iter().map(operand).collect(), attrs: sample.attrs.clone() }
}

/// The reference results, or why there are none.
fn evaluate(op: Op, sample: &Sample) -> Result<Vec<Value>, String> {
    let mut graph = Graph::new(op.name);
    let (mut args, mut inputs, mut scalars) = (vec![], vec![], vec![]);
    for arg in &sample.args {
        match arg {
            Operand::Tensor(value) => {
                args.push(known_input(&mut graph, value));
                inputs.push(value.clone());
            }
            Operand::Scalar(number, dtype) => {
                args.push(graph.scalar("k", *dtype));
                scalars.push(*number);
            }
        }
    }
    let node = graph.try_push(op, &args, sample.attrs.clone()).map_err(|fault| fault.message)?.node;
    graph.outs = (0..graph.nodes[node as usize].outs.len() as u32).map(|out| Val { node, out }).collect();
    eval(&graph, &inputs, &Host { scalars: &scalars, ..Host::default() }).map_err(|failure| format!("{failure:?}"))
}

/// An input of known extents, so that the type rule decides everything.
fn known_input(graph: &mut Graph, value: &Value) -> Val {
    let val = graph.input("x", value.dtype, 0);
    graph.nodes[val.node as usize].outs[0].dims = value.dims.iter().map(|&n| Dim::Const(n as i64)).collect();
    val
}

/// What the runtime makes of a call whose tensors lie so.
fn run(op: Op, sample: &Sample, lay: Lay) -> Result<Vec<Value>, String> {
    let arg = |arg: &Operand| match arg {
        Operand::Tensor(value) => Arg::Tensor(lay_out(value, lay, device())),
        Operand::Scalar(Num::F(x), dtype) => Arg::Scalar(Literal::Float(*x), *dtype),
        Operand::Scalar(Num::I(k), dtype) => Arg::Scalar(Literal::Int(*k), *dtype),
        Operand::Scalar(Num::B(b), dtype) => Arg::Scalar(Literal::Bool(*b), *dtype),
    };
    let args: Vec<Arg> = sample.args.iter().map(arg).collect();
    match eager::run(device(), op.name, &args, &sample.attrs) {
        Ok(results) => Ok(results.iter().map(value_of).collect()),
        Err(error) => Err(error.to_string()),
    }
}

fn near(op: Op, sample: &Sample, want: &[Value], got: &[Value]) -> Result<(), String> {
    if want.len() != got.len() {
        return Err(format!("{} results, want {}", got.len(), want.len()));
    }
    let terms = |absolute: &Sample| evaluate(op, absolute).expect("the same op on absolute values").remove(0);
    let room = Room::of(op, sample, terms);
    for (want, got) in want.iter().zip(got) {
        let dtype = want.dtype;
        first_difference(got, want, |at, got, want| match (&room, got, want) {
            (Some(room), Num::F(got), Num::F(want)) => room.holds(at, got, want, dtype),
            (None, Num::F(got), Num::F(want)) => same(got, Num::F(want).round(dtype).f()),
            (_, got, want) => got == want,
        })?;
    }
    Ok(())
}

fn same(got: f64, want: f64) -> bool {
    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan())
}

fn show(sample: &Sample) -> String {
    let operand = |arg: &Operand| match arg {
        Operand::Tensor(value) => format!("{}{:?}", value.dtype, value.dims),
        Operand::Scalar(number, dtype) => format!("{number:?} as {dtype}"),
    };
    let args: Vec<String> = sample.args.iter().map(operand).collect();
    format!("{} {:?}", args.join(", "), sample.attrs)
}

#[test]
fn no_op_is_left_out() {
    let mut missing: BTreeSet<&str> = ops().map(|op| op.name).collect();
    for op in ops() {
        let dtypes = DType::ALL.into_iter().filter(|&dtype| op.accepts.contains(dtype));
        let works = dtypes
            .flat_map(|dtype| SHAPES.iter().map(move |dims| (dtype, dims)))
            .any(|(dtype, dims)| samples(op, dtype, dims).iter().any(|sample| evaluate(op, sample).is_ok()));
        if works {
            missing.remove(op.name);
        }
    }
    assert!(missing.is_empty(), "no call of {missing:?} has a value");
}
