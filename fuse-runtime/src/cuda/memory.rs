//! Device memory.

use super::driver::{Backend, Context, Real};
use super::lanes::{Lane, Uses};
use super::mailbox::{self, Mailbox};
use super::status::{check, failure};
use super::trace::Traced;
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::sys::{self, CUresult};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// A block of device memory, returned to the pool when dropped.
///
/// Reads and writes are checked against its length. Writing needs no `&mut`: the stream orders all accesses, and who may
/// write is decided above, by the tensors that share the block.
pub struct Buffer {
    context: Arc<Context>,
    address: u64,
    len: usize,
    uses: Uses,
}

impl Buffer {
    /// `len` bytes of uninitialised memory; none are allocated for a length of zero.
    pub fn new(context: &Arc<Context>, len: usize) -> Result<Buffer> {
        let lane = context.lane();
        let address = match &context.backend {
            _ if len == 0 => 0,
            Backend::Real(real) => {
                let size = context.kept.size(len);
                context.kept.take(lane, size).map_or_else(|| real.allocate(context, lane, len), Ok)?
            }
            Backend::Recording(recorder) => recorder.allocate(len).ok_or_else(|| no_room(context, len))?,
            Backend::Tracing(tracer) => tracer.allocate(len),
        };
        context.usage.add(len);
        Ok(Buffer { context: context.clone(), address, len, uses: Uses::new(lane) })
    }

    /// The device address; 0 for a buffer of length zero.
    pub fn ptr(&self) -> u64 {
        self.address
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no memory.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The context the memory belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Lets what this thread launches next read here: behind the last write, on whichever stream that was.
    #[inline]
    pub(crate) fn will_read(&self) -> Result<()> {
        self.uses.read(&self.context)
    }

    /// Lets what this thread launches next write here: behind all that was launched to read or write here.
    #[inline]
    pub(crate) fn will_write(&self) -> Result<()> {
        self.uses.write(&self.context)
    }

    /// Copies `source` to the bytes from `offset` on. The source may change as soon as this returns.
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        let Some((real, address)) = self.span(offset, source.len())? else { return Ok(()) };
        self.will_write()?;
        let (pointer, stream) = (source.as_ptr().cast(), self.context.stream(real));
        // SAFETY: `span` checked the device range, the slice is the host range. From pageable memory the driver stages the
        // bytes before it returns; pinned memory it would read later, so that case waits.
        check(unsafe { sys::cuMemcpyHtoDAsync_v2(address, pointer, source.len(), stream) }, "copy to the device")?;
        if is_pinned(source) { real.synchronize(stream) } else { Ok(()) }
    }

    /// Copies the bytes from `offset` on to `target`, after everything launched so far.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        let Some((real, address)) = self.span(offset, target.len())? else {
            target.fill(0);
            return Ok(());
        };
        self.will_read()?;
        self.context.read(real, address, target)
    }

    /// Copies `len` bytes of `source` from `source_offset` on to the bytes from `offset` on; the ranges do not overlap.
    ///
    /// Between two devices the bytes go through the host.
    pub fn copy_from(&self, offset: usize, source: &Buffer, source_offset: usize, len: usize) -> Result<()> {
        if !Arc::ptr_eq(&self.context, &source.context) {
            let mut bytes = vec![0; len];
            source.read(source_offset, &mut bytes)?;
            return self.write(offset, &bytes);
        }
        if len == 0 {
            return Ok(());
        }
        if let Backend::Tracing(tracer) = &self.context.backend {
            let (to, from) = (self.address + offset as u64, source.address + source_offset as u64);
            tracer.note(Traced::Copy { to, from, bytes: len });
            return Ok(());
        }
        let Some((_, from)) = source.span(source_offset, len)? else { return Ok(()) };
        let Some((real, to)) = self.span(offset, len)? else { return Ok(()) };
        source.will_read()?;
        self.will_write()?;
        real.copy(self.context.stream(real), to, from, len)
    }

    /// Sets `len` bytes from `offset` on to `byte`.
    pub fn fill(&self, offset: usize, len: usize, byte: u8) -> Result<()> {
        let Some((real, address)) = self.span(offset, len)? else { return Ok(()) };
        self.will_write()?;
        let stream = self.context.stream(real);
        // SAFETY: `span` checked the range.
        check(unsafe { sys::cuMemsetD8Async(address, byte, len, stream) }, "fill device memory")
    }

    /// The driver, made current, and the address of a range that lies inside the buffer.
    ///
    /// `None` where there is nothing to do: an empty range, or a recording context.
    fn span(&self, offset: usize, len: usize) -> Result<Option<(&Real, u64)>> {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{len} bytes at {offset} of a buffer of {} bytes", self.len);
        match &self.context.backend {
            Backend::Real(real) if len > 0 => {
                real.make_current()?;
                Ok(Some((real, self.address + offset as u64)))
            }
            _ => Ok(None),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let context = &self.context;
        context.usage.sub(self.len);
        if self.address == 0 {
            return;
        }
        let lane = self.uses.end(context);
        match &context.backend {
            Backend::Real(_) if context.kept.keep(lane, self.address, context.kept.size(self.len)) => {}
            Backend::Real(real) => real.free(context.stream_of(real, lane), self.address),
            Backend::Recording(recorder) => recorder.free(self.len),
            Backend::Tracing(tracer) => tracer.free(self.address),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} of cuda:{}", self.len, self.address, self.context.facts().ordinal)
    }
}

/// Reads up to this size go through pinned memory: measured on an H200, 7.6 us instead of 10 us for one element. Larger
/// ones are as fast without, being bound by the host's own copying.
const STAGED: usize = 64 << 10;

/// Pinned host memory for small reads, used by one thread at a time.
pub(super) struct Staging(NonNull<u8>);

// SAFETY: the memory belongs to no thread and is never freed.
unsafe impl Send for Staging {}

impl Staging {
    /// Memory of the current context.
    pub(super) fn new() -> Result<Staging> {
        let mut memory = std::ptr::null_mut();
        // SAFETY: a context is current and the driver writes one address.
        check(
            unsafe { sys::cuMemHostAlloc(&mut memory, STAGED, sys::CU_MEMHOSTALLOC_PORTABLE) },
            "allocate pinned memory",
        )?;
        let memory = NonNull::new(memory.cast::<u8>()).expect("the driver gives memory when it says so");
        // SAFETY: the memory was just allocated with this size.
        unsafe { memory.write_bytes(0, STAGED) };
        Ok(Staging(memory))
    }

    fn read(&self, real: &Real, stream: sys::CUstream, address: u64, target: &mut [u8]) -> Result<()> {
        // SAFETY: the target is no longer than the memory, which is initialised and, under its lock, used by nobody else.
        let staged = unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), target.len()) };
        real.read(stream, address, staged)?;
        target.copy_from_slice(staged);
        Ok(())
    }
}

impl Context {
    /// The bool at an address of memory that the caller holds, after everything launched so far; `false` without a GPU.
    pub(crate) fn read_flag(&self, address: u64) -> Result<bool> {
        let Backend::Real(real) = &self.backend else { return Ok(false) };
        real.make_current()?;
        let mut flag = [0];
        self.read(real, address, &mut flag)?;
        Ok(flag != [0])
    }

    /// Copies from an address the caller has checked, and waits; the context is current.
    fn read(&self, real: &Real, address: u64, target: &mut [u8]) -> Result<()> {
        if target.len() <= mailbox::LARGEST
            && let Some(mailbox) = self.mailbox(real)
            && let Ok(mut mailbox) = mailbox.try_lock()
        {
            return mailbox.read(self, real, address, target);
        }
        let stream = self.stream(real);
        match real.staging.try_lock() {
            Ok(staging) if target.len() <= STAGED => staging.read(real, stream, address, target),
            _ => real.read(stream, address, target),
        }
    }

    /// The mailbox, from the first read on that makes it likely that its kernel is worth being compiled.
    fn mailbox<'a>(&self, real: &'a Real) -> Option<&'a Mutex<Mailbox>> {
        if real.small_reads.load(Ordering::Relaxed) < mailbox::WORTH_IT {
            real.small_reads.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let open = || Mailbox::open(self).unwrap_or_default().map(Mutex::new);
        real.mailbox.get_or_init(open).as_ref()
    }

    /// Copies `bytes` bytes from one address to another, which the caller vouches for.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        match &self.backend {
            Backend::Real(real) if bytes > 0 => real.copy(self.stream(real), to, from, bytes),
            _ => Ok(()),
        }
    }
}

impl Real {
    /// Copies between two ranges of the device that the caller has checked; the context is current.
    fn copy(&self, stream: sys::CUstream, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller checked both ranges.
        check(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) }, "copy on the device")
    }

    /// Copies from an address the caller has checked to lie in a buffer, and waits.
    fn read(&self, stream: sys::CUstream, address: u64, target: &mut [u8]) -> Result<()> {
        let pointer = target.as_mut_ptr().cast();
        // SAFETY: the caller checked the device range, the slice is the host range and is borrowed until the copy is done.
        check(unsafe { sys::cuMemcpyDtoHAsync_v2(pointer, address, target.len(), stream) }, "copy from the device")?;
        self.synchronize(stream)
    }

    /// Gives a block back to the pool.
    fn free(&self, stream: sys::CUstream, address: u64) {
        // A failure here means that the device or the driver is gone, and the memory with it.
        let _ = self.make_current();
        // SAFETY: the address came from the pool, and work that uses it comes earlier on the same stream, or the stream waits for it.
        let _ = unsafe { sys::cuMemFreeAsync(address, stream) };
    }

    /// An address of a block for so many bytes from the pool. If there is none, gives back what is kept, waits for what is being freed, empties the pool
    /// and tries once more.
    pub(super) fn allocate(&self, context: &Context, lane: Lane, len: usize) -> Result<u64> {
        let (stream, size) = (context.stream_of(self, lane), context.kept.size(len));
        self.make_current()?;
        match self.try_allocate(stream, size) {
            Ok(address) => return Ok(address),
            Err(status) if !out_of_memory(status) => return Err(failure(status, "allocate device memory")),
            Err(_) => {}
        }
        for (lane, block) in context.kept.drain() {
            self.free(context.stream_of(self, lane), block);
        }
        context.streams(self).into_iter().try_for_each(|stream| self.synchronize(stream))?;
        // SAFETY: the pool lives as long as the device; blocks in use are not touched.
        check(unsafe { sys::cuMemPoolTrimTo(self.pool, 0) }, "empty the memory pool")?;
        self.try_allocate(stream, size).map_err(|status| match out_of_memory(status) {
            true => no_room(context, len),
            false => failure(status, "allocate device memory"),
        })
    }

    fn try_allocate(&self, stream: sys::CUstream, len: usize) -> std::result::Result<u64, CUresult> {
        let mut address = 0;
        // SAFETY: the context is current and the driver writes one address.
        match unsafe { sys::cuMemAllocAsync(&mut address, len, stream) } {
            CUresult::CUDA_SUCCESS => Ok(address),
            status => Err(status),
        }
    }
}

impl Context {
    /// The bytes of all buffers that are in use.
    pub fn memory_allocated(&self) -> usize {
        self.usage.now()
    }

    /// The most bytes in use at once since the start, or since [`Context::reset_peak_memory_stats`].
    pub fn max_memory_allocated(&self) -> usize {
        self.usage.peak()
    }

    /// Forgets a peak above this one, which came from something that is not the program's.
    pub(crate) fn lower_peak(&self, peak: usize) {
        self.usage.lower_peak(peak);
    }

    /// Makes what is in use now the new peak.
    pub fn reset_peak_memory_stats(&self) {
        self.usage.reset_peak();
    }
}

/// The driver calls a size beyond its address space invalid rather than too large.
fn out_of_memory(status: CUresult) -> bool {
    matches!(status, CUresult::CUDA_ERROR_OUT_OF_MEMORY | CUresult::CUDA_ERROR_INVALID_VALUE)
}

#[cold]
fn no_room(context: &Context, len: usize) -> Error {
    let ordinal = context.facts().ordinal;
    let room = match context.memory_info() {
        Ok((free, total)) => format!(" ({free} of {total} bytes are free)"),
        Err(_) => String::new(),
    };
    Error::new(ErrorKind::OutOfMemory, format!("out of memory: cuda:{ordinal} could not give {len} bytes{room}"))
}

/// Whether the driver knows this host memory, as it does what was allocated or registered as pinned.
fn is_pinned(memory: &[u8]) -> bool {
    let mut kind = 0u32;
    let mut which = [sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_MEMORY_TYPE];
    let mut values = [(&raw mut kind).cast()];
    let address = memory.as_ptr() as sys::CUdeviceptr;
    // SAFETY: the one attribute asked for is a u32. This form of the question has an answer for unknown addresses, 0.
    let status = unsafe { sys::cuPointerGetAttributes(1, which.as_mut_ptr(), values.as_mut_ptr(), address) };
    status == CUresult::CUDA_SUCCESS && kind != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fake_addresses_are_aligned_and_do_not_overlap() {
        let context = Context::recording("sm_80");
        let first = Buffer::new(&context, 300).unwrap();
        let second = Buffer::new(&context, 1).unwrap();
        assert_eq!(first.ptr() % 256, 0);
        assert!(second.ptr() >= first.ptr() + 300 && second.ptr().is_multiple_of(256));
    }

    #[test]
    fn an_empty_buffer_has_no_memory() {
        let buffer = Buffer::new(&Context::recording("sm_80"), 0).unwrap();
        assert_eq!((buffer.ptr(), buffer.len()), (0, 0));
        buffer.write(0, &[]).unwrap();
    }

    #[test]
    #[should_panic(expected = "4 bytes at 6 of a buffer of 8 bytes")]
    fn a_range_outside_of_the_buffer_is_refused() {
        let _ = Buffer::new(&Context::recording("sm_80"), 8).unwrap().fill(6, 4, 0);
    }
}
