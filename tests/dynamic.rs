//! Sizes that differ from call to call: right whatever the order, and few kernels compiled for all of them.
//!
//! Kernels are counted on the recorder, so every machine shows how many a GPU would compile.

#[path = "../examples/support/block.rs"]
mod block;
mod common;

use block::Block;
use common::turn;
use fuse_runtime::prelude::*;
use fuse_runtime::rt::recorder;
use std::collections::HashSet;

/// How many programs calls would compile, and how many kernels they launch.
fn compiled(calls: impl FnOnce(Device)) -> (usize, usize) {
    let before = recorder::programs();
    recorder::launches();
    calls(recorder::device());
    let launches = recorder::launches().into_iter().map(|launch| launch.kernel);
    let kernels: HashSet<String> = launches.filter(|kernel| kernel != "matmul").collect();
    (recorder::programs() - before, kernels.len())
}

/// Zeros from the host, which are no kernel.
fn zeros<T: Float>(shape: [usize; 3], device: Device) -> Tensor<T, 3> {
    Tensor::from_vec(vec![T::from_f64(0.0); shape.iter().product()], shape, device)
}

/// A hundred sequence lengths between 64 and 1024, in no order and of every divisibility.
fn lengths() -> impl Iterator<Item = usize> {
    (0..100).map(|k| 64 + k * 389 % 961)
}

#[test]
fn a_block_at_a_hundred_lengths_takes_at_most_two_variants_of_a_kernel() {
    let _turn = turn();
    let block = Block::<bf16>::random(768, 12, 3072, recorder::device());
    let call = |device, seq| drop(block.forward(&zeros::<bf16>([8, seq, 768], device)));
    let (first, kernels) = compiled(|device| call(device, 512));
    assert_eq!(first, kernels);
    let (more, kernels) = compiled(|device| lengths().for_each(|seq| call(device, seq)));
    assert!(more <= kernels, "{more} more variants of {kernels} kernels");
    let most = Block::<bf16>::forward_explain().kernels().iter().map(|kernel| kernel.variants).max();
    assert!(most.is_some_and(|most| (2..=38).contains(&most)), "{most:?} are announced");
}

#[test]
fn lengths_that_come_again_and_again_take_no_more_than_is_announced() {
    let _turn = turn();
    let block = Block::<f32>::random(64, 4, 256, recorder::device());
    let report = Block::<f32>::forward_explain();
    let most: usize = report.kernels().iter().map(|kernel| kernel.variants).sum();
    let (programs, _) = compiled(|device| {
        for seq in lengths().chain(lengths()).chain(lengths()) {
            drop(block.forward(&zeros::<f32>([2, seq, 64], device)));
        }
    });
    assert!(programs <= most, "{programs} programs, {most} are announced:\n{report}");
}

#[compile(fullgraph)]
fn weighted(#[dims(N, 3)] x: &Tensor<f32, 2>, #[dims(3)] w: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    (x * w).sum(1) + x.mean_all()
}

/// Sizes 0 and 1 among others.
const SIZES: [usize; 7] = [1, 2, 7, 0, 1, 2, 500];

fn rows(n: usize, device: Device) -> (Tensor<f32, 2>, Tensor<f32, 1>) {
    let x = (0..3 * n).map(|k| (k / 3 + 1) as f32).collect();
    (Tensor::from_vec(x, [n, 3], device), Tensor::from_slice(&[1.0, 10.0, 100.0], [3], device))
}

#[test]
fn sizes_of_zero_and_one_are_right_in_any_order() {
    let device = common::device();
    if device == recorder::device() {
        return;
    }
    for n in SIZES {
        let (x, w) = rows(n, device);
        let mean = (n as f32 + 1.0) / 2.0;
        let want: Vec<f32> = (1..=n).map(|row| 111.0 * row as f32 + mean).collect();
        assert_eq!(weighted(&x, &w).to_vec(), want, "{n}");
    }
}

#[test]
fn sizes_of_zero_and_one_take_no_kernels_of_their_own() {
    let _turn = turn();
    let (programs, kernels) = compiled(|device| {
        for n in SIZES {
            let (x, w) = rows(n, device);
            drop(weighted(&x, &w));
        }
    });
    assert!(programs <= 3, "{programs} programs of {kernels} kernels");
}

#[compile(fullgraph, dynamic = false)]
fn one_text_a_length(#[dims(N, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.softmax(1)
}

#[compile(fullgraph, dynamic = true)]
fn one_text_for_all(#[dims(N, D)] x: &Tensor<f32, 2>) -> Tensor<f32, 2> {
    x.softmax(1)
}

#[test]
fn the_attribute_says_whether_every_length_has_a_text_of_its_own() {
    let _turn = turn();
    let of = |function: fn(&Tensor<f32, 2>) -> Tensor<f32, 2>| {
        let x = |len| Tensor::from_vec(vec![1.0; 4 * len], [4, len], recorder::device());
        compiled(|_| [64, 256, 512, 768, 1000].into_iter().for_each(|len| drop(function(&x(len))))).0
    };
    assert_eq!(of(one_text_a_length), 5);
    assert_eq!(of(one_text_for_all), 1);
}
