//! A transformer block: its gradients by finite differences and by another implementation, which also trained it.

mod common;

use common::{check, device};
use fuse_runtime::prelude::*;
use fuse_runtime::safetensors;
use std::path::{Path, PathBuf};

/// A pre-norm transformer block and its mean squared error, with causal attention or without.
macro_rules! block {
    ($name:ident, $causal:literal) => {
        #[compile(grad(ln1_w, ln1_b, w_qkv, b_qkv, w_out, b_out, ln2_w, ln2_b, w_up, b_up, w_down, b_down))]
        fn $name(
            #[dims(B, S, D)] x: &Tensor<f64, 3>,
            #[dims(B, S, D)] target: &Tensor<f64, 3>,
            #[dims(D)] ln1_w: &Tensor<f64, 1>,
            #[dims(D)] ln1_b: &Tensor<f64, 1>,
            #[dims(D, 3 * D)] w_qkv: &Tensor<f64, 2>,
            #[dims(3 * D)] b_qkv: &Tensor<f64, 1>,
            #[dims(D, D)] w_out: &Tensor<f64, 2>,
            #[dims(D)] b_out: &Tensor<f64, 1>,
            #[dims(D)] ln2_w: &Tensor<f64, 1>,
            #[dims(D)] ln2_b: &Tensor<f64, 1>,
            #[dims(D, H)] w_up: &Tensor<f64, 2>,
            #[dims(H)] b_up: &Tensor<f64, 1>,
            #[dims(H, D)] w_down: &Tensor<f64, 2>,
            #[dims(D)] b_down: &Tensor<f64, 1>,
        ) -> Tensor<f64, 0> {
            let [batch, seq, width] = x.dims();
            let normed = x.layer_norm(ln1_w, ln1_b, 1e-5);
            let [q, k, v] = (normed.matmul(w_qkv) + b_qkv).chunk(-1);
            let q = q.reshape([batch, seq, 4, width / 4]).transpose(1, 2);
            let k = k.reshape([batch, seq, 4, width / 4]).transpose(1, 2);
            let v = v.reshape([batch, seq, 4, width / 4]).transpose(1, 2);
            let attended = q.scaled_dot_product_attention(&k, &v, (), $causal);
            let attended = attended.transpose(1, 2).reshape([batch, seq, width]);
            let x = x + attended.matmul(w_out) + b_out;
            let normed = x.layer_norm(ln2_w, ln2_b, 1e-5);
            let hidden = (normed.matmul(w_up) + b_up).gelu();
            let error = x + hidden.matmul(w_down) + b_down - target;
            (&error * &error).mean_all()
        }
    };
}

block!(block_loss, false);
block!(causal_block_loss, true);

/// The weights of a block in the order of its parameters.
type Weights = (
    Tensor<f64, 1>,
    Tensor<f64, 1>,
    Tensor<f64, 2>,
    Tensor<f64, 1>,
    Tensor<f64, 2>,
    Tensor<f64, 1>,
    Tensor<f64, 1>,
    Tensor<f64, 1>,
    Tensor<f64, 2>,
    Tensor<f64, 1>,
    Tensor<f64, 2>,
    Tensor<f64, 1>,
);

/// Calls a function with a block's tensors.
macro_rules! call {
    ($function:path, $x:expr, $target:expr, $weights:expr) => {{
        let (ln1_w, ln1_b, w_qkv, b_qkv, w_out, b_out, ln2_w, ln2_b, w_up, b_up, w_down, b_down) = $weights;
        $function($x, $target, ln1_w, ln1_b, w_qkv, b_qkv, w_out, b_out, ln2_w, ln2_b, w_up, b_up, w_down, b_down)
    }};
}

/// The weights with one of them replaced.
macro_rules! with {
    ($weights:expr, $k:tt, $new:expr) => {{
        let mut weights = $weights.clone();
        weights.$k = $new.clone();
        weights
    }};
}

#[test]
fn a_transformer_block_has_the_gradients_of_finite_differences() {
    let d = device();
    let (x, target) = (Tensor::randn([2, 3, 8], d), Tensor::randn([2, 3, 8], d));
    let row = || Tensor::<f64, 1>::randn([8], d);
    let square = || Tensor::<f64, 2>::randn([8, 8], d) * 0.5;
    let (w_qkv, b_qkv) = (Tensor::randn([8, 24], d) * 0.5, Tensor::randn([24], d));
    let weights: Weights =
        (row(), row(), w_qkv, b_qkv, square(), row(), row(), row(), square(), row(), square(), row());
    let (_, grads) = call!(causal_block_loss::value_and_grad, &x, &target, &weights);
    let loss = |weights: &Weights| call!(causal_block_loss, &x, &target, weights).item();
    check(&grads.0, &weights.0, |w| loss(&with!(weights, 0, w)));
    check(&grads.2, &weights.2, |w| loss(&with!(weights, 2, w)));
    check(&grads.3, &weights.3, |w| loss(&with!(weights, 3, w)));
    check(&grads.4, &weights.4, |w| loss(&with!(weights, 4, w)));
    check(&grads.8, &weights.8, |w| loss(&with!(weights, 8, w)));
}

/// Gradients of a block that another implementation gives in f64.
#[test]
fn a_transformer_block_has_the_gradients_of_the_reference() {
    let Some(folder) = reference() else { return };
    let (x, target, weights) = initial(&folder);
    let by_weights = |weights: &Weights| call!(block_loss::value_and_grad, &x, &target, weights).1;
    agree("grad0", &by_weights(&weights), &folder.join("block_expected_f64.safetensors"), 1e-12);
    let by_weights = |weights: &Weights| call!(causal_block_loss::value_and_grad, &x, &target, weights).1;
    agree("grad0", &by_weights(&weights), &folder.join("block_causal_expected_f64.safetensors"), 1e-12);
}

/// The folder of the reference: `FUSE_TRAINING`.
fn reference() -> Option<PathBuf> {
    let folder = std::env::var_os("FUSE_TRAINING").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: FUSE_TRAINING does not name the folder of the reference");
    }
    folder
}

/// Input, target and weights at the start.
fn initial(folder: &Path) -> (Tensor<f64, 3>, Tensor<f64, 3>, Weights) {
    let initial = safetensors::load(folder.join("block_initial.safetensors"), device()).unwrap();
    let wide = |name: &str| initial.raw(name).unwrap().clone();
    let vector = |name: &str| Tensor::<f32, 1>::from_raw(wide(name)).cast::<f64>();
    let matrix = |name: &str| Tensor::<f32, 2>::from_raw(wide(name)).cast::<f64>();
    let batch = |name: &str| Tensor::<f32, 3>::from_raw(wide(name)).cast::<f64>();
    let weights = (
        vector("ln1_w"),
        vector("ln1_b"),
        matrix("w_qkv"),
        vector("b_qkv"),
        matrix("w_out"),
        vector("b_out"),
        vector("ln2_w"),
        vector("ln2_b"),
        matrix("w_up"),
        vector("b_up"),
        matrix("w_down"),
        vector("b_down"),
    );
    (batch("x"), batch("target"), weights)
}

/// Compares tensors with those that the reference calls `prefix.name`, in units of the largest element.
fn agree(prefix: &str, found: &Weights, path: &Path, tolerance: f64) {
    let expected = safetensors::load(path, device()).unwrap();
    let close = |name: &str, found: Vec<f64>| {
        let wanted: Vec<f64> = expected.raw(&format!("{prefix}.{name}")).unwrap().to_vec().unwrap();
        let scale = wanted.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() <= tolerance * scale, "{name}: {found} for {wanted}");
        }
    };
    let (ln1_w, ln1_b, w_qkv, b_qkv, w_out, b_out, ln2_w, ln2_b, w_up, b_up, w_down, b_down) = found;
    close("ln1_w", ln1_w.to_vec());
    close("ln1_b", ln1_b.to_vec());
    close("w_qkv", w_qkv.to_vec());
    close("b_qkv", b_qkv.to_vec());
    close("w_out", w_out.to_vec());
    close("b_out", b_out.to_vec());
    close("ln2_w", ln2_w.to_vec());
    close("ln2_b", ln2_b.to_vec());
    close("w_up", w_up.to_vec());
    close("b_up", b_up.to_vec());
    close("w_down", w_down.to_vec());
    close("b_down", b_down.to_vec());
}

/// One step of AdamW for a tensor.
fn adamw<const R: usize>(
    step: i32,
    weight: &mut Tensor<f64, R>,
    gradient: &Tensor<f64, R>,
    mean: &mut Tensor<f64, R>,
    square: &mut Tensor<f64, R>,
) {
    const RATE: f64 = 3e-3;
    *mean = &*mean * 0.9 + gradient * 0.1;
    *square = &*square * 0.999 + gradient * gradient * 0.001;
    let (mean, square) = (&*mean / (1.0 - 0.9f64.powi(step)), &*square / (1.0 - 0.999f64.powi(step)));
    *weight = &*weight * (1.0 - RATE * 0.01) - mean / (square.sqrt() + 1e-8) * RATE;
}

/// Zeros of the extents of the weights.
fn nothing(weights: &Weights) -> Weights {
    let (a, b, c, d, e, f, g, h, i, j, k, l) = weights;
    (a * 0.0, b * 0.0, c * 0.0, d * 0.0, e * 0.0, f * 0.0, g * 0.0, h * 0.0, i * 0.0, j * 0.0, k * 0.0, l * 0.0)
}

/// A step of AdamW for every weight of a block.
macro_rules! update {
    ($step:expr, $weights:expr, $grads:expr, $means:expr, $squares:expr; $($k:tt)*) => {
        $(adamw($step, &mut $weights.$k, &$grads.$k, &mut $means.$k, &mut $squares.$k);)*
    };
}

#[test]
fn training_a_block_goes_as_in_the_reference() {
    let Some(folder) = reference() else { return };
    let text = std::fs::read_to_string(folder.join("reference.json")).unwrap();
    let reference: serde_json::Value = serde_json::from_str(&text).unwrap();
    let losses: Vec<f64> =
        reference["block"]["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).collect();
    let (x, target, mut weights) = initial(&folder);
    let mut means = nothing(&weights);
    let mut squares = means.clone();
    for (step, wanted) in losses.iter().enumerate() {
        let (loss, grads) = call!(block_loss::value_and_grad, &x, &target, &weights);
        assert!((loss.item() - wanted).abs() <= 1e-9 * wanted, "step {step}: {} for {wanted}", loss.item());
        update!(step as i32 + 1, weights, grads, means, squares; 0 1 2 3 4 5 6 7 8 9 10 11);
    }
    agree("final", &weights, &folder.join("block_expected_f64.safetensors"), 1e-9);
}
