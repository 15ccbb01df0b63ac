//! The operands of a kernel as device addresses and strides.

use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::exec::symbols::Sizes;
use crate::exec::views::{cut, view, view_layout};
use crate::layout::Layout;
use crate::raw::RawTensor;
use fuse_compiler::plan::abi::{Access, Geometry};
use fuse_compiler::plan::{Kernel, Kind, Leaf, LeafSource, Level, Store};

/// Bytes of the widest access of a thread.
const WIDEST: u64 = 16;

/// A kernel's operands.
pub(super) struct Bound {
    /// The axes before collapsing, with every operand's strides.
    pub geometry: Geometry,
    /// Leaves, then stores.
    pub operands: Vec<Operand>,
}

/// One operand.
pub(super) struct Operand {
    /// The memory, alive until the launch; none for virtual tensors of positions.
    _tensor: Option<RawTensor>,
    /// The address of the first element, or the first position of a virtual tensor.
    pub start: u64,
    /// Extent and stride of the axis a gather or scatter moves along.
    pub axis: [i64; 2],
    access: Access,
}

/// Finds and views the operands of a kernel.
pub(super) fn bind(kernel: &Kernel, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Bound> {
    let domain = sizes.extents(&kernel.domain)?;
    let outer = domain.len() - kernel.reduced as usize;
    let outer = if kernel.kind == Kind::Map { domain.len() } else { outer };
    let mut operands = Vec::with_capacity(kernel.leaves.len() + kernel.stores.len());
    for leaf in &kernel.leaves {
        operands.push(bind_leaf(leaf, onto(leaf.level, &domain, outer), buffers, sizes)?);
    }
    for store in &kernel.stores {
        operands.push(bind_store(store, onto(kernel.store_level(store), &domain, outer), buffers, sizes)?);
    }
    let long = |extents: &[usize]| extents.iter().map(|&n| n as i64).collect();
    let accesses = operands.iter().map(|operand| operand.access.clone()).collect();
    let geometry = Geometry { outer: long(&domain[..outer]), inner: long(&domain[outer..]), operands: accesses };
    Ok(Bound { geometry, operands })
}

fn bind_leaf(leaf: &Leaf, onto: &[usize], buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Operand> {
    match (&leaf.source, leaf.indexed) {
        (LeafSource::Buf(buf), Some(axis)) => {
            Operand::indexed(buffers.get(*buf)?, axis as usize, &leaf.views, onto, sizes)
        }
        (LeafSource::Buf(buf), None) => {
            let tensor = view(&buffers.get(*buf)?, &leaf.views, sizes)?;
            Ok(Operand::of(tensor, onto))
        }
        (LeafSource::Index(dims), _) => {
            let positions = Layout::contiguous(&sizes.extents(dims)?);
            let layout = view_layout(positions, &leaf.views, sizes)?;
            let layout = layout.ok_or_else(|| Error::shape("reshape", "positions of this layout have no strides"))?;
            Ok(Operand::positions(&layout, onto))
        }
    }
}

fn bind_store(store: &Store, onto: &[usize], buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Operand> {
    let tensor = buffers.get(store.to.buf)?;
    match &store.scatter {
        Some(scatter) => Operand::indexed(tensor, scatter.axis as usize, &store.to.views, onto, sizes),
        None => {
            let layout = view_layout(*tensor.layout(), &store.to.views, sizes)?;
            Ok(Operand::of(tensor.with_layout(layout.expect("a kernel writes to its buffer and not to a copy")), onto))
        }
    }
}

impl Operand {
    fn of(tensor: RawTensor, onto: &[usize]) -> Self {
        let access = access(tensor.layout(), onto, tensor.address(), tensor.dtype().bytes(), false);
        Operand { start: tensor.address(), axis: [0; 2], access, _tensor: Some(tensor) }
    }

    fn positions(layout: &Layout, onto: &[usize]) -> Self {
        let access = access(layout, onto, 0, 0, false);
        Operand { start: layout.offset() as u64, axis: [0; 2], access, _tensor: None }
    }

    fn indexed(
        tensor: RawTensor,
        axis: usize,
        views: &[fuse_compiler::plan::View],
        onto: &[usize],
        sizes: &Sizes,
    ) -> Result<Self> {
        let layout = view_layout(cut(tensor.layout(), axis), views, sizes)?
            .ok_or_else(|| Error::shape("gather", "the layout of the indexed tensor cannot be walked"))?;
        let bytes = tensor.dtype().bytes();
        // The address of the tensor already counts the offset it had before the views.
        let moved = (layout.offset() - tensor.layout().offset()) as i64 * bytes as i64;
        let start = tensor.address().wrapping_add_signed(moved);
        let along = [tensor.shape()[axis] as i64, tensor.layout().strides()[axis] as i64];
        let access = access(&layout, onto, start, bytes, true);
        Ok(Operand { start, axis: along, access, _tensor: Some(tensor) })
    }
}

fn access(layout: &Layout, onto: &[usize], address: u64, bytes: usize, indexed: bool) -> Access {
    // Views and domain come from one scheduler, so a difference is a mistake of ours; it would lead out of the tensor.
    assert_eq!(layout.shape(), onto, "an operand spans the domain of its kernel");
    let strides = layout.strides().iter().map(|&stride| stride as i64).collect();
    // Of the address only the alignment counts, so that calls of other tensors find what was prepared.
    Access { strides, address: address % WIDEST, bytes, indexed }
}

/// The extents that an operand of a level spans.
fn onto(level: Level, domain: &[usize], outer: usize) -> &[usize] {
    match level {
        Level::Elem => domain,
        Level::Row => &domain[..outer],
        Level::All => &[],
    }
}
