//! A folder for what one run leaves in files.

use std::path::PathBuf;

/// A new, empty folder, removed at the end of its scope.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fuse-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the system has a writable folder for temporary files");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
