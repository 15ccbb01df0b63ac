//! How the rows of a kernel are walked.

use super::attention::{GROUP_THREADS, Part};
use super::geometry::Geometry;
use super::resident::{Target, resident};
use super::{Lie, Step, THREADS, ceil_div, splittable};
use crate::plan::{Kernel, Phases};
use serde::{Deserialize, Serialize};

/// Elements of a block of the canonical row order.
pub(super) const BLOCK: i64 = 16384;
/// Virtual lanes of the canonical row order.
pub(super) const LANES: i64 = 1024;
/// Values a thread may keep of a row in registers.
const REGISTERS: i64 = 96;
/// Accesses a thread of a team that divides its row evenly has at most: every number of them is a text of its own.
const MOST_ITEMS: i64 = 16;
/// Points a thread has of rows whose length is not known, and so the lengths that share a text: 1024 and 4096.
const SHARED_ITEMS: [u32; 2] = [4, 16];
/// With fewer blocks than this a row is shared by several blocks.
const FEW_BLOCKS: i64 = 264;

/// How the rows of a `Row` kernel or the points of a map are walked; a product is computed in tiles; other kinds have one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Walk {
    /// The one way of the kind.
    Plain,
    /// A team of threads keeps a row in registers, `items` accesses a thread.
    Keep {
        /// Threads a row: 32, or a whole block.
        team: u32,
        /// Accesses a thread.
        items: u32,
        /// Whether every thread has all of them.
        whole: bool,
    },
    /// A block reads a long row once a phase.
    Stream {
        /// Threads of the block.
        team: u32,
    },
    /// A block keeps a long row in registers and shared memory, and takes rows in turn.
    Resident {
        /// Threads of the block.
        team: u32,
        /// Blocks of the canonical order in registers, from the first one on.
        kept: u32,
    },
    /// Several blocks share a row, the last to finish combines their chunks.
    Split,
    /// A block of a map takes a square tile of the last two axes and turns transposed operands in shared memory.
    Tiled {
        /// Points along each of its axes.
        tile: u32,
    },
    /// A block of a matmul template computes a square tile of the product.
    Product {
        /// Its rows and columns; it has twice as many threads.
        tile: u32,
        /// How the left operand lies.
        left: Lie,
        /// How the right operand lies.
        right: Lie,
    },
    /// A block of a matmul template computes tiles of a product of floats on tensor cores, each float in three parts.
    Thirds {
        /// Columns of a tile, of 128 rows.
        columns: u32,
        /// Whether blocks can share a tile.
        shares: bool,
        /// How the left operand lies.
        left: Lie,
        /// How the right operand lies.
        right: Lie,
    },
    /// The same of halves, as they are.
    Halves {
        /// Columns of a tile, of 128 rows.
        columns: u32,
        /// How the left operand lies: in runs.
        left: Lie,
        /// How the right operand lies: in runs.
        right: Lie,
    },
    /// A block of attention computes a tile of queries after the other.
    Attention {
        /// Which kernel.
        part: Part,
        /// Elements of a row of queries and keys, with zeros behind them.
        depth: u32,
        /// Elements of a row of values, with zeros behind them.
        columns: u32,
        /// Warpgroups that multiply, for 64 queries each.
        groups: u32,
        /// Keys of a block.
        keys: u32,
        /// Whether a tile has as many keys as come before it.
        is_causal: bool,
    },
    /// A block of attention computes a tile, or shares the keys of one, by products of single warps.
    Warps {
        /// Which of the kernels.
        part: Part,
        /// Elements of a row of queries and keys, with zeros behind them.
        depth: u32,
        /// Elements of a row of values, with zeros behind them.
        columns: u32,
        /// Queries of a tile, or keys whose gradients it is.
        rows: u32,
        /// Keys of a block, or queries.
        keys: u32,
        /// Blocks of keys or values that are there or on their way at a time, on the way back of both.
        pieces: u32,
        /// Whether a tile has as many keys as come before it.
        is_causal: bool,
        /// Whether there is a way back, so that blocks share the keys of no tile.
        keeps: bool,
    },
    /// A block of a matmul template computes a strip of columns of a product of few rows.
    Strips {
        /// Its rows.
        rows: u32,
        /// How the right operand lies.
        right: Lie,
    },
    /// The same of halves.
    Slim {
        /// Rows of the product.
        rows: u32,
        /// Columns of a strip.
        columns: u32,
        /// How the left operand lies: in runs along the inner axis, or anyhow.
        left: Lie,
        /// How the right operand lies: in runs.
        right: Lie,
    },
}

impl Walk {
    /// The defines that specialise the text, in the order of the walk's fields.
    pub(super) fn defines(self) -> Vec<String> {
        let define = |name: &str, value: u32| format!("{name}={value}");
        let lies = |left: Lie, right: Lie| [define("LEFT", left as u32), define("RIGHT", right as u32)];
        let heads = |sizes: &[(&str, u32)]| sizes.iter().map(|(name, size)| format!("HEAD_{name}={size}")).collect();
        match self {
            Walk::Plain => vec![],
            Walk::Keep { team, items, whole } => {
                vec![define("TEAM", team), define("ITEMS", items), define("WHOLE", whole.into())]
            }
            Walk::Stream { team } => vec!["STREAM".into(), define("TEAM", team)],
            Walk::Resident { team, kept } => vec!["RESIDENT".into(), define("TEAM", team), define("KEPT", kept)],
            Walk::Split => vec!["SPLIT".into()],
            Walk::Tiled { tile } => vec!["TILED".into(), define("TILE", tile)],
            Walk::Strips { rows, right } => vec![define("FEW", rows), define("RIGHT", right as u32)],
            Walk::Product { tile, left, right } => [vec![define("TILE", tile)], lies(left, right).into()].concat(),
            Walk::Slim { rows, columns, left, right } => {
                [vec![define("SLIM", rows), define("STRIP", columns)], lies(left, right).into()].concat()
            }
            Walk::Halves { columns, left, right } => {
                [vec![define("HALVES", columns)], lies(left, right).into()].concat()
            }
            Walk::Thirds { columns, shares, left, right } => {
                [vec![define("THIRDS", columns), define("SHARES", shares.into())], lies(left, right).into()].concat()
            }
            Walk::Attention { depth, columns, groups, keys, .. } => {
                let threads = GROUP_THREADS * (groups + 1);
                heads(&[
                    ("DEPTH", depth),
                    ("COLUMNS", columns),
                    ("GROUPS", groups),
                    ("KEYS", keys),
                    ("THREADS", threads),
                ])
            }
            Walk::Warps { depth, columns, rows, keys, pieces, .. } => {
                let sizes = [("DEPTH", depth), ("COLUMNS", columns), ("ROWS", rows), ("KEYS", keys)];
                heads(&[&sizes[..], &[("PIECES", pieces), ("THREADS", GROUP_THREADS)]].concat())
            }
        }
    }
}

/// How rows are walked: short ones by a warp each, middling ones by a block that keeps them in registers,
/// longer ones by one that keeps them in shared memory too, others once a phase, few long ones by many blocks.
pub(super) fn rows_walk(kernel: &Kernel, axes: &Geometry, steps: &[Step], widest: u32, target: &Target) -> (Walk, u32) {
    let phases = Phases::of(kernel);
    let (rows, len) = (axes.rows(), axes.len());
    if len > BLOCK && rows < FEW_BLOCKS && splittable(&phases) {
        return (Walk::Split, widest.min(4));
    }
    if let Some(walk) = resident(kernel, axes, (steps, widest), target) {
        return walk;
    }
    let kept = phases.kept_values().max(1) as i64;
    // Accesses of 4 let 256 threads share a long row; measured on bf16 rows of 4096, that beats 128 threads with accesses of 8.
    let vec = if len > 2 * LANES { widest.min(4) } else { widest };
    let kept_row = if len > BLOCK { None } else { keep(len, i64::from(vec), kept) };
    kept_row.map_or_else(|| stream(&phases, widest), |walk| (walk, vec))
}

/// A team that keeps a row with so many values a point, if its registers can. A team that divides the row among its
/// threads evenly is preferred: its text has no bounds.
fn keep(len: i64, vec: i64, kept: i64) -> Option<Walk> {
    let most = team(len, vec);
    let fits = |team: i64, items: i64| team == 32 || items * vec * kept <= REGISTERS;
    let even = |team: i64| (len > 0 && len % (team * vec) == 0).then_some((team, len / (team * vec)));
    let smaller = [most, most / 2, most / 4].into_iter().filter(|team| *team >= 32);
    if let Some((team, items)) =
        smaller.filter_map(even).find(|(team, items)| *items <= MOST_ITEMS && fits(*team, *items))
    {
        return Some(Walk::Keep { team: team as u32, items: items as u32, whole: true });
    }
    let items = (ceil_div(len.max(1), most * vec) as u64).next_power_of_two() as i64;
    fits(most, items).then_some(Walk::Keep { team: most as u32, items: items as u32, whole: false })
}

/// How a team of a certain size keeps a row, if that leaves no thread without work and its registers have room.
pub(super) fn keep_by(team: u32, len: i64, vec: u32, kept: usize) -> Option<Walk> {
    let (at_once, kept) = (i64::from(team * vec), kept.max(1) as i64);
    let whole = len > 0 && len % at_once == 0;
    let each = ceil_div(len.max(1), at_once);
    let items = if whole { each } else { (each as u64).next_power_of_two() as i64 };
    let room = team == 32 || items * i64::from(vec) * kept <= REGISTERS;
    let busy = team == 32 || at_once < 2 * len;
    (room && busy && at_once <= LANES && items <= 2 * MOST_ITEMS).then_some(Walk::Keep {
        team,
        items: items as u32,
        whole,
    })
}

/// How rows of any length up to this one are kept, a point an access: as many lengths as are worth a text share one.
pub(super) fn keep_up_to(len: i64, kernel: &Kernel) -> Option<Walk> {
    let kept = Phases::of(kernel).kept_values().max(1) as i64;
    let items = SHARED_ITEMS.into_iter().find(|items| len <= i64::from(items * THREADS))?;
    (i64::from(items) * kept <= REGISTERS).then_some(Walk::Keep { team: THREADS, items, whole: false })
}

/// Threads that keep a row: a warp for a short one, else as many as give each a few accesses to have in flight.
fn team(len: i64, vec: i64) -> i64 {
    let most = LANES / vec;
    match len {
        _ if len <= 64 * vec => 32,
        _ if len <= 2 * LANES => most.min(128),
        _ => most.min(i64::from(THREADS)),
    }
}

/// Rows that are read again in a later walk are taken by large blocks: then few rows are open, and still in the cache.
fn stream(phases: &Phases, widest: u32) -> (Walk, u32) {
    match phases.walks.len() {
        0 | 1 => (Walk::Stream { team: THREADS }, widest.min(4)),
        _ => (Walk::Stream { team: LANES as u32 }, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The team, the accesses a thread and whether they divide the row, for accesses of 4 and one kept value.
    fn kept(len: i64) -> (u32, u32, bool) {
        match keep(len, 4, 1) {
            Some(Walk::Keep { team, items, whole }) => (team, items, whole),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_team_that_divides_its_row_evenly_is_preferred() {
        assert_eq!(kept(256), (32, 2, true));
        assert_eq!(kept(768), (64, 3, true));
        assert_eq!(kept(1024), (128, 2, true));
        assert_eq!(kept(4096), (256, 4, true));
    }

    #[test]
    fn other_rows_have_a_number_of_accesses_that_many_lengths_share() {
        assert_eq!(kept(0), (32, 1, false));
        assert_eq!(kept(100), (32, 1, false));
        assert_eq!(kept(772), (128, 2, false));
        assert_eq!(kept(1020), (128, 2, false));
        assert_eq!(kept(4100), (256, 8, false));
    }

    #[test]
    fn a_row_that_does_not_fit_in_registers_is_not_kept() {
        assert_eq!(keep(16384, 4, 3), None);
        assert!(keep(16384, 4, 1).is_some());
    }
}
