//! ndarray on the workloads of a processor: products by its library, everything else in loops of closures on all threads.

use fuse_peers::report;
use ndarray::parallel::prelude::*;
use ndarray::{Array, Array1, Array2, Array3, ArrayView2, Axis, Dimension, Ix1, Ix2, ShapeBuilder, Zip};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;

fn main() {
    const N: usize = 1 << 24;
    report("K1_pointwise_f32_16M", 1, || [normal::<Ix1>(N), normal(N)], |[x, y]| {
        Zip::from(x).and(y).par_map_collect(|&x, &y| (x * 2.0 + 1.0).max(0.0) * sigmoid(x) + y)
    });
    report("K2_horizontal_f32_16M", 1, || normal::<Ix1>(N), |x| {
        (Zip::from(x).par_map_collect(|x| x.max(0.0)), Zip::from(x).par_map_collect(|&x| sigmoid(x)))
    });
    report("K3_bias_gelu_f32_4096x3072", 3, || (normal::<Ix2>((4096, 3072)), normal::<Ix1>(3072)), |(x, b)| {
        Zip::from(x).and_broadcast(b).par_map_collect(|x, b| gelu(x + b))
    });
    report("K5_softmax_f32_4096x4096", 3, || normal::<Ix2>((4096, 4096)), |x| by_row(x, softmax));
    let normed = || (normal::<Ix2>((4096, 4096)), normal::<Ix1>(4096), normal::<Ix1>(4096));
    report("K6_layernorm_f32_4096x4096", 3, normed, |(x, g, b)| by_row(x, |row| layer_norm(row, g, b)));
    report("K7_rmsnorm_f32_4096x4096", 3, normed, |(x, g, _)| {
        by_row(x, |row| {
            let scale = (row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32 + 1e-6).sqrt().recip();
            row.iter_mut().zip(g).for_each(|(x, g)| *x *= scale * g);
        })
    });
    report("K8_cross_entropy_f32_512x50257", 3, || normal::<Ix2>((512, 50257)), cross_entropy);
    report("K9_column_sum_f32_16384x1024", 3, || normal::<Ix2>((16384, 1024)), |x| (x * x).sum_axis(Axis(0)));
    report(
        "K10_transpose_add_f32_4096x4096",
        1,
        || [normal::<Ix2>((4096, 4096)), normal((4096, 4096))],
        |[x, y]| Zip::from(x.t()).and(y).par_map_collect(|x, y| x + y),
    );
    let linear = || (normal::<Ix2>((1024, 768)), weight(768, 3072), normal::<Ix1>(3072));
    report("K11_linear_relu_f32_1024x768x3072", 3, linear, |(x, w, b)| {
        let mut out = x.dot(w);
        Zip::from(&mut out).and_broadcast(b).par_for_each(|x, b| *x = (*x + b).max(0.0));
        out
    });
    report("K12_sdpa_f32_2x12x512x64", 3, || [0; 3].map(|_| normal((24, 512, 64))), |[q, k, v]| attention(q, k, v));
    report("K15_chain_75_ops_f32_1024", 3, || normal::<Ix1>(1024), |x| {
        (0..25).fold(x.clone(), |x, _| x.mapv_into(|x| (x * 1.01 + 0.1).tanh()))
    });
    let layers = || [normal((1, 256)), weight(256, 256), weight(256, 256), weight(256, 256)];
    report("K16_small_mlp_f32_1x256", 3, layers, |[x, a, b, c]| relu(relu(x.dot(a)).dot(b)).dot(c));
    report("K17_graph_break_f32_256x256", 3, || [normal((256, 256)), weight(256, 256)], |[x, w]| {
        let x = relu(x.dot(w));
        let is_large = x.mean() > Some(0.2);
        x.mapv_into(|x| gelu(if is_large { x * 2.0 } else { x - 1.0 }))
    });
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

fn relu(x: Array2<f32>) -> Array2<f32> {
    x.mapv_into(|x| x.max(0.0))
}

fn by_row(x: &Array2<f32>, change: impl Fn(&mut [f32]) + Sync) -> Array2<f32> {
    let mut out = x.clone();
    let rows = out.axis_iter_mut(Axis(0)).into_par_iter();
    rows.for_each(|mut row| change(row.as_slice_mut().expect("rows are dense")));
    out
}

fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|x| *x = (*x - most).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

fn layer_norm(row: &mut [f32], g: &Array1<f32>, b: &Array1<f32>) {
    let n = row.len() as f32;
    let mean = row.iter().sum::<f32>() / n;
    let scale = (row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n + 1e-5).sqrt().recip();
    row.iter_mut().zip(g).zip(b).for_each(|((x, g), b)| *x = (*x - mean) * scale * g + b);
}

fn cross_entropy(x: &Array2<f32>) -> f32 {
    let rows = x.axis_iter(Axis(0)).into_par_iter().enumerate();
    let losses = rows.map(|(k, row)| {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = row.iter().map(|x| (x - most).exp()).sum();
        most + sum.ln() - row[k * 7919 % row.len()]
    });
    losses.sum::<f32>() / x.nrows() as f32
}

fn attention(q: &Array3<f32>, k: &Array3<f32>, v: &Array3<f32>) -> Vec<Array2<f32>> {
    let head = |h: usize| one_head(q.index_axis(Axis(0), h), k.index_axis(Axis(0), h), v.index_axis(Axis(0), h));
    (0..q.len_of(Axis(0))).into_par_iter().map(head).collect()
}

fn one_head(q: ArrayView2<f32>, k: ArrayView2<f32>, v: ArrayView2<f32>) -> Array2<f32> {
    let scale = (q.ncols() as f32).powf(-0.5);
    let mut scores = q.dot(&k.t()) * scale;
    scores.rows_mut().into_iter().for_each(|mut row| softmax(row.as_slice_mut().expect("rows are dense")));
    scores.dot(&v)
}

fn normal<D: Dimension>(dims: impl ShapeBuilder<Dim = D>) -> Array<f32, D> {
    let mut random = SmallRng::seed_from_u64(1);
    Array::from_shape_simple_fn(dims, || random.sample(StandardNormal))
}

/// Normal numbers scaled so that a product with them keeps its size.
fn weight(from: usize, to: usize) -> Array2<f32> {
    normal((from, to)) * (from as f32).powf(-0.5)
}
