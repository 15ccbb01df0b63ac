//! Every row that has a gradient, and the derivatives of that.

use crate::differences::{HOST, Point};
use crate::samples::{Operand, Sample, samples};
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Value, eval};
use fuse_compiler::op::{Accepts, Attr, Build, Call, Gradient, Literal, Num, Op, Val, table};
use fuse_compiler::types::{DType, Dim};

const SHAPES: [&[usize]; 6] = [&[], &[3], &[2, 3], &[1, 4], &[2, 3, 2], &[0, 2]];

#[test]
fn gradients_are_finite_differences() {
    for op in differentiable() {
        let points = points(op);
        assert!(!points.is_empty(), "`{}` has a gradient and no sample", op.name);
        points.iter().for_each(|(what, point)| point.check(what));
    }
}

#[test]
fn gradients_of_gradients_are_finite_differences() {
    for op in differentiable() {
        // Two points show a slope of slopes; all of them would take minutes.
        for (what, point) in points(op).iter().filter(|(_, point)| point.inputs[0].data.len() < 7).take(6) {
            point.differentiated().check(&format!("second {what}"));
        }
    }
}

#[test]
fn primitives_say_how_they_are_differentiated() {
    for op in table() {
        let opens = matches!(op.gradient, Gradient::Opened);
        assert!(!opens || op.decompose.is_some(), "`{}` stands for no graph: it needs a gradient of its own", op.name);
    }
}

fn differentiable() -> impl Iterator<Item = Op> {
    // fp8 has no finite differences.
    let rows = table().iter().copied().filter(|op| op.accepts != Accepts::Float8);
    rows.filter(|op| matches!(op.gradient, Gradient::Built(_) | Gradient::Opened))
}

/// Calls of an op where its values are finite and f64, with known and with open extents.
fn points(op: Op) -> Vec<(String, Point)> {
    let dtypes = [DType::F64, DType::Bool].into_iter().filter(|&dtype| op.accepts.contains(dtype));
    let calls = dtypes.flat_map(|dtype| SHAPES.into_iter().flat_map(move |dims| calls(op, dtype, dims)));
    let points = calls.filter(is_smooth).flat_map(|sample| {
        let what = format!("{}{:?} {:?}", op.name, sample.attrs, extents(&sample));
        [point(op, &sample, true), point(op, &sample, false)].into_iter().flatten().map(move |p| (what.clone(), p))
    });
    points.filter(|(_, point)| has_floats(point)).collect()
}

fn calls(op: Op, dtype: DType, dims: &[usize]) -> Vec<Sample> {
    match op.call {
        Call::Internal => internal(op, dims),
        _ => samples(op, dtype, dims),
    }
}

/// No kinks, poles and borders, which the oracle tests sample too.
fn is_smooth(sample: &Sample) -> bool {
    let ordinary = |x: &Num| match *x {
        Num::F(x) => (1e-3..1e3).contains(&x.abs()),
        _ => true,
    };
    sample.args.iter().all(|arg| matches!(arg, Operand::Scalar(..)) || tensor(arg).data.iter().all(ordinary))
}

fn has_floats(point: &Point) -> bool {
    let inputs = point.inputs.iter().any(|input| input.dtype == DType::F64);
    let Ok(values) = eval(&point.graph, &point.inputs, &HOST) else { return false };
    let float = |value: &Value| value.dtype == DType::F64 && value.as_floats().iter().all(|x| x.is_finite());
    inputs && values.iter().all(float)
}

fn point(op: Op, sample: &Sample, open: bool) -> Option<Point> {
    let mut graph = Graph::new(op.name);
    let mut inputs = vec![];
    let args: Vec<Val> = sample.args.iter().map(|arg| operand(&mut graph, &mut inputs, arg, open)).collect();
    let first = graph.try_push(op, &args, sample.attrs.clone()).ok()?;
    graph.outs = (0..graph.node(first).outs.len() as u32).map(|out| Val { out, ..first }).collect();
    (!inputs.is_empty()).then_some(Point { graph, inputs })
}

fn operand(graph: &mut Graph, inputs: &mut Vec<Value>, operand: &Operand, open: bool) -> Val {
    match operand {
        Operand::Scalar(value, dtype) => {
            let literal = match *value {
                Num::F(x) => Literal::Float(x),
                Num::I(k) => Literal::Int(k),
                Num::B(b) => Literal::Bool(b),
            };
            graph.push(Op::named("constant"), &[], vec![Attr::Lit(literal), Attr::DType(*dtype)])
        }
        Operand::Tensor(value) => {
            let input = graph.input(&format!("x{}", inputs.len()), value.dtype, value.dims.len());
            if !open {
                graph.nodes[input.node as usize].outs[0].dims =
                    value.dims.iter().map(|&n| Dim::Const(n as i64)).collect();
            }
            inputs.push(value.clone());
            input
        }
    }
}

fn tensor(operand: &Operand) -> &Value {
    match operand {
        Operand::Tensor(value) => value,
        Operand::Scalar(..) => panic!("a scalar in place of a tensor"),
    }
}

fn extents(sample: &Sample) -> Vec<Vec<usize>> {
    let tensors = sample.args.iter().filter(|arg| matches!(arg, Operand::Tensor(_)));
    tensors.map(|arg| tensor(arg).dims.clone()).collect()
}

/// Calls of what only the compiler writes.
fn internal(op: Op, dims: &[usize]) -> Vec<Sample> {
    let mut rng = crate::common::Rng::named(&format!("{} {dims:?}", op.name));
    let mut float = |dims: &[usize]| Operand::Tensor(rng.value(DType::F64, dims, (-4.0, 4.0)));
    let index = |dims: &[usize], data: &[i64]| Operand::Tensor(Value::ints(DType::I64, dims, data));
    let size = |n: i64| Attr::Dim(Dim::Const(n));
    let (args, attrs) = match (op.name, dims) {
        ("contiguous" | "variable" | "amax_all", _) => (vec![float(dims)], vec![]),
        ("amax", [_, ..]) => (vec![float(dims)], vec![Attr::Int(0)]),
        ("sum_to", [2, 3]) => (vec![float(&[4, 2, 3])], vec![Attr::Dims(vec![Dim::Const(2), Dim::Const(1)])]),
        ("sum_to", [2, 3, 2]) => {
            (vec![float(dims)], vec![Attr::Dims(vec![Dim::Const(1), Dim::Const(1), Dim::Const(2)])])
        }
        ("product", [2, 3]) => (vec![float(dims), float(&[3, 4])], vec![]),
        ("product", [2, 3, 2]) => (vec![float(dims), float(&[2, 2])], vec![]),
        ("product", [3]) => (vec![float(&[2, 4]), float(&[3, 4, 2])], vec![]),
        ("take", [3]) => (vec![float(dims), index(&[2, 2], &[0, 2, 2, 1])], vec![Attr::Int(0)]),
        ("take", [2, 3]) => (vec![float(dims), index(&[2, 4, 1], &[0, 1, 1, 1, 0, 0, 1, 0])], vec![Attr::Int(0)]),
        ("take", [2, 3, 2]) => (vec![float(dims), index(&[1, 2, 1], &[2, 2])], vec![Attr::Int(1)]),
        ("scatter", [2, 3]) => {
            let src = float(&[2, 2]);
            (vec![float(dims), index(&[1, 2], &[2, 0]), src], vec![Attr::Int(1), Attr::Bool(false)])
        }
        ("scatter", [2, 3, 2]) => {
            let src = float(&[2, 4, 1]);
            (vec![float(dims), index(&[1, 4, 1], &[2, 0, 2, 2]), src], vec![Attr::Int(1), Attr::Bool(true)])
        }
        ("write", [2, 3]) => (vec![float(dims), float(&[2, 2])], vec![Attr::Int(1), size(1)]),
        _ => return vec![],
    };
    vec![Sample { args, attrs }]
}
