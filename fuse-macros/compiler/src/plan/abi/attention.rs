//! The variant of attention in one kernel: how large its tiles are.

use super::{Access, Arg, BATCH_AXES, Geometry, Launch, Step, Target, Variant, Walk, arguments, ceil_div};
use crate::plan::{Fused, Kernel};

/// The matrices of attention: queries, keys, values and the result.
pub const MATRICES: usize = 4;

/// Queries of a warpgroup.
const GROUP: i64 = 64;
/// Threads of a warpgroup.
const GROUP_THREADS: u32 = 128;
/// Blocks of keys, and of values, that are there at a time.
const STAGES: u32 = 2;
/// Keys and values that stay in the second cache while queries of several heads read them, in bytes.
const SECTION: i64 = 32 << 20;
/// With fewer tiles than this, and more keys than its limit, a kernel would leave most multiprocessors looking on for long.
const FEW_TILES: i64 = 32;

/// What a kernel takes, by the bytes of an element: halves (`attention.cuh`) and floats (`attention_floats.cuh`).
struct Limits {
    /// The most elements of a row of queries, keys or values that there is room for.
    widest: i64,
    /// The most keys of few tiles.
    keys: i64,
}

const HALVES: Limits = Limits { widest: 256, keys: 4096 };
const FLOATS: Limits = Limits { widest: 128, keys: 1024 };

/// Of floats: keys of a block, threads that bring keys and values, bytes that a piece takes as it comes and in its parts,
/// the most pieces, and the room that there is for all.
const FLOAT_KEYS: u32 = 64;
const RAW: u32 = FLOAT_KEYS * 32 * 4;
const PIECE: u32 = 2 * 3 * 2 * (FLOAT_KEYS * 16 + 64);
const PIECES: u32 = 12;
const FLOAT_ROOM: u32 = 229_376;

/// The arguments of attention in one kernel: the matrices, then those of a score, whose outer extents are the batch axes, m and n.
pub fn attention_arguments(score: &Kernel) -> Vec<Arg> {
    let matrices = [Arg::LeftMatrix, Arg::Heads(0), Arg::RightMatrix, Arg::Heads(1), Arg::Values, Arg::Heads(2)];
    let others = [Arg::Result, Arg::Heads(3), Arg::Attention, Arg::Counters];
    let left_out = |arg: &Arg| matches!(arg, Arg::Outer | Arg::Store(_) | Arg::StoreStrides(_));
    let rest = arguments(score).into_iter().filter(|arg| !left_out(arg));
    matrices.into_iter().chain(others).chain(rest).collect()
}

impl Variant {
    /// The variant of attention in one kernel, on devices and for layouts that have one. The outer axes are the batch axes, m
    /// and n, the inner ones the depth of queries and keys and the columns of values. The operands are the score's, then the
    /// [`MATRICES`], whose elements of a row lie next to each other, with strides over the batch axes and their rows.
    pub fn attention(fused: &Fused, axes: &Geometry, target: &Target) -> Option<Variant> {
        let (operands, matrices) = axes.operands.split_at(axes.operands.len() - MATRICES);
        let (&[.., m, n], &[depth, columns]) = (&axes.outer[..], &axes.inner[..]) else { return None };
        let heads: i64 = axes.outer[..BATCH_AXES].iter().product();
        let tiles = heads * ceil_div(m, 2 * GROUP);
        let bytes = matrices[0].bytes;
        let limits = match bytes {
            2 => HALVES,
            4 => FLOATS,
            _ => return None,
        };
        let is_there = target.capability == 90 && matrices[..3].iter().all(|matrix| matrix.bytes == bytes);
        let fits = |extent: i64| extent > 0 && extent <= limits.widest && extent * bytes as i64 % 16 == 0;
        let small = [m, n, tiles].iter().all(|&extent| extent > 0 && extent < 1 << 30);
        let few = tiles < FEW_TILES && n > limits.keys;
        if !is_there || !fits(depth) || !fits(columns) || !small || few || !matrices.iter().all(in_whole_accesses) {
            return None;
        }
        let [depth, columns] = [depth, columns].map(padded);
        let (groups, keys) = match bytes {
            2 => (groups(m, heads, depth.max(columns), target), keys(depth.max(columns))),
            _ => (if m <= GROUP { 1 } else { 2 }, FLOAT_KEYS),
        };
        let walk = Walk::Attention { depth, columns, groups, keys, is_causal: fused.is_causal };
        let score = Geometry { outer: axes.outer.clone(), inner: vec![], operands: operands.to_vec() };
        let steps = vec![Step::Apart; operands.len()];
        Some(Variant { outer: axes.outer.len(), inner: 0, vec: 1, steps, wide: score.is_wide(), walk })
    }

    /// The grid of attention in one kernel: as many blocks as run at a time.
    pub fn launch_attention(&self, axes: &Geometry, target: &Target) -> Launch {
        let Walk::Attention { depth, columns, groups, keys, .. } = self.walk else {
            unreachable!("only attention is launched as such")
        };
        let [tiles, heads, _] = tiling(groups, axes, false);
        let blocks = (tiles * heads).min(i64::from(target.multiprocessors));
        let shared = match element_bytes(axes) {
            2 => shared_of_halves(groups, keys, [depth, columns]),
            _ => shared_of_floats(groups, depth),
        };
        Launch { blocks: blocks as u64, threads: GROUP_THREADS * (groups + 1), shared, scratch: vec![], counters: 2 }
    }
}

/// Bytes of an element of the matrices, of which the last operand is one.
fn element_bytes(axes: &Geometry) -> usize {
    axes.operands.last().map_or(0, |matrix| matrix.bytes)
}

/// Queries and rings of blocks of keys and of values. Behind them lie barriers; in front of them what is needed to align them.
fn shared_of_halves(groups: u32, keys: u32, [depth, columns]: [u32; 2]) -> u32 {
    let elements = groups * GROUP as u32 * depth + STAGES * keys * (depth + columns);
    1024 + 2 * elements + 256
}

/// Queries in three parts, what four warps have brought, a ring of pieces; behind them barriers and words, in front of them what
/// is needed to align them.
fn shared_of_floats(groups: u32, depth: u32) -> u32 {
    let always = groups * GROUP as u32 * depth * 3 * 2 + 4 * RAW;
    let pieces = PIECES.min((FLOAT_ROOM - always) / PIECE);
    128 + always + pieces * (PIECE + 3 * 8) + 16
}

/// The kernel's `fuse_attention_shape` ([`Arg::Attention`]), aligned to 8 bytes.
pub fn attention_shape(variant: &Variant, axes: &Geometry) -> Vec<u8> {
    let Walk::Attention { groups, is_causal, .. } = variant.walk else {
        unreachable!("only attention has such a shape")
    };
    let extents = axes.outer.iter().chain(&axes.inner);
    let tiling = tiling(groups, axes, is_causal).into_iter().chain([0]);
    let bytes = extents.flat_map(|extent| extent.to_ne_bytes());
    bytes.chain(tiling.flat_map(|count| (count as i32).to_ne_bytes())).collect()
}

/// Tiles of queries a head, heads, and how many of them are worked on at a time: where the number of keys differs from tile
/// to tile, as many as the cache holds, else one after the other.
fn tiling(groups: u32, axes: &Geometry, is_causal: bool) -> [i64; 3] {
    let (heads, [m, n]) =
        (axes.outer[..BATCH_AXES].iter().product::<i64>(), [BATCH_AXES, BATCH_AXES + 1].map(|k| axes.outer[k]));
    let bytes = element_bytes(axes) as i64 * n * axes.inner.iter().sum::<i64>();
    let section = if is_causal { (SECTION / bytes.max(1)).clamp(1, heads.max(1)) } else { 1 };
    [ceil_div(m, GROUP * i64::from(groups)), heads, section]
}

/// Rows start at multiples of 16 bytes.
fn in_whole_accesses(matrix: &Access) -> bool {
    let aligned = |stride: &i64| (stride * matrix.bytes as i64) % 16 == 0;
    matrix.address.is_multiple_of(16) && matrix.strides.iter().all(aligned)
}

/// Elements of a row with zeros behind it: whole rows of 64 or 128 bytes, and sizes that products have.
fn padded(extent: i64) -> u32 {
    match extent as u32 {
        193.. => 256,
        extent => extent.next_multiple_of(32),
    }
}

/// Warpgroups of a block: as many as there are registers for, if that leaves enough tiles for all multiprocessors.
fn groups(m: i64, heads: i64, widest: u32, target: &Target) -> u32 {
    let many = heads * ceil_div(m, 3 * GROUP) >= 4 * i64::from(target.multiprocessors);
    match () {
        () if m <= GROUP => 1,
        () if widest <= 64 && many => 3,
        () => 2,
    }
}

/// Keys of a block: as many as there are registers and shared memory for.
fn keys(widest: u32) -> u32 {
    if widest <= 128 { 128 } else { 64 }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{H200, attention};
    use super::*;

    /// Heads one after the other, with rows of `depth` elements and a place of 8 between them.
    fn heads(m: i64, n: i64, depth: i64, address: u64) -> Geometry {
        of(2, m, n, depth, address)
    }

    /// The same of elements of so many bytes.
    fn of(bytes: usize, m: i64, n: i64, depth: i64, address: u64) -> Geometry {
        let matrix = |rows: i64| {
            let row = depth + 8;
            Access { strides: vec![0, 12 * rows * row, rows * row, row], address, bytes, indexed: false }
        };
        let score = Access { strides: vec![0; 5], bytes, ..Access::default() };
        let operands = vec![score, matrix(m), matrix(n), matrix(n), matrix(m)];
        Geometry { outer: vec![1, 8, 12, m, n], inner: vec![depth, depth], operands }
    }

    fn variant(axes: &Geometry) -> Option<Variant> {
        let plan = attention();
        Variant::attention(&plan.fused[0], axes, &H200)
    }

    #[test]
    fn what_cannot_be_copied_in_whole_accesses_is_left_to_steps() {
        assert!(variant(&heads(512, 512, 64, 0)).is_some());
        assert!(variant(&heads(512, 512, 64, 8)).is_none());
        assert!(variant(&heads(512, 512, 60, 0)).is_none());
        assert!(variant(&heads(512, 512, 264, 0)).is_none());
        assert!(variant(&heads(512, 0, 64, 0)).is_none());
        let old = Target { capability: 80, ..H200 };
        let plan = attention();
        assert!(Variant::attention(&plan.fused[0], &heads(512, 512, 64, 0), &old).is_none());
    }

    #[test]
    fn every_size_of_heads_fits_the_shared_memory_of_a_block() {
        let halves = (8..=256).step_by(8).map(|depth| (2, depth));
        for (bytes, depth) in halves.chain((4..=128).step_by(4).map(|depth| (4, depth))) {
            for m in [1, 65, 4096] {
                let axes = of(bytes, m, 512, depth, 0);
                let launch = variant(&axes).expect("it has a kernel").launch_attention(&axes, &H200);
                assert!(launch.shared as usize <= H200.shared_per_block, "{depth}: {}", launch.shared);
                assert!(launch.blocks >= 1 && launch.blocks <= 132);
            }
        }
    }

    #[test]
    fn floats_have_narrower_heads_and_no_few_long_rows() {
        assert!(variant(&of(4, 512, 512, 128, 0)).is_some());
        assert!(variant(&of(4, 512, 512, 132, 0)).is_none());
        assert!(variant(&of(4, 512, 512, 62, 0)).is_none());
        assert!(variant(&of(8, 512, 512, 64, 0)).is_none());
        let mut few = of(4, 1, 2048, 64, 0);
        assert!(variant(&few).is_some());
        few.outer[2] = 1;
        assert!(variant(&few).is_none());
    }

    #[test]
    fn heads_whose_tiles_differ_share_the_cache() {
        let axes = heads(4096, 4096, 128, 0);
        assert_eq!(tiling(2, &axes, false), [32, 96, 1]);
        assert_eq!(tiling(2, &axes, true), [32, 96, 16]);
        let shape = attention_shape(&variant(&axes).expect("it has a kernel"), &axes);
        assert_eq!(shape.len(), 7 * 8 + 4 * 4);
    }
}
