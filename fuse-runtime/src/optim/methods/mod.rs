//! The optimisers by name: their settings, PyTorch's defaults, and which of the [rules](super::rules) a step of each is.

pub use adam::{Adam, AdamRule, AdamW, AdamWRule};
pub use lion::{Lion, LionRule};
pub use sgd::{Sgd, SgdRule};

use super::Scale;
use super::flat::Flat;
use crate::dtype::Float;
use crate::error::Result;
use crate::tensor::Tensor;

/// What an optimiser does to one parameter.
pub trait Rule {
    /// What changes from step to step and is the same for all parameters, on the device.
    type Facts;

    /// What is kept for each parameter, by PyTorch's names.
    fn states(&self) -> &'static [&'static str];

    /// Fails where the settings contradict each other.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// What a step, which was counted already, needs to know.
    fn facts(&self, lr: f64, step: &Tensor<f64, 0>) -> Result<Self::Facts>;

    /// Updates a parameter of f32 or f64.
    fn update<T: Float>(
        &self,
        now: &Now<'_, Self::Facts>,
        w: &mut Tensor<T, 1>,
        states: &mut [Flat<'_, T>],
        g: &Tensor<T, 1>,
    ) -> Result<()>;

    /// Updates the master copy of a parameter, and rounds it into the parameter.
    fn update_mixed<P: Float>(
        &self,
        now: &Now<'_, Self::Facts>,
        parameter: &mut Tensor<P, 1>,
        w: &mut Tensor<f32, 1>,
        states: &mut [Flat<'_, f32>],
        g: &Tensor<P, 1>,
    ) -> Result<()>;
}

/// What holds in a step for all parameters.
pub struct Now<'a, F> {
    pub(in crate::optim) lr: f64,
    pub(in crate::optim) scale: &'a Scale,
    pub(in crate::optim) facts: &'a F,
}

/// Calls a rule for both kinds of parameters with the same facts and numbers.
macro_rules! updates {
    ($rule:ident, $mixed:ident, |$this:ident, $now:ident| [$($state:tt)*] ($($fact:expr),*) ($($number:expr),*)) => {
        fn update<T: Float>(
            &self,
            now: &Now<'_, Self::Facts>,
            w: &mut Tensor<T, 1>,
            states: &mut [Flat<'_, T>],
            g: &Tensor<T, 1>,
        ) -> Result<()> {
            let ($this, $now, Scale { factor, skip }) = (self, now, now.scale);
            let updates!(@names $($state)*) = states else { unreachable!("a state for every name") };
            rules::$rule(w, $(&mut $state.vector,)* g, skip, factor, $($fact,)* $($number),*)
        }

        fn update_mixed<P: Float>(
            &self,
            now: &Now<'_, Self::Facts>,
            parameter: &mut Tensor<P, 1>,
            w: &mut Tensor<f32, 1>,
            states: &mut [Flat<'_, f32>],
            g: &Tensor<P, 1>,
        ) -> Result<()> {
            let ($this, $now, Scale { factor, skip }) = (self, now, now.scale);
            let updates!(@names $($state)*) = states else { unreachable!("a state for every name") };
            rules::$mixed(parameter, w, $(&mut $state.vector,)* g, skip, factor, $($fact,)* $($number),*)
        }
    };
    (@names $($state:ident)*) => { [$($state),*] };
}

// Behind the macro that they use.
mod adam;
mod lion;
mod sgd;
