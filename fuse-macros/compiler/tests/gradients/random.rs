//! Random programs: their gradients against finite differences, and optimised and scheduled.

use crate::common::Rng;
use crate::differences::{HOST, Point};
use crate::models::compiles;
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Value, eval};
use fuse_compiler::op::{Attr, Build, Op, Ops, Val};
use fuse_compiler::types::{DType, Dim};

const PROGRAMS: u64 = 500;

/// Smooth and tame, so that differences stay good through ten of them.
const UNARY: [&str; 8] = ["tanh", "sigmoid", "sin", "cos", "erf", "gelu", "silu", "neg"];
const BINARY: [&str; 7] = ["add", "sub", "mul", "maximum", "minimum", "matmul", "mul"];
const ALONG: [&str; 8] = [
    "softmax",
    "log_softmax",
    "cumsum",
    "sum_keepdim",
    "mean_keepdim",
    "max_keepdim",
    "logsumexp_keepdim",
    "var_keepdim",
];

#[test]
fn gradients_of_random_programs() {
    let points = (0..PROGRAMS).map(|seed| (seed, program(&mut Rng::new(seed)))).filter(|(_, point)| point.is_tame());
    let mut checked = 0;
    for (seed, point) in points {
        point.check(&format!("program {seed}"));
        compiles(&point.differentiated());
        crate::splits::check(&point);
        checked += 1;
    }
    assert!(checked > PROGRAMS / 2, "only {checked} programs have gradients to check");
}

/// A few ops on a matrix, a row, a column and a scalar of f64, with known or open extents.
fn program(rng: &mut Rng) -> Point {
    let shapes: [&[usize]; 4] = [&[3, 3], &[3], &[3, 1], &[]];
    let mut graph = Graph::new("random");
    let known = rng.chance(50);
    let mut inputs = vec![];
    let mut vals = vec![];
    for (k, dims) in shapes.into_iter().enumerate() {
        let input = graph.input(&format!("x{k}"), DType::F64, dims.len());
        if known {
            graph.nodes[input.node as usize].outs[0].dims = dims.iter().map(|&n| Dim::Const(n as i64)).collect();
        }
        inputs.push(rng.value(DType::F64, dims, (-1.5, 1.5)));
        vals.push(input);
    }
    let steps = 2 + rng.below(9);
    for _ in 0..steps {
        vals.extend(step(&mut graph, &vals, rng));
    }
    graph.outs = vals.into_iter().rev().take(2).collect();
    Point { graph, inputs }
}

/// One more value; none where the op does not fit its operands.
fn step(graph: &mut Graph, vals: &[Val], rng: &mut Rng) -> Option<Val> {
    // Late values are read more often, so that programs get deep.
    let recent = &vals[vals.len().saturating_sub(3)..];
    let x = *rng.pick(recent);
    let y = *rng.pick(vals);
    let axis = rng.below(2) as i64 - 1;
    let (name, args, attrs) = match rng.below(10) {
        0..3 => (*rng.pick(&UNARY), vec![x], vec![]),
        3..6 => (*rng.pick(&BINARY), vec![x, y], vec![]),
        6 | 7 => (*rng.pick(&ALONG), vec![x], vec![Attr::Int(axis)]),
        8 => turned(rng, x),
        _ => {
            let below = Ops(graph).against_zero("lt", x);
            ("where_cond", vec![below, y, x], vec![])
        }
    };
    graph.try_push(Op::named(name), &args, attrs).ok()
}

/// A view, or two of them joined.
fn turned(rng: &mut Rng, x: Val) -> (&'static str, Vec<Val>, Vec<Attr>) {
    match rng.below(5) {
        0 => ("t", vec![x], vec![]),
        1 => ("flip", vec![x], vec![Attr::Ints(vec![-1])]),
        2 => ("narrow", vec![x], vec![Attr::Int(-1), Attr::Dim(Dim::Const(0)), Attr::Dim(Dim::Const(1))]),
        3 => ("cat", vec![x, x], vec![Attr::Int(-1)]),
        _ => ("unsqueeze", vec![x], vec![Attr::Int(0)]),
    }
}

impl Point {
    /// Whether operands fit at run time and all values on the way are moderate: one that is not poisons its gradient, also
    /// where a select does not take it.
    fn is_tame(&self) -> bool {
        let mut every = self.graph.clone();
        let vals = (0..every.nodes.len() as u32).map(|node| Val { node, out: 0 });
        every.outs = vals.filter(|&val| every.ty(val).dtype.is_float()).collect();
        let Ok(values) = eval(&every, &self.inputs, &HOST) else { return false };
        values.iter().flat_map(Value::as_floats).all(|x| x.abs() < 1e3)
    }
}
