//! What typed tensors promise: what type-checks, what is shared, what is copied, what is refused.

use crate::error::catch;
use crate::prelude::*;

/// The error that an eager op panics with.
fn error_of<R>(body: impl FnOnce() -> R) -> Error {
    match catch(body) {
        Err(error) => error,
        Ok(_) => panic!("the op did not fail"),
    }
}

fn matrix() -> Tensor<f32, 2> {
    Tensor::from([[1.0, 2.0], [3.0, 4.0]])
}

#[test]
fn operators_take_owned_borrowed_and_scalar_operands() {
    let x = matrix();
    assert_eq!((&x + &x).to_vec(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!((x.clone() - &x).to_vec(), [0.0; 4]);
    assert_eq!((&x * x.clone() / 2.0).to_vec(), [0.5, 2.0, 4.5, 8.0]);
    assert_eq!((1.0 - &x).to_vec(), [0.0, -1.0, -2.0, -3.0]);
    assert_eq!((-(2.0 * x) % 3.0).to_vec(), [-2.0, -1.0, 0.0, -2.0]);
}

#[test]
fn operators_on_integers_and_bools_are_those_of_rust() {
    let n = Tensor::from([-7i64, 7]);
    assert_eq!((&n / 2).to_vec(), [-3, 3]);
    assert_eq!((&n % 2).to_vec(), [-1, 1]);
    assert_eq!((&n << 1 >> 2).to_vec(), [-4, 3]);
    assert_eq!((&n & 3 | 8 ^ &n).to_vec(), [-15, 15]);
    assert_eq!((!&n).to_vec(), [6, -8]);
    let positive = n.gt(0);
    assert_eq!((!&positive | &positive & true).to_vec(), [true, true]);
}

#[test]
fn ranks_broadcast_in_both_orders() {
    let x = matrix();
    let row = Tensor::from([10.0f32, 20.0]);
    let sum: Tensor<f32, 2> = &row + &x;
    assert_eq!(sum.to_vec(), [11.0, 22.0, 13.0, 24.0]);
    let cube: Tensor<f32, 3> = x.unsqueeze(0) * &x;
    assert_eq!(cube.dims(), [1, 2, 2]);
    let scaled = x * Tensor::of_scalar(2.0);
    assert_eq!(scaled.to_vec(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn halves_take_single_precision_scalars_unrounded() {
    let h = Tensor::from([f16::from_f32(1.0), f16::from_f32(2048.0)]);
    // 0.1 in f32 is added before the one rounding: 1.1 rounds to 1.099609375.
    let sum: Tensor<f16, 1> = &h + 0.1;
    assert_eq!(sum.cast::<f32>().to_vec(), [1.099_609_4, 2048.0]);
    assert_eq!((0.5 * h).cast::<f32>().to_vec(), [0.5, 1024.0]);
}

fn affine<T: Float>(x: &Tensor<T, 2>, b: &Tensor<T, 1>) -> Tensor<T, 2> {
    (x * T::from_f64(2.0) + b) / T::from_f64(4.0) - T::from_f64(1.0) * x
}

fn centred<T: Float>(x: &Tensor<T, 2>) -> Tensor<T, 2> {
    x - x.sum_keepdim(-1) / T::from_f64(2.0)
}

fn clipped<const R: usize>(x: &Tensor<f32, R>, y: &Tensor<f32, R>) -> Tensor<f32, R> {
    ((x + y) * 0.5).maximum(1.0).clamp(0.0, 2.0)
}

#[test]
fn generic_code_mixes_tensors_and_scalars() {
    let x = matrix();
    assert_eq!(affine(&x, &Tensor::from([4.0, 8.0])).to_vec(), [0.5, 1.0, -0.5, 0.0]);
    assert_eq!(affine(&x.cast::<f64>(), &Tensor::from([4.0, 8.0])).to_vec(), [0.5, 1.0, -0.5, 0.0]);
    assert_eq!(centred(&x).to_vec(), [-0.5, 0.5, -0.5, 0.5]);
    assert_eq!(clipped(&x, &x).to_vec(), [1.0, 2.0, 2.0, 2.0]);
}

#[test]
fn a_mask_chooses_from_tensors_and_scalars() {
    let x = matrix();
    let mask = x.gt(2.0);
    assert_eq!(mask.where_cond(&x, 0.0).to_vec(), [0.0, 0.0, 3.0, 4.0]);
    assert_eq!(mask.where_cond(-1.0, &x).to_vec(), [1.0, 2.0, -1.0, -1.0]);
    assert_eq!(mask.where_cond(x.sum(0), &x).to_vec(), [1.0, 2.0, 4.0, 6.0]);
    let numbers: Tensor<i32, 2> = mask.where_cond(1, 0);
    assert_eq!(numbers.to_vec(), [0, 0, 1, 1]);
}

#[test]
fn reductions_lower_the_rank() {
    let x = matrix();
    let sums: Tensor<f32, 1> = x.sum(-1);
    assert_eq!(sums.to_vec(), [3.0, 7.0]);
    assert_eq!(x.mean_keepdim(0).dims(), [1, 2]);
    assert_eq!(x.max_all().item(), 4.0);
    let count: Tensor<i64, 0> = x.gt(1.5).sum_all();
    assert_eq!(count.item(), 3);
}

#[test]
fn rank_0_acts_as_one_element_along_a_dim() {
    let x = Tensor::of_scalar(3.0f32);
    assert_eq!(x.sum(0).item(), 3.0);
    assert_eq!(x.argmax(-1).item(), 0);
    let one: Tensor<f32, 0> = x.softmax(0);
    assert_eq!(one.item(), 1.0);
    assert_eq!(error_of(|| x.sum(1)).kind(), ErrorKind::Shape);
}

#[test]
fn vectors_multiply_as_rows_and_columns() {
    let (x, v) = (matrix(), Tensor::from([1.0f32, 10.0]));
    assert_eq!(x.matmul(&v).to_vec(), [21.0, 43.0]);
    assert_eq!(v.matmul(&x).to_vec(), [31.0, 42.0]);
    assert_eq!(v.matmul(&v).item(), 101.0);
    assert_eq!(v.matmul(&x.unsqueeze(0)).dims(), [1, 2]);
}

#[test]
fn joined_tensors_may_be_owned_or_borrowed() {
    let x = matrix();
    let [left, right] = x.chunk(-1);
    assert_eq!(Tensor::cat([&right, &left], 1).to_vec(), [2.0, 1.0, 4.0, 3.0]);
    let rows = x.unbind(0);
    assert_eq!(Tensor::stack(&rows, 1).to_vec(), x.t().to_vec());
    assert_eq!(Tensor::cat(rows, 0).to_vec(), x.to_vec());
}

#[test]
fn losses_take_their_rank_from_the_reduction() {
    let logits = Tensor::from([[1000.0f32, 0.0], [0.0, 0.0]]);
    let targets = Tensor::from([0i64, 255]);
    let each: Tensor<f32, 1> = logits.cross_entropy_with(&targets, Reduction::None, 255);
    assert_eq!(each.to_vec(), [0.0, 0.0]);
    let sum: Tensor<f32, 0> = logits.cross_entropy_with(&targets, Reduction::Sum, 255);
    assert_eq!(sum.item(), 0.0);
}

#[test]
fn a_write_is_not_seen_through_other_tensors() {
    let mut x = Tensor::from([1.0f32, 2.0, 3.0]);
    let (before, view) = (x.clone(), x.narrow(0, 0, 2));
    x += 1.0;
    x *= &before;
    assert_eq!(x.to_vec(), [2.0, 6.0, 12.0]);
    assert_eq!(before.to_vec(), [1.0, 2.0, 3.0]);
    assert_eq!(view.to_vec(), [1.0, 2.0]);
}

#[test]
fn an_assignment_reuses_storage_that_nothing_else_holds() {
    let mut x = Tensor::from([1.0f32, 2.0]);
    let address = x.raw().address();
    x += 1.0;
    assert_eq!((x.to_vec(), x.raw().address()), (vec![2.0, 3.0], address));
}

#[test]
fn a_repeated_element_is_copied_before_a_write() {
    let mut x = Tensor::from([1.0f32]).expand([3]);
    x.slice_assign(0, 0, 1, &Tensor::from([9.0]));
    assert_eq!(x.to_vec(), [9.0, 1.0, 1.0]);
}

#[test]
fn a_failed_assignment_changes_nothing() {
    let mut x = Tensor::from([1i64, 2]);
    let error = error_of(|| x += Tensor::from([1, 2, 3]));
    assert_eq!(error.kind(), ErrorKind::Shape);
    let error = error_of(|| x /= Tensor::from([1, 0]));
    assert_eq!(error.kind(), ErrorKind::Index);
    assert_eq!(x.to_vec(), [1, 2]);
}

#[test]
fn mistakes_are_shape_errors_in_the_words_of_the_op() {
    let x = matrix();
    for error in [
        error_of(|| x.reshape([3])),
        error_of(|| &x + Tensor::from([1.0, 2.0, 3.0])),
        error_of(|| x.matmul(&Tensor::<f32, 2>::zeros([3, 1], Device::cpu()))),
        error_of(|| x.chunk::<3>(0)),
        error_of(|| x.item()),
        error_of(|| x.sum(2)),
        error_of(|| Tensor::from_slice(&[1.0], [2], Device::cpu())),
    ] {
        assert_eq!(error.kind(), ErrorKind::Shape, "{error}");
    }
}

#[test]
fn tensors_cross_threads() {
    fn check<T: Send + Sync + 'static>(_: &T) {}
    check(&matrix());
}

#[test]
fn views_on_a_gpu_are_read_copied_and_written_like_on_the_host() {
    let Ok(device) = Device::cuda(0) else { return eprintln!("skipped: there is no CUDA device") };
    let host = Tensor::from_vec((0..24i32).collect(), [2, 3, 4], Device::cpu());
    let x = host.to_device(device);
    let view = |x: &Tensor<i32, 3>| x.permute([2, 0, 1]).flip([0]).narrow(2, 1, 2);
    assert_eq!(view(&x).to_vec(), view(&host).to_vec());
    assert_eq!(view(&x).contiguous().to_vec(), view(&host).to_vec());
    assert_eq!(view(&x).reshape([16]).device(), device);
    let (mut a, mut b) = (view(&x), view(&host));
    a.slice_assign(1, 1, 2, &x.narrow(2, 0, 2).narrow(0, 0, 1).narrow(1, 0, 1));
    b.slice_assign(1, 1, 2, &host.narrow(2, 0, 2).narrow(0, 0, 1).narrow(1, 0, 1));
    assert_eq!(a.to_vec(), b.to_vec());
    assert_eq!(x.to_vec(), host.to_vec());
    assert_eq!(x.raw().shape(), [2, 3, 4]);
}

#[test]
fn mixing_devices_names_both() {
    let Ok(device) = Device::cuda(0) else { return eprintln!("skipped: there is no CUDA device") };
    let (x, y) = (matrix(), matrix().to_device(device));
    let error = error_of(|| &x + &y);
    assert_eq!(error.kind(), ErrorKind::Device);
    assert_eq!(error.to_string(), "`add`: one tensor is on cpu and another on cuda:0; move one with `to_device`");
}
