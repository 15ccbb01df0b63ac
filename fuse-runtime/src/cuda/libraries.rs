//! Opening the libraries of CUDA, which are large.
//!
//! The bindings find out whether a library is installed by opening and closing it, and open it again for the first call.
//! Opened here before, and for good, both are quick. Linking one takes a good part of the time that the driver needs to open
//! a device, so it is done beside it.

use crate::env::is_without;
use std::sync::Once;
use std::thread;

/// The libraries that most programs need.
const NEEDED: [&str; 2] = ["cublasLt", "nvrtc"];

/// Begins to open them, unless that was done before.
pub(super) fn open_ahead() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let open = || {
            for name in NEEDED {
                open_for_good(name);
            }
        };
        // Without a thread they are opened when they are needed.
        let _ = thread::Builder::new().name("fuse libraries".into()).spawn(open);
    });
}

/// Opens a library until the process ends. `false` if it is not installed, or is to be done without.
pub(super) fn open_for_good(name: &str) -> bool {
    let open = |file: &String| {
        // SAFETY: the initialisers of these libraries have no preconditions.
        unsafe { libloading::Library::new(file) }.map(std::mem::forget).is_ok()
    };
    !is_without(&name.to_lowercase()) && cudarc::get_lib_name_candidates(name).iter().any(open)
}
