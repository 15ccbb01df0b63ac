//! The CUDA text of small programs, beside them as `.cu` files that are read like code.
//!
//! `UPDATE_EXPECT=1` writes them anew; what all programs compile to goes through NVRTC in the test beside this one.

mod programs;

use expect_test::expect_file;
use fuse_compiler::emit::cuda;
use fuse_compiler::plan::Step;

/// One program for every kind of kernel.
const REVIEWED: [&str; 21] = [
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
    "write_rows",
    "linear_relu",
    "linear_relu_f32",
    "gate_up",
    "projections_generic",
    "several_maps",
    "small_rows",
    "attention",
    "attention_fused",
    "attention_training",
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

/// A graph may start a kernel before the one it waits for is done. Only what fetches lines for the cache may come before.
#[test]
fn every_kernel_first_waits_for_the_one_before_it() {
    for (name, plan) in programs::all() {
        let text = cuda::text(&plan);
        let bodies = text.split("__global__").skip(1);
        for body in bodies.filter_map(|head| head.split_once(") {\n")) {
            let (before, _) = body.1.split_once(cuda::compile::WAITS).expect("every kernel waits");
            let fetches = ["typedef ", "const strips::Strip ", "const auto columns ", "strips::prefetch("];
            let is_harmless = |line: &str| {
                line.contains("rights[] = {") || fetches.iter().any(|start| line.trim_start().starts_with(start))
            };
            assert!(
                before.lines().all(|line| line.trim().is_empty() || is_harmless(line)),
                "{name}: {}",
                &body.0[..body.0.len().min(80)]
            );
        }
    }
}

/// What the text of a product calls its own must not be what a user calls a value.
#[test]
fn a_value_called_like_a_local_of_the_text_has_another_name_there() {
    let (_, plan) = programs::all().into_iter().find(|(name, _)| *name == "linear_relu_f32").expect("it is there");
    for word in ["part", "strip", "strips", "tile", "turn", "piece", "work", "value", "access", "product", "THIRDS"] {
        let mut plan = plan.clone();
        for step in &mut plan.steps {
            let Step::Matmul(matmul) = step else { continue };
            matmul.epilogue.stmts.iter_mut().for_each(|stmt| stmt.name = Some(word.to_owned()));
        }
        let text = cuda::text(&plan);
        assert!(text.contains(&format!("const float {word}2 =")), "{word} is no name of the text");
        assert!(!text.contains(&format!("const float {word} =")), "{word}");
    }
}
