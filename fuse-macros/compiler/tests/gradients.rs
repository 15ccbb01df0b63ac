//! Gradients against finite differences in f64: every row, whole models, random programs; and the known values of hard cases.

// The samples are those of the oracle tests: an op that has them there has them here.
#[path = "../../../tests/oracle/by_hand.rs"]
mod by_hand;
mod common {
    pub use crate::sample::Rng;
}
#[path = "gradients/attention.rs"]
mod attention;
#[path = "gradients/cases.rs"]
mod cases;
#[path = "gradients/differences.rs"]
mod differences;
#[path = "gradients/kernels.rs"]
mod kernels;
#[path = "gradients/mistakes.rs"]
mod mistakes;
#[path = "gradients/models.rs"]
mod models;
#[path = "gradients/random.rs"]
mod random;
#[path = "gradients/rows.rs"]
mod rows;
#[allow(dead_code)]
#[path = "../../../tests/common/sample.rs"]
mod sample;
#[path = "../../../tests/oracle/samples.rs"]
mod samples;
#[path = "gradients/splits.rs"]
mod splits;
#[path = "gradients/turns.rs"]
mod turns;
