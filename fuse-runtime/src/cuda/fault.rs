//! The record in which kernels note what must not be computed on: an index out of range, a division by zero.
//!
//! A kernel that meets such an element makes the access safe and notes the fault, the host finds it when it next waits.
//! The record lies in host memory that the device sees under an address that never changes, so it works in a replayed
//! CUDA graph and costs the host no copy. Its layout in CUDA is
//!
//! ```cuda
//! struct Fault { unsigned code, op; unsigned long long call; long long value, extent; unsigned long long failed[32], *here; };
//! ```
//!
//! The first fault wins: the thread whose `atomicCAS(&fault->code, 0, 0xffffffff)` returns 0 writes `op` to `extent`, then
//! `__threadfence_system()`, then `code`. So the host never sees half a record, even while another call runs. Every faulting
//! thread writes its call to its place in `failed`, so that what is launched behind the call can see that it has failed and
//! give a tensor its old value back, see [`Context::restore_if_failed`]. It does so at `here` as well, which is memory of the device: a
//! kernel that writes over a tensor of the caller asks there first, and the host's memory takes as long as a small kernel.

use super::driver::{Backend, Context};
use super::mapped::{mapped, zeroed};
use super::once::lock;
use crate::error::Result;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The code of a record that is being written.
const CLAIMED: u32 = u32::MAX;

/// The first fault of a stream as the kernel wrote it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FaultRecord {
    /// What happened; 0 for nothing.
    pub code: u32,
    /// The op that met it.
    pub op: u32,
    /// The call it happened in, see [`Context::next_call`].
    pub call: u64,
    /// The index, or the dividend.
    pub value: i64,
    /// The extent the index should have been below.
    pub extent: i64,
    /// Calls with a fault, each at the place that its number gives it, until a later one takes that.
    pub failed: [u64; FAILED],
    /// Where kernels find the same.
    pub here: u64,
}

/// So many calls with a fault are remembered; other threads would have to launch as many before a call is looked up.
const FAILED: usize = 32;

/// The record of one context, and the numbers of its calls.
pub(super) struct Fault {
    record: Mutex<Place>,
    device_address: u64,
    failed_address: u64,
    calls: AtomicU64,
}

/// Where the host sees the record.
enum Place {
    /// Memory of the driver, kept for the life of the process.
    Mapped(NonNull<FaultRecord>),
    /// The record of a recording context.
    Host(Box<UnsafeCell<FaultRecord>>),
}

// SAFETY: the memory belongs to no thread; the mutex around it orders the host's accesses.
unsafe impl Send for Place {}

impl Place {
    fn pointer(&self) -> *mut FaultRecord {
        match self {
            Place::Mapped(pointer) => pointer.as_ptr(),
            Place::Host(record) => record.get(),
        }
    }
}

impl Fault {
    /// A record in mapped memory of the current context.
    pub(super) fn mapped() -> Result<Fault> {
        let here = zeroed(8 * FAILED, "the fault record")?;
        let (record, device_address) = mapped(FaultRecord { here, ..FaultRecord::default() }, "the fault record")?;
        Ok(Fault::new(Place::Mapped(record), [device_address, here]))
    }

    /// The record of another context, as kernels see it.
    pub(super) fn elsewhere(context: &Context) -> Fault {
        Fault::new(Place::Host(Box::default()), [context.fault_address(), context.failed_address()])
    }

    /// A record no device writes to.
    pub(super) fn on_host() -> Fault {
        Fault::new(Place::Host(Box::default()), [0x1000, 0x2000])
    }

    fn new(record: Place, [device_address, failed_address]: [u64; 2]) -> Fault {
        Fault { record: Mutex::new(record), device_address, failed_address, calls: AtomicU64::new(0) }
    }
}

impl Context {
    /// The address kernels write faults to; the same for the life of the context.
    pub(crate) fn fault_address(&self) -> u64 {
        self.fault.device_address
    }

    /// The address at which kernels find which calls have failed lately; the same for the life of the context.
    pub(crate) fn failed_address(&self) -> u64 {
        self.fault.failed_address
    }

    /// The number of a new call of this context, greater than all before; faults carry it.
    pub(crate) fn next_call(&self) -> u64 {
        self.fault.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The first fault, if it happened in a call up to `call`, and clears the record so that it is returned once.
    ///
    /// Tell it the call that made what was just waited for: a later fault is left for a read that depends on it.
    pub(crate) fn take_fault(&self, call: u64) -> Option<FaultRecord> {
        let record = lock(&self.fault.record);
        // SAFETY: the pointer is valid for the life of the context, other host threads are kept out by the lock, and the
        // device's writes before the last synchronisation are visible; volatile, since the device writes behind our back.
        let found = unsafe { record.pointer().read_volatile() };
        if found.code == 0 || found.code == CLAIMED || found.call > call {
            return None;
        }
        // SAFETY: as above. The rest stays: `failed` may be written just now, and the others count only under a code.
        unsafe { (&raw mut (*record.pointer()).code).write_volatile(0) };
        Some(found)
    }

    /// Writes the record as a kernel would, for tests on a recording context.
    pub(crate) fn record_fault(&self, fault: FaultRecord) {
        assert!(matches!(self.backend, Backend::Recording(_)), "only a recording context has no kernels that write");
        // SAFETY: the record of a recording context is written by the host alone, under the lock.
        unsafe { lock(&self.fault.record).pointer().write_volatile(fault) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_returned_once_and_not_to_earlier_calls() {
        let context = Context::recording("sm_80");
        let (before, faulted) = (context.next_call(), context.next_call());
        let fault = FaultRecord { code: 1, op: 7, call: faulted, value: 9, extent: 4, ..FaultRecord::default() };
        context.record_fault(fault);
        assert_eq!(context.take_fault(before), None);
        assert_eq!(context.take_fault(faulted + 1), Some(fault));
        assert_eq!(context.take_fault(faulted + 1), None);
    }

    #[test]
    fn the_layout_is_the_one_kernels_write() {
        assert_eq!(size_of::<FaultRecord>(), 40 + 8 * FAILED);
        assert_eq!(std::mem::offset_of!(FaultRecord, failed), 32);
        assert_eq!(std::mem::offset_of!(FaultRecord, here), 32 + 8 * FAILED);
    }
}
