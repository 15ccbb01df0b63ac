//! Learning rates that change from step to step.

use std::f64::consts::PI;

/// A learning rate for every step.
///
/// ```
/// use fuse_runtime::optim::{AdamW, Schedule};
/// let schedule = Schedule::cosine(1e-3, 1000).min_lr(1e-4).warmup(100);
/// let mut opt = AdamW::new(0.0);
/// for step in 0..1000 {
///     opt.set_lr(schedule.at(step));
///     // opt.step(..)
/// }
/// assert_eq!(schedule.at(0), 1e-5);
/// assert_eq!(schedule.at(99), 1e-3);
/// assert_eq!(schedule.at(1000), 1e-4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    lr: f64,
    min_lr: f64,
    warmup: u64,
    decay: Decay,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Decay {
    Constant,
    Step { every: u64, gamma: f64 },
    Cosine { steps: u64 },
    Linear { steps: u64 },
}

impl Schedule {
    /// Always the same.
    pub fn constant(lr: f64) -> Self {
        Schedule { lr, min_lr: 0.0, warmup: 0, decay: Decay::Constant }
    }

    /// Multiplied by `gamma` after every so many steps, as PyTorch's `StepLR`.
    ///
    /// ```
    /// use fuse_runtime::optim::Schedule;
    /// let schedule = Schedule::step(0.5, 30, 0.1);
    /// assert_eq!((schedule.at(29), schedule.at(30)), (0.5, 0.05));
    /// ```
    pub fn step(lr: f64, every: u64, gamma: f64) -> Self {
        Schedule { decay: Decay::Step { every: every.max(1), gamma }, ..Schedule::constant(lr) }
    }

    /// `min_lr + (lr - min_lr) * (1 + cos(pi * step / steps)) / 2`, as PyTorch's `CosineAnnealingLR`, and the lowest rate after
    /// `steps` (Loshchilov and Hutter, "SGDR", 2017).
    pub fn cosine(lr: f64, steps: u64) -> Self {
        Schedule { decay: Decay::Cosine { steps }, ..Schedule::constant(lr) }
    }

    /// In a straight line down to the lowest rate at `steps`, as PyTorch's `LinearLR` from 1 to `min_lr / lr`.
    ///
    /// ```
    /// use fuse_runtime::optim::Schedule;
    /// let schedule = Schedule::linear(1.0, 10);
    /// assert_eq!((schedule.at(0), schedule.at(5), schedule.at(20)), (1.0, 0.5, 0.0));
    /// ```
    pub fn linear(lr: f64, steps: u64) -> Self {
        Schedule { decay: Decay::Linear { steps }, ..Schedule::constant(lr) }
    }

    /// The lowest rate, 0 if not said.
    pub fn min_lr(self, min_lr: f64) -> Self {
        Schedule { min_lr, ..self }
    }

    /// Rises in a straight line over the first so many steps, the last of which has the full rate. The decay goes on from there
    /// and ends when it would without: warming up is a part of its steps.
    pub fn warmup(self, warmup: u64) -> Self {
        Schedule { warmup, ..self }
    }

    /// The rate of a step, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.lr * (step + 1) as f64 / self.warmup as f64;
        }
        let past = step - self.warmup;
        let share = |steps: u64| past as f64 / steps.saturating_sub(self.warmup).max(1) as f64;
        let rate = match self.decay {
            Decay::Constant => self.lr,
            Decay::Step { every, gamma } => self.lr * gamma.powi((past / every) as i32),
            Decay::Cosine { steps } => self.between((1.0 + (PI * share(steps).min(1.0)).cos()) / 2.0),
            Decay::Linear { steps } => self.between(1.0 - share(steps).min(1.0)),
        };
        rate.max(self.min_lr)
    }

    fn between(&self, share: f64) -> f64 {
        self.min_lr + (self.lr - self.min_lr) * share
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    /// PyTorch 2.x: `CosineAnnealingLR(SGD([..], lr=0.1), T_max=4, eta_min=0.02)`.
    #[test]
    fn cosine_is_that_of_pytorch() {
        let schedule = Schedule::cosine(0.1, 4).min_lr(0.02);
        let wanted = [0.1, 0.088_284_271_247_461_9, 0.06, 0.031_715_728_752_538_1, 0.02, 0.02];
        for (step, wanted) in (0..).zip(wanted) {
            assert!((schedule.at(step) - wanted).abs() < 1e-15, "step {step}: {}", schedule.at(step));
        }
    }

    #[test]
    fn a_schedule_of_no_steps_is_at_its_end() {
        assert_eq!(Schedule::cosine(1.0, 0).at(0), 1.0);
        assert_eq!(Schedule::linear(1.0, 0).at(1), 0.0);
        assert_eq!(Schedule::linear(1.0, 3).warmup(5).at(4), 1.0);
    }
}
