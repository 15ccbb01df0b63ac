//! Eager ops on the processor.

use super::{Arg, run};
use crate::Element;
use crate::device::Device;
use crate::error::{ErrorKind, Result};
use crate::raw::RawTensor;
use fuse_compiler::op::{Attr, Literal};
use fuse_compiler::types::DType;

fn tensor<T: Element>(data: &[T], shape: &[usize]) -> RawTensor {
    RawTensor::from_slice(data, shape).unwrap()
}

fn eval(op: &str, args: &[&RawTensor], attrs: &[Attr]) -> Result<RawTensor> {
    let args: Vec<Arg> = args.iter().map(|&x| Arg::Tensor(x.clone())).collect();
    run(Device::cpu(), op, &args, attrs).map(|mut results| results.remove(0))
}

fn values<T: Element>(op: &str, args: &[&RawTensor], attrs: &[Attr]) -> Vec<T> {
    eval(op, args, attrs).unwrap().to_vec().unwrap()
}

#[test]
fn elementwise_ops_broadcast() {
    let x = tensor(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let y = tensor(&[10f32, 20.0, 30.0], &[3]);
    assert_eq!(values::<f32>("add", &[&x, &y], &[]), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    let column = tensor(&[1f32, 2.0], &[2, 1]);
    assert_eq!(eval("mul", &[&column, &y], &[]).unwrap().shape(), [2, 3]);
    assert_eq!(values::<bool>("lt", &[&x, &y], &[]), [true; 6]);
}

#[test]
fn scalars_enter_at_the_compute_type() {
    let x = tensor(&[half::f16::from_f32(1.0), half::f16::from_f32(2048.0)], &[2]);
    let args = [Arg::Tensor(x), Arg::Scalar(Literal::Float(0.1), DType::F32)];
    let sum = run(Device::cpu(), "add", &args, &[]).unwrap().remove(0);
    assert_eq!(sum.to_vec::<half::f16>().unwrap().map_to_f32(), [1.099_609_4, 2048.0]);
}

trait ToF32 {
    fn map_to_f32(&self) -> Vec<f32>;
}

impl ToF32 for Vec<half::f16> {
    fn map_to_f32(&self) -> Vec<f32> {
        self.iter().map(|x| x.to_f32()).collect()
    }
}

#[test]
fn views_of_any_kind_are_read_in_place() {
    let x = tensor(&(0..24).map(|i| i as f32).collect::<Vec<_>>(), &[4, 6]);
    let layouts = [
        x.layout().transpose(0, 1).unwrap(),
        x.layout().narrow(1, 1, 3).unwrap(),
        x.layout().flip(&[0, 1]).unwrap(),
        x.layout().narrow(0, 2, 1).unwrap().broadcast_to(&[5, 6]).unwrap(),
        x.layout().narrow(0, 1, 0).unwrap(),
    ];
    for layout in layouts {
        let view = x.with_layout(layout);
        let want: Vec<f32> = view.to_vec::<f32>().unwrap().iter().map(|v| -v).collect();
        assert_eq!(values::<f32>("neg", &[&view], &[]), want, "{layout:?}");
        let rows: usize = layout.shape()[0];
        let columns: usize = layout.shape()[1];
        let sums = values::<f32>("sum", &[&view], &[Attr::Int(0)]);
        let want: Vec<f32> = (0..columns).map(|c| -(0..rows).map(|r| want[r * columns + c]).sum::<f32>()).collect();
        assert_eq!(sums, want, "{layout:?}");
    }
}

#[test]
fn reductions_of_rows_columns_and_everything() {
    let x = tensor(&[1i32, 2, 3, 4, 5, 6], &[2, 3]);
    assert_eq!(values::<i64>("sum", &[&x], &[Attr::Int(1)]), [6, 15]);
    assert_eq!(values::<i64>("sum", &[&x], &[Attr::Int(0)]), [5, 7, 9]);
    assert_eq!(values::<i64>("sum_all", &[&x], &[]), [21]);
    assert_eq!(values::<i32>("max", &[&x], &[Attr::Int(-1)]), [3, 6]);
    assert_eq!(values::<i64>("argmin", &[&x], &[Attr::Int(0)]), [0, 0, 0]);
    assert_eq!(values::<i64>("cumsum", &[&x], &[Attr::Int(1)]), [1, 3, 6, 4, 9, 15]);
}

#[test]
fn softmax_and_layer_norm_are_rows() {
    let x = tensor(&[1f32, 2.0, 3.0, 1.0, 1.0, 1.0], &[2, 3]);
    let y = values::<f32>("softmax", &[&x], &[Attr::Int(1)]);
    let third = 1.0 / 3.0;
    let want = [0.090_030_57, 0.244_728_47, 0.665_240_96, third, third, third];
    assert!(y.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-6), "{y:?}");
}

#[test]
fn matmul_multiplies_batches_and_views() {
    let a = tensor(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 2, 3]);
    let b = tensor(&(0..12).map(|i| i as f32).collect::<Vec<_>>(), &[2, 3, 2]);
    assert_eq!(values::<f32>("matmul", &[&a, &b], &[]), [16.0, 22.0, 34.0, 49.0, 52.0, 58.0, 124.0, 139.0]);
    let empty = tensor::<f32>(&[], &[2, 0]);
    let other = tensor::<f32>(&[], &[0, 3]);
    assert_eq!(values::<f32>("matmul", &[&empty, &other], &[]), [0.0; 6]);
    let ints = tensor(&[1i64, 2, 3, 4], &[2, 2]);
    assert_eq!(values::<i64>("matmul", &[&ints, &ints], &[]), [7, 10, 15, 22]);
}

#[test]
fn an_index_out_of_range_is_an_error() {
    let w = tensor(&[1f32, -1.0, 2.0, -2.0], &[2, 2]);
    let index = |i: i64| tensor(&[0, i], &[2]);
    assert_eq!(values::<f32>("embedding", &[&w, &index(1)], &[]), [1.0, -1.0, 2.0, -2.0]);
    for bad in [2, -1, i64::MAX] {
        let error = eval("embedding", &[&w, &index(bad)], &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Index);
        assert!(error.to_string().contains(&bad.to_string()), "{error}");
    }
}

#[test]
fn an_integer_division_by_zero_is_an_error_and_changes_nothing() {
    let (x, zero) = (tensor(&[5i32, 6], &[2]), tensor(&[1i32, 0], &[2]));
    let args = [Arg::Tensor(x), Arg::Tensor(zero)];
    assert_eq!(run(Device::cpu(), "div", &args, &[]).unwrap_err().kind(), ErrorKind::Index);
    let Arg::Tensor(x) = &args[0] else { unreachable!() };
    assert_eq!(x.to_vec::<i32>().unwrap(), [5, 6]);
}

#[test]
fn a_given_operand_is_overwritten_and_a_shared_one_is_not() {
    let x = tensor(&[1f32, 2.0], &[2]);
    let address = x.address();
    let kept = x.clone();
    let shared = eval("neg", &[&x], &[]).unwrap();
    assert_ne!(shared.address(), address);
    drop(kept);
    let args = [Arg::Tensor(x)];
    let taken = run(Device::cpu(), "neg", &args, &[]).unwrap().remove(0);
    assert_eq!((taken.address(), taken.to_vec::<f32>().unwrap()), (address, vec![-1.0, -2.0]));
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let (x, y) = (tensor(&[1f32, 2.0], &[2]), tensor(&[1f32, 2.0, 3.0], &[3]));
    let error = eval("add", &[&x, &y], &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains('2') && error.to_string().contains('3'), "{error}");
}

#[test]
fn scatters_add_and_copy_in_order() {
    let zeros = tensor(&[0f32; 6], &[3, 2]);
    let index = tensor(&[2i64, 0, 2], &[3]);
    let source = tensor(&[1f32, 10.0, 2.0, 20.0, 3.0, 30.0], &[3, 2]);
    assert_eq!(
        values::<f32>("index_add", &[&zeros, &index, &source], &[Attr::Int(0)]),
        [2.0, 20.0, 0.0, 0.0, 4.0, 40.0]
    );
    assert_eq!(
        values::<f32>("index_copy", &[&zeros, &index, &source], &[Attr::Int(0)]),
        [2.0, 20.0, 0.0, 0.0, 3.0, 30.0]
    );
}
