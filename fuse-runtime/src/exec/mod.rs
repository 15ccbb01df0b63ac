//! Running plans.

mod faults;

pub(crate) use faults::FaultCell;
