//! How the work of attention is shared among blocks.

use super::super::warps::Warps;
use super::super::{BATCH_AXES, Geometry, Target, Variant, Walk, ceil_div};
use super::{GROUP, Part, element_bytes};

/// Warpgroups of a block that can share the keys of a small tile, what such a tile takes, and one that is none: they pay if all is
/// done in less than so many percent of the time.
pub const WITH_SMALL: u32 = 3;
const SMALL_TILE: i64 = 40;
const WHOLE_TILE: i64 = 100;
const WORTH_SMALL: i64 = 97;
/// Keys and values that stay in the second cache while queries of several heads read them, in bytes.
const SECTION: i64 = 32 << 20;

/// How the work of a call is shared among blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Tiles of queries or keys a head.
    pub tiles: i64,
    /// Heads, or groups of folded ones.
    pub heads: i64,
    /// Blocks that share the keys of a tile.
    pub splits: i64,
    /// Heads of the last batch axis that are rows of one tile.
    pub folded: i64,
    /// Tiles of a head that are not small, whose keys the groups of a block share.
    pub whole: i64,
}

/// Tiles of queries or keys a head, none of which is shared by blocks.
pub fn tiling(part: Part, groups: u32, axes: &Geometry, target: &Target, is_causal: bool) -> Tiling {
    let rows = axes.outer[if part == Part::Keys { BATCH_AXES + 1 } else { BATCH_AXES }];
    let (tiles, heads) = (ceil_div(rows, GROUP * i64::from(groups)), heads(axes));
    let all = Tiling { tiles, heads, splits: 1, folded: 1, whole: tiles };
    let has_small = part == Part::Forward && groups == WITH_SMALL && !is_causal;
    if has_small { with_small(all, rows, target).unwrap_or(all) } else { all }
}

/// The tiling in which small tiles end the work much earlier, if there is one.
fn with_small(all: Tiling, rows: i64, target: &Target) -> Option<Tiling> {
    let (blocks, small) = (i64::from(target.multiprocessors.max(1)), ceil_div(rows, GROUP));
    let end = |whole: i64| {
        let few = small - whole * i64::from(WITH_SMALL);
        (end_of_tiles(blocks, whole * all.heads, few * all.heads), Tiling { tiles: whole + few, whole, ..all })
    };
    // What is left of the last round of whole tiles is all that may pay.
    let most = small / i64::from(WITH_SMALL);
    let least = (most - ceil_div(blocks, all.heads) - 1).max(0);
    let (time, tiling) = (least..=most).map(end).min_by_key(|(time, _)| *time)?;
    (time * 100 < ceil_div(all.tiles * all.heads, blocks) * WHOLE_TILE * WORTH_SMALL).then_some(tiling)
}

/// When blocks are done that take whole tiles in turn, and then small ones.
fn end_of_tiles(blocks: i64, whole: i64, small: i64) -> i64 {
    let (rounds, more) = (whole / blocks, whole % blocks);
    let fits = |end: i64| {
        let by = |rounds: i64| (end - rounds * WHOLE_TILE).max(0) / SMALL_TILE;
        more * by(rounds + 1) + (blocks - more) * by(rounds) >= small
    };
    let first = if more > 0 { rounds + 1 } else { rounds } * WHOLE_TILE;
    (0..).map(|step| first + step * SMALL_TILE / 4).find(|end| fits(*end)).expect("more time fits more tiles")
}

/// Places of the batch axes.
pub fn heads(axes: &Geometry) -> i64 {
    axes.outer[..BATCH_AXES].iter().product()
}

/// How many heads are worked on at a time: where the number of keys differs from tile to tile, as many as the cache holds, else
/// one after the other.
fn section(part: Part, axes: &Geometry, heads: i64, is_causal: bool) -> i64 {
    let bytes = element_bytes(part, axes) as i64 * axes.outer[BATCH_AXES + 1] * axes.inner.iter().sum::<i64>();
    if is_causal { (SECTION / bytes.max(1)).clamp(1, heads.max(1)) } else { 1 }
}

/// The kernel's `fuse_attention_shape` ([`Arg::Attention`](super::super::Arg::Attention)), aligned to 8 bytes.
pub fn attention_shape(variant: &Variant, axes: &Geometry, target: &Target) -> Vec<u8> {
    let extents = axes.outer.iter().chain(&axes.inner);
    let (part, tiling, is_causal) = match variant.walk {
        Walk::Attention { part, groups, is_causal, .. } => {
            (part, tiling(part, groups, axes, target, is_causal), is_causal)
        }
        walk => {
            let warps = Warps::of(walk).expect("only attention has such a shape");
            (warps.part, warps.tiling(axes, target), warps.is_causal)
        }
    };
    let Tiling { tiles, heads, splits, folded, whole } = tiling;
    let counts = [tiles, heads, section(part, axes, heads, is_causal), splits, folded, whole];
    let bytes = extents.flat_map(|extent| extent.to_ne_bytes());
    bytes.chain(counts.into_iter().flat_map(|count| (count as i32).to_ne_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::H200;
    use super::super::tests::{heads, variant};
    use super::*;

    #[test]
    fn a_last_round_of_few_tiles_becomes_small_ones() {
        let of = |m: i64, is_causal| tiling(Part::Forward, 3, &heads(m, m, 64, 0), &H200, is_causal);
        // 9 tiles of 96 heads would be 6.5 rounds; 8, and 64 queries more, are 5.8 and small ones.
        assert_eq!(of(1600, false), Tiling { tiles: 9, heads: 96, splits: 1, folded: 1, whole: 8 });
        assert_eq!((of(1600, true).whole, of(1600, true).tiles), (9, 9));
        // 8 rounds are full.
        assert_eq!((of(2048, false).whole, of(2048, false).tiles), (11, 11));
        // However many there are, few are looked at.
        assert!(of(1 << 24, false).tiles >= (1 << 24) / 192);
        assert_eq!(end_of_tiles(132, 132, 0), WHOLE_TILE);
        assert_eq!(end_of_tiles(132, 133, 0), 2 * WHOLE_TILE);
        assert_eq!(end_of_tiles(132, 0, 264), 2 * SMALL_TILE);
        assert_eq!(end_of_tiles(132, 131, 2), WHOLE_TILE);
    }

    #[test]
    fn heads_whose_tiles_differ_share_the_cache() {
        let axes = heads(4096, 4096, 128, 0);
        let whole = Tiling { tiles: 32, heads: 96, splits: 1, folded: 1, whole: 32 };
        assert_eq!(tiling(Part::Forward, 2, &axes, &H200, false), whole);
        assert_eq!([false, true].map(|is_causal| section(Part::Forward, &axes, 96, is_causal)), [1, 16]);
        let shape = attention_shape(&variant(&axes).expect("it has a kernel"), &axes, &H200);
        assert_eq!(shape.len(), 7 * 8 + 6 * 4);
    }
}
