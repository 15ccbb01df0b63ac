//! Optimisers: the updates that training makes to parameters, as compiled code.
//!
//! ```
//! use fuse_runtime::optim::AdamW;
//! use fuse_runtime::prelude::*;
//!
//! #[compile(grad(w, b))]
//! fn loss(x: &Tensor<f32, 2>, y: &Tensor<f32, 2>, w: &Tensor<f32, 2>, b: &Tensor<f32, 1>) -> Tensor<f32, 0> {
//!     let error = x.matmul(w) + b - y;
//!     (&error * &error).mean_all()
//! }
//!
//! let d = Device::best();
//! let (x, y) = (Tensor::randn([64, 3], d), Tensor::zeros([64, 2], d));
//! let (mut w, mut b) = (Tensor::randn([3, 2], d), Tensor::zeros([2], d));
//! let mut opt = AdamW::new(1e-2).weight_decay(0.01);
//! let (before, _) = loss::value_and_grad(&x, &y, &w, &b);
//! for _ in 0..50 {
//!     let (_, grads) = loss::value_and_grad(&x, &y, &w, &b);
//!     opt.step((&mut w, &mut b), &grads);
//! }
//! assert!(loss(&x, &y, &w, &b).item() < before.item());
//! ```
//!
//! [`Sgd`], [`Adam`], [`AdamW`] and [`Lion`] have PyTorch's formulas and defaults. What is updated is any list of
//! [`Parameters`]: a tuple of references, or a whole model. Every parameter is written in place; only one whose storage
//! something else holds is copied first. On a GPU a step is one launch for all parameters of one element type, whatever
//! their extents are, and one of a single thread for what changes from step to step; nothing is read back.
//!
//! A parameter of f16 or bf16 has a master copy in f32, which is what is updated and what the parameter is rounded from, so
//! that small updates are not lost (Micikevicius et al., "Mixed precision training", 2018); the states are f32 as well. With f16
//! a [`GradScaler`] keeps gradients from vanishing.

mod clip;
mod flat;
mod methods;
mod parameters;
mod rules;
mod scaler;
mod schedule;
mod state;

pub use clip::{clip_grad_norm, grad_norm};
pub use methods::{Adam, AdamRule, AdamW, AdamWRule, Lion, LionRule, Sgd, SgdRule};
pub use parameters::{Name, Parameters, names, numel};
pub use scaler::GradScaler;
pub use schedule::Schedule;

pub(crate) use methods::Rule;
pub(crate) use parameters::tensors;

use crate::device::Device;
use crate::dtype::Float;
use crate::error::{Error, OrRaise, Result};
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use flat::Flat;
use fuse_compiler::types::DType;
use half::{bf16, f16};
use methods::Now;
use state::{Slot, State};

/// An optimiser: a rule of [`Sgd`], [`Adam`], [`AdamW`] or [`Lion`], the learning rate, and what is kept from step to step.
///
/// An optimiser belongs to one list of parameters. For other settings for some of them, such as no weight decay of biases,
/// make another optimiser and give each its own.
#[derive(Clone, Debug)]
pub struct Optimizer<R> {
    rule: R,
    lr: f64,
    max_norm: Option<f64>,
    state: State,
}

/// What a step does to all gradients before they are used.
pub(crate) struct Scale {
    /// What gradients are multiplied by.
    factor: Tensor<f64, 0>,
    /// Whether the step is not to be made.
    skip: Tensor<bool, 0>,
}

impl<R: Rule> Optimizer<R> {
    fn with_rule(rule: R, lr: f64) -> Self {
        Optimizer { rule, lr, max_norm: None, state: State::default() }
    }

    /// The learning rate of the next step.
    pub fn lr(&self) -> f64 {
        self.lr
    }

    /// Sets the learning rate, as a [`Schedule`] gives it.
    pub fn set_lr(&mut self, lr: f64) {
        self.lr = lr;
    }

    /// Scales the gradients of a step down to this global norm where theirs is larger, as [`clip_grad_norm`] does, without
    /// writing them: the factor stays on the device and is part of the update.
    ///
    /// ```
    /// use fuse_runtime::optim::Sgd;
    /// use fuse_runtime::prelude::*;
    /// let mut w = Tensor::from([0.0f32, 0.0]);
    /// Sgd::new(1.0).clip_grad_norm(1.0).step(&mut w, &Tensor::from([30.0f32, 40.0]));
    /// assert!((w.to_vec()[0] + 0.6).abs() < 1e-6);
    /// ```
    pub fn clip_grad_norm(mut self, max_norm: f64) -> Self {
        self.max_norm = Some(max_norm);
        self
    }

    /// Updates parameters with their gradients, which come in the same order. The first step makes the states.
    ///
    /// # Panics
    /// With an [`Error`] if there are not as many gradients as parameters, or one differs from its parameter in
    /// extents, element type or device; then no parameter has changed. Or if the parameters are others than in the last step.
    #[track_caller]
    pub fn step(&mut self, parameters: impl Parameters, gradients: &impl Parameters) {
        self.try_step(parameters, gradients).or_raise();
    }

    /// The same as a `Result`.
    pub fn try_step(&mut self, parameters: impl Parameters, gradients: &impl Parameters) -> Result<()> {
        let gradients = checked(&parameters, gradients)?;
        let Some(device) = gradients.first().map(RawTensor::device) else { return Ok(()) };
        let factor = match self.max_norm {
            None => Tensor::full([], 1.0, device),
            Some(max_norm) => rules::clip_factor(&clip::norm_of(&gradients)?, max_norm)?,
        };
        self.update(parameters, &gradients, &Scale { factor, skip: Tensor::full([], false, device) })
    }

    /// Updates parameters with gradients that fit.
    fn update(&mut self, mut parameters: impl Parameters, gradients: &[RawTensor], scale: &Scale) -> Result<()> {
        let Some(device) = gradients.first().map(RawTensor::device) else { return Ok(()) };
        self.rule.check()?;
        self.state.prepare(&parameters, self.rule.states(), device)?;
        let Optimizer { rule, lr, state: State { step, slots }, .. } = self;
        let step = step.as_mut().expect("the state was prepared above");
        rules::count(step, &scale.skip)?;
        let facts = rule.facts(*lr, step)?;
        let now = Now { lr: *lr, scale, facts: &facts };
        let mut rest = slots.iter_mut().zip(gradients);
        crate::exec::as_list(device, || {
            let mut outcome = Ok(());
            parameters.visit_mut(&mut Name::default(), &mut |_, parameter| {
                let (slot, gradient) = rest.next().expect("there is a gradient for every parameter");
                if outcome.is_ok() {
                    outcome = update_one(rule, &now, parameter, slot, gradient);
                }
            });
            outcome
        })
    }

    /// How many steps were made; those that a [`GradScaler`] has skipped do not count. Waits for the device.
    pub fn steps(&self) -> u64 {
        self.state.step.as_ref().map_or(0, |step| step.item() as u64)
    }
}

/// Updates one parameter.
fn update_one<R: Rule>(
    rule: &R,
    now: &Now<'_, R::Facts>,
    parameter: &mut RawTensor,
    slot: &mut Slot,
    gradient: &RawTensor,
) -> Result<()> {
    match parameter.dtype() {
        DType::F32 => update_plain::<R, f32>(rule, now, parameter, slot, gradient),
        DType::F64 => update_plain::<R, f64>(rule, now, parameter, slot, gradient),
        DType::F16 => update_mixed::<R, f16>(rule, now, parameter, slot, gradient),
        DType::BF16 => update_mixed::<R, bf16>(rule, now, parameter, slot, gradient),
        other => Err(Error::shape("step", format!("a parameter of {other} has no gradients"))),
    }
}

fn update_plain<R: Rule, T: Float>(
    rule: &R,
    now: &Now<'_, R::Facts>,
    parameter: &mut RawTensor,
    slot: &mut Slot,
    gradient: &RawTensor,
) -> Result<()> {
    let mut states = slot.values.iter_mut().map(Flat::<T>::of).collect::<Result<Vec<_>>>()?;
    rule.update(now, &mut Flat::<T>::of(parameter)?.vector, &mut states, &flat::vector(gradient)?)
}

fn update_mixed<R: Rule, P: Float>(
    rule: &R,
    now: &Now<'_, R::Facts>,
    parameter: &mut RawTensor,
    slot: &mut Slot,
    gradient: &RawTensor,
) -> Result<()> {
    let mut states = slot.values.iter_mut().map(Flat::<f32>::of).collect::<Result<Vec<_>>>()?;
    let mut master = Flat::<f32>::of(slot.master.as_mut().expect("a half has a master copy"))?;
    let (mut parameter, gradient) = (Flat::<P>::of(parameter)?, flat::vector(gradient)?);
    rule.update_mixed(now, &mut parameter.vector, &mut master.vector, &mut states, &gradient)
}

/// The gradients, where each fits its parameter.
fn checked(parameters: &impl Parameters, gradients: &impl Parameters) -> Result<Vec<RawTensor>> {
    let (parameters, gradients) = (tensors(parameters, ""), tensors(gradients, ""));
    if parameters.len() != gradients.len() {
        let text = format!("{} gradients do not fit {} parameters", gradients.len(), parameters.len());
        return Err(Error::shape("step", text));
    }
    for ((name, parameter), (_, gradient)) in parameters.iter().zip(&gradients) {
        let facts = |tensor: &RawTensor| (tensor.dtype(), tensor.shape().to_vec(), tensor.device());
        if facts(parameter) != facts(gradient) {
            let text = format!("parameter `{name}` is {} and its gradient {}", told(parameter), told(gradient));
            return Err(Error::shape("step", text));
        }
    }
    let devices: Vec<Device> = parameters.iter().map(|(_, parameter)| parameter.device()).collect();
    if let Some(other) = devices.iter().find(|device| **device != devices[0]) {
        return Err(Error::device("step", format!("one parameter is on {} and another on {other}", devices[0])));
    }
    Ok(gradients.into_iter().map(|(_, gradient)| gradient.clone()).collect())
}

fn told(tensor: &RawTensor) -> String {
    format!("{}{:?} on {}", tensor.dtype(), tensor.shape(), tensor.device())
}
