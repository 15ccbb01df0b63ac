//! Tensors, eager ops and everything a function under `#[compile]` needs at run time.
//!
//! ```
//! use fuse_runtime::prelude::*;
//!
//! #[compile]
//! fn layer(#[dims(B, D)] x: &Tensor<f32, 2>, #[dims(D, H)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
//!     x.matmul(w).relu()
//! }
//!
//! let x = Tensor::from([[1.0f32, -2.0]]);
//! let w = Tensor::from([[3.0f32, 1.0], [1.0, 2.0]]);
//! assert_eq!(layer(&x, &w).to_vec(), [1.0, 0.0]);
//! assert_eq!(layer::explain().breaks().len(), 0);
//! ```
//!
//! [`Tensor`] has the ops, [`compile`] the options, [`Explanation`] what a report tells, [`Device`] the places to run.

// Emitted code names the crate, and so do the tests of this crate.
extern crate self as fuse_runtime;

#[cfg(feature = "safetensors")]
mod checkpoint;
mod copy;
pub mod cuda;
pub mod device;
pub mod dtype;
pub mod eager;
mod env;
pub mod error;
mod exec;
mod float8;
mod generator;
pub mod layout;
mod log;
pub mod math;
pub mod optim;
pub mod philox;
pub mod raw;
pub mod reduce;
#[doc(hidden)]
pub mod rt;
#[cfg(feature = "safetensors")]
pub mod safetensors;
pub mod storage;
mod stream;
mod tape;
pub mod tensor;
mod tune;

#[cfg(feature = "safetensors")]
pub use checkpoint::Checkpoint;
pub use device::Device;
pub use dtype::{Bits, Element, Float, Int, Num};
pub use error::{Error, ErrorKind, Result};
pub use fuse_compiler::report::{self, Explanation};
pub use fuse_macros::compile;
pub use generator::Generator;
pub use layout::Layout;
pub use raw::RawTensor;
pub use stream::Stream;
pub use tape::{Differentiable, Outcome, Params, value_and_grad};
pub use tensor::Tensor;

/// Everything a program that uses tensors needs.
pub mod prelude {
    pub use crate::dtype::f8e4m3;
    pub use crate::tensor::{Operand, Rank, Reduction};
    pub use crate::{Bits, Device, Element, Error, ErrorKind, Float, Int, Num, Tensor, compile, value_and_grad};
    pub use half::{bf16, f16};
}
