//! How much is fused: the workloads of the benchmark take as few launches as their arithmetic allows, and still give what
//! they give op by op. The transformer block has a test of its own.

// Every test binary uses a part of these.
#![allow(dead_code)]

mod common;
#[path = "../benches/workloads/functions.rs"]
mod workloads;

use common::{device, same_bits};
use fuse_runtime::prelude::*;
use workloads::*;

#[test]
fn pointwise_and_row_workloads_are_one_kernel() {
    let rows = [
        ("P1", pointwise::explain(), 1),
        ("P2", horizontal::explain(), 1),
        ("P3", bias_gelu::explain(), 1),
        ("P4", bias_dropout_residual_layernorm::explain(), 1),
        ("P5", softmax::explain(), 1),
        ("P6", layernorm::explain(), 1),
        ("P7", rmsnorm::explain(), 1),
        ("P8", cross_entropy::explain(), 1),
        ("P9", column_sum::explain(), 2),
        ("P10", transpose_add::explain(), 1),
        ("L1", chain::explain(), 1),
    ];
    for (row, explanation, most) in rows {
        assert!(explanation.breaks().is_empty(), "{row} breaks:\n{explanation}");
        assert_eq!(explanation.graphs().len(), 1, "{row}:\n{explanation}");
        assert!(explanation.launches() <= most, "{row} takes {} launches:\n{explanation}", explanation.launches());
    }
}

#[test]
fn what_follows_a_product_is_in_its_kernel() {
    for (row, explanation, products) in
        [("M1", linear_relu::explain(), 1), ("M7", mlp_gelu::explain(), 2), ("L2", small_mlp::explain(), 3)]
    {
        assert_eq!(explanation.kernels().len(), products, "{row}:\n{explanation}");
    }
}

#[test]
fn breaks_of_the_workloads_are_where_they_are_written() {
    // The arms of G1 are cheap: the device selects, and nothing breaks.
    assert!(graph_break::explain().breaks().is_empty(), "G1:\n{}", graph_break::explain());
    for (row, explanation) in [("G2", data_dependent_while::explain()), ("G3", item_to_host::explain())] {
        assert!(!explanation.breaks().is_empty(), "{row}:\n{explanation}");
    }
}

fn random<const R: usize>(dims: [usize; R]) -> Tensor<f32, R> {
    Tensor::randn(dims, device())
}

/// Compares a workload with its eager twin, bit for bit.
macro_rules! same {
    ($function:ident($($x:expr),*)) => {{
        let (got, want) = ($function($($x),*), $function::eager($($x),*));
        same_bits(got.raw(), want.raw()).unwrap_or_else(|text| panic!("{}: {text}", stringify!($function)));
    }};
}

#[test]
fn workloads_give_what_they_give_op_by_op() {
    let (x, y, row) = (random([37, 129]), random([129, 37]), random([129]));
    let (a, b) = (random([1025]), random([1025]));
    let targets = Tensor::arange(0i64, 37, device());
    same!(pointwise(&a, &b));
    same!(bias_gelu(&x, &row));
    same!(bias_gelu(&x.cast::<bf16>(), &row.cast::<bf16>()));
    same!(softmax(&x));
    same!(layernorm(&x, &row, &row));
    same!(rmsnorm(&x.cast::<f16>(), &row.cast::<f16>()));
    same!(cross_entropy(&x, &targets));
    same!(column_sum(&x));
    same!(transpose_add(&x, &y));
    same!(chain(&a));
    same!(data_dependent_while(&(&x * 30.0)));
    same!(item_to_host(&x));
    let (relu, sigmoid) = horizontal(&a);
    assert_eq!((relu.to_vec(), sigmoid.to_vec()), (a.relu().to_vec(), a.sigmoid().to_vec()));
    // In this test, because the generator belongs to the device and tests run side by side.
    device().manual_seed(5);
    let got = bias_dropout_residual_layernorm(&x, &row, &x, &row, &row);
    device().manual_seed(5);
    let want = bias_dropout_residual_layernorm::eager(&x, &row, &x, &row, &row);
    same_bits(got.raw(), want.raw()).unwrap_or_else(|text| panic!("bias_dropout_residual_layernorm: {text}"));
}
