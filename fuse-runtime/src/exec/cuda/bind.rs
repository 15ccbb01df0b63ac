//! The operands of a kernel as device addresses and strides.

use crate::error::Result;
use crate::exec::buffers::Buffers;
use crate::exec::operands::{Operand, operands, outer_axes};
use crate::exec::symbols::Sizes;
use crate::raw::RawTensor;
use fuse_compiler::plan::Kernel;
use fuse_compiler::plan::abi::{Access, Geometry};

/// Bytes of the widest access of a thread.
pub(super) const WIDEST: u64 = 16;

/// A kernel's operands.
pub(super) struct Bound {
    /// The axes before collapsing, with every operand's strides.
    pub geometry: Geometry,
    /// Leaves, then stores.
    pub operands: Vec<Address>,
}

/// Where an operand lies.
pub(super) struct Address {
    /// The memory, alive until the launch; none for virtual tensors of positions.
    _tensor: Option<RawTensor>,
    /// The address of the first element, or the first position of a virtual tensor.
    pub start: u64,
    /// Extent and stride of the axis a gather or scatter moves along.
    pub axis: [i64; 2],
}

/// Finds and views the operands of a kernel.
pub(super) fn bind(kernel: &Kernel, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Bound> {
    let domain = sizes.extents(&kernel.domain)?;
    let found = operands(kernel, &domain, buffers, sizes)?;
    let (outer, inner) = domain.split_at(outer_axes(kernel));
    let long = |extents: &[usize]| extents.iter().map(|&n| n as i64).collect();
    let accesses = found.iter().map(access).collect();
    let geometry = Geometry { outer: long(outer), inner: long(inner), operands: accesses };
    Ok(Bound { geometry, operands: found.into_iter().map(Address::of).collect() })
}

impl Address {
    /// Memory that is kept alive elsewhere.
    pub fn new(start: u64, axis: [i64; 2]) -> Self {
        Address { _tensor: None, start, axis }
    }

    fn of(operand: Operand) -> Self {
        let start = start(&operand);
        match operand {
            Operand::Tensor(tensor) => Address { start, axis: [0; 2], _tensor: Some(tensor) },
            Operand::Positions(_) => Address { start, axis: [0; 2], _tensor: None },
            Operand::Indexed { tensor, axis, .. } => {
                let axis = [tensor.shape()[axis] as i64, tensor.layout().strides()[axis] as i64];
                Address { start, axis, _tensor: Some(tensor) }
            }
        }
    }
}

/// The address of an operand's first element, or the first position of a virtual tensor.
fn start(operand: &Operand) -> u64 {
    match operand {
        Operand::Tensor(tensor) => tensor.address(),
        Operand::Positions(layout) => layout.offset() as u64,
        Operand::Indexed { tensor, layout, .. } => {
            // The address of the tensor already counts the offset it had before the views.
            let moved = (layout.offset() - tensor.layout().offset()) as i64 * tensor.dtype().bytes() as i64;
            tensor.address().wrapping_add_signed(moved)
        }
    }
}

/// How an operand is walked. Of the address only the alignment counts, so that calls of other tensors find what was prepared.
fn access(operand: &Operand) -> Access {
    let strides = operand.layout().strides().iter().map(|&stride| stride as i64).collect();
    let (bytes, indexed) = match operand {
        Operand::Tensor(tensor) => (tensor.dtype().bytes(), false),
        Operand::Positions(_) => return Access { strides, ..Access::default() },
        Operand::Indexed { tensor, .. } => (tensor.dtype().bytes(), true),
    };
    Access { strides, address: start(operand) % WIDEST, bytes, indexed }
}
