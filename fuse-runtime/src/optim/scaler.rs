//! Dynamic loss scaling for f16.

use super::methods::Rule;
use super::{Optimizer, Parameters, Scale, checked, clip, rules};
use crate::device::Device;
use crate::error::{OrRaise, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;

/// Keeps gradients of f16 from vanishing, as PyTorch's `GradScaler`: the loss is multiplied by a scale, and the step divides
/// the gradients by it.
///
/// A step whose gradients hold an infinity or a NaN changes nothing, and the scale is halved; after 2000 good steps in a
/// row it is doubled. The device decides that by itself, so a step waits for nothing.
///
/// The scale stands for the cotangent of the loss, which is best an f32: f16 ends at 65504.
///
/// ```
/// use fuse_runtime::optim::{GradScaler, Sgd};
/// use fuse_runtime::prelude::*;
///
/// #[compile(grad(w))]
/// fn loss(x: &Tensor<f16, 1>, w: &Tensor<f16, 1>) -> Tensor<f32, 0> {
///     (x * w).cast::<f32>().mean_all()
/// }
///
/// let d = Device::best();
/// let (x, mut w) = (Tensor::<f16, 1>::full([4], f16::from_f32(1e-4), d), Tensor::<f16, 1>::zeros([4], d));
/// let (mut opt, mut scaler) = (Sgd::new(1.0), GradScaler::new(d));
/// let (_, grad) = loss::vjp(&x, &w, &scaler.scale());
/// scaler.step(&mut opt, &mut w, &grad);
/// assert!((w.to_vec()[0].to_f32() + 2.5e-5).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct GradScaler {
    scale: Tensor<f64, 0>,
    /// Steps since the scale has changed.
    good: Tensor<f64, 0>,
    growth_factor: f64,
    backoff_factor: f64,
    growth_interval: u64,
}

// What a checkpoint holds of it.
crate::parameters!(GradScaler { scale, good });

impl GradScaler {
    /// A scale of 65536, which is doubled after 2000 good steps and halved after a bad one.
    pub fn new(device: impl Into<Device>) -> Self {
        let device = device.into();
        GradScaler {
            scale: Tensor::full([], 65536.0, device),
            good: Tensor::zeros([], device),
            growth_factor: 2.0,
            backoff_factor: 0.5,
            growth_interval: 2000,
        }
    }

    /// The scale to start with.
    pub fn init_scale(mut self, scale: f64) -> Self {
        self.scale = Tensor::full([], scale, self.scale.device());
        self
    }

    /// What the scale is multiplied by after so many good steps, and after a bad one.
    pub fn growth(mut self, growth_factor: f64, growth_interval: u64, backoff_factor: f64) -> Self {
        (self.growth_factor, self.growth_interval, self.backoff_factor) =
            (growth_factor, growth_interval, backoff_factor);
        self
    }

    /// What the loss is to be multiplied by, or the cotangent that `f::vjp` is given.
    #[track_caller]
    pub fn scale(&self) -> Tensor<f32, 0> {
        self.scale.cast()
    }

    /// Makes a step with gradients of the scaled loss, unless they overflow. A clipping norm of the optimiser is that of the
    /// gradients without the scale.
    ///
    /// # Panics
    /// As [`Optimizer::step`].
    #[track_caller]
    pub fn step<R: Rule>(&mut self, opt: &mut Optimizer<R>, parameters: impl Parameters, gradients: &impl Parameters) {
        let made = checked(&parameters, gradients).and_then(|gradients| self.make(opt, parameters, &gradients));
        made.or_raise();
    }

    fn make<R: Rule>(
        &mut self,
        opt: &mut Optimizer<R>,
        parameters: impl Parameters,
        gradients: &[RawTensor],
    ) -> Result<()> {
        let norm = clip::norm_of(gradients)?;
        let (factor, skip) = rules::unscale(&norm, &self.scale, opt.max_norm.unwrap_or(f64::INFINITY))?;
        let scale = Scale { factor, skip };
        opt.update(parameters, gradients, &scale)?;
        let (growth, backoff, interval) = (self.growth_factor, self.backoff_factor, self.growth_interval as f64);
        rules::adjust(&mut self.scale, &mut self.good, &scale.skip, growth, backoff, interval)
    }
}
