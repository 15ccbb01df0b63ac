//! Adam and AdamW.

use super::{Now, Rule};
use crate::dtype::Float;
use crate::error::Result;
use crate::optim::flat::Flat;
use crate::optim::{Optimizer, Scale, rules};
use crate::tensor::Tensor;

/// Adam, as PyTorch's `Adam`; made by [`Adam::new`].
///
/// With gradient `g`, to which `weight_decay * w` is added, in step `t`:
///
/// ```text
/// m = b1 * m + (1 - b1) * g
/// v = b2 * v + (1 - b2) * g * g
/// w = w - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
/// ```
///
/// Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
///
/// ```
/// use fuse_runtime::optim::Adam;
/// use fuse_runtime::prelude::*;
/// let mut w = Tensor::from([1.0f32, -1.0]);
/// Adam::new(0.1).betas(0.9, 0.99).step(&mut w, &Tensor::from([5.0f32, -0.01]));
/// // The first step is as long as the learning rate, whatever the gradient's size.
/// assert!((w.to_vec()[0] - 0.9).abs() < 1e-5 && (w.to_vec()[1] + 0.9).abs() < 1e-5);
/// ```
pub type Adam = Optimizer<AdamRule>;

/// AdamW: [`Adam`] with decoupled weight decay, as PyTorch's `AdamW`; made by [`AdamW::new`].
///
/// The step is Adam's without a penalty, from `w * (1 - lr * weight_decay)`.
///
/// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
pub type AdamW = Optimizer<AdamWRule>;

/// The settings of [`Adam`].
#[derive(Clone, Debug)]
pub struct AdamRule(Moments);

/// The settings of [`AdamW`].
#[derive(Clone, Debug)]
pub struct AdamWRule(Moments);

/// What Adam and AdamW are told.
#[derive(Clone, Debug)]
struct Moments {
    betas: [f64; 2],
    eps: f64,
    weight_decay: f64,
}

impl Moments {
    /// The corrections of the means in a step.
    fn facts(&self, lr: f64, step: &Tensor<f64, 0>) -> Result<[Tensor<f64, 0>; 2]> {
        let [beta1, beta2] = self.betas;
        let (step_size, root2) = rules::corrections(step, lr, beta1.ln(), beta2.ln())?;
        Ok([step_size, root2])
    }
}

macro_rules! moments {
    ($optimizer:ident, $rule:ident, $decay:literal) => {
        impl $optimizer {
            #[doc = concat!("Betas 0.9 and 0.999, eps 1e-8, weight decay ", stringify!($decay), ", with this learning rate.")]
            pub fn new(lr: f64) -> Self {
                Optimizer::with_rule($rule(Moments { betas: [0.9, 0.999], eps: 1e-8, weight_decay: $decay }), lr)
            }

            /// How much is kept of the means of gradients and of their squares.
            pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
                self.rule.0.betas = [beta1, beta2];
                self
            }

            /// What is added to the root of the mean square.
            pub fn eps(mut self, eps: f64) -> Self {
                self.rule.0.eps = eps;
                self
            }

            /// How strongly parameters are pulled to 0.
            pub fn weight_decay(mut self, weight_decay: f64) -> Self {
                self.rule.0.weight_decay = weight_decay;
                self
            }
        }
    };
}

moments!(Adam, AdamRule, 0.0);
moments!(AdamW, AdamWRule, 0.01);

impl Rule for AdamRule {
    type Facts = [Tensor<f64, 0>; 2];

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn facts(&self, lr: f64, step: &Tensor<f64, 0>) -> Result<Self::Facts> {
        self.0.facts(lr, step)
    }

    updates!(adam, adam_mixed, |this, now| [m v] (&now.facts[0], &now.facts[1]) (
        this.0.weight_decay, 1.0 - this.0.betas[0], this.0.betas[1], 1.0 - this.0.betas[1], this.0.eps
    ));
}

impl Rule for AdamWRule {
    type Facts = [Tensor<f64, 0>; 2];

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn facts(&self, lr: f64, step: &Tensor<f64, 0>) -> Result<Self::Facts> {
        self.0.facts(lr, step)
    }

    updates!(adamw, adamw_mixed, |this, now| [m v] (&now.facts[0], &now.facts[1]) (
        1.0 - now.lr * this.0.weight_decay, 1.0 - this.0.betas[0], this.0.betas[1], 1.0 - this.0.betas[1], this.0.eps
    ));
}
