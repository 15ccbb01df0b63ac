//! The operands of a launch as the driver addresses them.

use super::strided::Strided;
use crate::exec::operands::Operand;
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
    /// An operand over a domain whose first `outer` axes are rows.
    pub fn of(operand: Operand, level: Level, outer: usize) -> Self {
        let walked = Access::over(operand.layout(), level, outer);
        match operand {
            Operand::Positions(layout) => Access { first: layout.offset() as i64, ..walked },
            Operand::Tensor(tensor) => {
                Access { start: host_start(&tensor), dtype: tensor.dtype(), tensor: Some(tensor), ..walked }
            }
            Operand::Indexed { tensor, axis, layout } => {
                // The view moves the offset; the start of the tensor already counts the offset it had before.
                let moved = (layout.offset() - tensor.layout().offset()) * tensor.dtype().bytes() as isize;
                let (start, dtype) = (host_start(&tensor).wrapping_offset(moved), tensor.dtype());
                let indexed = Some((tensor.shape()[axis], tensor.layout().strides()[axis]));
                Access { start, dtype, tensor: Some(tensor), indexed, ..walked }
            }
        }
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

    /// The operand dense over extents of which the first `outer` are rows, whatever its tensor looks like. Where it starts is
    /// up to whoever runs the launch.
    pub fn make_dense(&mut self, extents: &[usize], outer: usize) {
        let layout = Layout::contiguous(extents);
        self.outer = Strided::of(&layout, 0, outer);
        self.inner = Strided::of(&layout, outer, extents.len());
    }

    /// Puts the element at `position` of both walks at an address.
    pub fn start_at(&mut self, address: *mut u8, position: usize) {
        self.start = address.wrapping_sub(position * self.dtype.bytes());
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

fn host_start(tensor: &RawTensor) -> *mut u8 {
    tensor.host_ptr().expect("operands of a processor kernel are on the host")
}
