//! Memory that is there for the life of a context: of the host, where the device sees it, and of the device.

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

/// So many bytes of the device of the current context, which are 0 and never freed; `what` they are, for errors.
pub(super) fn zeroed(bytes: usize, what: &str) -> Result<u64> {
    let mut address = 0;
    // SAFETY: a context is current; the memory is set where it is.
    unsafe {
        check(sys::cuMemAlloc_v2(&mut address, bytes), format_args!("allocate {what}"))?;
        check(sys::cuMemsetD8_v2(address, 0, bytes), format_args!("allocate {what}"))?;
    }
    Ok(address)
}
