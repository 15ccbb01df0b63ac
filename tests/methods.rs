//! Models as structs and methods under `#[compile] impl`, quiet under strict lints.
#![deny(warnings, missing_docs, non_camel_case_types, clippy::all)]

mod common;

use common::device;
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
    Tensor::from_vec((0..rows * columns).map(value).collect(), [rows, columns], device())
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
    device().manual_seed(5);
    let compiled = block.forward(&x).to_vec();
    device().manual_seed(5);
    let eager = block.forward_eager(&x).to_vec();
    for (a, b) in compiled.iter().zip(&eager) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "compiled {a}, eager {b}");
    }
}

/// A layer of any float type.
pub struct Scaled<T: Float> {
    weight: Tensor<T, 1>,
}

#[compile]
impl<T: Float> Scaled<T> {
    /// Scales the rows.
    pub fn forward(&self, x: &Tensor<T, 2>) -> Tensor<T, 2> {
        let weight: &Tensor<T, 1> = &self.weight;
        x * weight * T::from_f64(0.5)
    }
}

/// What a layer does.
pub trait Layer {
    /// Applies the layer.
    fn apply(&self, x: &Tensor<f32, 1>, times: usize) -> Vec<Tensor<f32, 1>>;
}

/// Doubles, and keeps every step.
pub struct Double;

#[compile]
impl Layer for Double {
    fn apply(&self, x: &Tensor<f32, 1>, times: usize) -> Vec<Tensor<f32, 1>> {
        let mut all: Vec<Tensor<f32, 1>> = vec![x.clone()];
        let mut y = x.clone();
        for _ in 0..times {
            y = y * 2.0;
            all.push(y.clone());
        }
        all
    }
}

#[test]
fn generic_impls_and_trait_impls_are_compiled() {
    let x = weights(2, 3, 1);
    let layer = Scaled { weight: bias(3, 2) };
    assert_eq!(layer.forward(&x).to_vec(), layer.forward_eager(&x).to_vec());
    let (wide, narrow) = (x.cast::<f64>(), x.cast::<f16>());
    let layer = Scaled { weight: bias(3, 2).cast::<f64>() };
    assert_eq!(layer.forward(&wide).to_vec(), layer.forward_eager(&wide).to_vec());
    let layer = Scaled { weight: bias(3, 2).cast::<f16>() };
    assert_eq!(layer.forward(&narrow).to_vec(), layer.forward_eager(&narrow).to_vec());
    let steps = |all: Vec<Tensor<f32, 1>>| all.iter().map(Tensor::to_vec).collect::<Vec<_>>();
    assert_eq!(steps(Double.apply(&bias(3, 2), 3)), steps(Double.apply_eager(&bias(3, 2), 3)));
}

/// Options differ from method to method.
pub struct Mixed;

#[compile(numerics = "fast")]
impl Mixed {
    /// As the block says.
    pub fn all(&self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x * 2.0 + 1.0
    }

    /// Strict, and one graph.
    #[compile(numerics = "strict", fullgraph)]
    pub fn strict(&self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x * 2.0 + 1.0
    }

    /// Op by op.
    #[fuse_runtime::compile(backend = "eager")]
    pub fn plain(&self, x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x * 2.0 + 1.0
    }

    /// No tensors.
    #[compile]
    pub fn number(&self) -> usize {
        3
    }
}

#[test]
fn options_are_those_of_the_method() {
    let x = Tensor::from([1.0f32, -2.0]);
    let want = [3.0, -3.0];
    assert_eq!((Mixed.all(&x).to_vec(), Mixed.strict(&x).to_vec()), (want.to_vec(), want.to_vec()));
    assert_eq!((Mixed.plain(&x).to_vec(), Mixed.number()), (want.to_vec(), 3));
    assert!(Mixed::ALL_CUDA.contains("__global__") && Mixed::STRICT_CUDA.contains("__global__"));
    assert!(!Mixed::PLAIN_CUDA.contains("__global__"));
}
