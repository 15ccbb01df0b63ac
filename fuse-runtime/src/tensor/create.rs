//! Tensors from nothing: constants, ranges, random numbers, data of the host.

use super::Tensor;
use super::call::{call_on, refused, sizes};
use super::operand::scalar;
use crate::device::Device;
use crate::dtype::{Element, Float, Num};
use crate::error::{Error, OrRaise, Result, raise};
use crate::raw::RawTensor;
use fuse_compiler::op::{Attr, Literal};
use fuse_compiler::types::Dim;

impl<T: Element, const R: usize> Tensor<T, R> {
    /// A tensor full of zeros (`false` for bool).
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::<i32, 1>::zeros([3], Device::cpu()).to_vec(), [0, 0, 0]);
    /// ```
    #[track_caller]
    pub fn zeros(dims: [usize; R], device: impl Into<Device>) -> Self {
        Tensor::full(dims, T::default(), device)
    }

    /// A tensor full of ones (`true` for bool).
    #[track_caller]
    pub fn ones(dims: [usize; R], device: impl Into<Device>) -> Self {
        Tensor::full(dims, T::from_f64(1.0), device)
    }

    /// A tensor full of `value`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::full([2], 0.5f32, Device::cpu()).to_vec(), [0.5, 0.5]);
    /// ```
    #[track_caller]
    pub fn full(dims: [usize; R], value: T, device: impl Into<Device>) -> Self {
        let device = device.into();
        if device.is_cpu() {
            return Tensor::from_raw(filled(&dims, value).or_raise());
        }
        call_on(device, "full", &[scalar::<T, T>(value)], &[sizes(&dims), Attr::DType(T::DTYPE)])
    }

    /// The values of `data` in row-major order.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::from_vec(vec![1i64, 2, 3, 4, 5, 6], [2, 3], Device::cpu());
    /// assert_eq!(x.narrow(1, 1, 2).to_vec(), [2, 3, 5, 6]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if `dims` need another number of values.
    #[track_caller]
    pub fn from_vec(data: Vec<T>, dims: [usize; R], device: impl Into<Device>) -> Self {
        Tensor::from_slice(&data, dims, device)
    }

    /// The values of `data` in row-major order.
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if `dims` need another number of values.
    #[track_caller]
    pub fn from_slice(data: &[T], dims: [usize; R], device: impl Into<Device>) -> Self {
        Tensor::from_raw(RawTensor::from_slice_on(data, &dims, device.into()).or_raise())
    }
}

impl<T: Num> Tensor<T, 1> {
    /// The numbers `start`, `start + 1`, ... below `end`.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::arange(2i64, 5, Device::cpu()).to_vec(), [2, 3, 4]);
    /// assert_eq!(Tensor::arange(0.5f32, 2.0, Device::cpu()).to_vec(), [0.5, 1.5]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if `end` lies below `start`.
    #[track_caller]
    pub fn arange(start: T, end: T, device: impl Into<Device>) -> Self {
        let attrs = [bound(start), bound(end), Attr::DType(T::DTYPE)];
        if end < start {
            let error = Error::shape("arange", "the start lies above the end");
            raise(refused("arange", &[], &attrs, error));
        }
        call_on(device.into(), "arange", &[], &attrs)
    }
}

/// A bound of a range as the op takes it: integers exact, floats in f64.
fn bound<T: Num>(value: T) -> Attr {
    match value.to_literal() {
        Literal::Int(k) => Attr::Dim(Dim::Const(k)),
        _ => Attr::Float(value.to_f64()),
    }
}

impl<T: Num> Tensor<T, 2> {
    /// The identity matrix of `n` rows.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::<f32, 2>::eye(2, Device::cpu()).to_vec(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn eye(n: usize, device: impl Into<Device>) -> Self {
        call_on(device.into(), "eye", &[], &[Attr::Dim(Dim::Const(n as i64)), Attr::DType(T::DTYPE)])
    }
}

impl<T: Float, const R: usize> Tensor<T, R> {
    /// Uniform random numbers in `[0, 1)` from the generator of the device.
    #[track_caller]
    pub fn rand(dims: [usize; R], device: impl Into<Device>) -> Self {
        call_on(device.into(), "rand", &[], &[sizes(&dims), Attr::DType(T::DTYPE)])
    }

    /// Standard normal random numbers from the generator of the device.
    #[track_caller]
    pub fn randn(dims: [usize; R], device: impl Into<Device>) -> Self {
        call_on(device.into(), "randn", &[], &[sizes(&dims), Attr::DType(T::DTYPE)])
    }
}

fn filled<T: Element>(dims: &[usize], value: T) -> Result<RawTensor> {
    let mut raw = RawTensor::empty(T::DTYPE, dims, Device::cpu())?;
    if let Some(values) = raw.as_mut_slice::<T>() {
        values.fill(value);
    }
    Ok(raw)
}
