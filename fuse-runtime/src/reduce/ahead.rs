//! The row that comes next, which is sent for while a long one is summed up: memory works while the processor does, and the next
//! row's first walk finds it in the second cache.

use super::sums::BLOCK;
use std::cell::Cell;

/// Bytes that come from memory at a time.
const LINE: usize = 64;

thread_local! {
    /// Where this thread's next row begins, and the bytes of an element; 0 if there is none.
    static NEXT: Cell<(*const u8, usize)> = const { Cell::new((std::ptr::null(), 0)) };
}

/// Whether a row is so long that the next one is sent for.
#[inline(always)]
pub(crate) fn is_long(len: usize) -> bool {
    len > BLOCK
}

/// Says where this thread's next row begins, of so many bytes an element, or that there is none.
pub(crate) fn comes_next(row: Option<(*const u8, usize)>) {
    NEXT.set(row.unwrap_or((std::ptr::null(), 0)));
}

/// Sends for some elements of the next row.
#[inline(always)]
pub(super) fn send_for(first: usize, count: usize) {
    let (start, size) = NEXT.get();
    for line in (first * size..(first + count) * size).step_by(LINE) {
        prefetch(start.wrapping_add(line));
    }
}

/// Has the cache line of an address brought to the second cache.
#[inline(always)]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and this reads nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
