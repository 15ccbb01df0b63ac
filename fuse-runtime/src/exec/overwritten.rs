//! What was in an input on the processor before a call wrote over parts of it: a call that fails changes no tensor.

use crate::copy::copy_strided;
use crate::error::Result;
use crate::layout::Layout;
use crate::raw::RawTensor;

/// Parts of one tensor and what they held.
pub(super) struct Overwritten {
    of: RawTensor,
    parts: Vec<Layout>,
    /// The elements of the parts, one part behind the other.
    old: RawTensor,
}

impl Overwritten {
    /// Keeps parts of equal extents of a tensor on the processor.
    pub fn keep(of: &RawTensor, parts: Vec<Layout>) -> Result<Self> {
        let each = parts.first().map_or(0, |part| part.shape().iter().product());
        let old = RawTensor::empty(of.dtype(), &[parts.len(), each], of.device())?;
        let kept = Overwritten { of: of.clone(), parts, old };
        kept.pairs().for_each(|(part, old)| copy(old, part));
        Ok(kept)
    }

    /// Writes them back, the last one first: of parts that overlap, the first one kept is the oldest.
    pub fn restore(self) {
        let pairs: Vec<_> = self.pairs().collect();
        pairs.into_iter().rev().for_each(|(part, old)| copy(part, old));
    }

    /// Every part, and where its old elements are.
    fn pairs(&self) -> impl Iterator<Item = (RawTensor, RawTensor)> {
        self.parts.iter().enumerate().map(|(k, part)| {
            let dense = Layout::contiguous(part.shape());
            let start = k * part.shape().iter().product::<usize>();
            let place = Layout::strided(part.shape(), dense.strides(), start as isize);
            (self.of.with_layout(*part), self.old.with_layout(place))
        })
    }
}

fn copy(to: RawTensor, from: RawTensor) {
    if let (Some(to_ptr), Some(from_ptr)) = (to.host_ptr(), from.host_ptr()) {
        // SAFETY: both layouts are inside of their storages, of which one was made for this. The other is that of an input that
        // nothing holds but the call, whose steps do not run now.
        unsafe { copy_strided(to_ptr, to.layout(), from_ptr, from.layout(), to.dtype().bytes()) };
    }
}
