//! Random graphs mean the same before and after they are optimised, bit for bit.

use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Host, Rounding, Value, eval};
use fuse_compiler::graph::verify::expect_valid;
use fuse_compiler::op::{Attr, Build, Literal, Num, Op, Val};
use fuse_compiler::optimise::{self, Options};
use fuse_compiler::types::DType;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Numbers at which algebra goes wrong.
const HARD: [f64; 10] = [0.0, -0.0, 1.0, -1.0, 2.5, -0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30];

const UNARY: [&str; 12] =
    ["relu", "neg", "abs", "exp", "sigmoid", "floor", "recip", "sqrt", "detach", "isnan", "silu", "round"];
const BINARY: [&str; 11] =
    ["add", "sub", "mul", "div", "maximum", "minimum", "fmod", "floor_divide", "lt", "eq", "logical_or"];
const ALONG: [&str; 10] = [
    "sum",
    "sum_keepdim",
    "max_keepdim",
    "mean_keepdim",
    "softmax",
    "log_softmax",
    "cumsum",
    "var",
    "argmax",
    "logsumexp",
];
const DTYPES: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64];

/// One op on earlier values, by number.
#[derive(Clone, Debug)]
enum Step {
    Unary(usize, usize),
    Binary(usize, usize, usize),
    WithConstant(usize, usize, usize),
    Along(usize, usize, i64),
    Cast(usize, usize),
    Select(usize, usize, usize),
    Turn(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..64usize;
    prop_oneof![
        2 => (0..UNARY.len(), any.clone()).prop_map(|(op, x)| Step::Unary(op, x)),
        2 => (0..BINARY.len(), any.clone(), any.clone()).prop_map(|(op, x, y)| Step::Binary(op, x, y)),
        // Most of what the optimiser knows is about constants.
        6 => (0..BINARY.len(), any.clone(), 0..HARD.len()).prop_map(|(op, x, c)| Step::WithConstant(op, x, c)),
        1 => (0..ALONG.len(), any.clone(), -2..2i64).prop_map(|(op, x, axis)| Step::Along(op, x, axis)),
        1 => (any.clone(), 0..DTYPES.len()).prop_map(|(x, dtype)| Step::Cast(x, dtype)),
        1 => (any.clone(), any.clone(), any.clone()).prop_map(|(c, x, y)| Step::Select(c, x, y)),
        1 => any.prop_map(Step::Turn),
    ]
}

/// Adds a step to a graph; one that does not fit its operands is left out.
fn add(g: &mut Graph, vals: &[Val], step: &Step) -> Option<Val> {
    let pick = |k: usize| vals[k % vals.len()];
    let cast = |g: &mut Graph, x: Val, dtype| g.push(Op::named("cast"), &[x], vec![Attr::DType(dtype)]);
    let (name, args, attrs) = match *step {
        Step::Unary(op, x) => (UNARY[op], vec![pick(x)], vec![]),
        Step::Binary(op, x, y) => {
            let dtype = g.ty(pick(x)).dtype;
            (BINARY[op], vec![pick(x), cast(g, pick(y), dtype)], vec![])
        }
        Step::WithConstant(op, x, c) => {
            let dtype = g.ty(pick(x)).dtype.compute();
            let literal = match dtype {
                DType::I64 => Literal::Int(HARD[c] as i64),
                DType::Bool => Literal::Bool(HARD[c] > 0.0),
                _ => Literal::Float(HARD[c]),
            };
            let constant = g.push(Op::named("constant"), &[], vec![Attr::Lit(literal), Attr::DType(dtype)]);
            (BINARY[op], vec![pick(x), constant], vec![])
        }
        Step::Along(op, x, axis) => (ALONG[op], vec![pick(x)], vec![Attr::Int(axis)]),
        Step::Cast(x, dtype) => ("cast", vec![pick(x)], vec![Attr::DType(DTYPES[dtype])]),
        Step::Select(c, x, y) => {
            let dtype = g.ty(pick(x)).dtype;
            let (condition, other) = (cast(g, pick(c), DType::Bool), cast(g, pick(y), dtype));
            ("where_cond", vec![condition, pick(x), other], vec![])
        }
        Step::Turn(x) => ("t", vec![pick(x)], vec![]),
    };
    g.try_push(Op::named(name), &args, attrs).ok()
}

fn graph(steps: &[Step]) -> Graph {
    let mut g = Graph::new("random");
    let mut vals = vec![g.input("x", DType::F32, 2), g.input("y", DType::F32, 1), g.input("h", DType::BF16, 2)];
    for step in steps {
        vals.extend(add(&mut g, &vals, step));
    }
    g.outs = vals.into_iter().rev().take(4).collect();
    g
}

/// Equal bits, but any NaN is as good as another.
fn same(a: &Value, b: &Value) -> bool {
    let equal = |(a, b): (&Num, &Num)| match (a, b) {
        (Num::F(a), Num::F(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        _ => a == b,
    };
    a.dtype == b.dtype && a.dims == b.dims && a.data.iter().zip(&b.data).all(equal)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn optimised_graphs_mean_the_same(
        steps in prop::collection::vec(step(), 1..12),
        data in prop::collection::vec(0..HARD.len(), 15),
    ) {
        let before = graph(&steps);
        expect_valid(&before, "random");
        let after = optimise::run(before.clone(), Options::default());
        expect_valid(&after, "optimise");

        let hard: Vec<f64> = data.iter().map(|&k| HARD[k]).collect();
        let inputs = [
            Value::floats(DType::F32, &[2, 3], &hard[..6]),
            Value::floats(DType::F32, &[3], &hard[6..9]),
            Value::floats(DType::BF16, &[2, 3], &hard[9..]),
        ];
        let host = Host { rounding: Rounding::EveryOp, ..Host::default() };
        // A graph whose operands do not fit at run time has no value to compare.
        if let Ok(expected) = eval(&before, &inputs, &host) {
            let found = eval(&after, &inputs, &host).expect("what had a value keeps it");
            for (expected, found) in expected.iter().zip(&found) {
                prop_assert!(same(expected, found), "{expected:?} became {found:?}\n{after:#?}");
            }
        }
    }
}
