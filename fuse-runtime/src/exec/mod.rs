//! Running plans: sizes are evaluated and checked, memory is found, and every step is run by the processor or a GPU.

mod buffers;
mod cpu;
mod cuda;
mod faults;
mod interp;
mod kernel_dtypes;
mod operands;
mod overwritten;
mod program;
#[cfg(test)]
mod random;
mod run;
mod symbols;
mod views;

pub(crate) use cuda::{Ahead, Functions, as_list, describe_fault, run_branch, run_loop};
pub(crate) use faults::FaultCell;
pub(crate) use program::Program;
pub(crate) use run::{Call, guards_hold, run, run_again};
pub(crate) use symbols::check_sizes;

#[cfg(test)]
mod tests;
