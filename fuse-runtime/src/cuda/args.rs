//! The arguments of one launch, packed as the kernel's parameters lie in memory.

use fuse_compiler::types::DType;
use std::mem::{MaybeUninit, size_of};

/// Parameter space every CUDA device has.
const CAPACITY: usize = 4096;

/// A value that may stand in kernel arguments as its bytes.
///
/// # Safety
/// Every byte of the type is initialised: a `repr(C)` struct without padding, whose layout is the kernel's.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        // SAFETY: a primitive number has no padding.
        unsafe impl Plain for $ty {}
    )*};
}

plain!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

// SAFETY: an array has no padding between elements that have none.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// What an argument is, where calls with the same layouts differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// An address that is only read from.
    Read,
    /// An address that is written to, and perhaps read from.
    Write,
    /// The n-th host scalar in this type.
    Scalar(u32, DType),
    /// The seed of the device.
    Seed,
    /// The first counter of the n-th random draw.
    Offset(u32),
    /// The number of the call.
    Call,
    /// The address of the bool that says whether there is anything to do; null where there is.
    Asked,
}

/// Kernel arguments in order, held inline so that a launch allocates nothing.
///
/// Each argument is aligned to its type's alignment, as in a C struct of the parameters.
#[repr(align(16))]
pub(crate) struct Args {
    bytes: [MaybeUninit<u8>; CAPACITY],
    len: usize,
    /// Where the last argument starts.
    last: usize,
    marks: Vec<(usize, Mark)>,
}

impl Args {
    /// No arguments yet.
    pub(crate) fn new() -> Self {
        Args { bytes: [MaybeUninit::uninit(); CAPACITY], len: 0, last: 0, marks: Vec::new() }
    }

    /// Appends a device address that is read from.
    pub(crate) fn pointer(&mut self, address: u64) -> &mut Self {
        self.push(address).mark(Mark::Read)
    }

    /// Appends a device address that is written to.
    pub(crate) fn pointer_mut(&mut self, address: u64) -> &mut Self {
        self.push(address).mark(Mark::Write)
    }

    /// Says what the last argument is.
    pub(crate) fn mark(&mut self, mark: Mark) -> &mut Self {
        self.marks.push((self.last, mark));
        self
    }

    /// What was said about arguments, by their first byte.
    pub(crate) fn marks(&self) -> &[(usize, Mark)] {
        &self.marks
    }

    /// Appends a scalar, an array or a plain struct.
    ///
    /// Panics beyond 4096 bytes: the compiler must not plan such a kernel.
    pub(crate) fn push<T: Plain>(&mut self, value: T) -> &mut Self {
        let start = self.len.next_multiple_of(align_of::<T>());
        let end = start + size_of::<T>();
        assert!(end <= CAPACITY && align_of::<T>() <= 16, "kernel arguments of {end} bytes, {CAPACITY} are possible");
        self.bytes[self.len..start].fill(MaybeUninit::new(0));
        // SAFETY: `start..end` lies inside the array, and `Plain` promises that all bytes of the value are initialised.
        unsafe { self.bytes.as_mut_ptr().add(start).cast::<T>().write_unaligned(value) };
        (self.last, self.len) = (start, end);
        self
    }

    /// Appends a plain struct that was packed before, with its alignment.
    pub(crate) fn push_bytes(&mut self, value: &[u8], align: usize) -> &mut Self {
        let start = self.len.next_multiple_of(align);
        let end = start + value.len();
        assert!(end <= CAPACITY && align <= 16, "kernel arguments of {end} bytes, {CAPACITY} are possible");
        self.bytes[self.len..start].fill(MaybeUninit::new(0));
        for (to, &byte) in self.bytes[start..end].iter_mut().zip(value) {
            to.write(byte);
        }
        (self.last, self.len) = (start, end);
        self
    }

    /// Takes packed arguments in the place of those so far.
    pub(crate) fn refill(&mut self, packed: &[u8]) {
        assert!(packed.len() <= CAPACITY, "kernel arguments of {} bytes, {CAPACITY} are possible", packed.len());
        // SAFETY: bytes are initialised, and there is room for them; the two do not overlap.
        unsafe { self.bytes.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(packed.as_ptr(), packed.len()) };
        self.len = packed.len();
    }

    /// Writes over a part of the packed arguments.
    #[inline]
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "an argument is inside of the packed ones");
        for (to, &byte) in self.bytes[at..].iter_mut().zip(bytes) {
            to.write(byte);
        }
    }

    /// The packed bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `push` initialises every byte below `len`, gaps included.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_as_in_a_c_struct() {
        let mut args = Args::new();
        args.push(1u8).push(2i32).push(3u8).pointer(4);
        assert_eq!(args.bytes(), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_array_is_one_argument() {
        let mut args = Args::new();
        args.push(1u16).push([2i64, 3]);
        assert_eq!(args.bytes().len(), 24);
    }

    #[test]
    fn a_mark_stands_at_the_first_byte_of_its_argument() {
        let mut args = Args::new();
        args.push(1u8).pointer(4).push(2u16).pointer_mut(5).push(3u64).mark(Mark::Call);
        assert_eq!(args.marks(), [(8, Mark::Read), (24, Mark::Write), (32, Mark::Call)]);
    }

    #[test]
    #[should_panic(expected = "4096 are possible")]
    fn too_many_arguments_are_an_error_of_the_compiler() {
        Args::new().push([0u64; 513]);
    }
}
