//! Tensors with element type and rank in their type.

mod call;
mod convert;
mod create;
mod display;
mod elementwise;
mod index;
mod join;
mod linear;
mod nn;
mod operand;
mod operators;
mod rank;
mod reduce;
mod table;
#[cfg(test)]
mod tests;
mod views;
mod write;

pub use nn::{AttentionMask, Reduction, ReductionKind};
pub use operand::{Arms, Chosen, Operand, SameDtype};
pub use rank::{AnyRank, AnyTensor, Broadcast, Joined, Lower, Lowered, MatmulRank, Max, Raise, Raised, Rank};

use crate::device::Device;
use crate::dtype::Element;
use crate::error::{Error, OrRaise, raise};
use crate::raw::RawTensor;
use std::marker::PhantomData;

/// A tensor of element type `T` and rank `R`; its extents and its device are known at run time.
///
/// A tensor is a value: cloning and views share storage, and a write reuses storage only if nothing else holds it.
///
/// ```
/// use fuse_runtime::prelude::*;
/// let device = Device::cpu();
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], [2, 2], &device);
/// assert_eq!(x.t().to_vec(), [1.0, 3.0, 2.0, 4.0]);
/// ```
#[derive(Clone)]
pub struct Tensor<T: Element, const R: usize> {
    raw: RawTensor,
    element: PhantomData<T>,
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// A typed tensor of an untyped one.
    ///
    /// # Panics
    /// If element type or rank differ: who calls this knows both.
    pub fn from_raw(raw: RawTensor) -> Self {
        assert_eq!((raw.dtype(), raw.layout().rank()), (T::DTYPE, R), "{raw:?} is of another type");
        Tensor { raw, element: PhantomData }
    }

    /// The untyped tensor.
    pub fn raw(&self) -> &RawTensor {
        &self.raw
    }

    /// The untyped tensor, to write to.
    pub(crate) fn raw_mut(&mut self) -> &mut RawTensor {
        &mut self.raw
    }

    /// The extents.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let [rows, columns] = Tensor::<f32, 2>::zeros([2, 3], Device::cpu()).dims();
    /// assert_eq!((rows, columns), (2, 3));
    /// ```
    pub fn dims(&self) -> [usize; R] {
        std::array::from_fn(|d| self.raw.shape()[d])
    }

    /// The extent of one dim, counted from the end if negative.
    #[track_caller]
    pub fn size(&self, dim: isize) -> usize {
        let d = self.raw.layout().axis("size", dim).or_raise();
        self.raw.shape().get(d).copied().unwrap_or(1)
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.raw.numel()
    }

    /// Where the data lives.
    pub fn device(&self) -> Device {
        self.raw.device()
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.raw.layout().is_contiguous()
    }

    /// The same values in row-major order, copied only if they do not lie so already.
    #[track_caller]
    pub fn contiguous(&self) -> Self {
        Tensor::from_raw(call::seen(&self.raw, "contiguous", Vec::new, self.raw.contiguous()).or_raise())
    }

    /// The same values on another device; nothing is copied if they are there already.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::<f32, 1>::ones([3], Device::cpu()).to_device(Device::best());
    /// assert_eq!(x.device(), Device::best());
    /// ```
    #[track_caller]
    pub fn to_device(&self, device: impl Into<Device>) -> Self {
        let device = device.into();
        if device != self.device() && crate::tape::is_traced(&self.raw) {
            raise(Error::device("to_device", "a gradient does not follow a variable to another device"));
        }
        Tensor::from_raw(self.raw.to_device(device).or_raise())
    }

    /// The same values, as a constant for gradients.
    pub fn detach(&self) -> Self {
        Tensor::from_raw(self.raw.clone().with_var(None))
    }

    /// The values in row-major order.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let x = Tensor::arange(0i64, 4, Device::cpu()).reshape([2, 2]);
    /// assert_eq!(x.t().to_vec(), [0, 2, 1, 3]);
    /// ```
    #[track_caller]
    pub fn to_vec(&self) -> Vec<T> {
        self.raw.to_vec().or_raise()
    }

    /// The value of a tensor with one element.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// assert_eq!(Tensor::<f32, 2>::full([1, 1], 2.5, Device::cpu()).item(), 2.5);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] of kind `Shape` if there are more elements, or none.
    #[track_caller]
    pub fn item(&self) -> T {
        match self.to_vec_of_one() {
            Some(value) => value,
            None => raise(Error::shape("item", format!("{:?} has {} elements and not 1", self.dims(), self.numel()))),
        }
    }

    #[track_caller]
    fn to_vec_of_one(&self) -> Option<T> {
        (self.numel() == 1).then(|| self.to_vec()[0])
    }
}

impl<T: Element, const R: usize> From<Tensor<T, R>> for RawTensor {
    fn from(tensor: Tensor<T, R>) -> RawTensor {
        tensor.raw
    }
}

impl<T: Element, const R: usize> From<&Tensor<T, R>> for RawTensor {
    fn from(tensor: &Tensor<T, R>) -> RawTensor {
        tensor.raw.clone()
    }
}
