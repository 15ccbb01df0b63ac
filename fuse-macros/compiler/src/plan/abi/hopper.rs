//! Products on Hopper's tensor cores, of floats in three parts each, of halves and of fp8: where they pay, in which tiles, and how they are
//! launched.
//!
//! See the helpers `fuse_thirds`, `fuse_halves` and `fuse_float8`. Times are in ns, measured on an H200 over the shapes of `benches/products.rs`.

mod tiles;
mod times;

pub(super) use tiles::{HALVES, THIRDS, may_pay, side_by_side};
pub(super) use times::{LIBRARY, Times, taken};

use super::product::{lie, tiles};
use super::variant::{step, vector};
use super::{Access, BATCH_AXES, Geometry, Launch, Lie, PARTS, Step, Target, Variant, Walk};
use crate::plan::{Kernel, Matmul};
use crate::types::DType;
use tiles::FLOAT8;
use times::has_odd_rows;

/// The generation of devices whose instructions are used; later ones have others.
const CAPABILITY: u32 = 90;
/// Rows of a tile.
const ROWS: u32 = 128;
/// Inner positions are counted in ints, and a look ahead is not to overflow them.
const MOST_INNER: i64 = 1 << 30;
/// Packs of so many inner positions of floats are read as a whole.
const PACK: i64 = 8;
/// Shared memory in which the rows of a tile are turned.
const TURN: u32 = 8 * 16 * 40 * 4;

/// How long a product of halves by the library may take, in terms of what not launching the rest saves. Beyond that a template
/// gains a few percent for some numbers of rows alone, and compiling it keeps the first of them waiting.
const MOST_MULTIPLIED: i64 = 3;

fn exists(axes: &Geometry, target: &Target) -> bool {
    target.capability == CAPABILITY && axes.len() < MOST_INNER && tiles(axes, [ROWS, ROWS]) < i64::from(u32::MAX)
}

pub(super) fn axes_of(products: i64, [m, n, k]: [i64; 3]) -> Geometry {
    Geometry { outer: vec![1, 1, products, m, n], inner: vec![k], operands: vec![] }
}

/// Whether so many products of these extents m, n and k are computed in thirds rather than by the library or in plain floats.
pub fn pays_in_thirds(dtype: DType, products: i64, extents: [i64; 3], target: &Target) -> bool {
    let axes = axes_of(products, extents);
    dtype == DType::F32 && exists(&axes, target) && THIRDS.keep_busy(&axes, target)
}

/// Whether so many products of halves, with what follows them in the same kernel, are faster than by the library with what it leaves to
/// another one. Where rows of the product are odd, it is so slow that a product alone pays. The operands are those of
/// [`Variant::product`].
pub fn pays_in_halves(
    dtype: DType,
    products: i64,
    extents: [i64; 3],
    [left, right]: [&Access; 2],
    matmul: &Matmul,
    target: &Target,
) -> bool {
    let axes = axes_of(products, extents);
    let runs = [lie(left, BATCH_AXES + 1, BATCH_AXES), lie(right, BATCH_AXES, BATCH_AXES + 1)];
    let exists = dtype.is_half() && !runs.contains(&Lie::Apart) && exists(&axes, target);
    let is_odd = has_odd_rows(&axes);
    if !exists || !(matmul.lib.rest.is_some() || is_odd) || !HALVES.keep_busy(&axes, target) {
        return false;
    }
    let times = Times::of(&axes, [left, right], matmul, target);
    (is_odd || times.multiplied < MOST_MULTIPLIED * times.passed) && times.taken < times.by_library()
}

/// The launch of so many products with one left operand in such tiles.
pub(super) fn launch_several(products: u32, axes: &Geometry, walk: Walk, target: &Target) -> Option<Launch> {
    let axes = &side_by_side(products, axes);
    match walk {
        Walk::Thirds { columns, shares, .. } => Some(launch_thirds(axes, columns, shares, target)),
        Walk::Halves { columns, .. } => Some(launch(axes, columns, halves_shared(columns), target)),
        _ => None,
    }
}

/// One block a multiprocessor, which takes tiles in turn and may share the last ones with others.
pub(super) fn launch_thirds(axes: &Geometry, columns: u32, shares: bool, target: &Target) -> Launch {
    let shared = thirds_shared(columns);
    let whole = launch(axes, columns, shared, target);
    let Some((parts, counters)) = THIRDS.parts(columns, axes, target).filter(|_| shares) else {
        return Launch { scratch: vec![(PARTS, 0)], ..whole };
    };
    Launch { blocks: target.multiprocessors.into(), scratch: vec![(PARTS, parts)], counters, ..whole }
}

/// One block a multiprocessor, which takes tiles in turn.
pub(super) fn launch(axes: &Geometry, columns: u32, shared: u32, target: &Target) -> Launch {
    let blocks = tiles(axes, [ROWS, columns]).min(i64::from(target.multiprocessors)) as u64;
    Launch { blocks, threads: 384, shared, scratch: vec![], counters: 0 }
}

/// Four stages of 32 inner positions in three parts of two bytes, then barriers, and where tiles are turned.
pub(super) fn thirds_shared(columns: u32) -> u32 {
    columns * 768 + 3200 + TURN
}

/// Four or five stages of 64 inner positions, the first at a multiple of 1024, then barriers, and where tiles are turned.
pub(super) fn halves_shared(columns: u32) -> u32 {
    let stages = if columns > 192 { 4 } else { 5 };
    stages * (ROWS + columns) * 128 + 1024 + 256 + TURN
}

impl Variant {
    /// The variant of a product in plain tiles with each float in thirds, if it is one of floats and the device can do that.
    pub fn in_thirds(self, dtype: DType, axes: &Geometry, target: &Target) -> Variant {
        self.several_in_thirds(dtype, 1, axes, target)
    }

    /// The same of so many products with one left operand.
    pub(super) fn several_in_thirds(self, dtype: DType, products: u32, axes: &Geometry, target: &Target) -> Variant {
        let is_float = dtype == DType::F32 || dtype.is_generic() && bytes(axes) == DType::F32.bytes();
        let (left, right) = match self.walk {
            Walk::Product { left, right, .. } if is_float && exists(axes, target) => (left, right),
            _ => return self,
        };
        let whole = |lie: Lie| if axes.len() % PACK == 0 { lie } else { Lie::Apart };
        let Some((columns, _)) = THIRDS.best_of(products, axes, target) else { return self };
        let shares = THIRDS.is_shared(columns, &side_by_side(products, axes), target);
        Variant { walk: Walk::Thirds { columns, shares, left: whole(left), right: whole(right) }, ..self }
    }

    /// The variant of a product of halves or fp8 in plain tiles on these tensor cores, if the device has them and operands lie in
    /// runs, which of fp8 have to be along the inner axis.
    pub fn in_halves(self, epilogue: &Kernel, dtype: DType, axes: &Geometry, target: &Target) -> Variant {
        self.several_in_halves(epilogue, dtype, 1, axes, target)
    }

    /// The same of so many products with one left operand.
    pub(super) fn several_in_halves(
        self,
        epilogue: &Kernel,
        dtype: DType,
        products: u32,
        axes: &Geometry,
        target: &Target,
    ) -> Variant {
        let is_half = dtype.is_half() || dtype.is_generic() && bytes(axes) == DType::F16.bytes();
        let is_float8 = dtype == DType::F8E4M3;
        let (left, right) = match self.walk {
            Walk::Product { left, right, .. } if (is_half || is_float8) && exists(axes, target) => (left, right),
            _ => return self,
        };
        let are_runs = |lies: [Lie; 2]| lies.iter().all(|lie| *lie == Lie::AlongK || is_half && *lie == Lie::Across);
        if !are_runs([left, right]) {
            return self;
        }
        let operands = axes.operands[..axes.operands.len() - 2].to_vec();
        let after = Geometry { outer: axes.outer.clone(), inner: vec![], operands };
        let along = BATCH_AXES + 1;
        let steps: Vec<Step> = after.operands.iter().map(|operand| step(operand, along)).collect();
        let vec = vector(epilogue, &after, &steps, along);
        let steps = if vec == 1 { vec![Step::Apart; steps.len()] } else { steps };
        let tiles = if is_float8 { FLOAT8 } else { HALVES };
        let Some((columns, _)) = tiles.best_of(products, axes, target) else { return self };
        Variant { vec, steps, walk: Walk::Halves { columns, left, right }, ..self }
    }
}

/// Bytes of the elements of the matrices.
pub(super) fn bytes(axes: &Geometry) -> usize {
    axes.operands.last().map_or(0, |right| right.bytes)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, behind_product, matmul, product, scaled_product};
    use super::tiles::Tiles;
    use super::*;
    use crate::graph::Graph;
    use crate::op::{Attr, Build, Literal, Op};
    use crate::plan::Plan;

    fn best(tiles: &Tiles, products: i64, extents: [i64; 3]) -> u32 {
        tiles.best(&axes_of(products, extents), &H200).0
    }

    #[test]
    fn tiles_are_as_wide_as_leaves_the_fewest_multiprocessors_without_work() {
        assert_eq!(best(&THIRDS, 1, [4096, 3072, 768]), 192);
        assert_eq!(best(&THIRDS, 1, [4096, 768, 768]), 192);
        assert_eq!(best(&THIRDS, 1, [1024, 4096, 128]), 128);
        assert_eq!(best(&THIRDS, 1, [4096, 4096, 4096]), 128);
        assert_eq!(best(&THIRDS, 1, [8192, 4096, 4096]), 192);
        assert_eq!(best(&HALVES, 1, [4096, 3072, 768]), 256);
        assert_eq!(best(&HALVES, 1, [4096, 768, 768]), 192);
    }

    #[test]
    fn a_device_has_to_have_enough_to_do() {
        let pays = |products, extents| pays_in_thirds(DType::F32, products, extents, &H200);
        assert!(pays(1, [4096, 768, 768]) && pays(96, [512, 512, 64]));
        assert!(pays(1, [512, 768, 4096]) && pays(1, [768, 768, 4096]));
        assert!(!pays(1, [128, 768, 768]) && !pays(1, [512, 768, 256]));
        assert!(!pays_in_thirds(DType::F64, 1, [4096; 3], &H200));
        assert!(!pays_in_thirds(DType::F32, 1, [4096; 3], &Target { capability: 80, ..H200 }));
        assert!(!pays_in_thirds(DType::F32, 1, [4096; 3], &Target { capability: 100, ..H200 }));
    }

    #[test]
    fn halves_pay_where_what_follows_reads_much() {
        let matrix = || Access { strides: vec![0, 0, 0, 4096, 1], address: 0, bytes: 2, indexed: false };
        let negated = behind_product(|graph, product| vec![graph.push(Op::named("neg"), &[product], vec![])]);
        let pays = |extents, left: &Access| {
            pays_in_halves(DType::BF16, 1, extents, [left, &matrix()], matmul(&negated), &H200)
        };
        let rows = matrix();
        assert!(pays([4096, 3072, 768], &rows) && pays([4096, 768, 768], &rows) && pays([8192, 8192, 1024], &rows));
        assert!(!pays([8192; 3], &rows) && !pays([2048, 11008, 4096], &rows) && !pays([128, 768, 768], &rows));
        assert!((1..1024).all(|length| !pays([8 * length, 768, 3072], &rows)));
        assert!(!pays([4096, 3072, 768], &Access { address: 2, ..rows.clone() }));
        // Rows of 1000 elements begin in the middle of a sector.
        let odd = Access { strides: vec![0, 0, 0, 1000, 1], ..matrix() };
        let both = |extents| pays_in_halves(DType::BF16, 1, extents, [&odd, &odd], matmul(&negated), &H200);
        assert!(pays([4000, 3000, 1000], &rows) && !both([4000, 3000, 1000]));
    }

    #[test]
    fn halves_do_not_pay_where_much_is_computed_behind_them() {
        let matrix = || Access { strides: vec![0, 0, 0, 4096, 1], address: 0, bytes: 2, indexed: false };
        let pays = |plan: &Plan| {
            pays_in_halves(DType::BF16, 1, [4096, 3072, 768], [&matrix(), &matrix()], matmul(plan), &H200)
        };
        let gelu = |graph: &mut Graph, of| graph.push(Op::named("gelu"), &[of], vec![]);
        assert!(pays(&behind_product(|graph, product| vec![gelu(graph, product)])));
        assert!(!pays(&behind_product(|graph, product| {
            let rate = vec![Attr::Lit(Literal::Float(0.1)), Attr::DType(DType::F64)];
            let rate = graph.push(Op::named("constant"), &[], rate);
            let bent = gelu(graph, product);
            vec![product, graph.push(Op::named("dropout"), &[bent, rate], vec![Attr::Bool(true)])]
        })));
    }

    #[test]
    fn fp8_takes_operands_that_lie_along_the_inner_axis() {
        let plan = scaled_product();
        let matmul = matmul(&plan);
        let walk = |right: [i64; 2], target: &Target| {
            let access = |strides: [i64; 2], bytes: usize| Access {
                strides: [&[0; BATCH_AXES][..], &strides].concat(),
                address: 0,
                bytes,
                indexed: false,
            };
            let mut axes = axes_of(1, [4096; 3]);
            let after = matmul.epilogue.leaves.len() + matmul.epilogue.stores.len();
            axes.operands = vec![access([4096, 1], 4); after];
            axes.operands.extend([access([4096, 1], 1), access(right, 1)]);
            Variant::product(&matmul.epilogue, matmul.dtype, &axes, target).walk
        };
        let (left, right) = (Lie::AlongK, Lie::AlongK);
        assert_eq!(walk([1, 4096], &H200), Walk::Halves { columns: 256, left, right });
        assert_eq!(walk([4096, 1], &H200), Walk::Product { tile: 128, left, right: Lie::Across });
        // Rows that begin at odd addresses, and another device.
        assert_eq!(walk([1, 4100], &H200), Walk::Product { tile: 128, left, right: Lie::Apart });
        assert_eq!(walk([1, 4096], &Target { capability: 80, ..H200 }), Walk::Product { tile: 128, left, right });
    }

    #[test]
    fn a_product_alone_pays_where_its_rows_are_odd() {
        let matrix = Access { strides: vec![0, 0, 0, 768, 1], address: 0, bytes: 2, indexed: false };
        let columns = Access { strides: vec![0, 0, 0, 1, 768], ..matrix.clone() };
        let alone = product(DType::BF16);
        let pays = |n: i64| pays_in_halves(DType::BF16, 1, [1024, n, 768], [&matrix, &columns], matmul(&alone), &H200);
        assert!(pays(50257) && !pays(50264));
    }

    #[test]
    fn what_is_left_behind_whole_rounds_of_tiles_is_shared() {
        let parts = |extents| THIRDS.parts(192, &axes_of(1, extents), &H200);
        let tile = 128 * 192 * 4;
        // 24 tiles for 132 blocks: each has shares of 6 blocks, or of 7 that begin within it.
        assert_eq!(parts([768, 768, 4096]), Some((24 * 7 * tile, 24 * 8)));
        assert_eq!(parts([3072, 768, 4096]), Some((96 * 3 * tile, 96 * 8)));
        // 704 tiles are 5 rounds and 44 more: that is no fifth. Nothing is left, and little is not shared.
        assert_eq!(parts([4096; 3]), None);
        assert_eq!(parts([128 * 132, 192, 4096]), None);
        assert_eq!(parts([768, 768, 128]), None);
        let launch = launch_thirds(&axes_of(1, [768, 768, 4096]), 192, true, &H200);
        assert_eq!((launch.blocks, launch.counters), (132, 192));
    }

    #[test]
    fn a_block_fits_a_multiprocessor() {
        for columns in THIRDS.columns() {
            assert!(thirds_shared(columns) as usize <= H200.shared_per_block);
        }
        for columns in HALVES.columns().chain(FLOAT8.columns()) {
            assert!(halves_shared(columns) as usize <= H200.shared_per_block);
        }
        assert_eq!(launch(&axes_of(1, [4096, 4096, 64]), 192, 0, &H200).blocks, 132);
        assert_eq!(launch(&axes_of(2, [100, 300, 64]), 192, 0, &H200).blocks, 4);
    }
}
