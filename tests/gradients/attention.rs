//! Attention of layers that a tape walks back over: nothing of queries by keys is kept for that, and on a GPU none is made.

use crate::common::{device, turn};
use fuse_runtime::prelude::*;
use fuse_runtime::{Generator, rt::recorder};

#[compile(grad(q, k, v))]
fn attend<T: Float>(
    #[dims(B, H, S, 64)] q: &Tensor<T, 4>,
    #[dims(B, H, S, 64)] k: &Tensor<T, 4>,
    #[dims(B, H, S, 64)] v: &Tensor<T, 4>,
    training: bool,
) -> Tensor<T, 4> {
    (q.matmul(&k.transpose(-2, -1)) * T::from_f64(0.125)).softmax(-1).dropout(0.1, training).matmul(v)
}

#[compile(grad(q, k, v))]
fn masked(
    #[dims(B, H, S, 64)] q: &Tensor<f32, 4>,
    #[dims(B, H, S, 64)] k: &Tensor<f32, 4>,
    #[dims(B, H, S, 64)] v: &Tensor<f32, 4>,
    #[dims(B, 1, 1, S)] mask: &Tensor<bool, 4>,
    causal: bool,
) -> Tensor<f32, 4> {
    match causal {
        true => q.scaled_dot_product_attention(k, v, mask, true),
        false => {
            let scores = q.matmul(&k.transpose(-2, -1)) * 0.125;
            mask.where_cond(scores, f32::NEG_INFINITY).softmax(-1).matmul(v)
        }
    }
}

type Heads<T> = [Tensor<T, 4>; 3];

fn heads<T: Float>(d: Device, dims: [usize; 4]) -> Heads<T> {
    [(); 3].map(|()| Tensor::<f32, 4>::randn(dims, d).cast::<T>())
}

/// The gradients of two such layers, one behind the other.
fn gradients<T: Float>(heads: &Heads<T>, layer: impl Fn(&Heads<T>) -> Tensor<T, 4>) -> Vec<Vec<f64>> {
    let [q, k, v] = heads;
    let run = || {
        value_and_grad((q, k, v), |(q, k, v)| {
            let once = layer(&[q.clone(), k.clone(), v]);
            let twice = layer(&[once, q, k]);
            (&twice * &twice).sum_all()
        })
    };
    let (value, (q, k, v)) = Generator::new(5).scope(run);
    let wide = |x: Tensor<T, 4>| x.to_vec().into_iter().map(|x| x.to_f64()).collect();
    vec![vec![value.item().to_f64()], wide(q), wide(k), wide(v)]
}

fn close(found: &[Vec<f64>], eager: &[Vec<f64>], unit: f64) {
    for (found, eager) in found.iter().zip(eager) {
        let most = eager.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        for (a, b) in found.iter().zip(eager) {
            assert!((a - b).abs() <= unit * most, "{a}, op by op {b}, of {most}");
        }
    }
}

#[test]
fn layers_of_attention_have_the_gradients_of_their_originals() {
    for training in [false, true] {
        let floats = heads::<f32>(device(), [2, 3, 70, 64]);
        let [found, eager] = [attend, attend::eager]
            .map(|f: fn(&_, &_, &_, _) -> _| gradients(&floats, |[q, k, v]| f(q, k, v, training)));
        close(&found, &eager, 2e-5);
        let halves = heads::<bf16>(device(), [2, 3, 70, 64]);
        let [found, eager] = [attend, attend::eager]
            .map(|f: fn(&_, &_, &_, _) -> _| gradients(&halves, |[q, k, v]| f(q, k, v, training)));
        close(&found, &eager, 0.06);
    }
}

#[test]
fn masks_are_those_of_the_original() {
    let floats = heads::<f32>(device(), [2, 3, 70, 64]);
    let ends = Tensor::from_slice(&[70i64, 33], [2, 1, 1, 1], device());
    let mask = Tensor::<i64, 1>::arange(0, 70, device()).lt(ends);
    for causal in [false, true] {
        let [found, eager] = [masked, masked::eager]
            .map(|f: fn(&_, &_, &_, &_, _) -> _| gradients(&floats, |[q, k, v]| f(q, k, v, &mask, causal)));
        close(&found, &eager, 2e-5);
    }
}

/// Rows of the cotangent of a sum do not lie next to each other, so it goes in steps.
#[test]
fn a_spread_cotangent_has_the_gradients_of_the_original() {
    let floats = heads::<f32>(device(), [2, 3, 70, 64]);
    let [found, eager] = [attend, attend::eager].map(|layer: fn(&_, &_, &_, _) -> Tensor<f32, 4>| {
        let [q, k, v] = &floats;
        let run = || value_and_grad((q, k, v), |(q, k, v)| layer(&q, &k, &v, true).sum_all()).1;
        let (q, k, v) = Generator::new(3).scope(run);
        [q, k, v].map(|x| x.to_vec().into_iter().map(f64::from).collect::<Vec<f64>>())
    });
    close(&found, &eager, 2e-5);
}

/// Where the kernels run is recorded: forward one, back four, among which one draws.
#[test]
fn a_tape_launches_kernels_of_attention() {
    let _turn = turn();
    let heads = heads::<bf16>(recorder::device(), [2, 3, 128, 64]);
    recorder::launches();
    let [q, k, v] = &heads;
    value_and_grad((q, k, v), |(q, k, v)| {
        let result = attend(&q, &k, &v, true);
        (&result * &result).sum_all()
    });
    let launched: Vec<String> = recorder::launches().into_iter().map(|launch| launch.kernel).collect();
    let of_attention: Vec<&str> =
        launched.iter().filter_map(|name| Some(name.split_at(name.find("attention")?).1)).collect();
    assert_eq!(of_attention, ["attention", "attention_drops", "attention", "attention_queries", "attention_keys"]);
    assert!(!launched.iter().any(|name| name.contains("matmul")), "{launched:?}");
}

/// One matrix of queries by keys of halves is four times as large as all that is allocated.
#[test]
fn no_matrix_is_ever_in_memory_on_a_gpu() {
    let d = device();
    if d.is_cpu() {
        return;
    }
    let (heads, matrix) = (heads::<bf16>(d, [1, 8, 4096, 64]), 8 * 4096 * 4096 * 2);
    let before = d.memory_allocated().unwrap();
    d.reset_peak_memory_stats().unwrap();
    gradients(&heads, |[q, k, v]| attend(q, k, v, true));
    let most = d.max_memory_allocated().unwrap() - before;
    assert!(most < matrix / 2, "{most} bytes, and a matrix has {matrix}");
}

#[test]
fn the_report_says_what_is_kept() {
    let text = attend::explain().to_string();
    assert!(text.contains("keeps the argument `q`") && text.contains("computes again"), "{text}");
    assert!(!text.contains("keeps `"), "{text}");
}
