//! A transformer block: its gradients by finite differences and by another implementation, which also trained it, and a
//! perceptron. Both are trained here as there, with gradients from compiled code and from the eager tape.

mod common;

use common::{check, device};
use fuse_runtime::optim::{AdamW, Sgd};
use fuse_runtime::prelude::*;
use fuse_runtime::safetensors;
use std::io::Read;
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

/// What the reference says about a training, from its file.
fn told(folder: &Path, training: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(folder.join("reference.json")).unwrap();
    let reference: serde_json::Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(reference[training]["losses"].clone()).unwrap()
}

/// Compares the losses of all steps of a training.
fn train(losses: &[f64], tolerance: f64, mut step: impl FnMut() -> f64) {
    for (number, wanted) in losses.iter().enumerate() {
        let loss = step();
        assert!((loss - wanted).abs() <= tolerance * wanted.abs(), "step {number}: {loss} for {wanted}");
    }
}

/// Trains a block with AdamW, its gradients from compiled code and from the tape of eager ops.
macro_rules! training_a_block_goes_as {
    ($training:literal, $function:ident, $expected:literal) => {
        let Some(folder) = reference() else { return };
        let losses = told(&folder, $training);
        let (x, target, initial) = initial(&folder);

        let (mut weights, mut opt) = (initial.clone(), AdamW::new(3e-3));
        train(&losses, 1e-9, || {
            let (loss, grads) = call!($function::value_and_grad, &x, &target, &weights);
            opt.step(&mut weights, &grads);
            loss.item()
        });
        agree("final", &weights, &folder.join($expected), 1e-9);

        let (mut weights, mut opt) = (initial, AdamW::new(3e-3));
        train(&losses, 1e-9, || {
            let (a, b, c, d, e, f, g, h, i, j, k, l) = &weights;
            let variables = (a, b, c, d, e, f, g, h, i, j, k, l);
            let eager = |variables: Weights| call!($function::eager, &x, &target, &variables);
            let (loss, grads) = value_and_grad(variables, eager);
            opt.step(&mut weights, &grads);
            loss.item()
        });
        agree("final", &weights, &folder.join($expected), 1e-9);
    };
}

#[test]
fn training_a_block_goes_as_in_the_reference() {
    training_a_block_goes_as!("block", block_loss, "block_expected_f64.safetensors");
}

#[test]
fn training_a_causal_block_goes_as_in_the_reference() {
    training_a_block_goes_as!("block_causal", causal_block_loss, "block_causal_expected_f64.safetensors");
}

#[compile(grad(w1, b1, w2, b2))]
fn perceptron_loss<T: Float>(
    #[dims(N, 64)] images: &Tensor<T, 2>,
    #[dims(N)] labels: &Tensor<i64, 1>,
    #[dims(64, H)] w1: &Tensor<T, 2>,
    #[dims(H)] b1: &Tensor<T, 1>,
    #[dims(H, 10)] w2: &Tensor<T, 2>,
    #[dims(10)] b2: &Tensor<T, 1>,
) -> Tensor<T, 0> {
    let hidden = (images.matmul(w1) + b1).gelu();
    (hidden.matmul(w2) + b2).cross_entropy(labels)
}

/// The digits that the reference trains on: pixels from 0 to 1 and labels.
fn digits<T: Float>() -> (Tensor<T, 2>, Tensor<i64, 1>) {
    let file = include_bytes!("../examples/data/digits/digits.csv.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file.as_slice()).read_to_string(&mut text).unwrap();
    let rows: Vec<Vec<i64>> =
        text.lines().take(1536).map(|line| line.split(',').map(|n| n.parse().unwrap()).collect()).collect();
    let pixels = rows.iter().flat_map(|row| &row[..64]).map(|&pixel| T::from_f64(pixel as f64 / 16.0)).collect();
    let labels = rows.iter().map(|row| row[64]).collect();
    (Tensor::from_vec(pixels, [1536, 64], device()), Tensor::from_vec(labels, [1536], device()))
}

/// Trains a perceptron with momentum on batches of 128, compiled and on the tape.
fn training_a_perceptron_goes_as_in_the_reference<T: Float>(tolerance: f64) {
    let Some(folder) = reference() else { return };
    let losses = told(&folder, "mlp_digits");
    let file = safetensors::load(folder.join("mlp_initial.safetensors"), device()).unwrap();
    let matrix = |name: &str| file.get::<f32, 2>(name).unwrap().cast::<f64>().cast::<T>();
    let vector = |name: &str| file.get::<f32, 1>(name).unwrap().cast::<f64>().cast::<T>();
    let initial = (matrix("w1"), vector("b1"), matrix("w2"), vector("b2"));
    let (images, labels) = digits::<T>();
    let batch = |step: usize| {
        let first = step * 128 % 1536;
        (images.narrow(0, first, 128), labels.narrow(0, first, 128))
    };
    for compiled in [true, false] {
        let (mut weights, mut opt, mut step) = (initial.clone(), Sgd::new(0.2).momentum(0.9), 0);
        train(&losses, tolerance, || {
            let ((images, labels), (w1, b1, w2, b2)) = (batch(step), &weights);
            let (loss, grads) = match compiled {
                true => perceptron_loss::value_and_grad(&images, &labels, w1, b1, w2, b2),
                false => value_and_grad((w1, b1, w2, b2), |(w1, b1, w2, b2)| {
                    perceptron_loss::eager(&images, &labels, &w1, &b1, &w2, &b2)
                }),
            };
            opt.step(&mut weights, &grads);
            step += 1;
            loss.cast::<f64>().item()
        });
    }
}

#[test]
fn training_a_perceptron_goes_as_in_the_reference_in_double_precision() {
    training_a_perceptron_goes_as_in_the_reference::<f64>(1e-9);
}

/// The other implementation's own f32 run deviates by 5e-6 from its f64 run.
#[test]
fn training_a_perceptron_goes_as_in_the_reference_in_single_precision() {
    training_a_perceptron_goes_as_in_the_reference::<f32>(5e-5);
}

#[compile(grad(table))]
fn looked_up<T: Float>(table: &Tensor<T, 2>, places: &Tensor<i64, 1>) -> Tensor<T, 0> {
    table.embedding(places).sum_all()
}

#[test]
fn a_generic_table_has_gradients_where_it_is_looked_up() {
    fn of<T: Float>() {
        let (table, places) =
            (Tensor::<T, 2>::ones([4, 2], device()), Tensor::from_slice(&[3i64, 1, 3], [3], device()));
        let (_, grad) = looked_up::value_and_grad(&table, &places);
        assert_eq!(grad.cast::<f64>().to_vec(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0]);
    }
    of::<f32>();
    of::<f64>();
    of::<f16>();
    of::<bf16>();
}
