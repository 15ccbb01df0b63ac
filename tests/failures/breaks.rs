//! Graph breaks, told while the program runs.

use super::child::{lines_with, play};
use fuse_runtime::prelude::*;

#[compile]
fn doubled_until_large(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    let mut y = x * 2.0;
    while y.sum_all().item() < 10.0 {
        y = y * 2.0;
    }
    y
}

/// Two calls of a function that breaks.
pub fn break_graphs() {
    let x = Tensor::ones([2], Device::cpu());
    (0..2).for_each(|_| assert_eq!(doubled_until_large(&x).to_vec(), [8.0, 8.0]));
}

#[test]
fn breaks_are_told_to_who_asks() {
    let said = play("break_graphs", &[("FUSE_LOG", "break")]);
    let told = lines_with(&said, "fuse break: `doubled_until_large`, B");
    assert!(told >= 2 && told.is_multiple_of(2), "{said}");
    assert!(said.contains("tests/failures/breaks.rs:"), "{said}");
    assert_eq!(lines_with(&play("break_graphs", &[]), "fuse break"), 0);
}
