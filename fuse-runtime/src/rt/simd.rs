//! Choosing the widest vectors of this machine at run time.
//!
//! The features only widen the same operations: no product is contracted, so results are equal at every level.

/// What may be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// Vectors of 32 bytes, and products with sums.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Vectors of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Runs `work` compiled for the widest vectors of this machine; `work` must be `#[inline(always)]` all the way down.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    match level() {
        Level::Baseline => work(),
        // SAFETY: `level` has asked the processor for these features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { with_avx2(work) },
        // SAFETY: as above. A third copy of every loop is worth its compilation only where programs are to be fast.
        #[cfg(all(target_arch = "x86_64", debug_assertions))]
        Level::Avx512 => unsafe { with_avx2(work) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Level::Avx512 => unsafe { with_avx512(work) },
    }
}

/// The widest vectors of this machine.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn level() -> Level {
    // The macro caches what the processor said, so asking costs one load each.
    macro_rules! all {
        ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
    }
    match all!("avx2" "fma" "f16c") {
        true if all!("avx512f" "avx512bw" "avx512dq" "avx512vl") => Level::Avx512,
        true => Level::Avx2,
        false => Level::Baseline,
    }
}

/// The widest vectors of this machine.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn level() -> Level {
    Level::Baseline
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
fn with_avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}
