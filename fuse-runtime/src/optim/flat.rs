//! Tensors of any rank as vectors, for the time of an update.

use crate::device::Device;
use crate::dtype::Element;
use crate::error::Result;
use crate::layout::Layout;
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use fuse_compiler::types::DType;
use std::sync::OnceLock;

/// A tensor as a vector, which goes back to its place when this is dropped.
///
/// It is taken out of its place meanwhile, since a write happens in place only where nothing else holds the storage.
pub struct Flat<'a, T: Element> {
    pub(in crate::optim) vector: Tensor<T, 1>,
    place: &'a mut RawTensor,
    /// How it lies in its place.
    layout: Layout,
}

impl<'a, T: Element> Flat<'a, T> {
    /// Takes a tensor out; one that lies with gaps, or whose storage something else holds, is copied first.
    pub(in crate::optim) fn of(place: &'a mut RawTensor) -> Result<Self> {
        if !place.is_unique() || !place.layout().is_contiguous() {
            *place = place.copied()?;
        }
        let layout = *place.layout();
        let taken = std::mem::replace(place, nothing());
        let vector = taken.relaid(Layout::strided(&[layout.numel()], &[1], layout.offset()));
        Ok(Flat { vector: Tensor::from_raw(vector), place, layout })
    }
}

impl<T: Element> Drop for Flat<'_, T> {
    fn drop(&mut self) {
        let vector = std::mem::replace(self.vector.raw_mut(), nothing());
        *self.place = vector.relaid(self.layout);
    }
}

/// A tensor as a vector, copied if it lies with gaps.
pub(in crate::optim) fn vector<T: Element>(tensor: &RawTensor) -> Result<Tensor<T, 1>> {
    Ok(Tensor::from_raw(tensor.reshape(&[tensor.numel()])?))
}

/// What stands in the place of a tensor that was taken out.
fn nothing() -> RawTensor {
    static NOTHING: OnceLock<RawTensor> = OnceLock::new();
    let make = || RawTensor::empty(DType::U8, &[0], Device::cpu()).expect("no bytes are always there");
    NOTHING.get_or_init(make).clone()
}
