//! The tiles of products on Hopper's tensor cores, and when a device is done with them.

use super::super::product::tiles;
use super::super::{BATCH_AXES, Geometry, Target, ceil_div};
use super::ROWS;

/// Inner positions of a step of a shared tile, and the fewest steps of a share.
const STEP: i64 = 32;
const FEWEST_STEPS: i64 = 4;
/// What it takes beside to make one of what two blocks have of a tile, and for each further one.
const SETTLE: i64 = 5000;
const SETTLE_MORE: i64 = 700;
/// Tiles are shared if that takes less than so many percent of the time: where 0 to 11 percent were foretold, 4096 x 768 x 3072 and
/// 4096 x 4096 x 4096 took 5% longer.
const WORTH_SHARING: i64 = 80;
/// Percent of a device's multiprocessors that must have something to do for the whole time: with fewer the library is faster.
const BUSY: i64 = 55;

/// The tiles of one way of multiplying.
pub struct Tiles {
    /// Columns they may have, what 64 inner positions of them take, and what every tile takes beside that.
    columns: &'static [(u32, i64, i64)],
    /// Of each of several products a tile has a multiple of so many columns.
    unit: u32,
    /// Whether blocks may share tiles, see the helper `fuse_shares`.
    shares: bool,
}

/// Of floats.
pub const THIRDS: Tiles = Tiles { columns: &[(192, 4100, 2000), (128, 3000, 2000)], unit: 32, shares: true };
/// Of halves. Tiles of a round end together, so that all write at the same time.
pub const HALVES: Tiles =
    Tiles { columns: &[(256, 830, 4000), (192, 670, 2900), (128, 510, 1800)], unit: 64, shares: false };
/// Of fp8. What copies bring, 32 bytes a cycle, bounds all of them.
pub const FLOAT8: Tiles =
    Tiles { columns: &[(256, 460, 4600), (192, 373, 3300), (128, 268, 2300)], unit: 64, shares: false };

impl Tiles {
    /// The columns with which a device is done first, and when.
    pub fn best(&self, axes: &Geometry, target: &Target) -> (u32, i64) {
        self.best_of(1, axes, target).expect("there are tiles")
    }

    /// The same of so many products with one left operand, if tiles have columns for all of them.
    pub fn best_of(&self, products: u32, axes: &Geometry, target: &Target) -> Option<(u32, i64)> {
        let axes = &side_by_side(products, axes);
        let time = |columns: u32| {
            (columns, self.shared(columns, axes, target).unwrap_or_else(|| self.whole(columns, axes, target)))
        };
        let fitting = self.columns().filter(|columns| columns % (products * self.unit) == 0);
        fitting.map(time).min_by_key(|(_, time)| *time)
    }

    /// What a tile takes.
    fn tile(&self, columns: u32, axes: &Geometry) -> i64 {
        let (_, stage, beside) = self.columns.iter().find(|(own, ..)| *own == columns).expect("there are such tiles");
        ceil_div(axes.len(), 64) * stage + beside
    }

    /// When a device is done if blocks take whole tiles.
    fn whole(&self, columns: u32, axes: &Geometry, target: &Target) -> i64 {
        rounds(axes, columns, target) * self.tile(columns, axes)
    }

    /// When a device is done if blocks share the tiles that are left when all have had as many, if that is much earlier.
    fn shared(&self, columns: u32, axes: &Geometry, target: &Target) -> Option<i64> {
        let (blocks, tile) = (i64::from(target.multiprocessors.max(1)), self.tile(columns, axes));
        let (whole, left) = (tiles(axes, [ROWS, columns]) / blocks, tiles(axes, [ROWS, columns]) % blocks);
        let steps = left * ceil_div(axes.len(), STEP);
        let fits = self.shares && steps >= blocks * FEWEST_STEPS && steps < i64::from(i32::MAX);
        let time = || whole * tile + left * tile / blocks + SETTLE + blocks / left * SETTLE_MORE;
        fits.then(time).filter(|shared| shared * 100 < self.whole(columns, axes, target) * WORTH_SHARING)
    }

    /// Whether blocks should share tiles.
    pub fn is_shared(&self, columns: u32, axes: &Geometry, target: &Target) -> bool {
        self.shared(columns, axes, target).is_some()
    }

    /// The parts and counters of tiles that are shared, in bytes and as a number.
    pub fn parts(&self, columns: u32, axes: &Geometry, target: &Target) -> Option<(usize, usize)> {
        self.shared(columns, axes, target)?;
        let blocks = i64::from(target.multiprocessors);
        let left = tiles(axes, [ROWS, columns]) % blocks;
        let most = blocks / left + 2;
        Some(((left * most) as usize * (ROWS * columns * 4) as usize, left as usize * 8))
    }

    /// How many columns tiles may have.
    pub fn columns(&self) -> impl Iterator<Item = u32> {
        self.columns.iter().map(|(columns, ..)| *columns)
    }

    /// Whether there is enough to do for most of a device.
    pub fn keep_busy(&self, axes: &Geometry, target: &Target) -> bool {
        self.are_busy(self.best(axes, target), axes, target)
    }

    /// Whether a device that is done after a time has had enough to do.
    pub fn are_busy(&self, (columns, time): (u32, i64), axes: &Geometry, target: &Target) -> bool {
        let slots = i128::from(target.multiprocessors) * i128::from(ROWS * columns) * i128::from(time);
        i128::from(axes.rows()) * i128::from(self.tile(columns, axes)) * 100 > slots * i128::from(BUSY)
    }
}

/// How many tiles the busiest multiprocessor computes.
fn rounds(axes: &Geometry, columns: u32, target: &Target) -> i64 {
    ceil_div(tiles(axes, [ROWS, columns]), i64::from(target.multiprocessors.max(1)))
}

/// Whether there are tiles of so many columns for a quarter of the multiprocessors; with fewer, timing them tells nothing new.
pub fn may_pay(axes: &Geometry, columns: u32, target: &Target) -> bool {
    4 * tiles(axes, [ROWS, columns]) >= i64::from(target.multiprocessors)
}

/// The axes of one product of as many tiles as so many products with one left operand have: of each, tiles have a part of their
/// columns.
pub fn side_by_side(products: u32, axes: &Geometry) -> Geometry {
    let mut axes = axes.clone();
    axes.outer[BATCH_AXES + 1] *= i64::from(products);
    axes
}
