//! Products of one left operand, in one kernel where the device has one, against the reference evaluator.

use super::order::noise;
use super::{Call, Case, Program, call, check, moved, op, run, sample, values};
use crate::cuda::Context;
use crate::device::Device;
use crate::exec::cuda::on_tensor_cores;
use crate::exec::random::Random;
use crate::raw::RawTensor;
use fuse_compiler::graph::Graph;
use fuse_compiler::op::{Build, Check, Relation, Val};
use fuse_compiler::options::Mode;
use fuse_compiler::types::DType::{self, BF16, F16, F32, F64, I64};
use std::time::Instant;

/// What follows the products.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// Nothing but a bias behind the last one.
    Projections,
    /// All but the last one open and close what goes through that; what they become is in no memory.
    Gate,
    /// The same with the gates as results, too.
    OpenGate,
}

const FORMS: [Form; 3] = [Form::Projections, Form::Gate, Form::OpenGate];

/// So many products of `x` with weights of equal extents `[k, n]`, and a bias.
fn case(dtype: DType, batches: &[usize], [m, n, k]: [usize; 3], count: usize, form: Form) -> Case {
    let left = [batches, &[m, k]].concat();
    let (weight, bias) = ([k, n], [n]);
    let mut inputs: Vec<(DType, &[usize])> = vec![(dtype, &left)];
    inputs.extend((0..count).map(|_| (dtype, &weight[..])));
    inputs.push((dtype, &bias));
    Case::new(&inputs, |g, x| {
        let (weights, bias) = (&x[1..=count], x[count + 1]);
        weights[1..].iter().for_each(|&weight| {
            same(g, (weight, 0), (weights[0], 0));
            same(g, (weight, 1), (weights[0], 1));
        });
        same(g, (bias, 0), (weights[0], 1));
        let mut products: Vec<Val> = weights.iter().map(|&weight| op(g, "matmul", &[x[0], weight], &[])).collect();
        let last = products.pop().expect("there are several");
        let mut result = op(g, "add", &[last, bias], &[]);
        if form == Form::Projections {
            return [products, vec![result]].concat();
        }
        let gates: Vec<Val> = products.iter().map(|&product| op(g, "relu", &[product], &[])).collect();
        for &gate in &gates {
            result = op(g, "mul", &[gate, result], &[]);
        }
        if form == Form::Gate { vec![result] } else { [gates, vec![result]].concat() }
    })
}

/// Says that two extents are equal, as named dims would.
fn same(g: &mut Graph, (x, i): (Val, usize), (y, k): (Val, usize)) {
    let (left, right) = (g.ty(x).dims[i].clone(), g.ty(y).dims[k].clone());
    g.checks.push((0, Check { left, right, relation: Relation::Equal, text: String::new() }));
}

/// Checks a case in every layout, in strips or on tensor cores.
fn check_together(case: &Case, count: usize, what: &str) {
    let program = case.program();
    let plan = &program.plan;
    let listed: Vec<u32> = plan.products.iter().map(|products| products.count).collect();
    assert_eq!(listed, [count as u32], "{what}: {}", fuse_compiler::plan::print::plan(plan));
    on_tensor_cores(|| check(what, case));
}

/// As many products as a text has columns for, of few rows and many, with extents that tiles divide and others.
fn check_type(dtype: DType, forms: &[Form]) {
    let extents = [([130, 72, 40], 2), ([200, 136, 64], 3), ([3, 264, 96], 3), ([140, 96, 128], 4)];
    for ((extents, count), form) in extents.into_iter().zip(forms.iter().cycle()) {
        let what = format!("{count} of {dtype:?} {extents:?}, {form:?}");
        check_together(&case(dtype, &[], extents, count, *form), count, &what);
    }
    check_together(&case(dtype, &[3], [70, 80, 32], 2, forms[0]), 2, &format!("{dtype:?} in batches"));
    check_together(&case(dtype, &[2], [1, 80, 1040], 3, forms[0]), 3, &format!("rows of {dtype:?} in batches"));
}

#[test]
fn several_products_of_floats() {
    check_type(F32, &FORMS);
}

#[test]
fn several_gated_products_of_floats() {
    check_type(F32, &FORMS[1..]);
}

#[test]
fn several_products_of_halves() {
    check_type(BF16, &FORMS);
}

#[test]
fn several_gated_products_of_halves() {
    check_type(F16, &FORMS[1..]);
}

#[test]
fn several_products_of_other_types() {
    check_type(F64, &FORMS);
    check_type(I64, &FORMS[..1]);
}

#[test]
fn products_of_random_extents() {
    for seed in 0..std::env::var("FUSE_SEEDS").map_or(4, |seeds| seeds.parse().expect("FUSE_SEEDS is a number")) {
        let random = &mut Random(seed);
        let most = [1, 16, 200, 400][random.below(4)];
        let extents = [1 + random.below(most), 1 + random.below(300), random.below(400)];
        let dtype = [F32, BF16, F16, F64][random.below(4)];
        let (count, form) = (2 + random.below(3), FORMS[random.below(3)]);
        let batches: &[usize] = if random.below(3) == 0 { &[2] } else { &[] };
        let what = format!("seed {seed}: {count} of {dtype:?} {batches:?} x {extents:?}, {form:?}");
        check_together(&case(dtype, batches, extents, count, form), count, &what);
    }
}

/// Few tiles of many inner positions, which blocks share.
#[test]
fn tiles_of_several_products_are_shared() {
    let Ok(cuda) = Device::cuda(0) else { return };
    let case = case(F32, &[], [300, 210, 4100], 3, Form::Projections);
    let inputs: Vec<RawTensor> = case.inputs.iter().map(|(dtype, dims)| noise(*dtype, dims)).collect();
    let program = case.program();
    let run = || on_tensor_cores(|| call(&case, &program, &inputs, cuda)).unwrap();
    let (first, again) = (run(), run());
    let want = call(&case, &program, &inputs, Device::cpu()).unwrap();
    for ((got, again), want) in first.iter().zip(&again).zip(&want) {
        assert_eq!(values(got), values(again));
        // Noise lies between -1 and 1.
        let close = |(got, want): (f64, f64)| (got - want).abs() <= 4100.0 * 2f64.powi(-24) * 300.0;
        assert!(values(got).into_iter().zip(values(want)).all(close));
    }
}

/// A value that is not finite, or smaller than its parts hold, in one right operand says nothing of the others.
#[test]
fn strange_values_in_one_of_several_products() {
    let Ok(cuda) = Device::cuda(0) else { return };
    let case = case(F32, &[], [200, 100, 48], 3, Form::Projections);
    let mut inputs: Vec<RawTensor> =
        case.inputs.iter().enumerate().map(|(k, (dtype, dims))| sample(*dtype, dims, k as u64)).collect();
    let strange = |n: usize, x: f64| match n % 1009 {
        7 => f32::INFINITY,
        400 => f32::NAN,
        _ => (x * 1e-36) as f32,
    };
    let second: Vec<f32> = values(&inputs[2]).into_iter().enumerate().map(|(n, x)| strange(n, x)).collect();
    inputs[2] = RawTensor::from_slice(&second, &[48, 100]).unwrap();
    let program = case.program();
    let got = on_tensor_cores(|| call(&case, &program, &inputs, cuda)).unwrap();
    let want = call(&case, &program, &inputs, Device::cpu()).unwrap();
    for (got, want) in got.iter().zip(&want) {
        for (got, want) in values(got).into_iter().zip(values(want)) {
            let close = (got - want).abs() <= 1e-5 * want.abs().max(1e-36);
            assert!(got == want || got.is_nan() && want.is_nan() || close, "{got}, not {want}");
        }
    }
}

/// The kernel that was asked for is the one that ran, and without it the steps give the same.
#[test]
fn one_kernel_makes_what_was_listed_together() {
    let Ok(cuda) = Device::cuda(0) else { return };
    for (dtype, extents) in [(F32, [3, 64, 64]), (F32, [200, 136, 64]), (BF16, [200, 136, 64])] {
        let case = case(dtype, &[], extents, 2, Form::Gate);
        let inputs: Vec<RawTensor> =
            case.inputs.iter().enumerate().map(|(k, (dtype, dims))| sample(*dtype, dims, k as u64)).collect();
        let program = case.program();
        on_tensor_cores(|| call(&case, &program, &inputs, cuda)).unwrap();
        let name = &program.plan.products[0].program.name;
        let has_tensor_cores = Context::get(0).unwrap().facts().target().capability == 90;
        assert_eq!(program.functions.has_loaded(name), has_tensor_cores || extents[0] <= 16, "{name} {dtype:?}");
    }
}

/// Microseconds of a call, back to back.
fn time(program: &Program, inputs: &[RawTensor], device: Device) -> f64 {
    const CALLS: usize = 200;
    let (tensors, given): (Vec<&RawTensor>, _) = (inputs.iter().collect(), vec![false; inputs.len()]);
    let call = Call { program, tensors: &tensors, given: &given, scalars: &[], host_ints: &[], device, bodies: &[] };
    let calls = |count: usize| (0..count).for_each(|_| drop(run(&call).unwrap()));
    calls(5);
    let once = || {
        device.synchronize().unwrap();
        let start = Instant::now();
        calls(CALLS);
        device.synchronize().unwrap();
        start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
    };
    (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "prints speeds, and with FUSE_WITHOUT=products those of one after the other: cargo test -p fuse-runtime --lib speed_of_several_products -- --ignored --nocapture"]
fn speed_of_several_products() {
    let Ok(cuda) = Device::cuda(0) else { return eprintln!("skipped: there is no CUDA device") };
    let gate =
        [[1, 3072, 768], [16, 3072, 768], [512, 3072, 768], [2048, 3072, 768], [4096, 3072, 768], [2048, 11008, 4096]];
    let three = [[1, 768, 768], [8, 768, 768], [512, 768, 768], [1024, 768, 768], [4096, 768, 768], [768, 768, 4096]];
    let shapes = gate.map(|extents| (2, Form::Gate, extents)).into_iter();
    for (count, form, extents) in shapes.chain(three.map(|extents| (3, Form::Projections, extents))) {
        for dtype in [F32, BF16] {
            let case = case(dtype, &[], extents, count, form);
            let inputs: Vec<RawTensor> =
                case.inputs.iter().map(|(dtype, dims)| moved(&noise(*dtype, dims), cuda)).collect();
            let times = [Mode::Default, Mode::ReduceOverhead].map(|mode| {
                let program = case.program().with_mode(mode);
                let usual = time(&program, &inputs, cuda);
                let name = &program.plan.products[0].program.name;
                (usual, program.functions.has_loaded(name))
            });
            println!(
                "{count} of {dtype:?} {extents:?}, {form:?}: {:.1} us, in a graph {:.1}; together: {}",
                times[0].0, times[1].0, times[0].1
            );
        }
    }
}
