//! Host memory that the device sees.

use super::status::check;
use crate::error::Result;
use cudarc::driver::sys;
use std::ptr::NonNull;

/// A value in memory of the current context, which is never freed, and where the device sees it; `what` it is, for errors.
pub(super) fn mapped<T>(value: T, what: &str) -> Result<(NonNull<T>, u64)> {
    let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
    let (mut host, mut device_address) = (std::ptr::null_mut(), 0);
    // SAFETY: a context is current; the address is asked for after the memory is there.
    unsafe {
        check(sys::cuMemHostAlloc(&mut host, size_of::<T>(), flags), format_args!("allocate {what}"))?;
        check(sys::cuMemHostGetDevicePointer_v2(&mut device_address, host, 0), format_args!("allocate {what}"))?;
    }
    let place = NonNull::new(host.cast::<T>()).expect("the driver gives memory when it says so");
    // SAFETY: the memory is fresh, page-aligned and large enough.
    unsafe { place.write(value) };
    Ok((place, device_address))
}
