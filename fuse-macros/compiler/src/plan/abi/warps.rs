//! Attention by products of single warps: which calls it is for, how large its tiles are, and how many blocks share the keys of one.

use super::attention::{GROUP_THREADS, Part, Tiling, heads, padded};
use super::{BATCH_AXES, Geometry, Launch, PARTS, Target, Walk, ceil_div};
use crate::plan::Fused;

/// Queries of a tile whose warps share the keys.
const FEW_ROWS: u32 = 16;
/// Pieces of the ring, if there is room: with few queries all that counts is how much is on its way, with many they keep a warp from registers.
const PIECES_OF_FEW: u32 = 4;
const PIECES_OF_MANY: u32 = 2;
/// Rows of a tile of the way back, 16 a warp, and of what goes past it at a time, the first of which there is room for.
const ROWS_BACK: u32 = 64;
const KEYS_BACK: [u32; 3] = [64, 32, 16];
/// Columns of the gradients of keys and values together that a warp has registers for.
const COLUMNS_BACK: u32 = 256;
/// Blocks of a multiprocessor, which hide each other's waiting.
const BLOCKS: u32 = 2;
/// Shared memory of a block that is not the kernel's, in bytes.
const ASIDE: u32 = 1024;
/// Nanoseconds until a block has what it begins with.
const START: i64 = 1500;
/// The most blocks that share the keys of a tile of few queries, and of many.
const MOST_OF_FEW: i64 = 64;
const MOST_OF_MANY: i64 = 32;

/// A kernel of attention by warps: the sizes of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Warps {
    /// Which of the kernels.
    pub part: Part,
    /// Elements of a row of queries and keys.
    pub depth: u32,
    /// Elements of a row of values.
    pub columns: u32,
    /// Queries of a tile, or keys whose gradients it is.
    pub rows: u32,
    /// Keys of a block, or queries.
    pub keys: u32,
    /// Pieces of the ring.
    pub pieces: u32,
    /// Whether a tile has as many keys as come before it.
    pub is_causal: bool,
    /// Whether there is a way back.
    pub keeps: bool,
}

impl Warps {
    /// The sizes for a call.
    pub fn choose(part: Part, fused: &Fused, axes: &Geometry, target: &Target) -> Self {
        let [depth, columns] = [axes.inner[0], axes.inner[1]].map(padded);
        let (is_causal, keeps) = (fused.is_causal, fused.back.is_some());
        let any = Warps { part, depth, columns, rows: 0, keys: 0, pieces: PIECES_OF_MANY, is_causal, keeps };
        match part {
            Part::Forward => any.forward(axes, target),
            _ => any.back(target),
        }
    }

    fn forward(self, axes: &Geometry, target: &Target) -> Self {
        let rows: &[u32] = match axes.outer[BATCH_AXES] {
            // Rows of one tile may be of several heads.
            _ if has_few_rows(axes) && !self.keeps => &[FEW_ROWS],
            ..=64 => &[64],
            _ if self.widest() > 128 => &[64],
            _ => &[128, 64],
        };
        let all = rows.iter().map(|rows| self.of_rows(*rows, target));
        all.min_by_key(|warps| warps.tiling_and_time(axes, target).1).expect("there is one")
    }

    fn of_rows(self, rows: u32, target: &Target) -> Self {
        let widest = self.widest();
        let keys = if !has_few(rows) && widest > 128 { 32 } else { 64 };
        let most = if has_few(rows) { PIECES_OF_FEW } else { PIECES_OF_MANY };
        let pieces = room(target).saturating_sub(2 * rows * self.depth) / (2 * keys * widest);
        Warps { rows, keys, pieces: pieces.clamp(2, most), ..self }
    }

    /// Blocks of what goes past are as large as a multiprocessor has room for [BLOCKS] times, or once.
    fn back(self, target: &Target) -> Self {
        // Two warps have the same keys and each half the columns, where one has no registers for them.
        let is_halved = self.part == Part::Keys && self.depth + self.columns > COLUMNS_BACK;
        let rows = if is_halved { ROWS_BACK / 2 } else { ROWS_BACK };
        let of = |keys: u32| Warps { rows, keys, ..self };
        let fitting = |room: u32| KEYS_BACK.map(of).into_iter().find(|warps| warps.shared() <= room);
        let once = || fitting(target.shared_per_block as u32);
        fitting(room(target)).or_else(once).expect("there is room from compute capability 8.0 on")
    }

    fn widest(&self) -> u32 {
        self.depth.max(self.columns)
    }

    /// Those of a variant.
    pub fn of(walk: Walk) -> Option<Self> {
        let Walk::Warps { part, depth, columns, rows, keys, pieces, is_causal, keeps } = walk else { return None };
        Some(Warps { part, depth, columns, rows, keys, pieces, is_causal, keeps })
    }

    /// The variant's walk.
    pub fn walk(self) -> Walk {
        let Warps { part, depth, columns, rows, keys, pieces, is_causal, keeps } = self;
        Walk::Warps { part, depth, columns, rows, keys, pieces, is_causal, keeps }
    }

    /// Bytes of shared memory.
    fn shared(&self) -> u32 {
        match self.part {
            Part::Forward => self.shared_forward(),
            _ => self.shared_back(),
        }
    }

    /// The rows of the tile, and blocks of what goes past; with queries two numbers of each, and wide ones of a tile go to registers and
    /// leave their place to blocks of keys.
    fn shared_back(&self) -> u32 {
        let (own, width) = (2 * self.rows * (self.depth + self.columns), self.depth + self.columns);
        let numbers = if self.part == Part::Keys { 8 } else { 0 };
        let ring = self.pieces * self.keys * (2 * width + numbers);
        let goes_over = self.part == Part::Queries && width > 128 && 2 * self.depth + width <= 512;
        128 + if goes_over { own.max(ring) } else { own + ring }
    }

    /// Queries and the ring, in whose place there is later what was added up, with what each row sums to in front of it.
    fn shared_forward(&self) -> u32 {
        let walking = 2 * (self.rows * self.depth + self.pieces * self.keys * self.depth.max(self.columns));
        let sharers = if self.is_few() { 4 } else { 1 };
        128 + walking.max(sharers * self.rows * (8 + 4 * (self.columns + 8)))
    }

    /// Tiles of all heads, and how the grid shares their keys.
    pub fn launch(&self, axes: &Geometry, target: &Target) -> Launch {
        let Tiling { tiles, heads, splits, .. } = self.tiling(axes, target);
        let blocks = (tiles * heads * splits) as usize;
        let (scratch, counters) = match splits {
            1 => (vec![], 0),
            _ => {
                let part = (self.rows * (self.columns + 2)) as usize * size_of::<f32>();
                (vec![(PARTS, blocks * part)], (tiles * heads) as usize)
            }
        };
        Launch { blocks: blocks as u64, threads: GROUP_THREADS, shared: self.shared(), scratch, counters }
    }

    /// How queries and keys are shared among blocks.
    pub fn tiling(&self, axes: &Geometry, target: &Target) -> Tiling {
        self.tiling_and_time(axes, target).0
    }

    /// The same with as many blocks for the keys of a tile as let all be done soonest, and when that will be.
    fn tiling_and_time(&self, axes: &Geometry, target: &Target) -> (Tiling, i64) {
        let folded = if self.is_few() { folded(axes) } else { 1 };
        let [m, n] = self.extents(axes);
        let (heads, rows) = (heads(axes) / folded, m * folded);
        let tiles = ceil_div(rows, self.rows.into());
        let blocks = ceil_div(n, self.keys.into());
        let room = i64::from(self.shared() / (8 * self.rows)) - 1;
        let most = if self.keeps { 1 } else { self.most_splits().min(room).min(blocks) };
        let slots = i64::from(target.multiprocessors * BLOCKS);
        let time = |splits: i64| {
            let waves = ceil_div(tiles * heads * splits, slots);
            let block = self.block_time((tiles * heads * splits).min(slots), target);
            let joined = if splits > 1 { self.join_time(splits, rows.min(self.rows.into())) } else { 0 };
            waves * (START + ceil_div(blocks, splits) * block) + joined
        };
        let (time, splits) = (1..=most.max(1)).map(|splits| (time(splits), splits)).min().expect("1 is one of them");
        (Tiling { tiles, heads, splits, folded, whole: tiles }, time)
    }

    /// What a block of keys takes while so many blocks of threads run, in nanoseconds. Measured on an H200; elsewhere both this and what
    /// it is weighed against are longer.
    fn block_time(&self, active: i64, target: &Target) -> i64 {
        let width = i64::from(self.depth + self.columns);
        if self.is_few() {
            // Few queries wait for their keys: each for its own, or all for memory.
            let bytes = i64::from(self.keys) * width * 2;
            return (350 + bytes * 12 / 1000).max(active * bytes / (32 * i64::from(target.multiprocessors)));
        }
        // Twice the queries read the same keys, and take less than twice as long.
        let quarters = if self.rows > 64 { 7 } else { 4 };
        let alone = i64::from(self.keys) * (440 + width * 860 / 256) * quarters / (64 * 4);
        let others = (active - i64::from(target.multiprocessors)).max(0);
        alone + alone * others * 55 / (100 * i64::from(target.multiprocessors))
    }

    /// What joining so many shares of rows takes the last block of a tile: trips to memory, each for some of them.
    fn join_time(&self, splits: i64, rows: i64) -> i64 {
        let share = if self.is_few() { 4 } else { 1 };
        let items = rows * i64::from(self.columns) / 8;
        3000 + 40 * splits + 900 * ceil_div(items * share, GROUP_THREADS.into()) * ceil_div(splits, 8 * share)
    }

    /// How many rows there are, and how many go past them.
    fn extents(&self, axes: &Geometry) -> [i64; 2] {
        let [m, n] = [BATCH_AXES, BATCH_AXES + 1].map(|axis| axes.outer[axis]);
        if self.part == Part::Keys { [n, m] } else { [m, n] }
    }

    fn most_splits(&self) -> i64 {
        if self.is_few() { MOST_OF_FEW } else { MOST_OF_MANY }
    }

    fn is_few(&self) -> bool {
        has_few(self.rows)
    }
}

/// Shared memory of one of the [BLOCKS] of a multiprocessor.
fn room(target: &Target) -> u32 {
    target.shared_per_multiprocessor as u32 / BLOCKS - ASIDE
}

/// Whether tiles of so many queries are those whose warps share the keys.
pub(super) fn has_few(rows: u32) -> bool {
    rows == FEW_ROWS
}

/// Whether the queries of a head are rows of one small tile.
pub(super) fn has_few_rows(axes: &Geometry) -> bool {
    axes.outer[BATCH_AXES] <= FEW_ROWS.into()
}

/// Heads of the last batch axis that read the same keys and values, 1 if they do not.
fn folded(axes: &Geometry) -> i64 {
    let [.., _, keys, values, _] = &axes.operands[..] else { return 1 };
    let same = [keys, values].iter().all(|matrix| matrix.strides[BATCH_AXES - 1] == 0);
    if same { axes.outer[BATCH_AXES - 1].max(1) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::super::Access;
    use super::super::samples::{H200, attention, attention_and_back};
    use super::*;

    const A100: Target = Target {
        capability: 80,
        multiprocessors: 108,
        shared_per_block: 163 << 10,
        shared_per_multiprocessor: 164 << 10,
    };
    const ADA: Target = Target {
        capability: 89,
        multiprocessors: 128,
        shared_per_block: 99 << 10,
        shared_per_multiprocessor: 100 << 10,
    };

    /// So many heads of halves, in groups that read the same keys.
    fn heads_of([batch, groups, heads]: [i64; 3], [m, n]: [i64; 2], width: i64) -> Geometry {
        let strides = |rows: i64, heads: i64| match heads {
            1 => vec![groups * rows * width, rows * width, 0, width],
            _ => vec![groups * heads * rows * width, heads * rows * width, rows * width, width],
        };
        let matrix = |rows, heads| Access { strides: strides(rows, heads), address: 0, bytes: 2, indexed: false };
        let operands = vec![matrix(m, heads), matrix(n, 1), matrix(n, 1), matrix(m, heads)];
        Geometry { outer: vec![batch, groups, heads, m, n], inner: vec![width, width], operands }
    }

    fn forward(axes: &Geometry, target: &Target) -> Warps {
        Warps::choose(Part::Forward, &attention().fused[0], axes, target)
    }

    fn tiling(axes: &Geometry, target: &Target) -> (u32, Tiling) {
        let warps = forward(axes, target);
        (warps.rows, warps.tiling(axes, target))
    }

    #[test]
    fn every_size_of_heads_fits_the_shared_memory_of_a_block() {
        for target in [H200, A100, ADA] {
            for width in (8..=256).step_by(8) {
                for m in [1, 17, 65, 4096] {
                    let axes = heads_of([1, 2, 2], [m, 5000], width);
                    let launch = forward(&axes, &target).launch(&axes, &target);
                    assert!(launch.shared as usize <= target.shared_per_block, "{width}: {}", launch.shared);
                }
            }
        }
    }

    #[test]
    fn a_way_back_has_two_blocks_a_multiprocessor_where_there_is_room() {
        let plan = attention_and_back();
        let sizes = |part, target: &Target, widths: [i64; 2]| {
            let axes = Geometry { inner: widths.to_vec(), ..heads_of([1, 2, 2], [300, 500], 256) };
            let warps = Warps::choose(part, &plan.fused[0], &axes, target);
            let launch = warps.launch(&axes, target);
            assert!(launch.shared as usize <= target.shared_per_block, "{part:?} {widths:?}: {}", launch.shared);
            let rows = if part == Part::Keys { 500 } else { 300 };
            assert_eq!(launch.blocks, 4 * ceil_div(rows, warps.rows.into()) as u64);
            (warps.rows, warps.keys, (launch.shared as usize + 1024) * 2 <= target.shared_per_multiprocessor)
        };
        let widths = (32..=256).step_by(32).flat_map(|depth| (8..=256).step_by(8).map(move |columns| [depth, columns]));
        for (widths, target) in widths.flat_map(|widths| [H200, A100, ADA].map(|target| (widths, target))) {
            for part in Part::BACK {
                sizes(part, &target, widths);
            }
        }
        let of = |width| [H200, A100, ADA].map(|target| Part::BACK.map(|part| sizes(part, &target, [width; 2])));
        assert_eq!(of(64), [[(64, 64, true); 2], [(64, 64, true); 2], [(64, 64, true), (64, 32, true)]]);
        assert_eq!(of(128), [[(64, 64, true); 2], [(64, 64, true), (64, 32, true)], [(64, 32, true), (64, 16, true)]]);
        assert_eq!(
            of(256),
            [[(64, 16, true), (32, 32, true)], [(64, 32, false), (32, 16, true)], [(64, 16, false), (32, 32, false)]]
        );
    }

    #[test]
    fn a_tile_of_which_logarithms_are_kept_is_a_blocks_own() {
        let plan = attention_and_back();
        for m in [1, 16, 64, 4096] {
            let axes = heads_of([1, 2, 4], [m, 8192], 64);
            let warps = Warps::choose(Part::Forward, &plan.fused[0], &axes, &A100);
            let Tiling { splits, folded, .. } = warps.tiling(&axes, &A100);
            assert_eq!((warps.is_few(), splits, folded), (false, 1, 1));
        }
    }

    #[test]
    fn keys_are_shared_where_tiles_leave_multiprocessors_without_work() {
        let splits = |batch, m, n| tiling(&heads_of([batch, 32, 1], [m, n], 128), &H200).1.splits;
        assert_eq!(splits(16, 1, 8192), 1);
        assert_eq!(splits(1, 1, 64), 1);
        assert!((4..=8).contains(&splits(1, 1, 8192)));
        assert!((4..=8).contains(&splits(1, 64, 8192)));
        assert_eq!(splits(4, 4096, 4096), 1);
        assert_eq!(tiling(&heads_of([1, 1, 1], [1, 1 << 20], 128), &H200).1.splits, MOST_OF_FEW);
    }

    #[test]
    fn heads_that_read_the_same_keys_are_rows_of_one_tile() {
        let (rows, tiling_of_group) = tiling(&heads_of([2, 8, 4], [1, 8192], 128), &H200);
        assert_eq!((rows, tiling_of_group.folded, tiling_of_group.heads, tiling_of_group.tiles), (16, 4, 16, 1));
        assert_eq!(tiling(&heads_of([2, 8, 4], [5, 8192], 128), &H200).1.tiles, 2);
        assert_eq!(tiling(&heads_of([2, 8, 4], [17, 8192], 128), &H200).1.folded, 1);
    }

    #[test]
    fn tiles_are_large_where_there_are_enough_of_them() {
        let rows = |heads, m| tiling(&heads_of([1, heads, 1], [m, 4096], 128), &A100).0;
        assert_eq!([rows(64, 4096), rows(2, 256), rows(64, 40), rows(64, 16)], [128, 64, 64, 16]);
        assert_eq!(tiling(&heads_of([4, 16, 1], [4096, 4096], 256), &A100).0, 64);
    }
}
