//! Conversions from and to arrays and nested vectors of the host.

use super::Tensor;
use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, raise};

impl<T: Element> Tensor<T, 0> {
    /// A tensor of rank 0 on the processor.
    #[track_caller]
    pub fn of_scalar(value: T) -> Self {
        Tensor::full([], value, Device::cpu())
    }
}

impl<T: Element> From<Vec<T>> for Tensor<T, 1> {
    #[track_caller]
    fn from(data: Vec<T>) -> Self {
        Tensor::from_slice(&data, [data.len()], Device::cpu())
    }
}

impl<T: Element> From<&[T]> for Tensor<T, 1> {
    #[track_caller]
    fn from(data: &[T]) -> Self {
        Tensor::from_slice(data, [data.len()], Device::cpu())
    }
}

impl<T: Element, const A: usize> From<[T; A]> for Tensor<T, 1> {
    #[track_caller]
    fn from(data: [T; A]) -> Self {
        Tensor::from_slice(&data, [A], Device::cpu())
    }
}

impl<T: Element, const A: usize, const B: usize> From<[[T; B]; A]> for Tensor<T, 2> {
    #[track_caller]
    fn from(data: [[T; B]; A]) -> Self {
        Tensor::from_slice(data.as_flattened(), [A, B], Device::cpu())
    }
}

impl<T: Element, const A: usize, const B: usize, const C: usize> From<[[[T; C]; B]; A]> for Tensor<T, 3> {
    #[track_caller]
    fn from(data: [[[T; C]; B]; A]) -> Self {
        Tensor::from_slice(data.as_flattened().as_flattened(), [A, B, C], Device::cpu())
    }
}

impl<T: Element> From<Vec<Vec<T>>> for Tensor<T, 2> {
    /// # Panics
    /// With an [`Error`] of kind `Shape` if the rows differ in length.
    #[track_caller]
    fn from(rows: Vec<Vec<T>>) -> Self {
        let columns = rows.first().map_or(0, Vec::len);
        if let Some(row) = rows.iter().find(|row| row.len() != columns) {
            raise(Error::shape("from", format!("a row has {} values where the first has {columns}", row.len())));
        }
        Tensor::from_slice(&rows.concat(), [rows.len(), columns], Device::cpu())
    }
}

impl<T: Element> Tensor<T, 2> {
    /// The rows as vectors.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::from([[1, 2], [3, 4]]).t().to_vec2(), [[1, 3], [2, 4]]);
    /// ```
    #[track_caller]
    pub fn to_vec2(&self) -> Vec<Vec<T>> {
        self.unbind(0).iter().map(Tensor::to_vec).collect()
    }
}

impl<T: Element> Tensor<T, 3> {
    /// The matrices along the first dim as vectors of rows.
    #[track_caller]
    pub fn to_vec3(&self) -> Vec<Vec<Vec<T>>> {
        self.unbind(0).iter().map(Tensor::to_vec2).collect()
    }
}
