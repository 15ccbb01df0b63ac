//! Kernels that are compiled while the crate is built run where there is no NVRTC and nothing in the cache.
//!
//! ```text
//! FUSE_ARCHS=sm_90a cargo test --test cubins
//! ```
//!
//! It needs NVRTC while it is built, and is skipped where no architecture was named then. The scenarios run in processes of their own: on the GPU that `FUSE_DEVICE` names, whose
//! results are compared with the processor's, or on the recorder, which asks for the same kernels.

use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use std::process::Command;

/// Whether the process is to play the scenarios.
const PLAYS: &str = "FUSE_TEST_CUBINS";

#[compile(fullgraph)]
fn rows(x: &Tensor<f32, 2>, b: &Tensor<f32, 1>) -> Tensor<f32, 2> {
    (x + b).softmax(1) * 2.0
}

#[compile(fullgraph)]
fn turned<T: Float>(x: &Tensor<T, 2>, y: &Tensor<T, 2>) -> Tensor<T, 2> {
    x.t() + y
}

#[compile(fullgraph)]
fn columns(x: &Tensor<f32, 2>) -> (Tensor<f32, 1>, Tensor<f32, 0>) {
    (x.sum(0), x.max_all())
}

#[compile(fullgraph)]
fn positions(x: &Tensor<f32, 2>, index: &Tensor<i64, 1>) -> Tensor<f32, 2> {
    x.index_select(0, index).cumsum(0)
}

#[compile(fullgraph)]
fn product(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    (x.matmul(w) + 1.0).relu()
}

fn device() -> Device {
    let named = std::env::var("FUSE_DEVICE").ok().map(|name| name.parse().expect("FUSE_DEVICE names a device"));
    named.filter(|device: &Device| !device.is_cpu()).unwrap_or_else(|| {
        recorder::compile_programs();
        recorder::device()
    })
}

/// Whole numbers, on which every sum is exact.
fn matrix<T: Float>(rows: usize, columns: usize) -> Tensor<T, 2> {
    let values: Vec<T> = (0..rows * columns).map(|k| T::from_f64((k % 7) as f64 - 3.0)).collect();
    Tensor::from_vec(values, [rows, columns], Device::cpu())
}

/// Compares what a GPU gives with what the processor does; the recorder has no values.
fn check<const R: usize>(got: &Tensor<f32, R>, want: &Tensor<f32, R>) {
    assert_eq!(got.dims(), want.dims());
    if got.device() != recorder::device() {
        assert_eq!(got.to_vec(), want.to_vec());
    }
}

/// Every function at usual and unusual sizes, each size twice, since what comes again may have a text of its own.
fn play(device: Device) {
    for [m, n] in [[1024, 1024], [1024, 1024], [3, 4096], [1, 40_000], [5, 7], [5, 7], [1, 1], [600, 768], [64, 33]] {
        let (x, b) = (matrix::<f32>(m, n), Tensor::<f32, 1>::ones([n], Device::cpu()));
        let (on_device, bias) = (x.to_device(device), b.to_device(device));
        // Exponentials of a GPU are another's, up to rounding.
        assert_eq!(rows(&on_device, &bias).dims(), [m, n]);
        let (sums, most) = columns(&on_device);
        let (wanted_sums, wanted_most) = columns(&x);
        check(&sums, &wanted_sums);
        check(&most, &wanted_most);
        let y = matrix::<f32>(n, m);
        check(&turned(&on_device, &y.to_device(device)), &turned(&x, &y));
        // In other orders in memory.
        check(&turned(&y.to_device(device).t(), &y.to_device(device)), &turned(&y.t(), &y));
        let index = Tensor::from_vec(vec![0i64, (m - 1) as i64, 0], [3], Device::cpu());
        check(&positions(&on_device, &index.to_device(device)), &positions(&x, &index));
        let w = matrix::<f32>(n, 24);
        check(&product(&on_device, &w.to_device(device)), &product(&x, &w));
        if m == 1024 {
            // Large enough for tensor cores.
            drop(product(&on_device, &matrix::<f32>(n, 4096).to_device(device)));
        }
        let (h, k) = (matrix::<bf16>(m, n), matrix::<bf16>(n, m));
        drop(turned(&h.to_device(device), &k.to_device(device)));
    }
}

#[test]
fn what_a_process_does_without_a_compiler() {
    if std::env::var_os(PLAYS).is_some() {
        play(device());
    }
}

#[test]
fn first_calls_need_no_compiler() {
    if option_env!("FUSE_ARCHS").is_none() {
        return println!("skipped: built without FUSE_ARCHS");
    }
    for without in ["nvrtc", "nvrtc,cublaslt"] {
        let folder = std::env::temp_dir().join(format!("fuse-cubins-{}", std::process::id()));
        let output = Command::new(std::env::current_exe().expect("the binary knows where it is"))
            .args(["what_a_process_does_without_a_compiler", "--exact", "--nocapture"])
            .envs([(PLAYS, "1"), ("FUSE_WITHOUT", without), ("FUSE_LOG", "compile,cache")])
            .env("FUSE_CACHE_DIR", &folder)
            .output()
            .expect("the binary runs again");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "without {without}\n{said}");
        assert!(!said.contains("fuse compile: "), "{said}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
