//! The CUDA text of small programs, beside them as `.cu` files that are read like code.
//!
//! `UPDATE_EXPECT=1` writes them anew; what all programs compile to goes through NVRTC in the test beside this one.

mod programs;

use expect_test::expect_file;
use fuse_compiler::emit::cuda;

/// One program for every kind of kernel.
const REVIEWED: [&str; 15] = [
    "pointwise_generic",
    "bias_gelu",
    "softmax",
    "layer_norm",
    "cross_entropy",
    "argmax",
    "column_sum",
    "transpose_add",
    "cumsum",
    "embedding",
    "scatter_add",
    "linear_relu",
    "linear_relu_f32",
    "attention",
    "attention_fused",
];

#[test]
fn texts_are_as_reviewed() {
    for (name, plan) in programs::all().into_iter().filter(|(name, _)| REVIEWED.contains(name)) {
        expect_file![format!("cuda/{name}.cu")].assert_eq(&cuda::text(&plan));
    }
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    let texts = || programs::all().iter().map(|(_, plan)| cuda::text(plan)).collect::<Vec<_>>();
    assert_eq!(texts(), texts());
}

/// A graph may start a kernel before the one it waits for is done.
#[test]
fn every_kernel_first_waits_for_the_one_before_it() {
    for (name, plan) in programs::all() {
        let text = cuda::text(&plan);
        let bodies = text.split("__global__").skip(1);
        for body in bodies.filter_map(|head| head.split_once(") {\n")) {
            assert!(
                body.1.trim_start().starts_with(cuda::compile::WAITS),
                "{name}: {}",
                &body.0[..body.0.len().min(80)]
            );
        }
    }
}
