//! What runs together on a GPU: products of one left operand in one kernel, small kernels in one launch.

mod common;

use common::{device, turn};
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use half::bf16;

#[compile(fullgraph)]
fn gated<T: Float>(
    #[dims(B, K)] x: &Tensor<T, 2>,
    #[dims(K, N)] gate: &Tensor<T, 2>,
    #[dims(K, N)] up: &Tensor<T, 2>,
) -> Tensor<T, 2> {
    x.matmul(gate).silu() * x.matmul(up)
}

#[compile(fullgraph)]
fn projections(
    #[dims(B, S, K)] x: &Tensor<f32, 3>,
    #[dims(N, K)] wq: &Tensor<f32, 2>,
    #[dims(N, K)] wk: &Tensor<f32, 2>,
    #[dims(N, K)] wv: &Tensor<f32, 2>,
    #[dims(N)] bias: &Tensor<f32, 1>,
) -> [Tensor<f32, 3>; 3] {
    [x.linear(wq, bias), x.linear(wk, bias), x.linear(wv, bias)]
}

#[compile(fullgraph, grad(wq, wk))]
fn compared(
    #[dims(B, K)] x: &Tensor<f32, 2>,
    #[dims(K, N)] wq: &Tensor<f32, 2>,
    #[dims(K, N)] wk: &Tensor<f32, 2>,
) -> Tensor<f32, 0> {
    (x.matmul(wq).tanh() * x.matmul(wk)).sum_all()
}

#[compile(fullgraph)]
fn apart(a: &Tensor<f32, 1>, b: &Tensor<f32, 2>, c: &Tensor<f32, 1>, d: &Tensor<f32, 3>) -> Parts {
    (a.tanh() * 2.0, b + b.t(), c.exp(), d.relu() - 1.0)
}

/// Heads of queries and of keys, normalised, and a step of a counter.
#[compile(fullgraph)]
fn normed<T: Float>(
    #[dims(B, HQ, S, D)] q: &Tensor<T, 4>,
    #[dims(B, HK, S, D)] k: &Tensor<T, 4>,
    #[dims(D)] weight: &Tensor<T, 1>,
    position: &Tensor<i64, 1>,
) -> (Tensor<T, 4>, Tensor<T, 4>, Tensor<i64, 1>) {
    (q.rms_norm(weight, 1e-6), k.rms_norm(weight, 1e-6), position + 1)
}

type Parts = (Tensor<f32, 1>, Tensor<f32, 2>, Tensor<f32, 1>, Tensor<f32, 3>);

/// The kernels that a call launches on a device that only notes them.
fn launches_of<R>(call: impl FnOnce() -> R) -> Vec<String> {
    recorder::launches();
    drop(call());
    let unfold = |launch: recorder::Launch| if launch.inside.is_empty() { vec![launch] } else { launch.inside };
    recorder::launches().into_iter().flat_map(unfold).map(|launch| launch.kernel).collect()
}

fn launches_of_a_gate<T: Float>([m, k, n]: [usize; 3]) -> Vec<String> {
    let device = recorder::device();
    let (x, gate, up) =
        (Tensor::<T, 2>::randn([m, k], device), Tensor::randn([k, n], device), Tensor::randn([k, n], device));
    launches_of(|| gated(&x, &gate, &up))
}

#[test]
fn a_gate_is_one_launch_where_that_is_faster() {
    let _turn = turn();
    for extents in [[1, 768, 3072], [16, 768, 3072], [512, 768, 3072], [4096, 768, 3072]] {
        assert_eq!(launches_of_a_gate::<f32>(extents).len(), 1, "{extents:?}");
    }
    let launches = launches_of_a_gate::<bf16>([4096, 768, 3072]);
    assert_eq!(launches.len(), 1, "{launches:?}");
    // Few rows of halves, and large products, are the library's.
    for extents in [[16, 768, 768], [2048, 4096, 11008]] {
        let launches = launches_of_a_gate::<bf16>(extents);
        assert_eq!(launches.iter().filter(|kernel| *kernel == "matmul").count(), 2, "{extents:?}: {launches:?}");
    }
}

#[test]
fn weights_that_lie_apart_are_multiplied_one_after_the_other() {
    let _turn = turn();
    let device = recorder::device();
    let (x, gate) = (Tensor::<f32, 2>::randn([8, 64], device), Tensor::randn([64, 64], device));
    assert_eq!(launches_of(|| gated(&x, &gate, &gate.t())).len(), 2);
    assert_eq!(launches_of(|| gated(&x, &gate.t(), &gate.t())).len(), 1);
}

#[test]
fn projections_are_one_launch_and_said_to_be() {
    let _turn = turn();
    let device = recorder::device();
    let (x, w) = (Tensor::randn([2, 512, 768], device), Tensor::randn([768, 768], device));
    let bias = Tensor::zeros([768], device);
    assert_eq!(launches_of(|| projections(&x, &w, &w, &w, &bias)).len(), 1);
    let report = projections::explain().to_string();
    assert!(report.contains("are one kernel") && report.contains("all that makes 1 launch"), "{report}");
}

#[test]
fn gradients_of_weights_are_one_launch() {
    let _turn = turn();
    let device = recorder::device();
    let (x, w) = (Tensor::randn([4096, 768], device), Tensor::randn([768, 768], device));
    let launches = launches_of(|| compared::value_and_grad(&x, &w, &w));
    // The products forward, and those of the weights' gradients.
    let products = launches.iter().filter(|kernel| kernel.contains("products")).count();
    assert!(products == 2 && !launches.contains(&"matmul".to_owned()), "{launches:?}");
}

#[test]
fn small_maps_are_one_launch() {
    let _turn = turn();
    let launches = |n: usize| {
        let d = recorder::device();
        let (a, b, c) = (Tensor::randn([n], d), Tensor::randn([33, 33], d), Tensor::randn([2 * n], d));
        let parts = Tensor::randn([2, 3, n], d);
        launches_of(|| apart(&a, &b, &c, &parts))
    };
    assert_eq!(launches(100), ["s0_small"]);
    assert_eq!(launches(1 << 20).len(), 4);
    let report = apart::explain().to_string();
    assert!(report.contains("are one launch, `") && report.contains("all that makes 1 launch"), "{report}");
}

#[test]
fn small_rows_are_one_launch_beside_what_is_large() {
    let _turn = turn();
    let launches = |[heads, seq, width]: [usize; 3]| {
        let d = recorder::device();
        let (q, k) = (Tensor::<bf16, 4>::randn([1, 32, seq, width], d), Tensor::randn([1, heads, seq, width], d));
        let (weight, position) = (Tensor::ones([width], d), Tensor::zeros([1], d));
        launches_of(|| normed(&q, &k, &weight, &position))
    };
    assert_eq!(launches([8, 1, 128]), ["k0_small"]);
    // Queries are so many that they are a launch of their own.
    let apart = launches([8, 16, 256]);
    assert!(apart.len() == 2 && apart[0] == "k0_small", "{apart:?}");
    assert_eq!(launches([8, 512, 256]).len(), 3);
}

#[test]
fn what_runs_together_gives_what_runs_apart() {
    let d = device();
    for [m, k, n] in [[3, 40, 24], [130, 64, 72], [1, 17, 5]] {
        let (x, gate, up) = (Tensor::<f32, 2>::randn([m, k], d), Tensor::randn([k, n], d), Tensor::randn([k, n], d));
        close(&gated(&x, &gate, &up).to_vec(), &gated::eager(&x, &gate, &up).to_vec(), k);
        let x = x.unsqueeze(0);
        let (w, bias) = ([0, 1, 2].map(|_| Tensor::randn([n, k], d)), Tensor::randn([n], d));
        let got = projections(&x, &w[0], &w[1], &w[2], &bias);
        let want = projections::eager(&x, &w[0], &w[1], &w[2], &bias);
        got.iter().zip(&want).for_each(|(got, want)| close(&got.to_vec(), &want.to_vec(), k));
    }
    let (a, b, c) = (Tensor::randn([1000], d), Tensor::randn([50, 50], d), Tensor::randn([7], d));
    let parts = Tensor::randn([3, 5, 7], d);
    for _ in 0..3 {
        let (got, want) = (apart(&a, &b, &c, &parts), apart::eager(&a, &b, &c, &parts));
        assert_eq!((got.0.to_vec(), got.1.to_vec()), (want.0.to_vec(), want.1.to_vec()));
        assert_eq!((got.2.to_vec(), got.3.to_vec()), (want.2.to_vec(), want.3.to_vec()));
    }
}

fn normed_alike<T: Float>(shape: [usize; 4], heads: usize) {
    let d = device();
    let [batch, _, seq, width] = shape;
    let (q, k) = (Tensor::<T, 4>::randn(shape, d), Tensor::randn([batch, heads, seq, width], d));
    let (weight, position) = (Tensor::randn([width], d), Tensor::zeros([1], d));
    for _ in 0..3 {
        let (got, want) = (normed(&q, &k, &weight, &position), normed::eager(&q, &k, &weight, &position));
        assert!(got.0.to_vec() == want.0.to_vec() && got.1.to_vec() == want.1.to_vec(), "{shape:?} and {heads}");
        assert_eq!(got.2.to_vec(), want.2.to_vec());
    }
}

#[test]
fn small_rows_have_the_bits_of_rows_apart() {
    for width in [1, 31, 128, 768, 1024, 1025, 4096, 20_000] {
        normed_alike::<f32>([1, 4, 1, width], 2);
        normed_alike::<bf16>([2, 3, 1, width], 1);
    }
    normed_alike::<f32>([1, 32, 16, 256], 8);
    normed_alike::<bf16>([1, 0, 2, 64], 3);
}

/// Sums of so many terms around 1, in units of the roundings of a float.
fn close(got: &[f32], want: &[f32], terms: usize) {
    let room = |want: f32| 8.0 * terms as f32 * f32::EPSILON * want.abs().max(terms as f32);
    assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() <= room(*want)), "{got:?}, not {want:?}");
}
