//! Attention as compiled functions, and what they are called with.

use super::rows::Mask::{Added, All, Bool, Causal};
use super::rows::{Mask, Row};
use super::workers;
use fuse_runtime::prelude::*;
use serde_json::{Value, json};

/// Seconds of one repeat.
const REPEAT: f64 = 8e-3;

#[compile(grad(q, k, v), dynamic = false)]
fn all<T: Float>(
    #[dims(B, H, M, D)] q: &Tensor<T, 4>,
    #[dims(B, H, N, D)] k: &Tensor<T, 4>,
    #[dims(B, H, N, D)] v: &Tensor<T, 4>,
) -> Tensor<T, 4> {
    q.scaled_dot_product_attention(k, v, (), false)
}

#[compile(grad(q, k, v), dynamic = false)]
fn causal<T: Float>(
    #[dims(B, H, M, D)] q: &Tensor<T, 4>,
    #[dims(B, H, N, D)] k: &Tensor<T, 4>,
    #[dims(B, H, N, D)] v: &Tensor<T, 4>,
) -> Tensor<T, 4> {
    q.scaled_dot_product_attention(k, v, (), true)
}

/// A head of keys for a group of heads of queries.
#[compile(grad(q, k, v), dynamic = false)]
fn grouped<T: Float>(
    #[dims(B, H, G, M, D)] q: &Tensor<T, 5>,
    #[dims(B, H, 1, N, D)] k: &Tensor<T, 5>,
    #[dims(B, H, 1, N, D)] v: &Tensor<T, 5>,
) -> Tensor<T, 5> {
    q.scaled_dot_product_attention(k, v, (), false)
}

#[compile(grad(q, k, v), dynamic = false)]
fn grouped_causal<T: Float>(
    #[dims(B, H, G, M, D)] q: &Tensor<T, 5>,
    #[dims(B, H, 1, N, D)] k: &Tensor<T, 5>,
    #[dims(B, H, 1, N, D)] v: &Tensor<T, 5>,
) -> Tensor<T, 5> {
    q.scaled_dot_product_attention(k, v, (), true)
}

#[compile(grad(q, k, v), dynamic = false)]
fn masked<T: Float>(
    #[dims(B, H, M, D)] q: &Tensor<T, 4>,
    #[dims(B, H, N, D)] k: &Tensor<T, 4>,
    #[dims(B, H, N, D)] v: &Tensor<T, 4>,
    #[dims(M, N)] mask: &Tensor<bool, 2>,
) -> Tensor<T, 4> {
    q.scaled_dot_product_attention(k, v, mask, false)
}

#[compile(grad(q, k, v), dynamic = false)]
fn added<T: Float>(
    #[dims(B, H, M, D)] q: &Tensor<T, 4>,
    #[dims(B, H, N, D)] k: &Tensor<T, 4>,
    #[dims(B, H, N, D)] v: &Tensor<T, 4>,
    #[dims(M, N)] mask: &Tensor<T, 2>,
) -> Tensor<T, 4> {
    q.scaled_dot_product_attention(k, v, mask, false)
}

/// The inputs of a row.
pub struct Inputs<T: Float> {
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    cotangent: Tensor<T, 4>,
    /// Queries with a head of keys, if they share it.
    grouped: bool,
    mask: Mask,
    allowed: Tensor<bool, 2>,
    added: Tensor<T, 2>,
}

impl<T: Float> Inputs<T> {
    /// Normal numbers.
    pub fn new((_, [batch, heads, groups, queries, keys, depth], mask): Row, device: Device) -> Self {
        let of = |heads, rows| Tensor::randn([batch, heads, rows, depth], device);
        let scores = Tensor::<f32, 2>::randn([queries, keys], device);
        Inputs {
            q: of(heads, queries),
            k: of(groups, keys),
            v: of(groups, keys),
            cotangent: of(heads, queries),
            grouped: groups != heads,
            mask,
            allowed: scores.gt(-0.5),
            added: scores.cast(),
        }
    }

    fn forward(&self) {
        let Inputs { q, k, v, allowed, added: bias, .. } = self;
        match self.mask {
            All if self.grouped => drop(grouped(&self.in_groups(q), &k.unsqueeze(2), &v.unsqueeze(2))),
            Causal if self.grouped => drop(grouped_causal(&self.in_groups(q), &k.unsqueeze(2), &v.unsqueeze(2))),
            All => drop(all(q, k, v)),
            Causal => drop(causal(q, k, v)),
            Bool => drop(masked(q, k, v, allowed)),
            Added => drop(added(q, k, v, bias)),
        }
    }

    fn training(&self) {
        let Inputs { q, k, v, cotangent: c, allowed, added: bias, .. } = self;
        let one = |keys: &Tensor<T, 4>| keys.unsqueeze(2);
        match self.mask {
            All if self.grouped => drop(grouped::vjp(&self.in_groups(q), &one(k), &one(v), &self.in_groups(c))),
            Causal if self.grouped => {
                drop(grouped_causal::vjp(&self.in_groups(q), &one(k), &one(v), &self.in_groups(c)));
            }
            All => drop(all::vjp(q, k, v, c)),
            Causal => drop(causal::vjp(q, k, v, c)),
            Bool => drop(masked::vjp(q, k, v, allowed, c)),
            Added => drop(added::vjp(q, k, v, bias, c)),
        }
    }

    /// The heads of queries with the head of keys that they share.
    fn in_groups(&self, heads: &Tensor<T, 4>) -> Tensor<T, 5> {
        let ([batch, all, rows, depth], groups) = (heads.dims(), self.k.size(1));
        heads.reshape([batch, groups, all / groups, rows, depth])
    }

    /// One call of either kind, which compiles what they need.
    pub fn call_both(&self) {
        self.forward();
        self.training();
    }

    /// Microseconds of either kind.
    pub fn measure(&self, device: Device) -> Result<Value, Error> {
        let forward = workers::time(device, REPEAT, |_| self.forward())?;
        Ok(json!({ "forward": forward, "training": workers::time(device, REPEAT, |_| self.training())? }))
    }
}
