//! Products of matrices by the template, against those of the processor. The library, where there is one, stands aside.

use super::order::noise;
use super::{Case, call, check, in_odd_window, moved, op, values};
use crate::device::Device;
use crate::exec::cuda::{on_tensor_cores, with_template};
use crate::exec::{Call, Program, run};
use crate::layout::Layout;
use crate::raw::RawTensor;
use fuse_compiler::types::DType::{self, BF16, F16, F32, F64, I32, I64};
use std::time::Instant;

const DTYPES: [DType; 6] = [F32, F64, F16, BF16, I32, I64];

/// Extents m, n and k: single elements, ragged tiles, whole ones, many, nothing to add.
const SIZES: [[usize; 3]; 7] =
    [[1, 1, 1], [17, 3, 257], [128, 128, 128], [129, 130, 33], [512, 512, 64], [1, 1025, 64], [5, 7, 0]];

fn viewed(x: &RawTensor, view: impl FnOnce(&Layout) -> crate::Result<Layout>) -> RawTensor {
    x.with_layout(view(x.layout()).unwrap())
}

/// The same values, with the last two axes the other way round in memory.
fn turned(x: &RawTensor) -> RawTensor {
    viewed(&viewed(x, |layout| layout.transpose(-1, -2)).copied().unwrap(), |layout| layout.transpose(-1, -2))
}

fn product(a: &RawTensor, b: &RawTensor) -> Case {
    Case::new(&[(a.dtype(), a.shape()), (b.dtype(), b.shape())], |g, x| vec![op(g, "matmul", &[x[0], x[1]], &[])])
}

/// Matrices of floats whose elements are made of noise between -1 and 1 and their number.
fn floats(shape: &[usize], of: impl Fn(f32, usize) -> f32) -> RawTensor {
    let noise = values(&noise(F32, shape)).into_iter().enumerate();
    RawTensor::from_slice(&noise.map(|(n, x)| of(x as f32, n)).collect::<Vec<f32>>(), shape).unwrap()
}

fn in_doubles(x: &RawTensor) -> RawTensor {
    RawTensor::from_slice(&values(x), x.shape()).unwrap()
}

fn on_processor(a: &RawTensor, b: &RawTensor) -> Vec<f64> {
    let case = product(a, b);
    values(&call(&case, &case.program(), &[a.clone(), b.clone()], Device::cpu()).unwrap()[0])
}

/// Compares a product of floats on tensor cores with that of doubles. The bound is the one that the op's row states, and what lies
/// below the least float.
fn compare_in_thirds(a: &RawTensor, b: &RawTensor, what: &str) {
    let Ok(cuda) = Device::cuda(0) else { return };
    let case = product(a, b);
    let got = on_tensor_cores(|| call(&case, &case.program(), &[a.clone(), b.clone()], cuda)).unwrap().remove(0);
    let (plain, want) = (on_processor(a, b), on_processor(&in_doubles(a), &in_doubles(b)));
    let sizes = on_processor(&in_doubles(&absolute(a)), &in_doubles(&absolute(b)));
    let k = a.shape()[a.shape().len() - 1] as f64;
    for (i, got) in values(&got).into_iter().enumerate() {
        let room = (k / 16.0 + 8.0) * (2f64.powi(-24) * sizes[i] + 16.0 * 2f64.powi(-149));
        let agrees = if plain[i].is_finite() {
            (got - want[i]).abs() <= room
        } else if want[i].is_finite() {
            // What overflows on the way is infinite or no number, as the order of the sum has it.
            !got.is_finite()
        } else {
            got == plain[i] || got.is_nan() && plain[i].is_nan()
        };
        assert!(
            agrees,
            "{what}: element {i} is {got}, not {} ({} in plain floats), with room for {room:e}",
            want[i], plain[i]
        );
    }
}

/// An absolute value for every element.
fn absolute(x: &RawTensor) -> RawTensor {
    let all: Vec<f64> = values(x).into_iter().map(f64::abs).collect();
    RawTensor::from_slice(&all, x.shape()).unwrap()
}

/// Compares a product on a GPU with the same on the processor: integers to the bit, floats in units of the sum of |a||b|.
fn compare(a: &RawTensor, b: &RawTensor, what: &str) {
    compare_by(|work| with_template(work), a, b, what);
}

/// The same with a product that is left to the template in this way.
fn compare_by(by: impl Fn(&dyn Fn() -> RawTensor) -> RawTensor, a: &RawTensor, b: &RawTensor, what: &str) {
    let Ok(cuda) = Device::cuda(0) else { return };
    let case = product(a, b);
    let program = case.program();
    let inputs = [a.clone(), b.clone()];
    let want = &call(&case, &program, &inputs, Device::cpu()).unwrap()[0];
    let product_of = || call(&case, &program, &inputs, cuda).unwrap().remove(0);
    let (got, again) = (by(&product_of), by(&product_of));
    assert_eq!(got.shape(), want.shape(), "{what}");
    assert_eq!(values(&got), values(&again), "{what} is not repeated");
    let sizes = [absolute(a), absolute(b)];
    let sizes = values(
        &call(&product(&sizes[0], &sizes[1]), &product(&sizes[0], &sizes[1]).program(), &sizes, Device::cpu()).unwrap()
            [0],
    );
    let k = a.shape()[a.shape().len() - 1] as f64;
    let (in_sum, in_result) = match a.dtype() {
        F64 => (2f64.powi(-53), 0.0),
        F32 => (2f64.powi(-24), 0.0),
        F16 => (2f64.powi(-24), 2f64.powi(-10)),
        BF16 => (2f64.powi(-24), 2f64.powi(-7)),
        _ => (0.0, 0.0),
    };
    // Either side is off by a rounding of the sum for every term and a few more, and halves by the rounding of the result.
    for (i, ((got, want), size)) in values(&got).into_iter().zip(values(want)).zip(sizes).enumerate() {
        let room = 2.0 * (k + 4.0) * in_sum * size + in_result * want.abs() + if in_result > 0.0 { 6e-8 } else { 0.0 };
        assert!((got - want).abs() <= room, "{what}: element {i} is {got}, not {want}, with room for {room:e}");
    }
}

#[test]
fn every_type_size_and_layout() {
    for dtype in DTYPES {
        for [m, n, k] in SIZES {
            let (a, b) = (noise(dtype, &[m, k]), noise(dtype, &[k, n]));
            let pairs = [
                (a.clone(), b.clone(), "as it is"),
                (turned(&a), turned(&b), "transposed"),
                (a.clone(), turned(&b), "with a transposed weight"),
                (in_odd_window(&a), in_odd_window(&b), "in odd windows"),
            ];
            for (a, b, layout) in pairs {
                compare(&a, &b, &format!("{dtype:?} {m}x{n}x{k} {layout}"));
            }
        }
    }
}

#[test]
fn floats_on_tensor_cores_are_as_exact_as_floats() {
    let sizes =
        [[1, 1, 1], [130, 200, 64], [17, 3, 257], [300, 520, 100], [128, 192, 1], [40, 50, 0], [200, 1000, 1027]];
    for [m, n, k] in sizes {
        let (a, b) = (noise(F32, &[m, k]), noise(F32, &[k, n]));
        for (a, b, layout) in [
            (a.clone(), b.clone(), "as it is"),
            (turned(&a), turned(&b), "transposed"),
            (a.clone(), turned(&b), "with a transposed weight"),
            (in_odd_window(&a), in_odd_window(&b), "in odd windows"),
        ] {
            compare_in_thirds(&a, &b, &format!("{m}x{n}x{k} {layout}"));
        }
    }
    let (a, b) = (noise(F32, &[3, 65, 40]), noise(F32, &[40, 72]));
    compare_in_thirds(&a, &b, "one right operand");
    let (a, b) = (noise(F32, &[2, 1, 20, 16]), noise(F32, &[3, 16, 24]));
    compare_in_thirds(&a, &b, "crossed batches");
}

#[test]
fn halves_on_tensor_cores() {
    for dtype in [F16, BF16] {
        for [m, n, k] in [[200, 312, 72], [136, 520, 1000], [304, 8, 64], [1000, 1096, 136], [40, 56, 0]] {
            let (a, b) = (noise(dtype, &[m, k]), noise(dtype, &[k, n]));
            for (a, b, layout) in [
                (a.clone(), b.clone(), "as it is"),
                (turned(&a), turned(&b), "transposed"),
                (a.clone(), turned(&b), "with a transposed weight"),
                (turned(&a), b.clone(), "with a transposed left operand"),
            ] {
                compare_by(|work| on_tensor_cores(work), &a, &b, &format!("{dtype:?} {m}x{n}x{k} {layout}"));
            }
        }
        let (a, b) = (noise(dtype, &[3, 65, 40]), noise(dtype, &[40, 72]));
        compare_by(|work| on_tensor_cores(work), &a, &b, &format!("{dtype:?} with one right operand"));
        let [q, k, v] = heads(dtype, [2, 70, 3, 32]);
        let scores = noise(dtype, &[2, 3, 70, 72]);
        let scores = viewed(&scores, |layout| layout.narrow(-1, 0, 70));
        compare_by(
            |work| on_tensor_cores(work),
            &q,
            &viewed(&k, |layout| layout.transpose(-1, -2)),
            "scores of halves",
        );
        compare_by(|work| on_tensor_cores(work), &scores, &v, "weighted values of halves");
    }
}

#[test]
fn floats_on_tensor_cores_may_be_of_any_size() {
    let exponent = |n: usize| (n * 2_654_435_761 % 81) as i32 - 40;
    type Of = fn(f32, i32) -> f32;
    let kinds: [(&str, Of, Of); 8] = [
        ("positive", |x, _| x.abs(), |x, _| x.abs()),
        ("equal", |_, _| 1.0 / 3.0, |_, _| 0.7),
        ("wide", |x, e| x * 2f32.powi(e), |x, e| x * 2f32.powi(e)),
        ("tiny and large", |x, _| x * 2f32.powi(-120), |x, _| x * 2f32.powi(100)),
        ("below the least normal float", |x, _| x * 2f32.powi(-126) * 2f32.powi(-9), |x, _| x * 2f32.powi(110)),
        ("both small", |x, _| x * 2f32.powi(-70), |x, _| x * 2f32.powi(-70)),
        ("close to the largest", |x, _| x.signum() * f32::MAX, |x, _| x * 2f32.powi(-30)),
        ("beyond all floats", |x, _| x * 2f32.powi(100), |x, _| x * 2f32.powi(100)),
    ];
    for (kind, left, right) in kinds {
        for k in [24, 700] {
            let a = floats(&[70, k], |x, n| left(x, exponent(n)));
            compare_in_thirds(&a, &floats(&[k, 90], |x, n| right(x, exponent(n))), kind);
        }
    }
    let strange = |n: usize, x: f32| match n % 997 {
        3 => f32::INFINITY,
        400 => f32::NAN,
        700 => f32::NEG_INFINITY,
        n if n % 5 == 0 => 0.0,
        _ => x,
    };
    compare_in_thirds(&floats(&[300, 40], |x, n| strange(n, x)), &noise(F32, &[40, 210]), "not finite");
    compare_in_thirds(
        &floats(&[300, 40], |x, _| x),
        &floats(&[40, 210], |x, n| strange(n, x)),
        "not finite on the right",
    );
}

/// Few tiles of many inner positions, and some that are left behind a round of whole ones; each call gives the same bits.
#[test]
fn thirds_whose_tiles_are_shared() {
    for (batches, [m, n, k]) in
        [(1, [300, 210, 8200]), (1, [768, 192, 4096]), (3, [130, 70, 6000]), (1, [1541, 2304, 1024])]
    {
        let (a, b) = (noise(F32, &[batches, m, k]), noise(F32, &[batches, k, n]));
        compare_in_thirds(&a, &turned(&b), &format!("{batches} of {m}x{n}x{k}"));
        let Ok(cuda) = Device::cuda(0) else { return };
        let (case, inputs) = (product(&a, &b), [a.clone(), b.clone()]);
        let run = || on_tensor_cores(|| call(&case, &case.program(), &inputs, cuda)).unwrap().remove(0);
        let first = values(&run());
        assert!((0..3).all(|_| values(&run()) == first), "{m}x{n}x{k} is not always the same");
    }
    // One share has what parts do not hold, the others do not.
    let k = 4100;
    let strange = |x, n| match n % k {
        77 => f32::INFINITY,
        2000 => x * 1e-38,
        _ => x,
    };
    compare_in_thirds(&floats(&[200, k], strange), &noise(F32, &[k, 96]), "strange values in one share");
}

#[test]
fn few_rows_are_computed_in_strips() {
    for dtype in [F32, F64, I32, I64] {
        for [m, n, k] in [[1, 256, 256], [2, 33, 4100], [3, 100, 1027], [5, 64, 2048], [16, 1000, 520], [16, 4096, 512]]
        {
            let (a, b) = (noise(dtype, &[m, k]), noise(dtype, &[k, n]));
            for (a, b, layout) in [
                (a.clone(), b.clone(), "as it is"),
                (turned(&a), turned(&b), "transposed"),
                (in_odd_window(&a), in_odd_window(&b), "in odd windows"),
            ] {
                compare(&a, &b, &format!("{dtype:?} {m}x{n}x{k} {layout}"));
            }
        }
        let (a, b) = (noise(dtype, &[3, 2, 1, 40]), noise(dtype, &[2, 40, 72]));
        compare(&a, &b, &format!("{dtype:?} strips with batches"));
    }
}

/// Compares a product of halves by the template with that of doubles: sums are floats, and each is rounded once.
fn compare_with_doubles(a: &RawTensor, b: &RawTensor, what: &str) {
    let Ok(cuda) = Device::cuda(0) else { return };
    let case = product(a, b);
    let program = case.program();
    let product_of = || with_template(|| call(&case, &program, &[a.clone(), b.clone()], cuda)).unwrap().remove(0);
    let (got, again) = (values(&product_of()), values(&product_of()));
    assert_eq!(got, again, "{what} is not repeated");
    let want = on_processor(&in_doubles(a), &in_doubles(b));
    let sizes = on_processor(&in_doubles(&absolute(a)), &in_doubles(&absolute(b)));
    let in_result = if a.dtype() == F16 { 2f64.powi(-11) } else { 2f64.powi(-8) };
    let k = a.shape()[a.shape().len() - 1] as f64;
    for (i, ((got, want), size)) in got.into_iter().zip(want).zip(sizes).enumerate() {
        let room = (k + 4.0) * 2f64.powi(-24) * size + in_result * want.abs() + 6e-8;
        assert!((got - want).abs() <= room, "{what}: element {i} is {got}, not {want}, with room for {room:e}");
    }
}

#[test]
fn few_rows_of_halves_are_as_exact_as_floats() {
    for dtype in [F16, BF16] {
        for [m, n, k] in [
            [1, 256, 256],
            [1, 33, 4104],
            [2, 1000, 520],
            [3, 104, 1032],
            [4, 4096, 768],
            [4, 2312, 264],
            [1, 8, 20_000],
            [2, 7, 9],
            [3, 40, 0],
        ] {
            let (a, b) = (noise(dtype, &[m, k]), noise(dtype, &[k, n]));
            for (a, b, layout) in [
                (a.clone(), b.clone(), "as it is"),
                (a.clone(), turned(&b), "with a transposed weight"),
                (turned(&a), turned(&b), "transposed"),
                (in_odd_window(&a), turned(&b), "with rows in an odd window"),
                (in_odd_window(&a), in_odd_window(&b), "in odd windows"),
            ] {
                compare_with_doubles(&a, &b, &format!("{dtype:?} {m}x{n}x{k} {layout}"));
            }
        }
        let (a, b) = (noise(dtype, &[3, 2, 1, 264]), noise(dtype, &[2, 264, 72]));
        compare_with_doubles(&a, &turned(&b), &format!("{dtype:?} with batches"));
        compare_with_doubles(&a, &b, &format!("{dtype:?} with batches as they are"));
    }
}

#[test]
fn batches_that_repeat_and_batches_over_two_axes() {
    for dtype in DTYPES {
        let (a, b) = (noise(dtype, &[3, 65, 40]), noise(dtype, &[40, 72]));
        compare(&a, &b, &format!("{dtype:?} with one right operand"));
        let (a, b) = (noise(dtype, &[2, 1, 20, 16]), noise(dtype, &[3, 16, 24]));
        compare(&a, &b, &format!("{dtype:?} with crossed batches"));
        let [q, k, v] = heads(dtype, [2, 70, 3, 32]);
        let scores = noise(dtype, &[2, 3, 70, 70]);
        compare(&q, &viewed(&k, |layout| layout.transpose(-1, -2)), &format!("{dtype:?} scores"));
        compare(&scores, &v, &format!("{dtype:?} weighted values"));
    }
}

/// Queries, keys and values `[b, h, s, d]` as views of one projection `[b, s, 3 h d]`.
fn heads(dtype: DType, [b, s, h, d]: [usize; 4]) -> [RawTensor; 3] {
    let all = noise(dtype, &[b, s, 3, h, d]);
    [0, 1, 2].map(|part| viewed(&all, |layout| layout.select(2, part)?.permute(&[0, 2, 1, 3])))
}

#[test]
fn what_follows_a_product_reads_beside_it() {
    for (m, n) in [(130, 72), (33, 65), (264, 520)] {
        for dtype in [F32, BF16, F64, I64] {
            let inputs: [(DType, &[usize]); 4] =
                [(dtype, &[m, 40]), (dtype, &[40, n]), (dtype, &[n]), (dtype, &[m, n])];
            let case = Case::new(&inputs, |g, x| {
                let product = op(g, "matmul", &[x[0], x[1]], &[]);
                let sum = op(g, "add", &[product, x[2]], &[]);
                vec![op(g, "mul", &[sum, x[3]], &[]), op(g, "relu", &[sum], &[])]
            });
            with_template(|| check("matmul", &case));
            on_tensor_cores(|| check("matmul on tensor cores", &case));
        }
    }
}

fn halves(dtype: DType, all: &[f64]) -> RawTensor {
    match dtype {
        F16 => RawTensor::from_slice(&all.iter().map(|x| half::f16::from_f64(*x)).collect::<Vec<_>>(), &[all.len()]),
        _ => RawTensor::from_slice(&all.iter().map(|x| half::bf16::from_f64(*x)).collect::<Vec<_>>(), &[all.len()]),
    }
    .unwrap()
}

/// A bias that takes away nearly all of a product shows whether the product was rounded before.
#[test]
fn linear_of_halves_rounds_once() {
    let Ok(cuda) = Device::cuda(0) else { return };
    for (dtype, in_result) in [(F16, 2f64.powi(-10)), (BF16, 2f64.powi(-7))] {
        for [m, k, n] in
            [[16, 64, 64], [128, 256, 768], [1, 512, 64], [16, 1024, 512], [17, 3, 5], [257, 5, 5], [33, 40, 24]]
        {
            let (x, w) = (noise(dtype, &[m, k]), noise(dtype, &[n, k]));
            let row = |x: &RawTensor, row: usize| values(x)[row * k..][..k].to_vec();
            let products =
                |row: &[f64], weights: &[f64]| row.iter().zip(weights).map(|(a, b)| a * b).collect::<Vec<_>>();
            let (first, all) = (row(&x, 0), values(&w));
            let bias: Vec<f64> = all.chunks(k).map(|weights| -products(&first, weights).iter().sum::<f64>()).collect();
            let bias = halves(dtype, &bias);
            let inputs = [x.clone(), w.clone(), bias.clone()];
            let shapes: Vec<(DType, &[usize])> = inputs.iter().map(|x| (x.dtype(), x.shape())).collect();
            let case = Case::new(&shapes, |g, x| vec![op(g, "linear", &[x[0], x[1], x[2]], &[])]);
            let got = values(&call(&case, &case.program(), &inputs, cuda).unwrap()[0]);
            for (column, (weights, bias)) in all.chunks(k).zip(values(&bias)).enumerate() {
                let terms = products(&first, weights);
                let (want, size) = (terms.iter().sum::<f64>() + bias, terms.iter().map(|x| x.abs()).sum::<f64>());
                let room = 2.0 * (k as f64 + 4.0) * 2f64.powi(-24) * size + in_result * want.abs() + 6e-8;
                let off = (got[column] - want).abs();
                assert!(off <= room, "{dtype:?} {m}x{k}x{n}: column {column} is {}, not {want}", got[column]);
            }
        }
    }
}

/// Milliseconds of a call, back to back.
fn time(program: &Program, tensors: [&RawTensor; 2], device: Device) -> f64 {
    const CALLS: usize = 20;
    let call =
        Call { program, tensors: &tensors, given: &[false; 2], scalars: &[], host_ints: &[], device, bodies: &[] };
    let calls = |count: usize| (0..count).for_each(|_| drop(run(&call).unwrap()));
    calls(3);
    device.synchronize().unwrap();
    let start = Instant::now();
    calls(CALLS);
    device.synchronize().unwrap();
    start.elapsed().as_secs_f64() * 1e3 / CALLS as f64
}

#[test]
#[ignore = "prints speeds: cargo test -p fuse-runtime --lib speed_of_products -- --ignored --nocapture"]
fn speed_of_products() {
    let Ok(cuda) = Device::cuda(0) else { return eprintln!("skipped: there is no CUDA device") };
    for dtype in [F32, BF16] {
        let square = noise(dtype, &[4096, 4096]);
        let [q, k, v] = heads(dtype, [8, 512, 12, 64]);
        let pairs = [
            (square.clone(), square.clone(), "4096 cubed, rows"),
            (square.clone(), viewed(&square, |layout| layout.transpose(0, 1)), "4096 cubed, transposed weight"),
            (q, viewed(&k, |layout| layout.transpose(-1, -2)), "scores of 8x12x512x64"),
            (noise(dtype, &[8, 12, 512, 512]), v, "weighted values of 8x12x512x64"),
        ];
        for (a, b, what) in pairs {
            let (program, a, b) = (product(&a, &b).program(), moved(&a, cuda), moved(&b, cuda));
            let [.., n] = *b.shape() else { unreachable!("a matrix has columns") };
            let flops = 2.0 * a.numel() as f64 * n as f64;
            let (template, chosen) = (with_template(|| time(&program, [&a, &b], cuda)), time(&program, [&a, &b], cuda));
            println!(
                "{dtype:?} {what}: template {template:.3} ms, {:.1} TFLOP/s; chosen {chosen:.3} ms, {:.1} TFLOP/s",
                flops / template / 1e9,
                flops / chosen / 1e9
            );
        }
    }
}
