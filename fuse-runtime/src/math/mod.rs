//! The elementwise functions, one for every name the op table writes as `m::name` in Rust text.
//!
//! They work on the compute types (f32 for halves) and mean what the CUDA text of the same row means. Every function is
//! free of branches where that lets a loop over it be vectorised, and uses the same operations in every lane and at every
//! vector width, so that a value never depends on where in a tensor it stands.

mod bitwise;
mod convert;
mod double;
mod number;
mod real;
mod single;
mod value;

pub use bitwise::*;
pub use convert::{Convert, cast, round_bf16, round_f8e4m3, round_f16, round_to};
pub use number::*;
pub use real::*;
pub use value::*;

#[cfg(test)]
mod tests;
