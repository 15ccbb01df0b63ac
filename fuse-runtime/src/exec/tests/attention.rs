//! Attention in tiles of rows, against its three steps one after the other.

use super::order::noise;
use super::{Case, call, op, values};
use crate::device::Device;
use crate::exec::Program;
use crate::raw::RawTensor;
use fuse_compiler::op::Attr;
use fuse_compiler::types::DType::{self, BF16, Bool, F16, F32, F64};
use fuse_compiler::{optimise, schedule};

/// Batch, queries, keys, depth, and columns of the values: one of each, ragged tiles, several tiles, no keys, no queries.
const SIZES: [[usize; 5]; 6] =
    [[1, 1, 1, 1, 1], [3, 7, 5, 4, 6], [2, 130, 70, 16, 24], [2, 64, 300, 8, 8], [2, 5, 0, 4, 4], [2, 0, 5, 4, 4]];

fn case(dtype: DType, [batch, m, n, k, d]: [usize; 5], mask: Option<DType>, causal: bool) -> Case {
    let mut inputs: Vec<(DType, Vec<usize>)> =
        vec![(dtype, vec![batch, m, k]), (dtype, vec![batch, n, k]), (dtype, vec![batch, n, d])];
    inputs.extend(mask.map(|mask| (mask, vec![m, n])));
    let inputs: Vec<(DType, &[usize])> = inputs.iter().map(|(dtype, dims)| (*dtype, dims.as_slice())).collect();
    Case::new(&inputs, |g, x| vec![op(g, "scaled_dot_product_attention", x, &[Attr::Bool(causal)])])
}

/// The plan for operands that do not broadcast, with and without what says that its steps run together.
fn programs(case: &Case) -> [Program; 2] {
    let guessed = optimise::assume(&case.graph).unwrap_or_else(|| case.graph.clone());
    let graph = optimise::run(guessed, optimise::Options::default());
    let plan = schedule::run(&graph, schedule::Options::default());
    assert_eq!(plan.attention.len(), 1);
    let mut apart = plan.clone();
    apart.attention.clear();
    [plan, apart].map(|plan| Program::new(&plan, &[]))
}

/// A mask that lets every third pair pass, and no pair of the first query.
fn mask(dims: &[usize]) -> RawTensor {
    let passes: Vec<bool> = (0..dims.iter().product()).map(|i| i % 3 == 0 && i >= dims[1]).collect();
    RawTensor::from_slice(&passes, dims).unwrap()
}

#[test]
fn rows_at_a_time_give_what_steps_give() {
    for (dtype, bound) in [(F32, 1e-6), (F64, 1e-14), (F16, 2e-3), (BF16, 2e-2)] {
        for (mask, causal) in [(None, false), (None, true), (Some(Bool), false), (Some(dtype), true)] {
            for sizes in SIZES {
                check(dtype, sizes, mask, causal, bound);
            }
        }
    }
}

fn check(dtype: DType, sizes: [usize; 5], mask: Option<DType>, causal: bool, bound: f64) {
    let case = case(dtype, sizes, mask, causal);
    let input =
        |(dtype, dims): &(DType, Vec<usize>)| if *dtype == Bool { self::mask(dims) } else { noise(*dtype, dims) };
    let inputs: Vec<RawTensor> = case.inputs.iter().map(input).collect();
    let [together, apart] = programs(&case).map(|program| call(&case, &program, &inputs, Device::cpu()).unwrap());
    assert_eq!(together[0].shape(), apart[0].shape());
    // Values are within 1 and weights sum up to 1, so the bound is one of the result.
    for (got, want) in std::iter::zip(values(&together[0]), values(&apart[0])) {
        assert!((got - want).abs() <= bound, "{dtype} {sizes:?} {mask:?} {causal}: {got} for {want}");
    }
}
