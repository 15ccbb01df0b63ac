//! Folders for tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// An empty folder of its own, removed at the end of the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder in the system's place for such.
    pub(crate) fn new() -> Folder {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = format!("fuse-test-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the system has a writable folder for temporary files");
        Folder(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
