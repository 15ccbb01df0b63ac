//! A stand-in for a GPU that notes what it is asked to do, for tests of the dispatch path.

use super::driver::{Backend, Context};
use super::matmul::Matmul;
use super::once::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something a recording context was asked to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Recorded {
    /// A kernel.
    Launch {
        /// The name of the function.
        entry: Box<str>,
        /// Blocks in the grid.
        grid: [u32; 3],
        /// Threads in a block.
        block: [u32; 3],
        /// Dynamic shared memory in bytes.
        shared: u32,
        /// The packed arguments.
        args: Box<[u8]>,
    },
    /// A product of matrices by the library.
    Matmul(Matmul),
}

/// The notes, and the next address to give out.
pub(super) struct Recorder {
    notes: Mutex<Vec<Recorded>>,
    next_address: AtomicU64,
}

impl Recorder {
    /// No notes yet.
    pub(super) fn new() -> Recorder {
        Recorder { notes: Mutex::new(Vec::new()), next_address: AtomicU64::new(0x7000_0000_0000) }
    }

    /// An address nothing lies at, aligned as the pool of a GPU aligns; addresses are never reused.
    pub(super) fn allocate(&self, len: usize) -> u64 {
        self.next_address.fetch_add((len as u64).next_multiple_of(256), Ordering::Relaxed)
    }

    /// Notes one more.
    pub(super) fn note(&self, what: Recorded) {
        lock(&self.notes).push(what);
    }
}

impl Context {
    /// Takes what a recording context has noted since the last time; nothing on a GPU.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        match &self.backend {
            Backend::Recording(recorder) => std::mem::take(&mut lock(&recorder.notes)),
            Backend::Real(_) => Vec::new(),
        }
    }
}
