//! The operands of a launch as the driver addresses them.

use super::strided::Strided;
use crate::layout::Layout;
use crate::raw::RawTensor;
use fuse_compiler::plan::Level;
use fuse_compiler::types::DType;

/// What an operand is addressed by.
#[derive(Clone)]
pub(super) struct Access {
    /// The memory, kept alive for the launch; none for a virtual tensor of positions.
    pub tensor: Option<RawTensor>,
    /// The element at position 0 of both walks, or null.
    pub start: *mut u8,
    /// For virtual tensors, the value at position 0.
    pub first: i64,
    /// The element type.
    pub dtype: DType,
    /// Once a point, once a row, or once.
    pub level: Level,
    /// Positions over the outer axes: one a row.
    pub outer: Strided,
    /// Positions over the inner axes: one a point of the row.
    pub inner: Strided,
    /// For operands read or written at computed positions: extent and stride of the indexed axis.
    pub indexed: Option<(usize, isize)>,
}

// SAFETY: the pointer leads into `tensor`, whose storage may be used from any thread; what is written where is up to the
// launch.
unsafe impl Sync for Access {}
// SAFETY: as above.
unsafe impl Send for Access {}

impl Access {
    /// A tensor that has been viewed onto the domain, or onto its outer axes, of which there are `outer`.
    pub fn of_tensor(tensor: RawTensor, level: Level, outer: usize) -> Self {
        let layout = *tensor.layout();
        let start = tensor.host_ptr().expect("operands of a processor kernel are on the host");
        let (dtype, tensor) = (tensor.dtype(), Some(tensor));
        Access { start, dtype, tensor, ..Access::over(&layout, level, outer) }
    }

    /// A virtual tensor whose elements are their positions, viewed as above.
    pub fn of_positions(layout: &Layout, level: Level, outer: usize) -> Self {
        Access { first: layout.offset() as i64, ..Access::over(layout, level, outer) }
    }

    /// A tensor that is indexed along one of its axes; `layout` is the view of the tensor with that axis cut to 1.
    pub fn of_indexed(tensor: RawTensor, axis: usize, layout: &Layout, level: Level, outer: usize) -> Self {
        let indexed = Some((tensor.shape()[axis], tensor.layout().strides()[axis]));
        let origin = tensor.host_ptr().expect("operands of a processor kernel are on the host");
        // The view moves the offset; the address of the tensor already counts the offset it had before.
        let moved = (layout.offset() - tensor.layout().offset()) * tensor.dtype().bytes() as isize;
        let (start, dtype) = (origin.wrapping_offset(moved), tensor.dtype());
        Access { start, dtype, tensor: Some(tensor), indexed, ..Access::over(layout, level, outer) }
    }

    fn over(layout: &Layout, level: Level, outer: usize) -> Self {
        Access {
            tensor: None,
            start: std::ptr::null_mut(),
            first: 0,
            dtype: DType::I64,
            level,
            outer: Strided::of(layout, 0, outer.min(layout.rank())),
            inner: Strided::of(layout, outer.min(layout.rank()), layout.rank()),
            indexed: None,
        }
    }

    /// The address of a position counted in elements.
    pub fn at(&self, offset: isize) -> *mut u8 {
        self.start.wrapping_offset(offset * self.dtype.bytes() as isize)
    }

    /// Whether two operands lie in the same storage.
    pub fn shares_storage(&self, other: &Access) -> bool {
        match (&self.tensor, &other.tensor) {
            (Some(a), Some(b)) => std::sync::Arc::ptr_eq(a.storage(), b.storage()),
            _ => false,
        }
    }
}
