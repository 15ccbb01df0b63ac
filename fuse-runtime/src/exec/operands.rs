//! What a kernel reads and writes, found and viewed onto its domain.

use super::buffers::Buffers;
use super::symbols::Sizes;
use super::views::{cut, view, view_layout};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::raw::RawTensor;
use fuse_compiler::plan::{Kernel, Kind, Leaf, LeafSource, Level, Store, View};

/// An operand of a kernel.
pub(super) enum Operand {
    /// Elements at the positions of the domain.
    Tensor(RawTensor),
    /// A virtual tensor whose elements are the positions that its layout gives.
    Positions(Layout),
    /// Elements along an axis of a tensor, at computed positions; the layout is the tensor's under the views, with that
    /// axis cut down to 1.
    Indexed {
        /// The tensor before the views.
        tensor: RawTensor,
        /// Its axis.
        axis: usize,
        /// Where index 0 lies for each position of the domain.
        layout: Layout,
    },
}

impl Operand {
    /// Where positions of the domain lie.
    pub fn layout(&self) -> &Layout {
        match self {
            Operand::Tensor(tensor) => tensor.layout(),
            Operand::Positions(layout) | Operand::Indexed { layout, .. } => layout,
        }
    }

    /// The operand with the positions of its domain in another arrangement.
    pub fn arranged(self, arrange: impl Fn(&Layout) -> Layout) -> Self {
        match self {
            Operand::Tensor(tensor) => Operand::Tensor(tensor.with_layout(arrange(tensor.layout()))),
            Operand::Positions(layout) => Operand::Positions(arrange(&layout)),
            Operand::Indexed { tensor, axis, layout } => Operand::Indexed { layout: arrange(&layout), tensor, axis },
        }
    }
}

/// The number of axes of a kernel's domain that are not reduced or walked one after the other; all of a map's.
pub(super) fn outer_axes(kernel: &Kernel) -> usize {
    if kernel.kind == Kind::Map { kernel.domain.len() } else { kernel.domain.len() - kernel.reduced as usize }
}

/// The level at which each operand is read or written: leaves, then stores.
pub(super) fn levels(kernel: &Kernel) -> impl Iterator<Item = Level> {
    let leaves = kernel.leaves.iter().map(|leaf| leaf.level);
    leaves.chain(kernel.stores.iter().map(|store| kernel.store_level(store)))
}

/// The operands of a kernel over a domain of these extents: leaves, then stores.
pub(super) fn operands(
    kernel: &Kernel,
    domain: &[usize],
    buffers: &mut Buffers<'_>,
    sizes: &Sizes,
) -> Result<Vec<Operand>> {
    let mut found = Vec::with_capacity(kernel.leaves.len() + kernel.stores.len());
    for leaf in &kernel.leaves {
        found.push(of_leaf(leaf, buffers, sizes)?);
    }
    for store in &kernel.stores {
        found.push(of_store(store, buffers, sizes)?);
    }
    let outer = outer_axes(kernel);
    for (operand, level) in found.iter().zip(levels(kernel)) {
        let spanned = match level {
            Level::Elem => domain,
            Level::Row => &domain[..outer],
            Level::All => &[],
        };
        // Views and domain come from one scheduler, so a difference is a mistake of ours; it would lead out of the tensor.
        assert_eq!(operand.layout().shape(), spanned, "an operand of `{}` spans its domain", kernel.name);
    }
    Ok(found)
}

fn of_leaf(leaf: &Leaf, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Operand> {
    match (&leaf.source, leaf.indexed) {
        (LeafSource::Buf(buf), Some(lookup)) => indexed(buffers.get(*buf)?, lookup.axis as usize, &leaf.views, sizes),
        (LeafSource::Buf(buf), None) => view(&buffers.get(*buf)?, &leaf.views, sizes).map(Operand::Tensor),
        (LeafSource::Index(dims), _) => {
            let positions = Layout::contiguous(&sizes.extents(dims)?);
            match view_layout(positions, &leaf.views, sizes)? {
                Some(layout) => Ok(Operand::Positions(layout)),
                None => written_positions(positions, &leaf.views, buffers, sizes),
            }
        }
    }
}

/// Positions that no strides can tell are written down; kernels of a GPU have no way to read them.
fn written_positions(positions: Layout, views: &[View], buffers: &Buffers<'_>, sizes: &Sizes) -> Result<Operand> {
    if !buffers.device().is_cpu() {
        return Err(Error::shape("reshape", "positions of this layout have no strides"));
    }
    let values: Vec<i64> = (0..positions.numel() as i64).collect();
    view(&RawTensor::from_slice(&values, positions.shape())?, views, sizes).map(Operand::Tensor)
}

fn of_store(store: &Store, buffers: &mut Buffers<'_>, sizes: &Sizes) -> Result<Operand> {
    let tensor = buffers.get(store.to.buf)?;
    match &store.scatter {
        Some(scatter) => indexed(tensor, scatter.axis as usize, &store.to.views, sizes),
        None => {
            let layout = view_layout(*tensor.layout(), &store.to.views, sizes)?;
            let layout = layout.expect("a kernel writes to its buffer and not to a copy");
            Ok(Operand::Tensor(tensor.with_layout(layout)))
        }
    }
}

fn indexed(tensor: RawTensor, axis: usize, views: &[View], sizes: &Sizes) -> Result<Operand> {
    match view_layout(cut(tensor.layout(), axis), views, sizes)? {
        Some(layout) => Ok(Operand::Indexed { tensor, axis, layout }),
        None => Err(Error::shape("gather", "the layout of the indexed tensor cannot be walked")),
    }
}
