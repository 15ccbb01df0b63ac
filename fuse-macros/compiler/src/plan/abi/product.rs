//! The variant of a matmul template: how large its tiles are, and how the operands lie.

use super::variant::{step, vector};
use super::{Access, BATCH_AXES, Geometry, Launch, Step, Variant, Walk, ceil_div};
use crate::plan::Kernel;
use crate::types::DType;

/// Rows and columns of the product that a block computes, where there are enough blocks.
const LARGE_TILE: u32 = 128;
/// The same for small products, and for wide elements, of which a large tile would not fit.
const SMALL_TILE: u32 = 64;
/// With fewer large tiles some multiprocessors of a GPU would have none.
const ENOUGH_TILES: i64 = 132;
/// Bytes of the accesses that fill tiles.
const ACCESS: u64 = 16;

/// How an operand of a product lies in memory, as its tiles are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lie {
    /// Anyhow: elements are read one by one.
    Apart = 0,
    /// In aligned runs along the inner axis.
    AlongK = 1,
    /// In aligned runs along the axis it shares with the product.
    Across = 2,
}

impl Variant {
    /// The variant of a matmul template. The outer axes are the batch axes, m and n, the inner one is k; the operands are
    /// the epilogue's, then the two matrices, with strides over the batch axes and their own two.
    pub fn product(epilogue: &Kernel, dtype: DType, axes: &Geometry) -> Variant {
        let [operands @ .., left, right] = &axes.operands[..] else { unreachable!("a product has two operands") };
        let after = Geometry { outer: axes.outer.clone(), inner: vec![], operands: operands.to_vec() };
        let along = BATCH_AXES + 1;
        let steps: Vec<Step> = operands.iter().map(|operand| step(operand, along)).collect();
        let vec = vector(epilogue, &after, &steps, along).min(neighbours(dtype));
        // Where accesses are single elements, one text does for all steps.
        let steps = if vec == 1 { vec![Step::Apart; operands.len()] } else { steps };
        let (left, right) = (lie(left, BATCH_AXES + 1, BATCH_AXES), lie(right, BATCH_AXES, BATCH_AXES + 1));
        let walk = Walk::Product { tile: tile(dtype, axes), left, right };
        Variant { outer: axes.outer.len(), inner: 0, vec, steps, wide: after.is_wide(), walk }
    }

    /// The grid of a matmul template, for the axes of [`Variant::product`].
    pub fn launch_product(&self, axes: &Geometry) -> Launch {
        let Walk::Product { tile, .. } = self.walk else { unreachable!("only products are launched as products") };
        Launch { blocks: tiles(axes, tile) as u64, threads: 2 * tile, shared: 0, scratch: vec![], counters: 0 }
    }
}

/// Neighbouring columns that a thread holds of a row of the product: tensor cores, which multiply halves, leave it two.
fn neighbours(dtype: DType) -> u32 {
    if dtype.is_half() { 2 } else { 4 }
}

fn tile(dtype: DType, axes: &Geometry) -> u32 {
    let smallest = axes.outer[BATCH_AXES..].iter().min();
    let fits = dtype.bytes() <= 4 && smallest.is_some_and(|&extent| extent > i64::from(SMALL_TILE));
    if fits && tiles(axes, LARGE_TILE) >= ENOUGH_TILES { LARGE_TILE } else { SMALL_TILE }
}

fn tiles(axes: &Geometry, tile: u32) -> i64 {
    let (batch, matrix) = axes.outer.split_at(BATCH_AXES);
    batch.iter().chain(&matrix.iter().map(|&extent| ceil_div(extent, i64::from(tile))).collect::<Vec<_>>()).product()
}

/// How a matrix lies whose inner axis is `k` and whose other one is `x`.
fn lie(matrix: &Access, k: usize, x: usize) -> Lie {
    let elements = (ACCESS / matrix.bytes.max(1) as u64) as u32;
    let runs = |along: usize| matrix.strides[along] == 1 && matrix.aligned(elements, along);
    match () {
        () if runs(k) => Lie::AlongK,
        () if runs(x) => Lie::Across,
        () => Lie::Apart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lie of a matrix with strides over k and x that starts at an address.
    fn lie_of(k: i64, x: i64, address: u64, bytes: usize) -> Lie {
        let strides = vec![0, 0, 640, k, x];
        lie(&Access { strides, address, bytes, indexed: false }, BATCH_AXES, BATCH_AXES + 1)
    }

    #[test]
    fn runs_are_read_in_whole_accesses_only_where_every_one_is_aligned() {
        assert_eq!(lie_of(1, 64, 0, 4), Lie::AlongK);
        assert_eq!(lie_of(64, 1, 0, 4), Lie::Across);
        assert_eq!(lie_of(64, 2, 0, 4), Lie::Apart);
        assert_eq!(lie_of(1, 66, 0, 4), Lie::Apart);
        assert_eq!(lie_of(1, 66, 0, 8), Lie::AlongK);
        assert_eq!(lie_of(1, 64, 8, 4), Lie::Apart);
        assert_eq!(lie_of(1, -64, 0, 2), Lie::AlongK);
    }

    #[test]
    fn tiles_are_large_where_that_leaves_enough_of_them() {
        let axes = |batch: i64, m: i64, n: i64| Geometry { outer: vec![1, 1, batch, m, n], ..Geometry::default() };
        assert_eq!(tile(DType::F32, &axes(1, 4096, 4096)), 128);
        assert_eq!(tile(DType::F64, &axes(1, 4096, 4096)), 64);
        assert_eq!(tile(DType::BF16, &axes(1, 1024, 1024)), 64);
        assert_eq!(tile(DType::BF16, &axes(96, 512, 512)), 128);
        assert_eq!(tile(DType::BF16, &axes(96, 512, 64)), 64);
    }
}
