//! The CUDA layer: everything the runtime asks of the driver, NVRTC and cuBLASLt.
//!
//! - `driver` opens a GPU once per process as a [`Context`]: primary context, one stream, facts of the device.
//! - `lanes` are the streams of a context, and who waits for whom.
//! - `libraries` opens those beside the driver, ahead of their use.
//! - `memory` holds device memory as [`Buffer`]s from the driver's stream-ordered pool.
//! - `mailbox` reads a few bytes from the device, faster than a copy.
//! - `nvrtc` compiles a source to a cubin, `cache` and `disk` keep what was compiled.
//! - `section` cuts out of a function's text what one kernel is compiled from.
//! - `clock` times launches.
//! - `module` loads a cubin as `Function`s and launches them with `Args`.
//! - `graph` makes one launch of many.
//! - `fault` is the record in which kernels note an index out of range or a division by zero.
//! - `restore` gives a tensor its old value back behind a call that failed.
//! - `matmul` says products of matrices in the terms of the library, `cublaslt` runs them.
//! - `trace` takes a call down instead of running it, for it to be run again faster.
//! - `graph` makes many launches one, `condition` lets a part of them be repeated on the device.
//! - `recorder` stands in for a GPU in tests: it notes the launches and the programs, and counts the memory.
//!
//! The libraries are opened at run time and asked for before the first use, because the bindings panic on a missing one:
//! without a driver there are no contexts, without NVRTC only kernels in the cache load, without cuBLASLt
//! `Context::matmul` declines and the caller takes its own kernel.
//!
//! **Order.** Everything a thread does goes to one stream, in the order of the calls, and only reading to the host and
//! [`Context::synchronize`] wait. So memory can be freed as soon as the host lets go of it: what was launched before still
//! comes first. Where there are several streams, blocks of memory know who used them, and streams wait for each other.
//!
//! **Threads.** Contexts, buffers and functions are shared freely. Each entry point makes the context current on the
//! calling thread, no lock is held across a launch.

mod args;
mod cache;
mod clock;
mod condition;
mod cublaslt;
mod disk;
mod driver;
mod fault;
mod graph;
mod kept;
mod lanes;
mod libraries;
mod mailbox;
mod mapped;
mod matmul;
mod memory;
mod module;
mod nvrtc;
mod once;
mod recorder;
mod restore;
mod section;
mod status;
mod strided;
#[cfg(test)]
mod tests;
mod trace;

pub use driver::{Context, Facts};
pub use memory::Buffer;

pub(crate) use args::{Args, Mark};
pub(crate) use cache::text_key;
pub(crate) use clock::Clock;
pub(crate) use driver::probe;
pub(crate) use fault::FaultRecord;
pub(crate) use graph::{Graph, Node, Work, graphs};
pub(crate) use lanes::{Lane, several_lanes};
pub(crate) use matmul::{Matmul, Matrix, Product};
pub(crate) use module::Function;
pub(crate) use nvrtc::compiles;
pub(crate) use recorder::{RECORDER, Recorded};
pub(crate) use trace::{COUNTERS, TRACING, Traced, block_of, take_down};
