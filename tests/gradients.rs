//! Compiled gradients.

#[path = "gradients/captured.rs"]
mod captured;
mod common;
#[path = "gradients/companions.rs"]
mod companions;
#[path = "gradients/training_step.rs"]
mod training_step;
