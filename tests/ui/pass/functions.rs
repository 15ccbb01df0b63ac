//! Compiled functions of every kind in a crate that allows itself nothing.

#![deny(missing_docs, warnings, unused, nonstandard_style, non_camel_case_types, unreachable_pub, rust_2018_idioms)]

use fuse_runtime::prelude::*;

/// A linear layer and a soft threshold.
#[must_use]
#[compile]
pub fn feed_forward(
    #[dims(B, D)] x: &Tensor<f32, 2>,
    #[dims(D, H)] w: &Tensor<f32, 2>,
    #[dims(H)] bias: &Tensor<f32, 1>,
) -> Tensor<f32, 2> {
    (x.matmul(w) + bias).gelu()
}

/// Any float type.
#[must_use]
#[compile(fullgraph)]
pub fn scaled<T: Float>(x: &Tensor<T, 2>, training: bool) -> Tensor<T, 2> {
    let y = x.dropout(0.5, training);
    y * T::from_f64(2.0)
}

/// A break, a host loop and a path for each flag.
///
/// # Errors
///
/// Where the shapes do not fit.
#[compile(mode = "max-autotune")]
pub fn searched(x: &Tensor<f32, 1>, steps: usize, quiet: bool) -> Result<(Tensor<f32, 1>, f32), Error> {
    let mut y = x.clone();
    for _ in 0..steps {
        y = y * 0.5;
    }
    let largest = y.max_all().item();
    if !quiet {
        println!("{largest}");
    }
    Ok((y + largest, largest))
}

/// The original stays under its own name.
#[must_use]
#[compile(backend = "eager", companion = shifted_parts)]
pub fn shifted(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x + 1.0
}

#[compile]
fn unseen(#[dims(N)] x: &Tensor<f32, 1>, mut by: f32) -> Tensor<f32, 1> {
    by += 1.0;
    x * by
}

#[test]
fn they_run() {
    let x = Tensor::from_slice(&[1.0, 2.0], [2], Device::cpu());
    assert_eq!(unseen(&x, 1.0).to_vec(), shifted(&x).to_vec().iter().map(|v| (v - 1.0) * 2.0).collect::<Vec<_>>());
    assert_eq!(shifted_parts::eager(&x).to_vec(), [2.0, 3.0]);
    assert!(!shifted_parts::CUDA.contains("__global__"));
    let (y, largest) = searched(&x, 1, true).unwrap();
    assert_eq!((y.to_vec(), largest), (vec![1.5, 2.0], 1.0));
    assert_eq!(searched::explain().breaks().len(), 2);
}
