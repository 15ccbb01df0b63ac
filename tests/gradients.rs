//! Compiled gradients.

#[path = "gradients/attention.rs"]
mod attention;
#[path = "gradients/breaks.rs"]
mod breaks;
#[path = "gradients/captured.rs"]
mod captured;
mod common;
#[path = "gradients/companions.rs"]
mod companions;
#[path = "gradients/layers.rs"]
mod layers;
#[path = "gradients/results.rs"]
mod results;
#[path = "gradients/second_order.rs"]
mod second_order;
#[path = "gradients/training_step.rs"]
mod training_step;
