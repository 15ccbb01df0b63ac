//! Gradient clipping by global norm.

use super::flat::{Flat, vector};
use super::{Name, Parameters, rules, tensors};
use crate::device::Device;
use crate::error::{Error, OrRaise, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use fuse_compiler::types::DType;
use half::{bf16, f16};

/// The L2 norm of all gradients together, `sqrt(sum of g^2)`, on their device.
///
/// The squares of each are added in f32, of f64 in f64, and the sums of all in f64.
///
/// ```
/// use fuse_runtime::optim::grad_norm;
/// use fuse_runtime::prelude::*;
/// let grads = (Tensor::from([[3.0f32], [0.0]]), Tensor::from([4.0f32]));
/// assert_eq!(grad_norm(&grads).item(), 5.0);
/// ```
///
/// # Panics
/// With an [`Error`] if they are on several devices, or not of floats.
#[track_caller]
pub fn grad_norm(gradients: &impl Parameters) -> Tensor<f64, 0> {
    let gradients: Vec<RawTensor> = tensors(gradients, "").into_iter().map(|(_, gradient)| gradient.clone()).collect();
    norm_of(&gradients).or_raise()
}

/// Scales all gradients down so that their global norm is at most `max_norm`, and returns what it was, on their device.
///
/// As PyTorch's `clip_grad_norm_`: all are multiplied by `max_norm / (norm + 1e-6)` where that is below 1. The norm is not
/// read back. `Optimizer::clip_grad_norm` does the same as a part of the update, which saves writing the gradients.
///
/// ```
/// use fuse_runtime::optim::clip_grad_norm;
/// use fuse_runtime::prelude::*;
/// let mut grads = (Tensor::from([[3.0f32], [0.0]]), Tensor::from([4.0f32]));
/// assert_eq!(clip_grad_norm(&mut grads, 1.0).item(), 5.0);
/// assert!((grads.1.to_vec()[0] - 0.8).abs() < 1e-6);
/// ```
///
/// # Panics
/// As [`grad_norm`].
#[track_caller]
pub fn clip_grad_norm(gradients: &mut impl Parameters, max_norm: f64) -> Tensor<f64, 0> {
    let norm = grad_norm(gradients);
    let factor = rules::clip_factor(&norm, max_norm).or_raise();
    let scaled = crate::exec::as_list(norm.device(), || {
        let mut outcome = Ok(());
        gradients.visit_mut(&mut Name::default(), &mut |_, gradient| {
            if outcome.is_ok() {
                outcome = scale(gradient, &factor);
            }
        });
        outcome
    });
    scaled.or_raise();
    norm
}

fn scale(gradient: &mut RawTensor, factor: &Tensor<f64, 0>) -> Result<()> {
    match gradient.dtype() {
        DType::F32 => rules::scale(&mut Flat::<f32>::of(gradient)?.vector, factor),
        DType::F64 => rules::scale_f64(&mut Flat::<f64>::of(gradient)?.vector, factor),
        DType::F16 => rules::scale(&mut Flat::<f16>::of(gradient)?.vector, factor),
        DType::BF16 => rules::scale(&mut Flat::<bf16>::of(gradient)?.vector, factor),
        other => Err(no_gradient(other)),
    }
}

/// The global norm of gradients.
pub(super) fn norm_of(gradients: &[RawTensor]) -> Result<Tensor<f64, 0>> {
    let device = gradients.first().map_or(Device::cpu(), RawTensor::device);
    let mut sum = Tensor::zeros([], device);
    for gradient in gradients {
        match gradient.dtype() {
            DType::F32 => rules::add_squares(&mut sum, &vector::<f32>(gradient)?)?,
            DType::F64 => rules::add_squares_f64(&mut sum, &vector::<f64>(gradient)?)?,
            DType::F16 => rules::add_squares(&mut sum, &vector::<f16>(gradient)?)?,
            DType::BF16 => rules::add_squares(&mut sum, &vector::<bf16>(gradient)?)?,
            other => return Err(no_gradient(other)),
        }
    }
    crate::error::catch(|| sum.sqrt())
}

fn no_gradient(dtype: DType) -> Error {
    Error::shape("grad_norm", format!("a tensor of {dtype} is no gradient"))
}
