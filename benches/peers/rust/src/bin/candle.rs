//! candle on the workloads of a processor.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{loss, ops};
use fuse_peers::report;

fn main() {
    const N: usize = 1 << 24;
    report("K1_pointwise_f32_16M", 1, || [normal(&[N]), normal(&[N])], |[x, y]| done(pointwise(x, y)));
    report("K2_horizontal_f32_16M", 1, || normal(&[N]), |x| (done(x.relu()), done(ops::sigmoid(x))));
    report("K3_bias_gelu_f32_4096x3072", 3, || [normal(&[4096, 3072]), normal(&[3072])], |[x, b]| {
        done(x.broadcast_add(b).and_then(|x| x.gelu_erf()))
    });
    report("K5_softmax_f32_4096x4096", 3, || normal(&[4096, 4096]), |x| done(ops::softmax_last_dim(x)));
    report(
        "K6_layernorm_f32_4096x4096",
        3,
        || [normal(&[4096, 4096]), normal(&[4096]), normal(&[4096])],
        |[x, g, b]| done(ops::layer_norm(x, g, b, 1e-5)),
    );
    report("K7_rmsnorm_f32_4096x4096", 3, || [normal(&[4096, 4096]), normal(&[4096])], |[x, g]| {
        done(ops::rms_norm(x, g, 1e-6))
    });
    report("K8_cross_entropy_f32_512x50257", 3, || [normal(&[512, 50257]), classes(512, 50257)], |[x, t]| {
        done(loss::cross_entropy(x, t))
    });
    report("K9_column_sum_f32_16384x1024", 3, || normal(&[16384, 1024]), |x| done(x.sqr().and_then(|x| x.sum(0))));
    report("K10_transpose_add_f32_4096x4096", 1, || [normal(&[4096, 4096]), normal(&[4096, 4096])], |[x, y]| {
        done(x.t().and_then(|x| x + y))
    });
    report("K11_linear_relu_f32_1024x768x3072", 3, || [normal(&[1024, 768]), weight(768, 3072), normal(&[3072])], |[
        x,
        w,
        b,
    ]| {
        done(x.matmul(w).and_then(|x| x.broadcast_add(b)?.relu()))
    });
    let heads = || [0; 3].map(|_| normal(&[2, 12, 512, 64]));
    report("K12_sdpa_f32_2x12x512x64", 3, heads, |[q, k, v]| done(attention(q, k, v)));
    let block = Block::random(768, 12, 3072);
    report("K13_block_eval_f32_2x512x768", 3, || normal(&[2, 512, 768]), |x| done(block.forward(x)));
    report("K15_chain_75_ops_f32_1024", 3, || normal(&[1024]), |x| done(chain(x)));
    let layers = || [normal(&[1, 256]), weight(256, 256), weight(256, 256), weight(256, 256)];
    report("K16_small_mlp_f32_1x256", 3, layers, |[x, a, b, c]| {
        done(x.matmul(a).and_then(|x| x.relu()?.matmul(b)?.relu()?.matmul(c)))
    });
    report("K17_graph_break_f32_256x256", 3, || [normal(&[256, 256]), weight(256, 256)], |[x, w]| {
        done(graph_break(x, w))
    });
}

fn pointwise(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    ((x.affine(2.0, 1.0)?.relu()? * ops::sigmoid(x)?)? + y)?.contiguous()
}

fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let scale = (q.dim(D::Minus1)? as f64).powf(-0.5);
    ops::softmax_last_dim(&(q.matmul(&k.t()?)? * scale)?)?.matmul(v)
}

fn chain(x: &Tensor) -> Result<Tensor> {
    (0..25).try_fold(x.clone(), |x, _| x.affine(1.01, 0.1)?.tanh())
}

fn graph_break(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    let x = x.matmul(w)?.relu()?;
    let x = if x.mean_all()?.to_scalar::<f32>()? > 0.2 { x.affine(2.0, 0.0)? } else { x.affine(1.0, -1.0)? };
    x.gelu_erf()
}

/// The pre-norm transformer block of the workloads.
struct Block {
    heads: usize,
    norms: [[Tensor; 2]; 2],
    qkv: [Tensor; 2],
    out: [Tensor; 2],
    up: [Tensor; 2],
    down: [Tensor; 2],
}

impl Block {
    fn random(d: usize, heads: usize, ff: usize) -> Self {
        let linear = |from, to| [weight(from, to), normal(&[to])];
        let norm = || [normal(&[d]), normal(&[d])];
        Block {
            heads,
            norms: [norm(), norm()],
            qkv: linear(d, 3 * d),
            out: linear(d, d),
            up: linear(d, ff),
            down: linear(ff, d),
        }
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [g, b] = &self.norms[0];
        let x = (x + self.attend(&ops::layer_norm(x, g, b, 1e-5)?)?)?;
        let [g, b] = &self.norms[1];
        let hidden = linear(&ops::layer_norm(&x, g, b, 1e-5)?, &self.up)?.gelu_erf()?;
        x + linear(&hidden, &self.down)?
    }

    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, seq, d) = x.dims3()?;
        let split = |x: Tensor| x.reshape((batch, seq, self.heads, d / self.heads))?.transpose(1, 2)?.contiguous();
        let parts = linear(x, &self.qkv)?.chunk(3, D::Minus1)?;
        let [q, k, v] = [0, 1, 2].map(|part| split(parts[part].contiguous()?));
        let joined = attention(&q?, &k?, &v?)?.transpose(1, 2)?.reshape((batch, seq, d))?;
        linear(&joined, &self.out)
    }
}

fn linear(x: &Tensor, [w, b]: &[Tensor; 2]) -> Result<Tensor> {
    let (batch, seq, d) = x.dims3()?;
    let flat = x.reshape((batch * seq, d))?.matmul(w)?.broadcast_add(b)?;
    flat.reshape((batch, seq, w.dim(1)?))
}

fn normal(dims: &[usize]) -> Tensor {
    done(Tensor::randn(0f32, 1.0, dims, &Device::Cpu))
}

/// Normal numbers scaled so that a product with them keeps its size.
fn weight(from: usize, to: usize) -> Tensor {
    done(Tensor::randn(0f32, (from as f32).powf(-0.5), &[from, to], &Device::Cpu))
}

fn classes(n: usize, count: usize) -> Tensor {
    let spread: Vec<u32> = (0..n).map(|i| ((i * 7919) % count) as u32).collect();
    done(Tensor::from_vec(spread, n, &Device::Cpu).and_then(|t| t.to_dtype(DType::U32)))
}

fn done<T>(result: Result<T>) -> T {
    result.expect("the shapes fit")
}
