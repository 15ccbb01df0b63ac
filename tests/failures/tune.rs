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

#[test]
fn a_kernel_is_timed_once_and_never_on_what_is_the_users() {
    if !has_nvrtc() {
        return;
    }
    let folder = Folder::new();
    let file = format!("{}/fastest.ron", folder.path());
    let said = tuned_by(&file);
    assert_eq!(lines_with(&said, TIMED), 3, "{said}");
    let launches: Vec<Vec<u32>> = said
        .lines()
        .filter_map(|line| line.strip_prefix("launched "))
        .map(|line| line.split_whitespace().map(|threads| threads.parse().expect("a number")).collect())
        .collect();
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
