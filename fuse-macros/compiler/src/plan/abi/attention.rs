//! The variants of attention in one kernel, and of its way back in two: how large their tiles are.

mod part;
mod tiling;

pub use part::{Part, attention_arguments, drops, is_given, is_given_value};
pub use tiling::attention_shape;
pub(super) use tiling::{Tiling, heads};

use super::geometry::are_whole_accesses;
use super::variant::step;
use super::warps::{Warps, has_few_rows};
use super::{Access, BATCH_AXES, Geometry, Launch, Target, Variant, Walk, ceil_div};
use crate::plan::{Fused, Plan};
use crate::types::Dim;
use tiling::{WITH_SMALL, tiling};

/// Queries of a warpgroup.
const GROUP: i64 = 64;
/// Threads of a warpgroup.
pub(super) const GROUP_THREADS: u32 = 128;
/// Blocks of keys, and of values, that are there at a time.
const STAGES: u32 = 2;
/// With fewer tiles than this, and more keys than its limit, a kernel that does not share them would leave most multiprocessors
/// looking on for long.
const FEW_TILES: i64 = 32;
/// The same of the kernel whose blocks share the keys of a tile: it takes longer for each.
const LONG: i64 = 2048;

/// What a kernel takes, by the bytes of an element: halves (`attention.cuh`) and floats (`attention_floats.cuh`).
struct Limits {
    /// The most elements of a row of queries, keys or values that there is room for.
    widest: i64,
    /// The most keys of few tiles.
    keys: i64,
}

const HALVES: Limits = Limits { widest: 256, keys: 4096 };
const HALVES_BACK: Limits = Limits { widest: WIDEST_BACK, ..HALVES };
const FLOATS: Limits = Limits { widest: 128, keys: 1024 };

impl Limits {
    /// Those of elements of so many bytes, if a device has kernels for them.
    fn of(bytes: usize, fused: &Fused, target: &Target) -> Option<Limits> {
        match (bytes, target.capability) {
            // Where there is a way back, weights that are not stored have to be made by it.
            (2, 90) if fused.back.is_some() => Some(HALVES_BACK),
            (2, 80..) => Some(HALVES),
            (4, 90) => Some(FLOATS),
            _ => None,
        }
    }

    /// Whether a kernel takes the extents and the layouts of a call.
    fn fit(&self, part: Part, axes: &Geometry) -> bool {
        let (matrices, bytes) = (matrices(part, axes), element_bytes(part, axes));
        let fits = |&extent: &i64| extent > 0 && extent <= self.widest && are_whole_accesses(extent, bytes);
        let is_count = |&extent: &i64| extent > 0 && extent < 1 << 30;
        let (read, _) = part.matrices();
        axes.inner.iter().all(fits)
            && axes.outer[BATCH_AXES..].iter().chain([&tiles_of_two(axes)]).all(is_count)
            && matrices[..read.len()].iter().all(|matrix| matrix.bytes == bytes)
            && matrices.iter().all(in_whole_accesses)
    }
}

/// Of floats: rows that go past at a time, the most slots for them, and the room that there is for all.
const FLOAT_ROWS: u32 = 64;
const SLOTS: u32 = 6;
const FLOAT_ROOM: u32 = 232_192;

/// The widest rows of floats that two groups have room for on the way back.
const WIDEST_OF_TWO: u32 = 64;

/// The widest rows that gradients of keys and values have registers for, and of queries and values together memory.
const WIDEST_BACK: i64 = 128;
/// Blocks of what a block of a way back goes through that are there at a time, and rows of them.
const STAGES_BACK: u32 = 3;
const ROWS_BACK: u32 = 64;

/// Whether there are kernels of the way back for some extents and layouts, as far as the plan tells.
pub fn may_walk_back(plan: &Plan, fused: &Fused) -> bool {
    let (scores, _, values) = fused.parts(plan);
    let fits = |extent: &Dim| match extent {
        Dim::Const(extent) => *extent <= WIDEST_BACK && are_whole_accesses(*extent, values.dtype.bytes()),
        _ => true,
    };
    fused.back.is_some() && scores.batch.len() <= BATCH_AXES && fits(&scores.k) && fits(&values.n)
}

impl Variant {
    /// The variant of a kernel of attention, on devices and for layouts that have one. The outer axes are the batch axes, m
    /// and n, the inner ones the depth of queries and keys and the columns of values. The operands are the program's, then the
    /// [matrices](Part::matrices), whose elements of a row lie next to each other, with strides over the batch axes and their rows.
    pub fn attention(fused: &Fused, part: Part, axes: &Geometry, target: &Target) -> Option<Variant> {
        if part == Part::Drops {
            return drawing(fused, axes, target);
        }
        let bytes = element_bytes(part, axes);
        let limits = Limits::of(bytes, fused, target)?;
        let leaves_idle = |keys: i64| part == Part::Forward && has_few_tiles_beyond(keys, axes);
        // Blocks of single warps share the keys of a tile, unless there is a way back.
        let shares = bytes == 2 && fused.back.is_none();
        if !limits.fit(part, axes) || !shares && leaves_idle(limits.keys) {
            return None;
        }
        let by_warps = target.capability != 90 || shares && (leaves_idle(LONG) || has_few_rows(axes));
        let walk = match by_warps {
            true => Warps::choose(part, fused, axes, target).walk(),
            false => by_groups(part, axes, target, fused.is_causal),
        };
        Some(of_attention(part, walk, axes))
    }

    /// The grid of a kernel of attention: as many blocks as run at a time, by warps as many as there is work for.
    pub fn launch_attention(&self, axes: &Geometry, target: &Target) -> Launch {
        if let Some(warps) = Warps::of(self.walk) {
            return warps.launch(axes, target);
        }
        let Walk::Attention { part, depth, columns, groups, keys, is_causal } = self.walk else {
            unreachable!("only attention is launched as such")
        };
        let threads = GROUP_THREADS * (groups + 1);
        if part == Part::Drops {
            return launch_drawing(axes, threads);
        }
        let Tiling { tiles, heads, .. } = tiling(part, groups, axes, target, is_causal);
        let blocks = (tiles * heads).min(i64::from(target.multiprocessors));
        let shared = match (part, element_bytes(part, axes)) {
            (part, 4) => shared_of_floats(part, groups, [depth, columns]),
            (part, _) => shared_of_halves(part, groups, keys, [depth, columns]),
        };
        Launch { blocks: blocks as u64, threads, shared, scratch: vec![], counters: 2 }
    }
}

/// The variant of the kernel that draws what is dropped.
fn drawing(fused: &Fused, axes: &Geometry, target: &Target) -> Option<Variant> {
    let part = Part::Drops;
    let extents = [axes.outer[BATCH_AXES], axes.outer[BATCH_AXES + 1], heads(axes)];
    let is_there = target.capability >= 80 && extents.iter().all(|&extent| extent > 0 && extent < 1 << 30);
    let walk = Walk::Attention { part, depth: 0, columns: 0, groups: 1, keys: 0, is_causal: fused.is_causal };
    is_there.then(|| of_attention(part, walk, axes))
}

/// The grid of that kernel: a word of 32 keys a thread, for an even number of queries.
fn launch_drawing(axes: &Geometry, threads: u32) -> Launch {
    let [m, n] = [axes.outer[BATCH_AXES], axes.outer[BATCH_AXES + 1]];
    let words = heads(axes) * ceil_div(n, 32) * ceil_div(m, 2) * 2;
    let blocks = ceil_div(words, i64::from(threads)) as u64;
    Launch { blocks, threads, shared: 0, scratch: vec![], counters: 0 }
}

/// How warpgroups go through keys, or on the way back through queries: the sizes of tiles.
fn by_groups(part: Part, axes: &Geometry, target: &Target, is_causal: bool) -> Walk {
    let [m, n] = [axes.outer[BATCH_AXES], axes.outer[BATCH_AXES + 1]];
    let [depth, columns] = [axes.inner[0], axes.inner[1]].map(padded);
    let widest = depth.max(columns);
    let two_beyond = |rows: i64| if rows <= GROUP { 1 } else { 2 };
    let (groups, keys) = match (part, element_bytes(part, axes)) {
        (Part::Drops, _) => unreachable!("it has no matrices"),
        (Part::Forward, 4) => (two_beyond(m), FLOAT_ROWS),
        // Two groups would leave no room for slots.
        (_, 4) if widest > WIDEST_OF_TWO => (1, FLOAT_ROWS),
        (Part::Forward, _) => (groups(m, heads(axes), widest, target), keys(widest)),
        (Part::Queries, _) => (two_beyond(m), ROWS_BACK),
        (Part::Keys, _) => (two_beyond(n), ROWS_BACK),
    };
    Walk::Attention { part, depth, columns, groups, keys, is_causal }
}

/// Tiles of the queries of two warpgroups.
fn tiles_of_two(axes: &Geometry) -> i64 {
    heads(axes) * ceil_div(axes.outer[BATCH_AXES], 2 * GROUP)
}

/// Whether few tiles have more keys than these.
fn has_few_tiles_beyond(keys: i64, axes: &Geometry) -> bool {
    tiles_of_two(axes) < FEW_TILES && axes.outer[BATCH_AXES + 1] > keys
}

/// The matrices of a call, which come behind the operands of its program.
fn matrices(part: Part, axes: &Geometry) -> &[Access] {
    &axes.operands[axes.operands.len() - part.count()..]
}

/// The variant of a kernel over axes whose operands begin with those of its program.
fn of_attention(part: Part, walk: Walk, axes: &Geometry) -> Variant {
    let operands = axes.operands[..axes.operands.len() - part.count()].to_vec();
    let steps = operands.iter().map(|operand| step(operand, BATCH_AXES + 1)).collect();
    let program = Geometry { outer: axes.outer.clone(), inner: vec![], operands };
    Variant { outer: axes.outer.len(), inner: 0, vec: 1, steps, wide: program.is_wide(), walk }
}

/// Bytes of an element of the matrices that a kernel reads; it may write others, gradients that are summed before they are rounded.
fn element_bytes(part: Part, axes: &Geometry) -> usize {
    matrices(part, axes).first().map_or(0, |matrix| matrix.bytes)
}

/// Rows that a block has for good, rings of blocks of those it goes through, and values that lie beside them. Behind them lie
/// barriers; in front of them what is needed to align them.
fn shared_of_halves(part: Part, groups: u32, keys: u32, [depth, columns]: [u32; 2]) -> u32 {
    let (own, stages, beside) = match part {
        Part::Drops => unreachable!("it has no matrices"),
        Part::Forward => (depth, STAGES, 0),
        Part::Queries => (depth + columns, STAGES_BACK, 0),
        Part::Keys => (depth + columns, STAGES_BACK, STAGES_BACK * keys * 8),
    };
    let elements = groups * GROUP as u32 * own + stages * keys * (depth + columns);
    // Behind them what the groups have of a small tile.
    let shares =
        if part == Part::Forward && groups == WITH_SMALL { 2 * GROUP_THREADS * (columns / 2 + 4) * 4 } else { 0 };
    1024 + 2 * elements + beside + 256 + shares
}

/// Rows that a block has for good in three parts; a ring of slots of such, with bytes between them, two numbers and bits of each, and
/// barriers; behind them words, in front of them what is needed to align them.
fn shared_of_floats(part: Part, groups: u32, [depth, columns]: [u32; 2]) -> u32 {
    let widest = depth.max(columns);
    let own = groups * GROUP as u32 * 3 * 2 * if part == Part::Forward { depth } else { depth + columns };
    let slot = 3 * widest / 8 * (FLOAT_ROWS * 16 + 16) + FLOAT_ROWS * 4 + groups * GROUP as u32 * 8 + 32;
    let slots = SLOTS.min((FLOAT_ROOM - own) / (slot + 16));
    128 + own + slots * (slot + 16) + 16
}

/// Whether all rows begin at even addresses.
fn in_whole_accesses(matrix: &Access) -> bool {
    let is_even = |stride: &i64| are_whole_accesses(*stride, matrix.bytes);
    matrix.address.is_multiple_of(16) && matrix.strides.iter().all(is_even)
}

/// Elements of a row with zeros behind it: whole rows of 64 or 128 bytes, and sizes that products have.
pub(super) fn padded(extent: i64) -> u32 {
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
    use super::super::samples::{H200, attention, attention_and_back};
    use super::super::{Texts, Wish};
    use super::*;
    use std::collections::HashSet;

    /// Heads one after the other, with rows of `depth` elements and a place of 8 between them.
    pub fn heads(m: i64, n: i64, depth: i64, address: u64) -> Geometry {
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

    pub fn variant(axes: &Geometry) -> Option<Variant> {
        let plan = attention();
        Variant::attention(&plan.fused[0], Part::Forward, axes, &H200)
    }

    #[test]
    fn what_cannot_be_copied_in_whole_accesses_is_left_to_steps() {
        assert!(variant(&heads(512, 512, 64, 0)).is_some());
        assert!(variant(&heads(512, 512, 64, 8)).is_none());
        assert!(variant(&heads(512, 512, 60, 0)).is_none());
        assert!(variant(&heads(512, 512, 264, 0)).is_none());
        assert!(variant(&heads(512, 0, 64, 0)).is_none());
    }

    #[test]
    fn every_device_from_8_0_on_has_a_kernel_of_halves_and_hopper_one_of_floats() {
        let plan = attention();
        let of = |capability, bytes| {
            let target = Target { capability, ..H200 };
            let axes = of(bytes, 512, 512, 64, 0);
            Variant::attention(&plan.fused[0], Part::Forward, &axes, &target).map(|variant| variant.walk)
        };
        assert!([75, 80, 86, 90, 100].map(|capability| of(capability, 4)).iter().flatten().count() == 1);
        assert!(of(75, 2).is_none());
        assert!(matches!(of(90, 2), Some(Walk::Attention { .. })));
        assert!([80, 89, 100, 120].map(|old| of(old, 2)).iter().all(|walk| matches!(walk, Some(Walk::Warps { .. }))));
    }

    #[test]
    fn the_way_back_of_halves_has_warps_off_hopper() {
        let plan = attention_and_back();
        let walks = |capability: u32, bytes: usize, width: i64| {
            let target = Target { capability, ..H200 };
            [Part::Forward, Part::Queries, Part::Keys].map(|part| {
                let mut axes = of(bytes, 512, 512, width, 0);
                axes.operands.resize(part.count(), axes.operands[1].clone());
                Variant::attention(&plan.fused[0], part, &axes, &target).map(|variant| variant.walk)
            })
        };
        let by_warps = |walks: [Option<Walk>; 3]| walks.map(|walk| matches!(walk, Some(Walk::Warps { .. })));
        assert_eq!([80, 89, 100, 120].map(|capability| by_warps(walks(capability, 2, 64))), [[true; 3]; 4]);
        assert_eq!(by_warps(walks(80, 2, 256)), [true; 3]);
        assert!(walks(90, 2, 128).iter().all(|walk| matches!(walk, Some(Walk::Attention { .. }))));
        for none in [walks(75, 2, 64), walks(80, 4, 64), walks(90, 2, 256), walks(80, 2, 264)] {
            assert_eq!(none, [None; 3]);
        }
    }

    #[test]
    fn few_queries_are_left_to_warps_on_hopper_too() {
        let by_warps = |m, n| matches!(variant(&heads(m, n, 64, 0)).expect("it has a kernel").walk, Walk::Warps { .. });
        assert_eq!([by_warps(16, 512), by_warps(17, 512), by_warps(512, 8192)], [true, false, false]);
        let mut one = heads(64, 8192, 64, 0);
        one.outer[1] = 1;
        assert!(matches!(variant(&one).expect("it has a kernel").walk, Walk::Warps { .. }));
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
    fn queries_of_any_number_share_a_text_of_two_warpgroups() {
        let plan = attention();
        let count = |sizes: &[(i64, i64)]| {
            let mut texts = Texts::default();
            let mut text = |&(m, depth): &(i64, i64)| {
                let axes = heads(m, m, depth, 0);
                let best = variant(&axes).expect("it has a kernel");
                let wish = Wish { best: &best, axes: &axes, often: false, dynamic: None };
                texts.choose(&plan.fused[0].score, wish).variant
            };
            sizes.iter().map(&mut text).collect::<HashSet<_>>().len()
        };
        assert_eq!(count(&[(512, 64), (17, 64), (4096, 64), (64, 64), (1000, 64)]), 1);
        assert_eq!(count(&[(17, 64), (64, 64), (65, 64), (4096, 64)]), 2, "one warpgroup is slow for many queries");
        assert_eq!(count(&[(512, 64), (1, 64), (16, 64), (5, 64)]), 2, "few queries have another kernel");
        assert_eq!(count(&[(512, 64), (512, 128), (100, 64), (100, 128)]), 2, "heads of another size have others");
    }

    #[test]
    fn blocks_of_floats_have_two_slots_and_fit() {
        let sizes =
            (32..=128).step_by(32).flat_map(|depth| (32..=128).step_by(32).map(move |columns| [depth, columns]));
        for (part, sizes) in
            sizes.flat_map(|sizes| [Part::Forward, Part::Queries, Part::Keys].map(|part| (part, sizes)))
        {
            let widest = sizes[0].max(sizes[1]);
            let groups = if part == Part::Forward || widest <= WIDEST_OF_TWO { 2 } else { 1 };
            let shared = shared_of_floats(part, groups, sizes);
            assert!(shared as usize <= H200.shared_per_block, "{part:?} {sizes:?}: {shared}");
            let smallest = 128 + groups * 384 * sizes[0] + 2 * 390 * widest;
            assert!(shared > smallest, "{part:?} {sizes:?}: {shared}");
        }
    }
}
