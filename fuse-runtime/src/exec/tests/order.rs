//! Reductions of a GPU are bit-identical to those of the processor, in every way a kernel walks its rows.

use super::{Case, call, op, values};
use crate::device::Device;
use crate::raw::RawTensor;
use fuse_compiler::op::Attr;
use fuse_compiler::types::DType::{self, BF16, F32, F64, I32};

/// Values between -1 and 1 whose sums round, so that another order gives other bits.
pub(super) fn noise(dtype: DType, dims: &[usize]) -> RawTensor {
    let n: usize = dims.iter().product();
    let value = |i: u64| f64::from(crate::philox::bits(7, 0, i)) * 2f64.powi(-31) - 1.0;
    let all = (0..n as u64).map(value);
    match dtype {
        DType::F64 => RawTensor::from_slice(&all.collect::<Vec<_>>(), dims),
        DType::F16 => RawTensor::from_slice(&all.map(half::f16::from_f64).collect::<Vec<_>>(), dims),
        DType::BF16 => RawTensor::from_slice(&all.map(half::bf16::from_f64).collect::<Vec<_>>(), dims),
        DType::F8E4M3 => RawTensor::from_slice(&all.map(crate::dtype::f8e4m3::from_f64).collect::<Vec<_>>(), dims),
        DType::I32 => RawTensor::from_slice(&all.map(|v| (v * 1e9) as i32).collect::<Vec<_>>(), dims),
        DType::I64 => RawTensor::from_slice(&all.map(|v| (v * 1e18) as i64).collect::<Vec<_>>(), dims),
        _ => RawTensor::from_slice(&all.map(|v| v as f32).collect::<Vec<_>>(), dims),
    }
    .unwrap()
}

fn check_bits(case: &Case) {
    let Ok(cuda) = Device::cuda(0) else { return };
    let program = case.program();
    let inputs: Vec<RawTensor> = case.inputs.iter().map(|(dtype, dims)| noise(*dtype, dims)).collect();
    let host = call(case, &program, &inputs, Device::cpu()).unwrap();
    // Twice, since counters must be zero again after a launch.
    for _ in 0..2 {
        let device = call(case, &program, &inputs, cuda).unwrap();
        for (k, (a, b)) in host.iter().zip(&device).enumerate() {
            let bits = |x: &RawTensor| values(x).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(a), bits(b), "result {k} of {:?}", case.inputs);
        }
    }
}

fn reductions(dtype: DType, dims: &[usize], axis: i64) -> Case {
    Case::new(&[(dtype, dims)], |g, x| {
        let along = |name: &'static str| (name, [Attr::Int(axis)]);
        let names = if dtype == I32 { vec!["sum", "max", "argmin"] } else { vec!["sum", "prod", "max", "argmax"] };
        names.into_iter().map(along).map(|(name, attrs)| op(g, name, &[x[0]], &attrs)).collect()
    })
}

#[test]
fn rows_of_every_length() {
    for len in [1, 2, 31, 32, 100, 1000, 1024, 1025, 2048, 4100, 8192, 10_000, 16_384, 16_385, 50_257, 70_000] {
        check_bits(&reductions(F32, &[3, len], -1));
    }
    for (rows, len) in [(1000, 8), (300, 640), (300, 20_001), (1, 300_000), (2, 17_000_000)] {
        check_bits(&reductions(F32, &[rows, len], -1));
    }
    for dtype in [F64, BF16, I32] {
        for len in [5, 512, 4096, 8192, 12_288, 16_384, 33_000] {
            check_bits(&reductions(dtype, &[2, len], -1));
        }
    }
}

/// Three walks: a sum, the sum of squares of the distances to it, and those divided by that.
fn spread(operands: &[(DType, &[usize])]) -> Case {
    Case::new(operands, |g, x| {
        let point = x[1..].iter().fold(x[0], |product, y| op(g, "mul", &[product, *y], &[]));
        let sum = op(g, "sum_keepdim", &[point], &[Attr::Int(-1)]);
        let apart = op(g, "sub", &[point, sum], &[]);
        let square = op(g, "mul", &[apart, apart], &[]);
        let size = op(g, "sum_keepdim", &[square], &[Attr::Int(-1)]);
        vec![op(g, "div", &[apart, size], &[]), size]
    })
}

#[test]
fn rows_that_are_walked_several_times() {
    for (rows, len) in [(3, 700), (2, 16_384), (3, 16_385), (300, 20_001), (140, 50_257), (2, 56_000), (2, 70_000)] {
        check_bits(&spread(&[(F32, &[rows, len])]));
    }
    for (rows, len) in [(3, 9000), (150, 20_000), (300, 28_001)] {
        check_bits(&spread(&[(F32, &[rows, len]), (F32, &[rows, len])]));
        check_bits(&spread(&[(F64, &[rows, len]), (F64, &[1, len])]));
        check_bits(&spread(&[(F64, &[rows, len])]));
        check_bits(&spread(&[(BF16, &[rows, len])]));
    }
}

#[test]
fn columns_of_every_length() {
    for rows in [1, 2, 7, 8, 9, 255, 256, 257, 1000, 5000, 66_000, 140_000] {
        check_bits(&reductions(F32, &[rows, 5], 0));
    }
    for (rows, columns) in [(300, 1), (300, 64), (3000, 640), (129, 1000)] {
        check_bits(&reductions(F32, &[rows, columns], 0));
        check_bits(&reductions(BF16, &[rows, columns], 0));
    }
    check_bits(&reductions(F64, &[4, 600, 12], 1));
}

#[test]
fn whole_tensors_and_means_over_rows() {
    for dims in [[3, 5], [700, 40], [2000, 1000]] {
        check_bits(&Case::new(&[(F32, &dims)], |g, x| {
            let square = op(g, "mul", &[x[0], x[0]], &[]);
            let rows = op(g, "sum", &[square], &[Attr::Int(1)]);
            vec![op(g, "sum_all", &[square], &[]), op(g, "max_all", &[rows], &[]), op(g, "sum_all", &[rows], &[])]
        }));
    }
}
