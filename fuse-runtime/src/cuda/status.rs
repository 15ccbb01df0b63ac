//! What the driver answered, as an [`Error`].

use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_char};
use std::fmt;

/// `Ok` for success, else a driver error that says what was being done and what the driver calls the failure.
pub(super) fn check(status: CUresult, doing: impl fmt::Display) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        _ => Err(failure(status, doing)),
    }
}

/// The error for a status other than success.
#[cold]
pub(super) fn failure(status: CUresult, doing: impl fmt::Display) -> Error {
    Error::driver(format!("cuda: could not {doing}: {}", describe(status)))
}

/// The name and the text the driver has for `status`.
fn describe(status: CUresult) -> String {
    // SAFETY: both functions only look up static text for a status; an unknown one leaves the pointer null.
    let name = lookup(|out| unsafe { sys::cuGetErrorName(status, out) });
    let text = lookup(|out| unsafe { sys::cuGetErrorString(status, out) });
    format!("{name} ({text})")
}

fn lookup(get: impl FnOnce(*mut *const c_char) -> CUresult) -> String {
    let mut text = std::ptr::null();
    match get(&mut text) {
        // SAFETY: on success the driver points at static text that ends with a zero byte.
        CUresult::CUDA_SUCCESS if !text.is_null() => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        _ => "unknown status".into(),
    }
}
