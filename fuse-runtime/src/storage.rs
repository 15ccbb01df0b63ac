//! Reference-counted memory without an element type.

use crate::cuda;
use crate::error::{Error, Result};
use std::alloc;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory behind one or more tensors.
#[derive(Debug)]
pub enum Storage {
    /// Memory of this machine.
    Cpu(CpuBuffer),
    /// Memory of a GPU.
    Cuda(CudaBuffer),
}

impl Storage {
    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Storage::Cpu(buffer) => buffer.bytes(),
            Storage::Cuda(cuda) => cuda.buffer.len(),
        }
    }

    /// The memory, if it is of this machine.
    pub fn as_cpu(&self) -> Option<&CpuBuffer> {
        match self {
            Storage::Cpu(buffer) => Some(buffer),
            Storage::Cuda(_) => None,
        }
    }

    /// The memory, if it is of a GPU.
    pub fn as_cuda(&self) -> Option<&CudaBuffer> {
        match self {
            Storage::Cpu(_) => None,
            Storage::Cuda(cuda) => Some(cuda),
        }
    }

    /// The address of the first byte, on whichever device the memory is.
    pub fn address(&self) -> u64 {
        match self {
            Storage::Cpu(buffer) => buffer.as_ptr() as u64,
            Storage::Cuda(cuda) => cuda.buffer.ptr(),
        }
    }
}

/// Memory of a GPU and the call that last wrote to it.
#[derive(Debug)]
pub struct CudaBuffer {
    buffer: cuda::Buffer,
    last_call: AtomicU64,
    may_fail: AtomicU64,
}

impl CudaBuffer {
    /// A block of `bytes` with any content.
    pub fn new(ordinal: usize, bytes: usize) -> Result<Self> {
        Ok(cuda::Buffer::new(&cuda::Context::get(ordinal)?, bytes)?.into())
    }

    /// A block with these bytes.
    pub fn from_bytes(ordinal: usize, bytes: &[u8]) -> Result<Self> {
        let memory = CudaBuffer::new(ordinal, bytes.len())?;
        memory.buffer.write(0, bytes)?;
        Ok(memory)
    }

    /// The memory.
    pub fn buffer(&self) -> &cuda::Buffer {
        &self.buffer
    }

    /// Notes that the call with this number writes here, so that a read finds the faults this data depends on, and no
    /// later ones.
    pub fn note_call(&self, call: u64) {
        self.last_call.fetch_max(call, Ordering::Relaxed);
    }

    /// The number of the last call that wrote here.
    pub fn last_call(&self) -> u64 {
        self.last_call.load(Ordering::Relaxed)
    }

    /// Notes whether the call that last wrote here may turn out to have failed, and its number.
    pub fn note_may_fail(&self, call: Option<u64>) {
        self.may_fail.store(call.unwrap_or(0), Ordering::Relaxed);
    }

    /// The call that wrote here and may turn out to have failed, if there is one.
    pub fn may_fail(&self) -> Option<u64> {
        Some(self.may_fail.load(Ordering::Relaxed)).filter(|&call| call > 0)
    }
}

impl From<cuda::Buffer> for CudaBuffer {
    fn from(buffer: cuda::Buffer) -> Self {
        CudaBuffer { buffer, last_call: AtomicU64::new(0), may_fail: AtomicU64::new(0) }
    }
}

/// Every block starts on a cache line, which is also the widest vector.
pub const ALIGN: usize = 64;

/// Bytes on the host, aligned to [`ALIGN`] and never uninitialised.
///
/// Fresh pages cost more than most ops that fill them, so blocks are kept when dropped and given out again.
#[derive(Debug)]
pub struct CpuBuffer {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the buffer owns its bytes. They are read through `&` and written through `&mut`, or through the raw pointer by a
// kernel whose launch owns the tensor it writes to.
unsafe impl Send for CpuBuffer {}
// SAFETY: as above.
unsafe impl Sync for CpuBuffer {}

impl CpuBuffer {
    /// A block of `bytes` with any content.
    pub fn new(bytes: usize) -> Result<Self> {
        let start = match kept().take(size_class(bytes)) {
            Some(block) => block,
            None => fresh(size_class(bytes)).ok_or_else(|| Error::out_of_memory("cpu", bytes))?,
        };
        Ok(CpuBuffer { start, bytes })
    }

    /// A block with these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut buffer = CpuBuffer::new(bytes.len())?;
        buffer.as_mut_slice().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first byte, for kernels. Writing needs the right to write to the whole tensor.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` points to at least `bytes` initialised bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        let gone = kept().put(self.start, size_class(self.bytes));
        gone.into_iter().for_each(|(start, class)| release(start, class));
    }
}

/// Blocks that wait to be given out again, by size class.
struct Kept {
    blocks: BTreeMap<usize, Vec<Block>>,
    bytes: usize,
}

struct Block(NonNull<u8>);

// SAFETY: a kept block belongs to the list alone.
unsafe impl Send for Block {}

/// More than this is given back to the system instead of being kept.
const KEPT_LIMIT: usize = 1 << 30;

static KEPT: Mutex<Kept> = Mutex::new(Kept::new());

fn kept() -> std::sync::MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Kept {
    const fn new() -> Self {
        Kept { blocks: BTreeMap::new(), bytes: 0 }
    }

    /// A block of this class, if one waits.
    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let block = self.blocks.get_mut(&class)?.pop()?;
        self.bytes -= class;
        Some(block.0)
    }

    /// Takes a block in and returns what has to go for it: blocks of other classes first, which nobody asked for lately.
    fn put(&mut self, start: NonNull<u8>, class: usize) -> Vec<(NonNull<u8>, usize)> {
        if class > KEPT_LIMIT {
            return vec![(start, class)];
        }
        let mut out = Vec::new();
        while self.bytes + class > KEPT_LIMIT {
            let waiting = |(_, list): &(&usize, &Vec<Block>)| !list.is_empty();
            let classes = self.blocks.iter().rev().filter(waiting).map(|(&class, _)| class);
            let other = classes.min_by_key(|&other| other == class).expect("the list is full, so something is in it");
            out.extend(self.take(other).map(|block| (block, other)));
        }
        self.bytes += class;
        self.blocks.entry(class).or_default().push(Block(start));
        out
    }
}

/// Gives every kept block back to the system.
pub fn release_kept() {
    let all = std::mem::replace(&mut *kept(), Kept::new());
    for (class, blocks) in all.blocks {
        blocks.into_iter().for_each(|block| release(block.0, class));
    }
}

/// The size of the block that holds `bytes`: eight classes per power of two waste at most an eighth.
fn size_class(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 16).max(ALIGN);
    bytes.max(1).next_multiple_of(step)
}

fn block_layout(class: usize) -> Option<alloc::Layout> {
    let align = if class >= LARGE { LARGE_PAGE } else { ALIGN };
    alloc::Layout::from_size_align(class, align).ok()
}

/// A block from the system. Zeroed, so that no byte is ever uninitialised.
fn fresh(class: usize) -> Option<NonNull<u8>> {
    let layout = block_layout(class)?;
    // SAFETY: the size of `layout` is not zero.
    let some = || NonNull::new(unsafe { alloc::alloc(layout) });
    let block = some().or_else(|| {
        release_kept();
        some()
    })?;
    if class >= LARGE {
        ask_for_large_pages(block, class);
    }
    // SAFETY: the block has that many bytes.
    unsafe { block.write_bytes(0, class) };
    Some(block)
}

/// Blocks from here on start on a large page.
const LARGE: usize = 2 * LARGE_PAGE;
const LARGE_PAGE: usize = 1 << 21;

/// Asks the system to put a block on large pages before any of it is touched. Walking down a column of a matrix touches a
/// page a row, and there is no room to remember where thousands of small ones lie.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(block: NonNull<u8>, bytes: usize) {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
    const MADV_HUGEPAGE: c_int = 14;
    // SAFETY: the range is ours and starts on a page. It is advice: where the system has no large pages nothing changes.
    unsafe { madvise(block.as_ptr().cast(), bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: NonNull<u8>, _: usize) {}

fn release(start: NonNull<u8>, class: usize) {
    if let Some(layout) = block_layout(class) {
        // SAFETY: every block was allocated by `fresh` with the layout of its class, and its owner has given it up.
        unsafe { alloc::dealloc(start.as_ptr(), layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_zero_sized_ones_work() {
        for bytes in [0, 1, 63, 64, 65, 1000, 1 << 20] {
            let buffer = CpuBuffer::new(bytes).unwrap();
            assert_eq!(buffer.as_ptr() as usize % ALIGN, 0);
            assert_eq!(buffer.as_slice().len(), bytes);
        }
    }

    #[test]
    fn size_classes_hold_their_bytes_and_waste_little() {
        for bytes in [1, 64, 65, 1024, 1025, 5000, (1 << 20) + 1, 3 << 20] {
            let class = size_class(bytes);
            assert!(class >= bytes);
            assert!(class - bytes < ALIGN.max(bytes / 8), "{bytes} takes {class}");
            assert_eq!(size_class(class), class);
        }
    }

    #[test]
    fn a_block_is_given_out_again_for_its_class_alone() {
        // A list of this test's own, since all tests share the one of the process.
        let mut list = Kept::new();
        let block = fresh(4096).unwrap();
        assert_eq!(list.put(block, 4096), []);
        assert_eq!(list.take(8192), None);
        assert_eq!(list.take(4096), Some(block));
        assert_eq!((list.take(4096), list.bytes), (None, 0));
        release(block, 4096);
    }

    #[test]
    fn a_full_list_makes_room_from_other_classes() {
        // Addresses that are never looked at.
        let [old, new] = [64, 128].map(|address| NonNull::new(std::ptr::without_provenance_mut(address)).unwrap());
        let mut list = Kept::new();
        assert_eq!(list.put(old, KEPT_LIMIT), []);
        assert_eq!(list.put(new, 64), [(old, KEPT_LIMIT)]);
        assert_eq!(list.put(old, KEPT_LIMIT + 64), [(old, KEPT_LIMIT + 64)]);
        assert_eq!(list.bytes, 64);
    }

    #[test]
    fn too_much_is_an_error() {
        let error = CpuBuffer::new(isize::MAX as usize - 4096).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
    }
}
