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
//! With `grad(..)` come gradients of a function, and `vjp` takes a cotangent for each tensor of its result:
//!
//! ```
//! use fuse_runtime::prelude::*;
//!
//! #[compile(grad(w))]
//! fn encode(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> (Tensor<f32, 2>, [Tensor<f32, 1>; 2], usize) {
//!     let y = x.matmul(w);
//!     let (total, largest) = (y.sum(-1), y.max(-1));
//!     (y, [total, largest], x.size(0))
//! }
//!
//! let (x, w) = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([[3.0f32, 1.0], [1.0, 1.0]]));
//! let (y_up, total_up, largest_up) = (Tensor::from([[1.0f32, -1.0]]), Tensor::from([10.0f32]), Tensor::from([100.0f32]));
//! let ((y, _, rows), w_grad) = encode::vjp(&x, &w, (&y_up, [&total_up, &largest_up], ()));
//! assert_eq!((y.to_vec(), rows), (vec![5.0, 3.0], 1));
//! assert_eq!(w_grad.to_vec(), [111.0, 9.0, 222.0, 18.0]);
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
pub use tape::{Outcome, Params, value_and_grad};
pub use tensor::Tensor;

/// Everything a program that uses tensors needs.
pub mod prelude {
    pub use crate::dtype::f8e4m3;
    pub use crate::tensor::{Operand, Rank, Reduction};
    pub use crate::{Bits, Device, Element, Error, ErrorKind, Float, Int, Num, Tensor, compile, value_and_grad};
    pub use half::{bf16, f16};
}
