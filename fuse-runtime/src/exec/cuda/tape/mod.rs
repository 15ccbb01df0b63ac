//! A call as a list of launches that are ready but for what differs between calls with the same layouts.
//!
//! - `key` is what two calls must agree on to have the same tape, and where the tapes of a program are kept.
//! - `build` makes a tape from a call that was taken down.
//! - `device_loop` makes one of a loop, a part of whose launches the device repeats, `device_branch` of a branch.
//! - `memory` decides where temporaries lie.
//! - `run` runs a tape, launch by launch or, for `mode = "reduce-overhead"`, as the CUDA graph that `replay` keeps.

mod build;
mod device_branch;
mod device_loop;
mod key;
mod memory;
mod replay;
mod run;
#[cfg(test)]
mod tests;

pub(in crate::exec) use device_branch::DeviceBranch;
pub(in crate::exec) use device_loop::DeviceLoop;
pub(super) use key::Found;
pub(crate) use key::Tapes;

use crate::cuda::{Context, Function, Product};
use crate::layout::Layout;
use fuse_compiler::types::DType;
use memory::Block;
use replay::Replay;
use std::sync::Arc;

/// A call made ready.
pub(crate) struct Tape {
    context: Arc<Context>,
    ordinal: usize,
    ops: Vec<Op>,
    /// Memory to be had, in the order of its first use.
    blocks: Vec<Block>,
    /// Whether blocks are asked for when they are first used and let go behind their last use, rather than all at the start.
    stepwise: bool,
    results: Vec<Outcome>,
    /// How many counters each random draw uses up.
    draws: Vec<u64>,
    /// How many device counters the launches want.
    counters: usize,
    /// The graph, for programs that want one.
    replay: Option<Replay>,
}

/// Something to be launched.
enum Op {
    Launch(Launch),
    Product(Box<Multiplication>),
    Copy { to: Address, from: Address, bytes: usize },
    Loop(Repeated),
    Branch(Decided),
}

/// All launches behind this one, as long as a bool on the device holds: the first time one, then the other.
struct Repeated {
    first: Address,
    next: Address,
}

/// The launches behind this one up to another, if a bool on the device holds, else those from there on.
struct Decided {
    test: Address,
    /// The number of the first launch of the second kind.
    otherwise: usize,
}

/// A kernel and its packed arguments, right but for the patches.
struct Launch {
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    args: Box<[u8]>,
    patches: Box<[Patch]>,
}

/// A product by the library and where its matrices lie.
struct Multiplication {
    product: Product,
    a: Address,
    b: Address,
    c: Address,
    bias: Option<Address>,
}

/// A place in packed arguments and what is written there in each call.
struct Patch {
    at: u32,
    value: Value,
}

enum Value {
    Address(Address),
    Scalar(u32, DType),
    Seed,
    Offset(u32),
    Call,
}

/// An address: so far from a place, which is an argument of the call, one of its blocks, or the counters of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    place: u32,
    delta: i64,
}

/// A result: a layout in a block, or in the storage of an argument that is given up.
struct Outcome {
    dtype: DType,
    /// Its offset is another in each call.
    layout: Layout,
    /// Its first element; `None` where it has no elements.
    at: Option<Address>,
    /// Whether a kernel of this call wrote it.
    written: bool,
}
