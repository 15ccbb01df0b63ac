//! Lion.

use super::{Now, Rule};
use crate::dtype::Float;
use crate::error::Result;
use crate::optim::flat::Flat;
use crate::optim::{Optimizer, Scale, rules};
use crate::tensor::Tensor;

/// Lion; made by [`Lion::new`].
///
/// ```text
/// u = sign(b1 * m + (1 - b1) * g)
/// w = w * (1 - lr * weight_decay) - lr * u
/// m = b2 * m + (1 - b2) * g
/// ```
///
/// Chen et al., "Symbolic discovery of optimization algorithms", 2023. It keeps half of Adam's state; its learning rate is
/// usually three to ten times smaller, and its decay as many times larger.
///
/// ```
/// use fuse_runtime::optim::Lion;
/// use fuse_runtime::prelude::*;
/// let mut w = Tensor::from([1.0f32, 1.0, 1.0]);
/// Lion::new(0.5).step(&mut w, &Tensor::from([3.0f32, -0.1, 0.0]));
/// assert_eq!(w.to_vec(), [0.5, 1.5, 1.0]);
/// ```
pub type Lion = Optimizer<LionRule>;

/// The settings of [`Lion`].
#[derive(Clone, Debug)]
pub struct LionRule {
    betas: [f64; 2],
    weight_decay: f64,
}

impl Lion {
    /// Betas 0.9 and 0.99, no weight decay, with this learning rate; the paper's is 1e-4.
    pub fn new(lr: f64) -> Self {
        Optimizer::with_rule(LionRule { betas: [0.9, 0.99], weight_decay: 0.0 }, lr)
    }

    /// How much of the mean is kept for the step, and how much from step to step.
    pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
        self.rule.betas = [beta1, beta2];
        self
    }

    /// How strongly parameters are pulled to 0.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.rule.weight_decay = weight_decay;
        self
    }
}

impl Rule for LionRule {
    type Facts = ();

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg"]
    }

    fn facts(&self, _: f64, _: &Tensor<f64, 0>) -> Result<()> {
        Ok(())
    }

    updates!(lion, lion_mixed, |this, now| [m]()(
        1.0 - now.lr * this.weight_decay,
        now.lr,
        this.betas[0],
        1.0 - this.betas[0],
        this.betas[1],
        1.0 - this.betas[1],
        0.0
    ));
}
