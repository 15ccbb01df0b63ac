//! Compiled methods in a crate that allows itself nothing.

#![deny(missing_docs, warnings, unused, nonstandard_style, unreachable_pub, rust_2018_idioms)]

use fuse_runtime::prelude::*;

/// A linear layer.
#[derive(Debug)]
pub struct Linear {
    /// [in, out].
    pub weight: Tensor<f32, 2>,
    scale: f32,
}

#[compile]
impl Linear {
    /// Applies the layer.
    #[must_use]
    pub fn forward(&self, #[dims(B, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        let weight: &Tensor<f32, 2> = &self.weight;
        x.matmul(weight) * self.scale
    }

    fn inner(&self, x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
        x.relu() * self.scale
    }
}

#[test]
fn they_run() {
    let layer = Linear { weight: Tensor::eye(2, Device::cpu()), scale: 2.0 };
    let x = Tensor::from_slice(&[1.0, -2.0], [1, 2], Device::cpu());
    assert_eq!(layer.forward(&x).to_vec(), [2.0, -4.0]);
    assert_eq!(layer.inner(&x).to_vec(), layer.inner_eager(&x).to_vec());
    assert!(Linear::FORWARD_CUDA.contains("__global__"));
    assert_eq!(Linear::forward_explain().breaks().len(), 0);
}
