//! A stand-in for a GPU while a call is taken down, to be run again without finding out anything twice.
//!
//! It launches nothing. It gives out symbolic addresses, one range for every block of memory, so that whatever arrives at a
//! launch as an address tells by itself which block it lies in and how far from its start. The order in which blocks are
//! asked for and let go between the launches is how long each is needed.

use super::args::{Args, Mark};
use super::driver::{Backend, Context};
use super::fault::Fault;
use super::matmul::Product;
use super::module::Function;
use super::once::lock;
use crate::error::Result;
use std::cell::RefCell;
use std::sync::{Arc, Mutex};

/// The number of the device that calls are taken down on; no machine has so many.
pub(crate) const TRACING: usize = u32::MAX as usize - 1;

/// Bits of an address that say where in its block it lies. No address of a device has more.
const WITHIN: u32 = 48;
/// Where a block starts in its range: addresses before it are of the same block.
const START: u64 = 1 << (WITHIN - 1);
/// The block that stands for the counters of the device.
pub(crate) const COUNTERS: u32 = 0xfff0;

/// Something that happened while a call was taken down.
#[derive(Clone, Debug)]
pub(crate) enum Traced {
    /// Memory was asked for; blocks are numbered in this order.
    Allocate(usize),
    /// A block was let go.
    Free(u32),
    /// A kernel.
    Launch {
        /// What is launched.
        function: Function,
        /// Blocks in the grid.
        grid: [u32; 3],
        /// Threads in a block.
        block: [u32; 3],
        /// Dynamic shared memory in bytes.
        shared: u32,
        /// The packed arguments.
        args: Box<[u8]>,
        /// What is known of some of them, by their first byte.
        marks: Box<[(usize, Mark)]>,
    },
    /// A product of matrices by the library.
    Product(Box<Product>),
    /// Bytes that are copied on the device.
    Copy {
        /// Where to.
        to: u64,
        /// Where from.
        from: u64,
        /// How many.
        bytes: usize,
    },
    /// From here on everything is done again and again, if a bool on the device says so.
    Loop(u64),
    /// The end of that, where another bool says whether it is done once more.
    EndOfLoop(u64),
    /// From here on everything is done if a bool on the device says so.
    Branch(u64),
    /// From here on everything is done if it does not.
    Otherwise,
    /// The end of that.
    EndOfBranch,
}

impl Traced {
    /// Whether the device has something to do.
    pub(crate) fn is_op(&self) -> bool {
        match self {
            Traced::Allocate(_) | Traced::Free(_) => false,
            Traced::EndOfLoop(_) | Traced::Otherwise | Traced::EndOfBranch => false,
            Traced::Launch { .. } | Traced::Product(_) | Traced::Copy { .. } => true,
            Traced::Loop(_) | Traced::Branch(_) => true,
        }
    }
}

/// What was taken down so far.
pub(super) struct Tracer {
    target: Arc<Context>,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    events: Vec<Traced>,
    blocks: u32,
    counters: usize,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

/// The context of the call that this thread takes down.
pub(super) fn current() -> Arc<Context> {
    CURRENT.with_borrow(|current| current.clone()).expect("tensors of a call that is taken down stay inside of it")
}

/// Runs `body` with a context that takes down what `target` would be asked to do.
pub(crate) fn take_down<R>(target: &Arc<Context>, body: impl FnOnce(&Arc<Context>) -> Result<R>) -> Result<R> {
    let tracer = Tracer { target: target.clone(), notes: Mutex::default() };
    let fault = Fault::elsewhere(target);
    let context = Arc::new(Context::new(target.facts().clone(), Backend::Tracing(tracer), fault));
    struct Leave(Option<Arc<Context>>);
    impl Drop for Leave {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _leave = Leave(CURRENT.replace(Some(context.clone())));
    body(&context)
}

impl Tracer {
    /// What would do what is taken down.
    pub(super) fn target(&self) -> &Arc<Context> {
        &self.target
    }

    /// The address of a new block.
    pub(super) fn allocate(&self, bytes: usize) -> u64 {
        let notes = &mut *lock(&self.notes);
        let block = notes.blocks;
        assert!(block < COUNTERS, "a call has so many blocks of memory that their addresses run out");
        notes.blocks += 1;
        notes.events.push(Traced::Allocate(bytes));
        address_of(block)
    }

    /// Lets a block go.
    pub(super) fn free(&self, address: u64) {
        let (block, _) = block_of(address).expect("the address of a block");
        self.note(Traced::Free(block));
    }

    /// Notes what happened.
    pub(super) fn note(&self, event: Traced) {
        lock(&self.notes).events.push(event);
    }

    /// Notes a launch.
    pub(super) fn launch(&self, f: &Function, grid: [u32; 3], block: [u32; 3], shared: u32, args: &Args) {
        let (function, marks) = (f.clone(), args.marks().into());
        self.note(Traced::Launch { function, grid, block, shared, args: args.bytes().into(), marks });
    }
}

impl Context {
    /// What was taken down, and how many counters it wants; nothing where calls are run.
    pub(crate) fn traced(&self) -> (Vec<Traced>, usize) {
        match &self.backend {
            Backend::Tracing(tracer) => {
                let notes = std::mem::take(&mut *lock(&tracer.notes));
                (notes.events, notes.counters)
            }
            _ => (Vec::new(), 0),
        }
    }

    /// Whether calls are taken down here.
    pub(crate) fn is_tracing(&self) -> bool {
        matches!(self.backend, Backend::Tracing(_))
    }

    /// Takes down that what follows is repeated as long as a bool on the device holds, the first time the one at this address.
    pub(crate) fn trace_loop(&self, first: u64) {
        self.trace(Traced::Loop(first));
    }

    /// Takes down the end of what is repeated, and where the bool lies that says whether it is.
    pub(crate) fn trace_end_of_loop(&self, next: u64) {
        self.trace(Traced::EndOfLoop(next));
    }

    /// Takes down that what follows is done if the bool at this address holds.
    pub(crate) fn trace_branch(&self, test: u64) {
        self.trace(Traced::Branch(test));
    }

    /// Takes down that what follows is done if it does not.
    pub(crate) fn trace_otherwise(&self) {
        self.trace(Traced::Otherwise);
    }

    /// Takes down the end of what is done by one bool.
    pub(crate) fn trace_end_of_branch(&self) {
        self.trace(Traced::EndOfBranch);
    }

    fn trace(&self, event: Traced) {
        match &self.backend {
            Backend::Tracing(tracer) => tracer.note(event),
            _ => unreachable!("only what is taken down is repeated or chosen"),
        }
    }

    /// Where a call that is taken down finds so many counters; `None` where calls are run.
    pub(crate) fn trace_counters(&self, count: usize) -> Option<u64> {
        let Backend::Tracing(tracer) = &self.backend else { return None };
        let notes = &mut *lock(&tracer.notes);
        notes.counters = notes.counters.max(count);
        Some(address_of(COUNTERS))
    }
}

fn address_of(block: u32) -> u64 {
    (u64::from(block + 1) << WITHIN) + START
}

/// The block of a symbolic address, and how far from its start it lies; `None` for any other number.
pub(crate) fn block_of(address: u64) -> Option<(u32, i64)> {
    let block = ((address >> WITHIN) as u32).checked_sub(1).filter(|&block| block <= COUNTERS)?;
    Some((block, address.wrapping_sub(address_of(block)) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Buffer;

    #[test]
    fn an_address_tells_its_block() {
        let address = address_of(3);
        assert_eq!(block_of(address), Some((3, 0)));
        assert_eq!(block_of(address + 40), Some((3, 40)));
        assert_eq!(block_of(address - 8), Some((3, -8)));
        assert_eq!(block_of(0x7f12_3456_7000), None);
        assert_eq!(block_of(0), None);
        assert!(address.is_multiple_of(256));
    }

    #[test]
    fn what_is_taken_down_is_not_done() {
        let target = Context::recording("sm_90a");
        let events = take_down(&target, |context| {
            let f = context.function("extern \"C\" __global__ void k0(int* to) {}", "k0", &[], false)?;
            let buffer = Buffer::new(context, 100)?;
            context.launch(&f, [1; 3], [32, 1, 1], 0, Args::new().pointer_mut(buffer.ptr() + 4))?;
            drop(buffer);
            Ok(context.traced().0)
        });
        let events = events.unwrap();
        let [Traced::Allocate(100), Traced::Launch { args, marks, .. }, Traced::Free(0)] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(block_of(u64::from_ne_bytes(args[..].try_into().unwrap())), Some((0, 4)));
        assert_eq!(marks[..], [(0, Mark::Write)]);
        assert_eq!(target.recorded(), []);
    }
}
