//! NVRTC or cuBLASLt that is not installed.

use super::child::{Folder, has_nvrtc, lines_with, play};

#[test]
fn without_nvrtc_kernels_run_from_the_cache() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    play("run_kernels", &[("FUSE_CACHE_DIR", folder.path())]);
    let said = play("run_kernels", &[("FUSE_CACHE_DIR", folder.path()), ("FUSE_WITHOUT", "nvrtc")]);
    assert_eq!((lines_with(&said, "fuse compile: "), lines_with(&said, "warning")), (0, 0), "{said}");
}

#[test]
fn without_nvrtc_a_kernel_that_is_not_in_the_cache_is_an_error() {
    let folder = Folder::new();
    play("miss_kernels", &[("FUSE_CACHE_DIR", folder.path()), ("FUSE_WITHOUT", "nvrtc")]);
}

#[test]
fn without_cublaslt_our_own_kernel_multiplies() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let with = play("multiply", &[("FUSE_CACHE_DIR", folder.path())]);
    let without = play("multiply", &[("FUSE_CACHE_DIR", folder.path()), ("FUSE_WITHOUT", "cublaslt")]);
    assert_eq!(lines_with(&without, "launched matmul"), 0, "{without}");
    // What was launched is known where the recorder stands in for a GPU.
    if lines_with(&with, "launched") > 0 {
        assert_eq!(lines_with(&with, "launched matmul"), 1, "{with}");
        assert_eq!(lines_with(&without, "launched"), 1, "{without}");
    } else {
        assert_eq!(lines_with(&without, "cuBLASLt was not found"), 1, "{without}");
    }
}
