//! Tensors, eager ops and everything a function under `#[compile]` needs at run time.

// Emitted code names the crate, and so do the tests of this crate.
extern crate self as fuse_runtime;

mod copy;
pub mod cuda;
pub mod device;
pub mod dtype;
pub mod eager;
mod env;
pub mod error;
mod exec;
pub mod layout;
mod log;
pub mod math;
pub mod philox;
pub mod raw;
pub mod reduce;
#[doc(hidden)]
pub mod rt;
#[cfg(feature = "safetensors")]
pub mod safetensors;
pub mod storage;
pub mod tensor;

pub use device::Device;
pub use dtype::{Bits, Element, Float, Int, Num};
pub use error::{Error, ErrorKind, Result};
pub use fuse_compiler::report::{self, Explanation};
pub use fuse_macros::compile;
pub use layout::Layout;
pub use raw::RawTensor;
pub use tensor::Tensor;

/// Everything a program that uses tensors needs.
pub mod prelude {
    pub use crate::tensor::{Operand, Rank, Reduction};
    pub use crate::{Bits, Device, Element, Error, ErrorKind, Float, Int, Num, Tensor, compile};
    pub use half::{bf16, f16};
}
