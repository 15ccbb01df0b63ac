//! NVRTC and the cache on top of it; no GPU is needed.

use super::scratch::Folder;
use crate::cuda::cache::{Cache, Program};
use crate::cuda::disk::Disk;
use crate::cuda::nvrtc::Nvrtc;
use crate::error::ErrorKind;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

const SCALE: &str = r#"
#line 14 "src/model.rs"
extern "C" __global__ void scale(T* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#line 15 "src/model.rs"
    if (i < n) x[i] *= FACTOR;
}
"#;

const ELF: &[u8] = b"\x7fELF";

fn scale<'a>(arch: &'a str, defines: &'a [(&'a str, String)]) -> Program<'a> {
    Program { name: "scale", source: SCALE, arch, defines, contract: false }
}

fn defines() -> [(&'static str, String); 2] {
    [("T", "float".into()), ("FACTOR", "2.0f".into())]
}

fn nvrtc_or_skip() -> Option<Nvrtc> {
    let found = Nvrtc::detect();
    if found.is_none() {
        eprintln!("skipped: NVRTC is not installed");
    }
    found
}

fn cache_in(folder: &Folder, nvrtc: Option<Nvrtc>) -> Cache {
    Cache::new(Some(Disk::new(folder.path(), 1 << 20)), nvrtc)
}

/// The one entry in a cache folder.
fn entry(folder: &Folder) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_kernel_compiles_for_each_architecture() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    for arch in ["sm_80", "sm_90a"] {
        assert!(nvrtc.compile(&scale(arch, &defines())).unwrap().starts_with(ELF), "{arch}");
    }
}

#[test]
fn products_contract_only_where_they_may() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    let source = "extern \"C\" __global__ void k(float* x, float a, float b) { *x = *x * a + b; }";
    let cubin = |contract| {
        let program = Program { name: "k", source, arch: "sm_90a", defines: &[], contract };
        nvrtc.compile(&program).unwrap()
    };
    assert_eq!(cubin(false), cubin(false));
    assert_ne!(cubin(false), cubin(true));
}

#[test]
fn a_kernel_that_does_not_compile_shows_its_own_lines() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    let error = nvrtc.compile(&scale("sm_80", &defines()[..1])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Compile);
    let expected = r#"kernel `scale` does not compile for sm_80
error: identifier "FACTOR" is undefined
     3 | extern "C" __global__ void scale(T* x, int n) {
     4 |     int i = blockIdx.x * blockDim.x + threadIdx.x;
     5 | #line 15 "src/model.rs"
>    6 |     if (i < n) x[i] *= FACTOR;
     7 | }"#;
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_architecture_the_compiler_does_not_know_is_named() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    let error = nvrtc.compile(&scale("sm_30", &defines())).unwrap_err().to_string();
    assert!(error.starts_with("kernel `scale` does not compile for sm_30\n"), "{error}");
    assert!(error.contains("gpu-architecture"), "{error}");
}

#[test]
fn a_cached_kernel_loads_where_there_is_no_compiler() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    let folder = Folder::new();
    let compiled = cache_in(&folder, Some(nvrtc)).cubin(&scale("sm_80", &defines())).unwrap();
    let loaded = cache_in(&folder, None).cubin(&scale("sm_80", &defines())).unwrap();
    assert_eq!(compiled, loaded);
}

#[test]
fn a_damaged_entry_is_compiled_again_and_replaced() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    let folder = Folder::new();
    let compiled = cache_in(&folder, Some(nvrtc)).cubin(&scale("sm_80", &defines())).unwrap();
    let good = fs::read(entry(&folder)).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 0x40;
    fs::write(entry(&folder), bad).unwrap();
    assert_eq!(cache_in(&folder, Some(nvrtc)).cubin(&scale("sm_80", &defines())).unwrap(), compiled);
    assert_eq!(fs::read(entry(&folder)).unwrap(), good);
}

#[test]
fn threads_asking_for_one_kernel_compile_it_once() {
    let Some(nvrtc) = nvrtc_or_skip() else { return };
    let cache = Cache::new(None, Some(nvrtc));
    let ask = || cache.cubin(&scale("sm_80", &defines())).unwrap();
    let cubins: Vec<Arc<[u8]>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(cubins.iter().all(|cubin| Arc::ptr_eq(cubin, &cubins[0])));
}

#[test]
fn a_missing_compiler_is_one_clear_message() {
    let folder = Folder::new();
    let error = cache_in(&folder, None).cubin(&scale("sm_90a", &defines())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Compile);
    let text = error.to_string();
    assert!(text.starts_with("cannot compile `scale` for sm_90a: NVRTC was not found"), "{text}");
    assert!(text.contains("pip install nvidia-cuda-nvrtc"), "{text}");
}
