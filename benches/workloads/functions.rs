//! The workloads: every one a compiled function with the arithmetic that the peers are measured on.

use fuse_runtime::prelude::*;

#[compile]
pub fn pointwise(#[dims(N)] x: &Tensor<f32, 1>, #[dims(N)] y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    (x * 2.0 + 1.0).relu() * x.sigmoid() + y
}

#[compile]
pub fn horizontal(#[dims(N)] x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    (x.relu(), x.sigmoid())
}

#[compile]
pub fn bias_gelu<T: Float>(#[dims(N, D)] x: &Tensor<T, 2>, #[dims(D)] b: &Tensor<T, 1>) -> Tensor<T, 2> {
    (x + b).gelu()
}

#[compile]
pub fn bias_dropout_residual_layernorm(
    #[dims(N, D)] x: &Tensor<f32, 2>,
    #[dims(D)] b: &Tensor<f32, 1>,
    #[dims(N, D)] r: &Tensor<f32, 2>,
    #[dims(D)] g: &Tensor<f32, 1>,
    #[dims(D)] be: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    (r + (x + b).dropout(0.1, true)).layer_norm(g, be, 1e-5)
}

#[compile]
pub fn softmax(#[dims(N, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.softmax(-1)
}

#[compile]
pub fn layernorm<T: Float>(
    #[dims(N, D)] x: &Tensor<T, 2>,
    #[dims(D)] g: &Tensor<T, 1>,
    #[dims(D)] b: &Tensor<T, 1>,
) -> Tensor<T, 2> {
    x.layer_norm(g, b, 1e-5)
}

#[compile]
pub fn rmsnorm<T: Float>(#[dims(N, D)] x: &Tensor<T, 2>, #[dims(D)] g: &Tensor<T, 1>) -> Tensor<T, 2> {
    let xf = x.cast::<f32>();
    let scale = (xf.powi(2).mean_keepdim(-1) + 1e-6).rsqrt();
    (xf * scale).cast::<T>() * g
}

#[compile]
pub fn cross_entropy(#[dims(N, C)] x: &Tensor<f32, 2>, #[dims(N)] t: &Tensor<i64, 1>) -> Tensor<f32, 0> {
    x.cross_entropy(t)
}

#[compile]
pub fn column_sum(#[dims(N, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 1> {
    (x * x).sum(0)
}

#[compile]
pub fn transpose_add(#[dims(N, M)] x: &Tensor<f32, 2>, #[dims(M, N)] y: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.t() + y
}

#[compile]
pub fn linear_relu<T: Float>(
    #[dims(M, K)] x: &Tensor<T, 2>,
    #[dims(K, N)] w: &Tensor<T, 2>,
    #[dims(N)] b: &Tensor<T, 1>,
) -> Tensor<T, 2> {
    (x.matmul(w) + b).relu()
}

#[compile(precision = "high")]
pub fn linear_relu_tf32(
    #[dims(M, K)] x: &Tensor<f32, 2>,
    #[dims(K, N)] w: &Tensor<f32, 2>,
    #[dims(N)] b: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    (x.matmul(w) + b).relu()
}

#[compile]
pub fn mlp_gelu(
    #[dims(M, K)] x: &Tensor<bf16, 2>,
    #[dims(K, H)] w1: &Tensor<bf16, 2>,
    #[dims(H)] b1: &Tensor<bf16, 1>,
    #[dims(H, N)] w2: &Tensor<bf16, 2>,
    #[dims(N)] b2: &Tensor<bf16, 1>,
) -> Tensor<bf16, 2> {
    (x.matmul(w1) + b1).gelu().matmul(w2) + b2
}

#[compile]
pub fn attention<T: Float>(
    #[dims(B, H, S, D)] q: &Tensor<T, 4>,
    #[dims(B, H, S, D)] k: &Tensor<T, 4>,
    #[dims(B, H, S, D)] v: &Tensor<T, 4>,
) -> Tensor<T, 4> {
    q.scaled_dot_product_attention(k, v, (), false)
}

#[compile]
pub fn causal_attention(
    #[dims(B, H, S, D)] q: &Tensor<bf16, 4>,
    #[dims(B, H, S, D)] k: &Tensor<bf16, 4>,
    #[dims(B, H, S, D)] v: &Tensor<bf16, 4>,
) -> Tensor<bf16, 4> {
    q.scaled_dot_product_attention(k, v, (), true)
}

/// Heads of 64 numbers, so the scale is 1/8.
#[compile]
pub fn written_out_attention(
    #[dims(B, H, S, 64)] q: &Tensor<bf16, 4>,
    #[dims(B, H, S, 64)] k: &Tensor<bf16, 4>,
    #[dims(B, H, S, 64)] v: &Tensor<bf16, 4>,
) -> Tensor<bf16, 4> {
    (q.matmul(&k.transpose(-1, -2)) * 0.125).softmax(-1).matmul(v)
}

#[compile]
pub fn chain(#[dims(N)] x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut x = x.clone();
    for _ in 0..25 {
        x = (x * 1.01 + 0.1).tanh();
    }
    x
}

#[compile]
pub fn small_mlp(
    #[dims(M, D)] x: &Tensor<f32, 2>,
    #[dims(D, D)] a: &Tensor<f32, 2>,
    #[dims(D, D)] b: &Tensor<f32, 2>,
    #[dims(D, D)] c: &Tensor<f32, 2>,
) -> Tensor<f32, 2> {
    x.matmul(a).relu().matmul(b).relu().matmul(c)
}

#[compile]
pub fn graph_break(#[dims(N, D)] x: &Tensor<f32, 2>, #[dims(D, D)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let x: Tensor<f32, 2> = x.matmul(w).relu();
    let x: Tensor<f32, 2> = if x.mean_all().item() > 0.2 { x * 2.0 } else { x - 1.0 };
    x.gelu()
}

#[compile]
pub fn data_dependent_while(#[dims(N, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let mut x: Tensor<f32, 2> = x.clone();
    while x.abs().max_all().item() > 1.0 {
        x = x * 0.5;
    }
    x.gelu()
}

#[compile]
pub fn item_to_host(#[dims(N, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    let sum: f32 = x.sum_all().item();
    // The peers are written in Python, whose remainder is never negative.
    let n = ((sum as i64).rem_euclid(7) + 1) as f32;
    x.relu() * n + x / n
}

/// Reads every element and writes one.
#[compile]
pub fn read_only(#[dims(N)] x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    x.sum_all()
}

/// Two reads to one write.
#[compile]
pub fn add(#[dims(N)] x: &Tensor<f32, 1>, #[dims(N)] y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x + y
}

/// A pre-norm transformer block in training, in a product with a cotangent.
#[compile(grad(
    norm1_weight,
    norm1_bias,
    qkv_weight,
    qkv_bias,
    out_weight,
    out_bias,
    norm2_weight,
    norm2_bias,
    up_weight,
    up_bias,
    down_weight,
    down_bias
))]
pub fn block_train<T: Float>(
    heads: usize,
    #[dims(B, S, D)] x: &Tensor<T, 3>,
    #[dims(B, S, D)] cotangent: &Tensor<T, 3>,
    #[dims(D)] norm1_weight: &Tensor<T, 1>,
    #[dims(D)] norm1_bias: &Tensor<T, 1>,
    #[dims(3 * D, D)] qkv_weight: &Tensor<T, 2>,
    #[dims(3 * D)] qkv_bias: &Tensor<T, 1>,
    #[dims(D, D)] out_weight: &Tensor<T, 2>,
    #[dims(D)] out_bias: &Tensor<T, 1>,
    #[dims(D)] norm2_weight: &Tensor<T, 1>,
    #[dims(D)] norm2_bias: &Tensor<T, 1>,
    #[dims(H, D)] up_weight: &Tensor<T, 2>,
    #[dims(H)] up_bias: &Tensor<T, 1>,
    #[dims(D, H)] down_weight: &Tensor<T, 2>,
    #[dims(D)] down_bias: &Tensor<T, 1>,
) -> Tensor<T, 0> {
    let [batch, seq, width] = x.dims();
    let normed = x.layer_norm(norm1_weight, norm1_bias, 1e-5);
    let [q, k, v] = normed.linear(qkv_weight, qkv_bias).chunk(-1);
    let q = q.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
    let k = k.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
    let v = v.reshape([batch, seq, heads, width / heads]).transpose(1, 2);
    // Heads have 64 elements. The probabilities are dropped out, too, as by PyTorch's attention in training.
    let scores = (q.matmul(&k.transpose(-2, -1)) * T::from_f64(0.125)).softmax(-1).dropout(0.1, true);
    let attended = scores.matmul(&v).transpose(1, 2).reshape([batch, seq, width]);
    let x = x + attended.linear(out_weight, out_bias).dropout(0.1, true);
    let normed = x.layer_norm(norm2_weight, norm2_bias, 1e-5);
    let hidden = normed.linear(up_weight, up_bias).gelu().dropout(0.1, true);
    let y = &x + hidden.linear(down_weight, down_bias).dropout(0.1, true);
    (y * cotangent).sum_all()
}
