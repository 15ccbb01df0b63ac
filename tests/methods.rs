//! Models as structs and methods under `#[compile] impl`, quiet under strict lints.
#![deny(warnings, missing_docs, non_camel_case_types, clippy::all)]

use fuse_runtime::prelude::*;

/// A pre-norm transformer block.
pub struct Block {
    norm1: [Tensor<f32, 1>; 2],
    qkv: (Tensor<f32, 2>, Tensor<f32, 1>),
    out: (Tensor<f32, 2>, Tensor<f32, 1>),
    norm2: [Tensor<f32, 1>; 2],
    up: (Tensor<f32, 2>, Tensor<f32, 1>),
    down: (Tensor<f32, 2>, Tensor<f32, 1>),
    heads: usize,
    training: bool,
}

#[compile]
impl Block {
    /// Attention and a feed-forward network, each behind a layer norm and beside a residual connection.
    pub fn forward(&self, x: &Tensor<f32, 3>) -> Tensor<f32, 3> {
        let [b, s, d] = x.dims();
        let (w1, b1): (&Tensor<f32, 1>, &Tensor<f32, 1>) = (&self.norm1[0], &self.norm1[1]);
        let (wq, bq): (&Tensor<f32, 2>, &Tensor<f32, 1>) = (&self.qkv.0, &self.qkv.1);
        let (wo, bo): (&Tensor<f32, 2>, &Tensor<f32, 1>) = (&self.out.0, &self.out.1);
        let w2: &Tensor<f32, 1> = &self.norm2[0];
        let b2: &Tensor<f32, 1> = &self.norm2[1];
        let wu: &Tensor<f32, 2> = &self.up.0;
        let bu: &Tensor<f32, 1> = &self.up.1;
        let wd: &Tensor<f32, 2> = &self.down.0;
        let bd: &Tensor<f32, 1> = &self.down.1;

        let split = [b, s, self.heads, d / self.heads];
        let [q, k, v] = x.layer_norm(w1, b1, 1e-5).linear(wq, bq).chunk(-1);
        let q = q.reshape(split).transpose(1, 2);
        let k = k.reshape(split).transpose(1, 2);
        let v = v.reshape(split).transpose(1, 2);
        let a = q.scaled_dot_product_attention(&k, &v, (), true);
        let a = a.transpose(1, 2).reshape([b, s, d]).linear(wo, bo).dropout(0.1, self.training);
        let x = x + a;
        let h = x.layer_norm(w2, b2, 1e-5).linear(wu, bu).gelu();
        x + h.linear(wd, bd).dropout(0.1, self.training)
    }
}

fn weights(rows: usize, columns: usize, seed: usize) -> Tensor<f32, 2> {
    let value = |i: usize| ((i * 7919 + seed * 104_729) % 997) as f32 / 997.0 - 0.5;
    Tensor::from_vec((0..rows * columns).map(value).collect(), [rows, columns], Device::cpu())
}

fn bias(n: usize, seed: usize) -> Tensor<f32, 1> {
    weights(1, n, seed).reshape([n])
}

fn block(d: usize, heads: usize, training: bool) -> Block {
    Block {
        norm1: [bias(d, 1), bias(d, 2)],
        qkv: (weights(3 * d, d, 3), bias(3 * d, 4)),
        out: (weights(d, d, 5), bias(d, 6)),
        norm2: [bias(d, 7), bias(d, 8)],
        up: (weights(4 * d, d, 9), bias(4 * d, 10)),
        down: (weights(d, 4 * d, 11), bias(d, 12)),
        heads,
        training,
    }
}

#[test]
fn a_transformer_block_is_one_graph_in_eval() {
    let block = block(8, 2, false);
    let x = weights(6, 8, 13).reshape([2, 3, 8]);
    let (compiled, eager) = (block.forward(&x).to_vec(), block.forward_eager(&x).to_vec());
    for (a, b) in compiled.iter().zip(&eager) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "compiled {a}, eager {b}");
    }
    assert!(Block::forward_explain().breaks().is_empty(), "{}", Block::forward_explain());
}

#[test]
fn dropout_in_training_draws_what_eager_draws() {
    let block = block(8, 2, true);
    let x = weights(6, 8, 13).reshape([2, 3, 8]);
    Device::cpu().manual_seed(5);
    let compiled = block.forward(&x).to_vec();
    Device::cpu().manual_seed(5);
    let eager = block.forward_eager(&x).to_vec();
    for (a, b) in compiled.iter().zip(&eager) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "compiled {a}, eager {b}");
    }
}
