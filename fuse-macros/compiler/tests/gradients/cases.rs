//! Gradients at kinks, poles and ties: PyTorch's, as the graph stands and optimised.

use fuse_compiler::autodiff::{self, Request, Seed};
use fuse_compiler::graph::Graph;
use fuse_compiler::graph::eval::{Host, Rounding, Value, eval};
use fuse_compiler::graph::verify::expect_valid;
use fuse_compiler::op::{Attr, Build, Literal, Ops, Val};
use fuse_compiler::optimise;
use fuse_compiler::types::{DType, Dim};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// The gradients of a function's result, which is summed, for all its float inputs.
fn gradients(inputs: &[Value], function: impl FnOnce(&mut Ops, &[Val]) -> Val) -> Vec<Value> {
    let mut graph = Graph::new("case");
    let named = |(k, value): (usize, &Value)| graph.input(&format!("x{k}"), value.dtype, value.dims.len());
    let vals: Vec<Val> = inputs.iter().enumerate().map(named).collect();
    let result = function(&mut Ops(&mut graph), &vals);
    graph.outs = vec![if graph.ty(result).rank() == 0 { result } else { Ops(&mut graph).apply("sum_all", &[result]) }];
    let wrt = (0..).zip(inputs).filter(|(_, value)| value.dtype.is_float()).map(|(input, _)| input).collect();
    let joint = autodiff::run(graph, &Request { wrt, seeds: vec![Seed::One] });
    expect_valid(&joint, "autodiff");
    let host = Host { rounding: Rounding::EveryOp, ..Host::default() };
    let found = eval(&joint, inputs, &host).unwrap();
    let optimised = optimise::run(joint, optimise::Options::default());
    let again = eval(&optimised, inputs, &host).unwrap();
    let bits = |values: &[Value]| -> Vec<u64> {
        // A sum of one element loses the sign of zero, and an extent that is known to be 1 is not summed.
        let bits = |x: f64| if x.is_nan() { NAN.to_bits() } else { (x + 0.0).to_bits() };
        values.iter().flat_map(Value::as_floats).map(bits).collect()
    };
    assert_eq!(bits(&found), bits(&again), "optimised, the gradients differ");
    found[1..].to_vec()
}

/// The gradient of a function of one tensor.
fn gradient(x: Value, function: impl FnOnce(&mut Ops, Val) -> Val) -> Value {
    gradients(&[x], |o, x| function(o, x[0])).remove(0)
}

fn f32s(data: &[f64]) -> Value {
    Value::floats(DType::F32, &[data.len()], data)
}

fn shaped(dims: &[usize], data: &[f64]) -> Value {
    Value::floats(DType::F32, dims, data)
}

fn ints(data: &[i64]) -> Value {
    Value::ints(DType::I64, &[data.len()], data)
}

#[track_caller]
fn close(found: &Value, wanted: &[f64], tolerance: f64) {
    let found = found.as_floats();
    assert_eq!(found.len(), wanted.len(), "{found:?} for {wanted:?}");
    for (a, b) in found.iter().zip(wanted) {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(same, "{found:?} for {wanted:?}");
    }
}

#[track_caller]
fn exact(found: &Value, wanted: &[f64]) {
    close(found, wanted, 0.0);
}

fn axis(k: i64) -> Vec<Attr> {
    vec![Attr::Int(k)]
}

fn vector(o: &mut Ops, data: &[f64]) -> Val {
    let parts: Vec<Val> = data
        .iter()
        .map(|&x| {
            let x = o.float(x, DType::F32);
            o.unsqueeze(x, 0)
        })
        .collect();
    o.with("cat", &parts, axis(0))
}

#[test]
fn case_6_backward_uses_the_value_the_forward_used() {
    let g = gradient(f32s(&[1.00390625]), |o, x| {
        let half = o.cast(x, DType::BF16);
        let h = o.cast(half, DType::F32);
        let square = o.mul(h, h);
        o.mul(square, h)
    });
    exact(&g, &[3.0]);
}

#[test]
fn case_90_repeated_indices_add_up() {
    let g = gradients(&[f32s(&[0.1]), ints(&[0, 0, 0])], |o, x| {
        let taken = o.with("gather", &[x[0], x[1]], axis(0));
        let factors = vector(o, &[0.25, 0.5, 1.0]);
        o.mul(taken, factors)
    });
    exact(&g[0], &[1.75]);
    let cotangents = shaped(&[5, 2], &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0, 5.0, 50.0]);
    let g = gradients(&[shaped(&[3, 2], &[0.0; 6]), ints(&[2, 0, 2, 2, 0]), cotangents], |o, x| {
        let rows = o.apply("embedding", &[x[0], x[1]]);
        o.mul(rows, x[2])
    });
    exact(&g[0], &[7.0, 70.0, 0.0, 0.0, 8.0, 80.0]);
    for (dtype, repeats) in [(DType::F32, 100_000), (DType::F16, 40_960)] {
        let index = Value::ints(DType::I64, &[repeats], &vec![1; repeats]);
        let g =
            gradients(&[Value::floats(dtype, &[2, 1], &[0.0, 0.0]), index], |o, x| o.apply("embedding", &[x[0], x[1]]));
        exact(&g[0], &[0.0, repeats as f64]);
    }
}

#[test]
fn case_98_a_branch_not_taken_poisons_as_in_pytorch_and_a_double_select_does_not() {
    let x = f32s(&[-1.0, -4.0, 4.0]);
    let plain = |o: &mut Ops, x: Val| {
        let positive = o.against_zero("gt", x);
        let root = o.apply("sqrt", &[x]);
        o.choose(positive, root, x)
    };
    exact(&gradient(x.clone(), plain), &[NAN, NAN, 0.25]);
    let safe = |o: &mut Ops, x: Val| {
        let positive = o.against_zero("gt", x);
        let one = o.one(DType::F32);
        let inside = o.choose(positive, x, one);
        let root = o.apply("sqrt", &[inside]);
        o.choose(positive, root, x)
    };
    exact(&gradient(x.clone(), safe), &[1.0, 1.0, 0.25]);
    let filled = |o: &mut Ops, x: Val| {
        let negative = o.against_zero("lt", x);
        let (root, zero) = (o.apply("sqrt", &[x]), o.zero(DType::F32));
        o.apply("masked_fill", &[root, negative, zero])
    };
    exact(&gradient(x.clone(), filled), &[NAN, NAN, 0.25]);
    let clamped = |o: &mut Ops, x: Val| {
        let [low, high] = [1.0, 100.0].map(|x| o.float(x, DType::F32));
        let inside = o.apply("clamp", &[x, low, high]);
        o.apply("sqrt", &[inside])
    };
    exact(&gradient(x, clamped), &[0.0, 0.0, 0.25]);
}

#[test]
fn case_99_ties_share_or_the_first_takes_all() {
    let x = f32s(&[1.0, 3.0, 3.0, 2.0]);
    exact(&gradient(x.clone(), |o, x| o.apply("max_all", &[x])), &[0.0, 0.5, 0.5, 0.0]);
    exact(&gradient(x, |o, x| o.with("max", &[x], axis(0))), &[0.0, 1.0, 0.0, 0.0]);
    exact(&gradient(f32s(&[3.0, 1.0, 1.0]), |o, x| o.apply("min_all", &[x])), &[0.0, 0.5, 0.5]);
    let both = gradients(&[f32s(&[1.0, 2.0, 3.0]), f32s(&[1.0, 5.0, 0.0])], |o, x| o.apply("maximum", x));
    exact(&both[0], &[0.5, 0.0, 1.0]);
    exact(&both[1], &[0.5, 1.0, 0.0]);
    let ones = gradient(f32s(&[1.0; 1000]), |o, x| o.apply("max_all", &[x]));
    close(&ones, &[0.001; 1000], 1e-9);
}

#[test]
fn case_101_powers_and_roots_at_zero() {
    let both = gradients(&[f32s(&[0.0, 2.0, 0.0]), f32s(&[1.0, 1.0, 0.0])], |o, x| o.apply("powf", x));
    exact(&both[0], &[1.0, 1.0, 0.0]);
    close(&both[1], &[0.0, 1.3862944, 0.0], 1e-6);
    let square = gradient(f32s(&[0.0, -3.0]), |o, x| {
        let two = o.constant(Literal::Int(2), DType::I32);
        o.apply("powi", &[x, two])
    });
    exact(&square, &[0.0, -6.0]);
    exact(&gradient(f32s(&[0.0, 4.0]), |o, x| o.apply("sqrt", &[x])), &[INF, 0.25]);
    exact(&gradient(f32s(&[0.0, 0.0]), |o, x| o.apply("norm_all", &[x])), &[0.0, 0.0]);
    let by_hand = gradient(f32s(&[0.0, 0.0]), |o, x| {
        let square = o.mul(x, x);
        let sum = o.apply("sum_all", &[square]);
        o.apply("sqrt", &[sum])
    });
    exact(&by_hand, &[NAN, NAN]);
}

#[test]
fn case_103_what_folds_keeps_a_gradient_of_zero() {
    let x = f32s(&[4.0, -5.0, 0.0]);
    let power = |o: &mut Ops, x: Val| {
        let zero = o.constant(Literal::Int(0), DType::I32);
        o.apply("powi", &[x, zero])
    };
    exact(&gradient(x.clone(), power), &[0.0; 3]);
    exact(&gradient(x.clone(), |o, x| o.scale(x, 0.0)), &[0.0; 3]);
    exact(&gradient(x.clone(), |o, x| o.sub(x, x)), &[0.0; 3]);
    let clamped = |o: &mut Ops, x: Val| {
        let bound = o.float(1.0, DType::F32);
        o.apply("clamp", &[x, bound, bound])
    };
    exact(&gradient(x.clone(), clamped), &[0.0; 3]);
    let sum = |o: &mut Ops, x: Val| {
        let ones = power(o, x);
        o.add(ones, x)
    };
    exact(&gradient(x, sum), &[1.0; 3]);
}

#[test]
fn case_104_broadcasts_are_summed_to_the_operand() {
    let inputs = [shaped(&[3, 1], &[1.0, 2.0, 3.0]), shaped(&[1, 4], &[1.0, 10.0, 100.0, 1000.0]), shaped(&[], &[2.0])];
    let found = gradients(&inputs, |o, x| {
        let product = o.mul(x[0], x[1]);
        o.add(product, x[2])
    });
    assert_eq!(found.iter().map(|g| g.dims.len()).collect::<Vec<_>>(), [2, 2, 0]);
    exact(&found[0], &[1111.0; 3]);
    exact(&found[1], &[6.0; 4]);
    exact(&found[2], &[12.0]);
    let halves = [Value::floats(DType::F16, &[1], &[1.0]), Value::floats(DType::F16, &[5000], &[0.0; 5000])];
    exact(&gradients(&halves, |o, x| o.add(x[0], x[1]))[0], &[5000.0]);
}

#[test]
fn case_106_products_with_zeros() {
    let product = |data: &[f64]| gradient(f32s(data), |o, x| o.apply("prod_all", &[x]));
    exact(&product(&[5.0, 0.0, 2.0, 3.0]), &[0.0, 30.0, 0.0, 0.0]);
    exact(&product(&[5.0, 0.0, 0.0, 3.0]), &[0.0; 4]);
    exact(&product(&[-2.0, 3.0, -4.0, 1.0]), &[-12.0, 8.0, -6.0, 24.0]);
}

#[test]
fn case_108_detach_stops_gradients() {
    let three = || f32s(&[3.0]);
    let product = |o: &mut Ops, x: Val| {
        let fixed = o.apply("detach", &[x]);
        o.mul(x, fixed)
    };
    exact(&gradient(three(), product), &[3.0]);
    let square = |o: &mut Ops, x: Val| {
        let product = product(o, x);
        o.mul(product, x)
    };
    exact(&gradient(three(), square), &[18.0]);
    let beside = |o: &mut Ops, x: Val| {
        let twice = o.scale(x, 2.0);
        let fixed = o.apply("detach", &[twice]);
        let fixed = o.scale(fixed, 3.0);
        o.add(fixed, x)
    };
    exact(&gradient(three(), beside), &[1.0]);
}

#[test]
fn case_109_deviations_of_constant_data() {
    let x = f32s(&[1.0; 3]);
    exact(&gradient(x.clone(), |o, x| o.apply("std_all", &[x])), &[0.0; 3]);
    let normalised = gradient(x, |o, x| {
        let (weight, bias) = (vector(o, &[1.0; 3]), vector(o, &[0.0; 3]));
        let eps = o.float(1e-5, DType::F64);
        let normal = o.apply("layer_norm", &[x, weight, bias, eps]);
        let factors = vector(o, &[1.0, 2.0, 3.0]);
        o.mul(normal, factors)
    });
    close(&normalised, &[-316.22775, 0.0, 316.22775], 1e-4);
}

fn attend(o: &mut Ops, args: &[Val]) -> Val {
    o.with("scaled_dot_product_attention", args, vec![Attr::Bool(false)])
}

#[test]
fn case_139_a_row_that_may_attend_to_nothing_has_no_gradient() {
    let inputs = [
        shaped(&[1, 2, 2], &[1.0, 0.0, 0.0, 1.0]),
        shaped(&[1, 3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        shaped(&[1, 3, 1], &[1.0, 2.0, 4.0]),
    ];
    let flags = [false, false, false, true, false, true];
    let added = flags.map(|flag| if flag { 0.0 } else { -INF });
    for mask in [Value::bools(&[2, 3], &flags), shaped(&[2, 3], &added)] {
        let found = gradients(&[&inputs[..], &[mask]].concat(), attend);
        exact(&Value::new(DType::F32, vec![2], found[0].data[..2].to_vec()), &[0.0, 0.0]);
        close(&found[2], &[0.33023843, 0.0, 0.66976154], 1e-5);
        assert!(found.iter().flat_map(Value::as_floats).all(f64::is_finite));
    }
}

#[test]
fn case_141_a_masked_row_does_not_poison_the_weights() {
    let x = shaped(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let weight = shaped(&[2, 2], &[1.0, 0.0, 0.0, 1.0]);
    let mask = Value::bools(&[2, 2], &[false, false, true, true]);
    let found = gradients(&[x, weight, mask], |o, x| {
        let h = o.apply("matmul", &x[..2]);
        let y = attend(o, &[h, h, h, x[2]]);
        o.narrow(y, 0, Dim::Const(1), Dim::Const(1))
    });
    close(&found[1], &[3.0015986, 3.0018802, 4.001881, 4.002162], 1e-4);
}

#[test]
fn losses_of_targets_that_are_left_out_have_no_gradient() {
    let logits = shaped(&[2, 2], &[1000.0, 0.0, 0.0, 0.0]);
    let found = gradients(&[logits.clone(), ints(&[-100, 1])], |o, x| o.apply("cross_entropy", x));
    exact(&found[0], &[0.0, 0.0, 0.5, -0.5]);
    let found = gradients(&[logits, ints(&[1, 255])], |o, x| {
        o.with("cross_entropy_with", x, vec![Attr::Int(2), Attr::Dim(Dim::Const(255))])
    });
    exact(&found[0], &[1.0, -1.0, 0.0, 0.0]);
}

#[test]
fn halves_are_rounded_once_at_the_end_of_a_gradient() {
    let x = Value::floats(DType::BF16, &[1], &[1.2578125]);
    let found = gradient(x, |o, x| o.apply("silu", &[x]));
    let s = 1.0 / (1.0 + (-1.2578125f64).exp());
    let wanted = s * (1.0 + 1.2578125 * (1.0 - s));
    exact(&found, &Value::floats(DType::BF16, &[1], &[wanted]).as_floats());
}

#[test]
fn unused_inputs_have_zeros() {
    let found = gradients(&[f32s(&[1.0, 2.0]), f32s(&[3.0])], |o, x| o.mul(x[0], x[0]));
    exact(&found[1], &[0.0]);
    assert_eq!(found[1].dims, [1]);
}
