//! The variant of a matmul template: how large its tiles or strips are, and how the operands lie.

use super::apart::Apart;
use super::variant::{step, vector};
use super::{Access, BATCH_AXES, Geometry, Launch, PARTS, Step, Target, Variant, Walk, ceil_div, hopper};
use crate::plan::Kernel;
use crate::types::DType;
use serde::{Deserialize, Serialize};

/// Rows and columns of the product that a block computes, where there are enough blocks.
pub(super) const LARGE_TILE: u32 = 128;
/// The same for small products, and for wide elements, of which a large tile would not fit.
pub(super) const SMALL_TILE: u32 = 64;
/// With fewer large tiles some multiprocessors of a GPU would have none.
const ENOUGH_TILES: i64 = 132;
/// Bytes of the accesses that fill tiles.
const ACCESS: u64 = 16;

/// With at most so many rows a product is as fast as its right operand is read.
pub(super) const FEW_ROWS: u32 = 16;
/// Strips that keep a GPU reading: with fewer of them several blocks share one.
const ENOUGH_STRIPS: i64 = 264;
/// Inner positions for which a block of its own pays.
const RANGE: i64 = 512;
/// Shared memory of a block that computes a strip: its rows on their way in, then the sums of its warps.
const STRIP_SHARED: u32 = 32 << 10;

/// Whether a product of matrices with so many rows and elements of so many bytes is computed in strips. Of halves it is not:
/// the library's tensor cores are faster.
pub fn has_few_rows(m: i64, bytes: usize) -> bool {
    m <= i64::from(FEW_ROWS) && bytes >= 4
}

/// The same of halves, whose tensor cores the library has: for more rows plain arithmetic is slower than memory.
pub(super) const SLIM_ROWS: u32 = 4;
/// Strips of halves as wide as leave enough of them for every multiprocessor, and no more than may start beside another kernel.
const SLIM_COLUMNS: [u32; 4] = [16, 8, 4, 2];
const SLIM_BLOCKS: i64 = 128;
/// Inner positions for which a block of halves pays, if operands lie in runs along that axis, and across.
const SLIM_RANGES: [i64; 2] = [8192, 256];
/// Inner positions with which most threads of a warp have something to read.
const SLIM_INNER: i64 = 192;

/// How an operand of a product lies in memory, as its tiles are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    pub fn product(epilogue: &Kernel, dtype: DType, axes: &Geometry, target: &Target) -> Variant {
        let plain = Variant::plain_product(epilogue, dtype, axes);
        let plain = if hopper::THIRDS.keep_busy(axes, target) { plain.in_thirds(dtype, axes, target) } else { plain };
        plain.in_halves(epilogue, dtype, axes, target)
    }

    /// The same for a device without such tensor cores.
    pub(super) fn plain_product(epilogue: &Kernel, dtype: DType, axes: &Geometry) -> Variant {
        let [operands @ .., left, right] = &axes.operands[..] else { unreachable!("a product has two operands") };
        let after = Geometry { outer: axes.outer.clone(), inner: vec![], operands: operands.to_vec() };
        let along = BATCH_AXES + 1;
        let steps: Vec<Step> = operands.iter().map(|operand| step(operand, along)).collect();
        let vec = vector(epilogue, &after, &steps, along).min(neighbours(dtype));
        // Where accesses are single elements, one text does for all steps.
        let steps = if vec == 1 { vec![Step::Apart; operands.len()] } else { steps };
        let m = axes.outer[BATCH_AXES];
        let rows = (m.max(1) as u32).next_power_of_two();
        let walk = if has_few_rows(m, left.bytes) {
            Walk::Strips { rows, right: lie_of_strips(right, axes) }
        } else if let Some((columns, right)) = slim(dtype, axes) {
            let left = if lie(left, BATCH_AXES + 1, BATCH_AXES) == Lie::AlongK { Lie::AlongK } else { Lie::Apart };
            Walk::Slim { rows, columns, left, right }
        } else {
            let (left, right) = (lie(left, BATCH_AXES + 1, BATCH_AXES), lie(right, BATCH_AXES, BATCH_AXES + 1));
            Walk::Product { tile: tile(dtype, axes), left, right }
        };
        Variant { outer: axes.outer.len(), inner: 0, vec, steps, wide: after.is_wide(), walk }
    }

    /// The variant of a kernel of several products with one left operand, if that is faster than a kernel for each, whose right
    /// operands lie alike. The axes are those of [`Variant::product`].
    pub fn products(
        program: &Kernel,
        dtype: DType,
        apart: &Apart<'_>,
        axes: &Geometry,
        target: &Target,
    ) -> Option<Variant> {
        let together = Variant::products_anyway(program, dtype, apart.count(), axes, target)?;
        apart.is_slower_than(together.walk, program, axes, target).then_some(together)
    }

    /// The same whether it is faster or not.
    pub fn products_anyway(
        program: &Kernel,
        dtype: DType,
        count: u32,
        axes: &Geometry,
        target: &Target,
    ) -> Option<Variant> {
        let plain = Variant::plain_product(program, dtype, axes);
        let variant = plain.several_in_thirds(dtype, count, axes, target);
        let variant = variant.several_in_halves(program, dtype, count, axes, target);
        match variant.walk {
            Walk::Product { .. } | Walk::Strips { right: Lie::Apart, .. } => None,
            _ => Some(variant),
        }
    }

    /// The grid of a matmul template for so many products, for the axes of [`Variant::product`].
    pub fn launch_product(&self, products: u32, axes: &Geometry, target: &Target) -> Launch {
        if let Some(launch) = hopper::launch_several(products, axes, self.walk, target) {
            return launch;
        }
        match self.walk {
            Walk::Product { tile, .. } => {
                let blocks = tiles(axes, [tile; 2]) as u64;
                Launch { blocks, threads: 2 * tile, shared: 0, scratch: vec![], counters: 0 }
            }
            Walk::Strips { rows, .. } => {
                let columns = 8 * neighbours_of_strips(hopper::bytes(axes));
                launch_strips(products, axes, [rows, columns], (ENOUGH_STRIPS, RANGE))
            }
            Walk::Slim { rows, columns, right, .. } => {
                let range = SLIM_RANGES[usize::from(right == Lie::Across)];
                let launch = launch_strips(products, axes, [rows, columns], (SLIM_BLOCKS, range));
                Launch { shared: if right == Lie::Across { STRIP_SHARED } else { 0 }, ..launch }
            }
            _ => unreachable!("only products are launched as products"),
        }
    }
}

/// Blocks of a strip have inner positions each, at least so many where there are enough blocks, and each those of one product.
fn launch_strips(products: u32, axes: &Geometry, strip: [u32; 2], (enough, range): (i64, i64)) -> Launch {
    let strips = tiles(axes, strip);
    let products = i64::from(products);
    let parts = (enough / (strips * products).max(1)).clamp(1, ceil_div(axes.len(), range).max(1)) * products;
    let sums = strips * parts * i64::from(strip[0] * strip[1]);
    // Sums of halves are floats.
    let scratch = if parts > 1 { sums as usize * hopper::bytes(axes).max(4) } else { 0 };
    let (blocks, counters) = ((strips * parts) as u64, if parts > 1 { strips as usize } else { 0 });
    Launch { blocks, threads: 256, shared: STRIP_SHARED, scratch: vec![(PARTS, scratch)], counters }
}

/// Elements of an access of a strip.
fn neighbours_of_strips(bytes: usize) -> u32 {
    (ACCESS / bytes.max(1) as u64) as u32
}

/// How the right operand of strips lies: of an access, all elements are inside or none.
fn lie_of_strips(right: &Access, axes: &Geometry) -> Lie {
    let whole = |extent: i64| extent % i64::from(neighbours_of_strips(right.bytes)) == 0;
    match lie(right, BATCH_AXES, BATCH_AXES + 1) {
        Lie::AlongK if whole(axes.len()) => Lie::AlongK,
        Lie::Across if whole(axes.outer[BATCH_AXES + 1]) => Lie::Across,
        _ => Lie::Apart,
    }
}

/// The columns of strips of a product of halves, and how its right operand lies, if it is one of few rows that reads whole accesses.
fn slim(dtype: DType, axes: &Geometry) -> Option<(u32, Lie)> {
    let right = axes.operands.last()?;
    let is_half = dtype.is_half() || dtype.is_generic() && right.bytes == DType::F16.bytes();
    if !is_half || axes.outer[BATCH_AXES] > i64::from(SLIM_ROWS) {
        return None;
    }
    let along =
        || *SLIM_COLUMNS.iter().find(|columns| tiles(axes, [SLIM_ROWS, **columns]) >= SLIM_BLOCKS).unwrap_or(&2);
    match lie_of_strips(right, axes) {
        Lie::AlongK => Some((along(), Lie::AlongK)),
        Lie::Across => Some((8 * neighbours_of_strips(right.bytes), Lie::Across)),
        Lie::Apart => None,
    }
}

/// Whether products of few rows of halves are faster in strips, with what follows them, than by the library with what it leaves to
/// another kernel. The operands are those of [`Variant::product`].
pub fn pays_in_slim(
    dtype: DType,
    products: i64,
    extents: [i64; 3],
    [left, right]: [&Access; 2],
    target: &Target,
) -> bool {
    let axes = Geometry { operands: vec![left.clone(), right.clone()], ..hopper::axes_of(products, extents) };
    let found = slim(dtype, &axes).filter(|_| target.capability > 0);
    found.is_some_and(|(_, lie)| lie == Lie::Across || axes.len() >= SLIM_INNER)
}

/// Neighbouring columns that a thread holds of a row of the product: tensor cores, which multiply halves and fp8, leave it two.
fn neighbours(dtype: DType) -> u32 {
    if dtype.is_narrow() { 2 } else { 4 }
}

fn tile(dtype: DType, axes: &Geometry) -> u32 {
    let smallest = axes.outer[BATCH_AXES..].iter().min();
    let fits = dtype.bytes() <= 4 && smallest.is_some_and(|&extent| extent > i64::from(SMALL_TILE));
    if fits && tiles(axes, [LARGE_TILE; 2]) >= ENOUGH_TILES { LARGE_TILE } else { SMALL_TILE }
}

/// How many tiles of so many rows and columns there are.
pub(super) fn tiles(axes: &Geometry, tile: [u32; 2]) -> i64 {
    let (batch, matrix) = axes.outer.split_at(BATCH_AXES);
    let along = matrix.iter().zip(tile).map(|(&extent, tile)| ceil_div(extent, i64::from(tile)));
    batch.iter().product::<i64>() * along.product::<i64>()
}

/// How a matrix lies whose inner axis is `k` and whose other one is `x`.
pub(super) fn lie(matrix: &Access, k: usize, x: usize) -> Lie {
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
    fn a_strip_is_shared_where_there_are_few() {
        let weight = |n: i64| Access { strides: vec![0, 0, 0, n, 1], address: 0, bytes: 4, indexed: false };
        let axes = |n: i64, k: i64| Geometry { outer: vec![1, 1, 1, 1, n], inner: vec![k], operands: vec![weight(n)] };
        let launch = |n: i64, k: i64| launch_strips(1, &axes(n, k), [1, 32], (ENOUGH_STRIPS, RANGE));
        assert_eq!((launch(256, 256).blocks, launch(256, 256).counters), (8, 0));
        assert_eq!((launch(4096, 4096).blocks, launch(4096, 4096).counters), (256, 128));
        assert_eq!(launch(4096, 4096).scratch, [(PARTS, 256 * 32 * 4)]);
        assert_eq!(launch(100, 0).blocks, 4);
        // Three products: each strip is shared by three blocks, and more where there are few.
        let several = |n: i64, k: i64| launch_strips(3, &axes(n, k), [1, 32], (ENOUGH_STRIPS, RANGE));
        assert_eq!((several(256, 256).blocks, several(256, 256).counters), (24, 8));
        assert_eq!((several(4096, 4096).blocks, several(1024, 4096).blocks), (384, 192));
    }

    #[test]
    fn few_rows_of_halves_have_strips_for_every_multiprocessor() {
        let weight = |k: i64, n: i64| Access { strides: vec![0, 0, 0, k, n], address: 0, bytes: 2, indexed: false };
        let of = |m: i64, n: i64, k: i64, right: Access| {
            slim(DType::BF16, &Geometry { outer: vec![1, 1, 1, m, n], inner: vec![k], operands: vec![right] })
        };
        for (n, columns) in [(32000, 16), (2304, 16), (768, 4), (1024, 8), (40, 2)] {
            assert_eq!(of(1, n, 768, weight(1, 768)), Some((columns, Lie::AlongK)));
        }
        assert_eq!(of(4, 768, 3072, weight(768, 1)), Some((64, Lie::Across)));
        // Accesses that end in the middle, operands that lie apart, and more rows are for the library.
        assert_eq!(of(1, 768, 769, weight(1, 776)), None);
        assert_eq!(of(1, 770, 768, weight(770, 1)), None);
        assert_eq!(of(5, 768, 768, weight(1, 768)), None);
        let launch = |n: i64, k: i64| {
            let axes = Geometry { outer: vec![1, 1, 1, 1, n], inner: vec![k], operands: vec![weight(1, k)] };
            launch_strips(1, &axes, [1, 2], (SLIM_BLOCKS, SLIM_RANGES[0]))
        };
        assert_eq!((launch(256, 4096).blocks, launch(256, 4096).counters), (128, 0));
        // Sums that blocks exchange are floats.
        assert_eq!((launch(8, 65536).blocks, launch(8, 65536).scratch), (32, vec![(PARTS, 32 * 2 * 4)]));
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
