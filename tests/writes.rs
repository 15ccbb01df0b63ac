//! Writes to `&mut` and owned tensors under `#[compile]`.

mod common;

use common::device;
use fuse_runtime::prelude::*;

fn row(values: &[f32]) -> Tensor<f32, 1> {
    Tensor::from_slice(values, [values.len()], device())
}

#[compile(fullgraph)]
fn update(p: &mut Tensor<f32, 1>, g: &Tensor<f32, 1>, lr: f32) -> Tensor<f32, 0> {
    let before = p.clone();
    *p -= g * lr;
    p.slice_assign(0, 0, 1, &before.slice(0, 1, 2));
    (&*p - &before).abs().sum_all()
}

#[test]
fn writes_through_a_reference_come_back() {
    let g = row(&[1.0, 2.0, 3.0]);
    let (mut a, mut b) = (row(&[1.0, 2.0, 3.0]), row(&[1.0, 2.0, 3.0]));
    let kept = a.clone();
    let (compiled, eager) = (update(&mut a, &g, 0.5), update::eager(&mut b, &g, 0.5));
    assert_eq!((compiled.item(), a.to_vec()), (eager.item(), b.to_vec()));
    assert_eq!(kept.to_vec(), [1.0, 2.0, 3.0]);
}

#[compile]
fn update_then_fail(p: &mut Tensor<f32, 1>, g: &Tensor<f32, 1>) -> Result<(), Error> {
    *p += 1.0;
    if p.size(0) == 2 {
        return Err(Error::shape("update", "two"));
    }
    *p += g;
    Ok(())
}

#[test]
fn a_write_before_an_early_return_is_done_and_a_failing_one_is_not() {
    let (mut a, mut b) = (row(&[1.0, 2.0]), row(&[1.0, 2.0]));
    assert!(update_then_fail(&mut a, &row(&[1.0])).is_err());
    assert!(update_then_fail::eager(&mut b, &row(&[1.0])).is_err());
    assert_eq!((a.to_vec(), b.to_vec()), (vec![2.0, 3.0], vec![2.0, 3.0]));
    let mut c = row(&[1.0, 2.0, 3.0]);
    assert!(update_then_fail(&mut c, &row(&[1.0, 2.0])).is_err());
}

#[compile]
fn owned(mut x: Tensor<f32, 1>, y: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let old = x.clone();
    x.copy_(y);
    let n = x.size(0) as isize;
    x.slice_assign(0, n - 1, n, &Tensor::full([1], 9.0, x.device()));
    println!("{:?}", x.dims());
    x *= 2.0;
    (x, old)
}

#[test]
fn owned_tensors_are_values() {
    let (x, y) = (row(&[1.0, 2.0]), row(&[3.0, 4.0]));
    let (a, b) = owned(x.clone(), &y);
    let (c, d) = owned::eager(x, &y);
    assert_eq!((a.to_vec(), b.to_vec()), (c.to_vec(), d.to_vec()));
    assert_eq!(a.to_vec(), [6.0, 18.0]);
}
