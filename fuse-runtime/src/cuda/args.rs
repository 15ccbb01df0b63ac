//! The arguments of one launch, packed as the kernel's parameters lie in memory.

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

/// Kernel arguments in order, held inline so that a launch allocates nothing.
///
/// Each argument is aligned to its type's alignment, as in a C struct of the parameters.
#[repr(align(16))]
pub(crate) struct Args {
    bytes: [MaybeUninit<u8>; CAPACITY],
    len: usize,
}

impl Args {
    /// No arguments yet.
    pub(crate) fn new() -> Self {
        Args { bytes: [MaybeUninit::uninit(); CAPACITY], len: 0 }
    }

    /// Appends a device address.
    pub(crate) fn pointer(&mut self, address: u64) -> &mut Self {
        self.push(address)
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
        self.len = end;
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
        self.len = end;
        self
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
    #[should_panic(expected = "4096 are possible")]
    fn too_many_arguments_are_an_error_of_the_compiler() {
        Args::new().push([0u64; 513]);
    }
}
