//! Kernels on a GPU: operands become addresses and strides, layouts choose a variant of the text, and what the variant
//! needs is packed in the order the emitter wrote it.

mod bind;
mod call;
mod launch;
mod matmul;
mod scratch;
mod warm;

pub(crate) use call::{CudaCall, describe_fault};
pub(crate) use launch::Functions;
#[cfg(test)]
pub(crate) use matmul::with_template;
