//! Memory that is used up.

use super::child::{Folder, has_nvrtc, play};

#[test]
fn a_call_that_finds_no_memory_fails_and_leaves_all_as_it_was() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    play("ask_for_too_much", &[("FUSE_CACHE_DIR", folder.path())]);
}
