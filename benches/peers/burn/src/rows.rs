//! The rows, with the arithmetic of `benches/workloads/functions.rs`.

use crate::measure::{Timing, time};
use burn::tensor::activation::{gelu, relu, sigmoid, softmax};
use burn::tensor::module::{attention, layer_norm, linear};
use burn::tensor::{DType, Device, Distribution, Tensor};

/// A workload and how it is timed.
pub struct Row {
    pub name: &'static str,
    pub time: fn(&Device) -> Timing,
}

const fn row(name: &'static str, time: fn(&Device) -> Timing) -> Row {
    Row { name, time }
}

const F32: DType = DType::F32;
const BF16: DType = DType::BF16;

/// Input sets are three, so that no timed read is served from the cache; eight where one would fit it.
pub const ROWS: &[Row] = &[
    row("P1_pointwise_f32_64M", |d| {
        let vector = || normal([1 << 26], F32, d);
        time(d, 3, || (vector(), vector()), |(x, y)| relu(x.clone() * 2.0 + 1.0) * sigmoid(x.clone()) + y.clone())
    }),
    row("P2_horizontal_f32_64M", |d| {
        time(d, 3, || normal([1 << 26], F32, d), |x| (relu(x.clone()), sigmoid(x.clone())))
    }),
    row("P3_bias_gelu_bf16_16384x3072", |d| {
        let make = || (normal([16384, 3072], BF16, d), normal([3072], BF16, d));
        time(d, 3, make, |(x, b)| gelu(x.clone() + b.clone().unsqueeze()))
    }),
    row("P5_softmax_f32_16384x4096", |d| time(d, 3, || normal([16384, 4096], F32, d), |x| softmax(x.clone(), 1))),
    row("P6_layernorm_bf16_16384x4096", |d| {
        let make = || (normal([16384, 4096], BF16, d), normal([4096], BF16, d), normal([4096], BF16, d));
        time(d, 3, make, |(x, g, b)| layer_norm(x.clone(), g.clone(), Some(b.clone()), 1e-5))
    }),
    row("P7_rmsnorm_bf16_16384x4096", |d| {
        time(d, 3, || (normal([16384, 4096], BF16, d), normal([4096], BF16, d)), |(x, g)| rms_norm(x, g))
    }),
    row("P9_column_sum_f32_65536x3072", |d| {
        time(d, 3, || normal([65536, 3072], F32, d), |x| (x.clone() * x.clone()).sum_dim(0))
    }),
    row("M1_linear_relu_f32_4096x768x3072", |d| linear_relu([4096, 768, 3072], F32, 3, d)),
    row("M3_linear_relu_bf16_4096x768x3072", |d| linear_relu([4096, 768, 3072], BF16, 3, d)),
    row("M4_linear_relu_bf16_8192x8192x8192", |d| linear_relu([8192, 8192, 8192], BF16, 3, d)),
    row("M6_linear_relu_bf16_16x4096x4096", |d| linear_relu([16, 4096, 4096], BF16, 8, d)),
    row("L1_chain_75_ops_f32_1024", |d| {
        let step = |x: Tensor<1>, _| (x * 1.01 + 0.1).tanh();
        time(d, 3, || normal([1024], F32, d), |x| (0..25).fold(x.clone(), step))
    }),
    row("L2_small_mlp_f32_1x256", |d| {
        let layer = || weight(256, 256, F32, d);
        let make = || (normal([1, 256], F32, d), [layer(), layer(), layer()]);
        time(d, 3, make, |(x, [a, b, c])| {
            let hidden = relu(x.clone().matmul(a.clone()));
            relu(hidden.matmul(b.clone())).matmul(c.clone())
        })
    }),
    row("T1_block_eval_f32_8x512x768", |d| {
        let block = Block::random(768, 12, 3072, d);
        time(d, 3, || normal([8, 512, 768], F32, d), |x| block.forward(x.clone()))
    }),
];

fn rms_norm(x: &Tensor<2>, g: &Tensor<1>) -> Tensor<2> {
    let xf = x.clone().cast(F32);
    let scale = (xf.clone().square().mean_dim(1) + 1e-6).sqrt().recip();
    (xf * scale).cast(BF16) * g.clone().unsqueeze()
}

fn linear_relu([m, k, n]: [usize; 3], dtype: DType, sets: usize, d: &Device) -> Timing {
    let make = || (normal([m, k], dtype, d), weight(k, n, dtype, d), normal([n], dtype, d));
    time(d, sets, make, |(x, w, b): &(Tensor<2>, Tensor<2>, Tensor<1>)| {
        relu(x.clone().matmul(w.clone()) + b.clone().unsqueeze())
    })
}

/// The pre-norm transformer block of the workloads.
struct Block {
    heads: usize,
    norms: [[Tensor<1>; 2]; 2],
    qkv: Linear,
    out: Linear,
    up: Linear,
    down: Linear,
}

/// Weight and bias of a layer.
struct Linear(Tensor<2>, Tensor<1>);

impl Linear {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        linear(x, self.0.clone(), Some(self.1.clone()))
    }
}

impl Block {
    fn random(width: usize, heads: usize, hidden: usize, d: &Device) -> Self {
        let norm = || [normal([width], F32, d), normal([width], F32, d)];
        let layer = |from, to| Linear(weight(from, to, F32, d), normal([to], F32, d));
        Block {
            heads,
            norms: [norm(), norm()],
            qkv: layer(width, 3 * width),
            out: layer(width, width),
            up: layer(width, hidden),
            down: layer(hidden, width),
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [first, second] = &self.norms;
        let x = x.clone() + self.attend(norm(x, first));
        let hidden = gelu(self.up.forward(norm(x.clone(), second)));
        x + self.down.forward(hidden)
    }

    fn attend(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, seq, width] = x.dims();
        let parts = self.qkv.forward(x).chunk(3, 2);
        let split =
            |part: &Tensor<3>| part.clone().reshape([batch, seq, self.heads, width / self.heads]).swap_dims(1, 2);
        let [q, k, v] = [split(&parts[0]), split(&parts[1]), split(&parts[2])];
        let attended = attention(q, k, v, None, None, Default::default());
        self.out.forward(attended.swap_dims(1, 2).reshape([batch, seq, width]))
    }
}

fn norm(x: Tensor<3>, [g, b]: &[Tensor<1>; 2]) -> Tensor<3> {
    layer_norm(x, g.clone(), Some(b.clone()), 1e-5)
}

fn normal<const R: usize>(dims: [usize; R], dtype: DType, d: &Device) -> Tensor<R> {
    Tensor::random(dims, Distribution::Normal(0.0, 1.0), (d, dtype))
}

/// Normal numbers scaled so that a product with them keeps its size.
fn weight(from: usize, to: usize, dtype: DType, d: &Device) -> Tensor<2> {
    Tensor::random([from, to], Distribution::Normal(0.0, (from as f64).powf(-0.5)), (d, dtype))
}
