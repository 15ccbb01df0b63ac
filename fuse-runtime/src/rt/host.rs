//! Host values on their way into a graph.

use crate::raw::RawTensor;

/// A host integer that a size is made of.
pub trait HostInt: Copy {
    /// The value. Sizes beyond 63 bits do not exist.
    fn as_int(self) -> i64;
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl HostInt for $ty {
            fn as_int(self) -> i64 {
                self as i64
            }
        }
    )*};
}

integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

impl<T: HostInt> HostInt for &T {
    fn as_int(self) -> i64 {
        (*self).as_int()
    }
}

/// A host integer as a graph takes it.
pub fn int(value: impl HostInt) -> i64 {
    value.as_int()
}

/// Whether `FUSE_BACKEND=eager` asks compiled functions to run their originals, or a tape records, which sees eager ops.
pub fn wants_eager() -> bool {
    crate::env::wants_eager() || crate::tape::is_recording()
}

/// The same for a function whose graphs a tape follows: it runs its original only if a parameter is a variable that its
/// graphs take for a constant.
pub fn wants_eager_for(constants: &[&RawTensor]) -> bool {
    crate::env::wants_eager() || constants.iter().any(|tensor| crate::tape::is_traced(tensor))
}
