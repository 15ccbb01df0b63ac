//! Kernels on the processor: the driver cuts the domain into runs, makes every operand of a run dense, and hands the run
//! to the kernel's body.

mod access;
mod attention;
mod columns;
mod gemm;
mod helpers;
mod kernel;
mod launch;
mod matmul;
mod moves;
mod right;
mod share;
mod strided;
mod strips;
mod tiles;
mod worker;

pub(super) use attention::{Parts, run_attention};
pub(super) use kernel::run_kernel;
pub(super) use matmul::run_matmul;
