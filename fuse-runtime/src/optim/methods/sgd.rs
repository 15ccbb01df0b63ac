//! Gradient descent with and without momentum.

use super::{Now, Rule};
use crate::dtype::Float;
use crate::error::{Error, Result};
use crate::optim::flat::Flat;
use crate::optim::{Optimizer, Scale, rules};
use crate::tensor::Tensor;

/// Stochastic gradient descent, as PyTorch's `SGD`; made by [`Sgd::new`].
///
/// With gradient `g`, to which `weight_decay * w` is added, momentum `mu` and dampening `tau`:
///
/// ```text
/// m = mu * m + (1 - tau) * g        (m = g in the first step)
/// w = w - lr * m                    (nesterov: w - lr * (g + mu * m))
/// ```
///
/// Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013, in PyTorch's form.
///
/// ```
/// use fuse_runtime::optim::Sgd;
/// use fuse_runtime::prelude::*;
/// let mut w = Tensor::from([1.0f32]);
/// let mut opt = Sgd::new(0.1).momentum(0.5);
/// opt.step(&mut w, &Tensor::from([1.0f32]));
/// opt.step(&mut w, &Tensor::from([1.0f32]));
/// assert!((w.to_vec()[0] - (1.0 - 0.1 - 0.15)).abs() < 1e-6);
/// ```
pub type Sgd = Optimizer<SgdRule>;

/// The settings of [`Sgd`].
#[derive(Clone, Debug, Default)]
pub struct SgdRule {
    weight_decay: f64,
    momentum: f64,
    dampening: f64,
    nesterov: bool,
}

impl Sgd {
    /// Plain gradient descent with this learning rate; no momentum, no decay.
    pub fn new(lr: f64) -> Self {
        Optimizer::with_rule(SgdRule::default(), lr)
    }

    /// How much of the last step's direction is kept, 0 if not said.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.rule.momentum = momentum;
        self
    }

    /// How much less a gradient counts in the momentum, 0 if not said.
    pub fn dampening(mut self, dampening: f64) -> Self {
        self.rule.dampening = dampening;
        self
    }

    /// Takes the step from where the momentum leads, after Nesterov.
    ///
    /// A step fails if there is no momentum, or dampening; PyTorch says so when the optimiser is made.
    pub fn nesterov(mut self) -> Self {
        self.rule.nesterov = true;
        self
    }

    /// The L2 penalty, 0 if not said.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.rule.weight_decay = weight_decay;
        self
    }
}

impl Rule for SgdRule {
    type Facts = Tensor<f64, 0>;

    fn states(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn check(&self) -> Result<()> {
        if self.nesterov && !(self.momentum > 0.0 && self.dampening == 0.0) {
            return Err(Error::shape("step", "nesterov needs momentum and no dampening".to_owned()));
        }
        Ok(())
    }

    fn facts(&self, _: f64, step: &Tensor<f64, 0>) -> Result<Self::Facts> {
        rules::freshness(step, 1.0 - self.dampening)
    }

    fn update<T: Float>(
        &self,
        now: &Now<'_, Self::Facts>,
        w: &mut Tensor<T, 1>,
        states: &mut [Flat<'_, T>],
        g: &Tensor<T, 1>,
    ) -> Result<()> {
        let (Scale { factor, skip }, lr, fresh, decay) = (now.scale, now.lr, now.facts, self.weight_decay);
        let [m] = states else { return rules::sgd(w, g, skip, factor, decay, lr) };
        let [along_g, along_m] = self.along();
        rules::momentum(w, &mut m.vector, g, skip, factor, fresh, decay, lr, self.momentum, along_g, along_m)
    }

    fn update_mixed<P: Float>(
        &self,
        now: &Now<'_, Self::Facts>,
        parameter: &mut Tensor<P, 1>,
        w: &mut Tensor<f32, 1>,
        states: &mut [Flat<'_, f32>],
        g: &Tensor<P, 1>,
    ) -> Result<()> {
        let (Scale { factor, skip }, lr, fresh, decay) = (now.scale, now.lr, now.facts, self.weight_decay);
        let [m] = states else { return rules::sgd_mixed(parameter, w, g, skip, factor, decay, lr) };
        let ([along_g, along_m], m, mu) = (self.along(), &mut m.vector, self.momentum);
        rules::momentum_mixed(parameter, w, m, g, skip, factor, fresh, decay, lr, mu, along_g, along_m)
    }
}

impl SgdRule {
    /// How far the step goes along the gradient and along the momentum.
    fn along(&self) -> [f64; 2] {
        if self.nesterov { [1.0, self.momentum] } else { [0.0, 1.0] }
    }
}
