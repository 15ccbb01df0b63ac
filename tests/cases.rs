//! Traps that compilers of tensor programs have fallen into, each with the value that is right. The numbers in the names of
//! the tests are those of the list in `tests/cases/README.md`.

// Values are written as the list has them.
#![allow(clippy::excessive_precision)]

mod common;

#[path = "cases"]
mod cases {
    mod accuracy;
    mod breaks;
    mod draws;
    pub(crate) mod harness;
    mod indices;
    mod integers;
    mod layouts;
    mod loading;
    mod products;
    mod reductions;
    mod replay;
    mod rounding;
    mod shapes;
    mod special;
    mod types;
    mod writes;

    /// What every theme uses.
    pub(crate) use crate::common::device;
    pub(crate) use fuse_runtime::prelude::*;
    pub(crate) use harness::{Outputs, Trap, alone, bf, hf, scalar, tensor, traps};
}
