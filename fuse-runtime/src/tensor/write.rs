//! Writes. A tensor is a value, so a write is seen through `&mut` alone: storage that something else holds is copied first.

use super::call::{axis, mixed_devices, position, refused, try_call};
use super::{Max, Rank, SameDtype, Tensor};
use crate::device::Device;
use crate::dtype::Element;
use crate::eager::Arg;
use crate::error::{Error, ErrorKind, OrRaise, Result};
use crate::layout::Layout;
use crate::raw::RawTensor;
use crate::tape::is_traced;
use fuse_compiler::op::{Attr, Check};
use fuse_compiler::types::DType;
use std::sync::LazyLock;

impl<T: Element, const R: usize> Tensor<T, R> {
    /// Writes `source`, which may broadcast, over the elements `start..end` of `dim` (Python's rules as in
    /// [`slice`](Tensor::slice)).
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let mut x = Tensor::from([0i64, 1, 2, 3]);
    /// let before = x.clone();
    /// x.slice_assign(0, 1, 3, &Tensor::from([8, 9]));
    /// assert_eq!(x.to_vec(), [0, 8, 9, 3]);
    /// assert_eq!(before.to_vec(), [0, 1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] if `source` does not broadcast to the part, or is on another device.
    #[track_caller]
    pub fn slice_assign<U: Element, const B: usize>(
        &mut self,
        dim: isize,
        start: isize,
        end: isize,
        source: &Tensor<U, B>,
    ) where
        T: SameDtype<U>,
        Rank<R>: Max<Rank<B>, Output = Rank<R>>,
    {
        let attrs = [axis(dim), position(self.raw(), start), position(self.raw(), end)];
        write_part(self.raw_mut(), "slice_assign", &attrs, source.raw(), |layout| layout.slice(dim, start, end))
            .or_raise()
    }

    /// Writes the parts of `source` over those at these positions of `dim`; of equal positions the last one counts. Nothing else of the
    /// tensor is read or written, where nothing else holds its storage.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let mut cache = Tensor::<f32, 2>::zeros([3, 2], Device::cpu());
    /// cache.index_copy_(0, &Tensor::from([2i64]), &Tensor::from([[1.0, 2.0]]));
    /// assert_eq!(cache.to_vec(), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    /// With an [`Error`] if a position is out of range, or the extents do not fit.
    #[track_caller]
    pub fn index_copy_(&mut self, dim: isize, index: &Tensor<i64, 1>, source: &Tensor<T, R>) {
        let mut args = [&*NOTHING, index.raw(), source.raw()].map(|tensor| Arg::Tensor(tensor.clone()));
        try_assign(self.raw_mut(), "index_copy_", &mut args, &[axis(dim)]).or_raise()
    }

    /// Writes `source`, which may broadcast, over all elements.
    ///
    /// ```
    /// use fuse_runtime::prelude::*;
    /// let mut x = Tensor::<f32, 2>::zeros([2, 2], Device::cpu());
    /// x.copy_(&Tensor::from([1.0, 2.0]));
    /// assert_eq!(x.to_vec(), [1.0, 2.0, 1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn copy_<U: Element, const B: usize>(&mut self, source: &Tensor<U, B>)
    where
        T: SameDtype<U>,
        Rank<R>: Max<Rank<B>, Output = Rank<R>>,
    {
        write_part(self.raw_mut(), "copy_", &[], source.raw(), |layout| Ok(*layout)).or_raise()
    }
}

/// Writes `source` over the part of `target` that `part_of` cuts out of its layout.
fn write_part(
    target: &mut RawTensor,
    op: &str,
    attrs: &[Attr],
    source: &RawTensor,
    part_of: impl Fn(&Layout) -> Result<Layout>,
) -> Result<()> {
    if source.device() != target.device() {
        return Err(mixed_devices(op, target.device(), source.device()));
    }
    let fitted = part_of(target.layout()).and_then(|part| fit(op, source, part.shape()));
    let args = || [Arg::Tensor(target.clone()), Arg::Tensor(source.clone())];
    let fitted = fitted.map_err(|error| refused(op, &args(), attrs, error))?;
    if is_traced(target) || is_traced(source) {
        *target = try_call(op, &args(), attrs)?;
        return Ok(());
    }
    if !target.is_unique() || target.layout().repeats() {
        *target = target.copied()?;
    }
    let part = part_of(target.layout())?;
    target.overwrite(&part, &fitted)
}

/// `source` broadcast to `shape`, whose rank is not below its own.
fn fit(op: &str, source: &RawTensor, shape: &[usize]) -> Result<RawTensor> {
    let outer = shape.len() - source.shape().len();
    for (&own, &wanted) in source.shape().iter().zip(&shape[outer..]) {
        let (own, wanted) = (own as i64, wanted as i64);
        if let Some(text) = Check::stretches(op, &own.into(), &wanted.into()).failure(own, wanted) {
            return Err(Error::new(ErrorKind::Shape, text));
        }
    }
    Ok(source.with_layout(source.layout().broadcast_to(shape)?))
}

/// Replaces `target` by `op(target, other)`, in its own storage where nothing else holds that.
#[track_caller]
pub(super) fn assign<T: Element, const R: usize>(target: &mut Tensor<T, R>, op: &str, other: Arg) {
    let fits = match &other {
        Arg::Tensor(tensor) => fit(op, tensor, target.raw().shape()).map(drop),
        Arg::Scalar(..) => Ok(()),
    };
    let both = || [Arg::Tensor(target.raw().clone()), other.clone()];
    let fits = fits.map_err(|error| refused(op, &both(), &[], error));
    let mut args = [Arg::Tensor(NOTHING.clone()), other];
    fits.and_then(|()| try_assign(target.raw_mut(), op, &mut args, &[])).or_raise()
}

/// The same of an op with further operands, which stand behind a place for `target`.
fn try_assign(target: &mut RawTensor, op: &str, args: &mut [Arg], attrs: &[Attr]) -> Result<()> {
    // The op may write its result over an argument that nothing else holds, so the tensor gives itself up for the call
    // and comes back if that fails.
    let change_places = |target: &mut RawTensor, args: &mut [Arg]| match args {
        [Arg::Tensor(place), ..] => std::mem::swap(target, place),
        _ => unreachable!("there is a place for the receiver"),
    };
    change_places(target, args);
    let outcome = try_call(op, args, attrs);
    change_places(target, args);
    target.replace(outcome?)
}

/// What stands in for a tensor that is given up for the length of a call.
static NOTHING: LazyLock<RawTensor> = LazyLock::new(|| {
    RawTensor::empty(DType::U8, &[0], Device::cpu()).expect("a tensor without elements needs no memory to speak of")
});
