//! Calls that meet an index out of range or an integer division by zero, and the tensors they write to.
//!
//! The processor returns such a fault at once. A GPU records it and goes on; what a call would have written is then taken
//! back behind it.

use super::child::{Folder, has_nvrtc, play};
use super::scenarios::{assert_values, device, matrix};
use fuse_runtime::error::catch;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;

/// The lookup is a kernel of its own, before the one that makes the new value.
#[compile(fullgraph)]
fn add_rows(p: &mut Tensor<f32, 2>, w: &Tensor<f32, 2>, rows: &Tensor<i64, 1>) {
    *p += w.embedding(rows).sum_keepdim(0).cumsum(1);
}

/// The new value is what the lookup gives.
#[compile(fullgraph)]
fn take_rows(p: &mut Tensor<f32, 2>, w: &Tensor<f32, 2>, rows: &Tensor<i64, 1>) {
    *p = w.embedding(rows);
}

/// Two results are written; only one of them depends on the divisor.
#[compile(fullgraph)]
fn halve_and_divide(p: &mut Tensor<f32, 2>, q: &mut Tensor<i64, 1>, by: &Tensor<i64, 1>) {
    *p *= 0.5;
    *q /= by;
}

/// Nothing here can fail.
#[compile(fullgraph)]
fn halve(p: &mut Tensor<f32, 2>) {
    *p *= 0.5;
}

/// The error that `call` gives at once, or that the next wait for the device does.
fn fault(device: Device, call: impl FnOnce()) -> Option<ErrorKind> {
    let outcome = catch(call).and_then(|()| device.synchronize());
    outcome.err().map(|error| error.kind())
}

fn rows(last: i64, device: Device) -> Tensor<i64, 1> {
    Tensor::from_vec(vec![0, 2, last], [3], device)
}

/// Every function on a device with results: a failing call changes nothing, and the next one works.
fn check_values(device: Device) {
    let (w, old) = (matrix(3, 4, device), matrix(3, 4, Device::cpu()));
    type Write = fn(&mut Tensor<f32, 2>, &Tensor<f32, 2>, &Tensor<i64, 1>);
    for (name, write, eager) in [
        ("add_rows", add_rows as Write, add_rows::eager as Write),
        ("take_rows", take_rows as Write, take_rows::eager as Write),
    ] {
        let mut p = matrix(3, 4, device);
        for bad in [3, -1] {
            assert_eq!(fault(device, || write(&mut p, &w, &rows(bad, device))), Some(ErrorKind::Index), "{name}");
            assert_eq!(p.to_vec(), old.to_vec(), "{name}: a faulted call has changed its tensor");
        }
        // A view of a larger tensor, which lies apart.
        let mut part = matrix(4, 3, device).t();
        assert_eq!(fault(device, || write(&mut part, &w, &rows(7, device))), Some(ErrorKind::Index), "{name}");
        assert_eq!(part.to_vec(), matrix(4, 3, Device::cpu()).t().to_vec(), "{name}");
        write(&mut p, &w, &rows(1, device));
        let mut want = old.clone();
        eager(&mut want, &old, &rows(1, Device::cpu()));
        assert_eq!(p.to_vec(), want.to_vec(), "{name}");
    }
    let (mut p, mut q) = (matrix(3, 4, device), Tensor::from_vec(vec![6, 9], [2], device));
    let by = |by: i64| Tensor::from_vec(vec![3, by], [2], device);
    assert_eq!(fault(device, || halve_and_divide(&mut p, &mut q, &by(0))), Some(ErrorKind::Index));
    assert_eq!((p.to_vec(), q.to_vec()), (old.to_vec(), vec![6, 9]));
    assert_eq!(fault(device, || q /= by(0)), Some(ErrorKind::Index));
    assert_eq!(q.to_vec(), [6, 9]);
    halve_and_divide(&mut p, &mut q, &by(2));
    assert_eq!((p.to_vec(), q.to_vec()), ((&old * 0.5).to_vec(), vec![2, 4]));
}

#[test]
fn a_faulted_call_changes_no_tensor() {
    check_values(Device::cpu());
    if has_nvrtc() {
        play("fail_in_a_write", &[("FUSE_CACHE_DIR", Folder::new().path())]);
    }
}

/// In a process of its own, since a wait returns the fault of whichever thread was first.
pub fn fail_in_a_write() {
    let device = device();
    if device != recorder::device() {
        return check_values(device);
    }
    let kept = || recorder::launches().iter().filter(|launch| launch.kernel == "restore_if_failed").count();
    let (mut p, mut q) = (matrix(3, 4, device), Tensor::from_vec(vec![6, 9], [2], device));
    add_rows(&mut p, &matrix(3, 4, device), &rows(1, device));
    assert_eq!(kept(), 1);
    halve_and_divide(&mut p, &mut q, &Tensor::from_vec(vec![3, 2], [2], device));
    assert_eq!(kept(), 2);
    q /= Tensor::from_vec(vec![3, 2], [2], device);
    assert_eq!(kept(), 1);
    halve(&mut p);
    p *= 0.5;
    assert_eq!(kept(), 0, "what cannot fail costs nothing");
    // The fault of a call is found by what waits for it.
    add_rows(&mut p, &matrix(3, 4, device), &rows(1, device));
    recorder::fault(1, 0);
    let read = catch(|| p.to_vec()).expect_err("the call has failed");
    assert_eq!(read.kind(), ErrorKind::Index);
    assert_values(&p, &matrix(3, 4, Device::cpu()));
    // And so it is by what waits for the device, in the same words.
    add_rows(&mut p, &matrix(3, 4, device), &rows(1, device));
    recorder::fault(1, 0);
    assert_eq!(device.synchronize().expect_err("the call has failed").to_string(), read.to_string());
}
