//! Functions that are tuned: by timing copies, once, and by what a file says.
//!
//! On the recorder a launch takes as many microseconds as it has threads a block, so that the smallest team wins.

use super::child::{Folder, has_nvrtc, lines_with, play};
use super::scenarios::{assert_values, device, matrix, run_kernels};
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use std::fs;

/// What is said of every kernel that was timed.
const TIMED: &str = "fuse tune: k0";

#[compile(fullgraph, mode = "max-autotune")]
fn centred_rows(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x - x.sum_keepdim(1)
}

#[compile(fullgraph, mode = "max-autotune")]
fn centre(x: &mut Tensor<f32, 2>) {
    *x -= x.sum_keepdim(1);
}

#[compile(fullgraph, mode = "max-autotune")]
fn draw(x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    (x - x.sum_keepdim(1)).dropout(0.5, true)
}

/// What follows the product is not for the library.
#[compile(fullgraph, mode = "max-autotune")]
fn doubled_product(#[dims(M, K)] x: &Tensor<f32, 2>, #[dims(K, N)] w: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.matmul(w) * 2.0
}

/// Calls a tuned product twice.
pub fn tune_a_product() {
    let device = device();
    recorder::time_by_threads();
    let of = |device: Device| [matrix(96, 64, device), matrix(64, 80, device)];
    let ([x, w], [on_host, w_on_host]) = (of(device), of(Device::cpu()));
    let want = doubled_product(&on_host, &w_on_host);
    for _ in 0..2 {
        recorder::launches();
        let got = doubled_product(&x, &w);
        assert_values(&got, &want);
        let launches = recorder::launches();
        tell(&launches);
        assert_eq!(mentions(&launches, &got), usize::from(!launches.is_empty()), "a result is written once");
    }
}

/// Calls tuned functions, and looks at what they give and at what the recorder was asked for.
pub fn tune() {
    let device = device();
    recorder::time_by_threads();
    let (x, on_host) = (matrix(64, 768, device), matrix(64, 768, Device::cpu()));
    let want = centred_rows(&on_host);
    recorder::launches();
    let first = centred_rows(&x);
    assert_values(&first, &want);
    let launches = recorder::launches();
    tell(&launches);
    assert_eq!(mentions(&launches, &first), usize::from(!launches.is_empty()), "a result is written once");
    let again = centred_rows(&x);
    assert_values(&again, &want);
    tell(&recorder::launches());
    // What is written in place is written once, and random numbers go on as if nothing had been timed.
    let mut p = matrix(64, 768, device);
    centre(&mut p);
    let launches = recorder::launches();
    assert_eq!(mentions(&launches, &p), usize::from(!launches.is_empty()), "an argument is written once");
    assert_values(&p, &want);
    let draws = |device: Device, function: fn(&Tensor<f32, 2>) -> Tensor<f32, 2>| {
        device.manual_seed(7);
        function(&matrix(64, 768, device))
    };
    assert_values(&draws(device, draw), &draws(Device::cpu(), draw));
    assert_values(&draws(device, draw), &draws(device, draw::eager));
}

/// How many launches get the address of a tensor.
fn mentions(launches: &[recorder::Launch], tensor: &Tensor<f32, 2>) -> usize {
    let address = tensor.raw().address().to_ne_bytes();
    launches.iter().filter(|launch| launch.args.chunks_exact(8).any(|word| word == address)).count()
}

fn tell(launches: &[recorder::Launch]) {
    eprintln!("launched {}", launches.iter().map(|launch| format!("{} ", launch.threads)).collect::<String>());
}

/// Rows of 1024 elements that take less than half of the memory of an H200, which is what the recorder has.
const MANY: usize = 60_000_000_000 / 4096;

/// A tensor there is room for, but not for copies of it; then one there is no room for.
pub fn tune_what_is_large() {
    let device = device();
    let Ok(mut x) = catch(|| Tensor::<f32, 2>::full([MANY, 1024], 1.0, device)) else {
        return eprintln!("a GPU with less memory");
    };
    centre(&mut x);
    let corner = x.narrow(0, MANY - 1, 1).narrow(1, 1023, 1).to_vec();
    assert!(device == recorder::device() || corner == [-1023.0], "{corner:?}");
    let error = catch(|| Tensor::<f32, 2>::full([5 * MANY, 1024], 1.0, device)).expect_err("there is no room");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    drop(x);
    run_kernels(device);
}

/// Plays the scenario over a file of what was fastest.
fn tuned_by(file: &str) -> String {
    let folder = Folder::new();
    play("tune", &[("FUSE_TUNE_FILE", file), ("FUSE_CACHE_DIR", folder.path()), ("FUSE_LOG", "tune")])
}

/// The threads of what was launched, line by line.
fn launches_told(said: &str) -> Vec<Vec<u32>> {
    let told = said.lines().filter_map(|line| line.strip_prefix("launched "));
    told.map(|line| line.split_whitespace().map(|threads| threads.parse().expect("a number")).collect()).collect()
}

#[test]
fn a_kernel_is_timed_once_and_never_on_what_is_the_users() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let file = format!("{}/fastest.ron", folder.path());
    let said = tuned_by(&file);
    assert_eq!(lines_with(&said, TIMED), 3, "{said}");
    let launches = launches_told(&said);
    if let [first, again] = &launches[..]
        && !first.is_empty()
    {
        let (chosen, timed) = first.split_last().expect("something is launched");
        assert!(timed.len() > 10 && timed.iter().all(|threads| threads >= chosen), "{said}");
        assert_eq!(again, &[*chosen], "{said}");
    }
}

#[test]
fn what_the_file_says_is_not_timed_again() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let file = format!("{}/fastest.ron", folder.path());
    tuned_by(&file);
    let written = fs::read_to_string(&file).expect("the choices are in the file");
    let said = tuned_by(&file);
    assert_eq!(lines_with(&said, TIMED), 0, "{said}");
    assert_eq!(fs::read_to_string(&file).expect("it is still there"), written, "nothing is added");
    assert!(written.starts_with("// what was fastest") && written.contains("kernel:\"k0"), "{written}");
}

#[test]
fn a_product_is_left_to_what_is_fastest() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let file = format!("{}/fastest.ron", folder.path());
    let play = || {
        let settings = [("FUSE_TUNE_FILE", &*file), ("FUSE_CACHE_DIR", folder.path()), ("FUSE_LOG", "tune")];
        launches_told(&play("tune_a_product", &settings))
    };
    let launches = play();
    let written = fs::read_to_string(&file).expect("the choices are in the file");
    let chosen =
        written.lines().filter(|line| line.contains("choice:\"Template(") || line.contains("choice:\"Library"));
    assert_eq!(chosen.count(), 1, "{written}");
    // Of tiles of 64 a block has the fewest threads. The kernel behind a product by the library has more.
    if launches.iter().any(|launches| !launches.is_empty()) {
        assert!(written.contains("Template(Product(64))"), "{written}");
        assert!(launches[0].len() > 10 && launches[0].last() == Some(&128), "{launches:?}");
        assert_eq!(launches[1], [128]);
        assert_eq!(play(), [[128], [128]], "what the file says is not timed again");
    }
    assert_eq!(fs::read_to_string(&file).expect("it is still there"), written);
}

#[test]
fn a_damaged_or_foreign_file_is_no_failure() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let file = format!("{}/fastest.ron", folder.path());
    tuned_by(&file);
    let good = fs::read_to_string(&file).expect("the choices are in the file");
    let of_another = good.replace("device:\"", "device:\"another ").into_bytes();
    let unreadable = good.replace("way:", "weigh:").into_bytes();
    for text in [b"\xff\xfe\0".to_vec(), b"#!/bin/sh\necho\n".to_vec(), of_another, unreadable] {
        fs::write(&file, &text).expect("the file can be overwritten");
        let said = tuned_by(&file);
        assert_eq!(lines_with(&said, TIMED), 3, "{}:\n{said}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn a_tensor_without_room_for_copies_is_not_timed() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let said = play("tune_what_is_large", &[("FUSE_CACHE_DIR", folder.path()), ("FUSE_LOG", "tune")]);
    let little = lines_with(&said, "a GPU with less memory");
    assert_eq!(lines_with(&said, "bytes are too many") + little, 1, "{said}");
    assert!(!folder.files().iter().any(|file| file.ends_with("tune.ron")), "nothing was learnt");
}
