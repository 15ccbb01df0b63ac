//! The variant of a kernel that the layouts of a call ask for.

use super::{Arg, THREADS, TILE_COLUMNS, TILE_PRODUCT, UNROLL, accumulator_bytes, arguments, splittable, value_bytes};
use crate::plan::{Kernel, Kind, Leaf, LeafSource, Level, Phases, View};
use crate::types::DType;

/// Elements of a block of the canonical row order.
const BLOCK: i64 = 16384;
/// Virtual lanes of the canonical row order.
const LANES: i64 = 1024;
/// Values a thread may keep of a row in registers.
const REGISTERS: i64 = 96;
/// Accesses a thread of a team that divides its row evenly has at most: every number of them is a text of its own.
const MOST_ITEMS: i64 = 16;
/// Points of a tile along each of its two axes.
const TILE: i64 = 32;
/// With fewer blocks than this a row is shared by several blocks.
const FEW_BLOCKS: i64 = 264;

/// The axes a kernel runs over, as the layouts of a call give them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Extents of the outer axes; of all axes in a map.
    pub outer: Vec<i64>,
    /// Extents of the reduced or sequential axes.
    pub inner: Vec<i64>,
    /// Leaves, then stores.
    pub operands: Vec<Access>,
}

/// How one operand is walked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Strides in elements over the outer, then the inner axes (`Elem`), over the outer axes (`Row`) or none (`All`).
    pub strides: Vec<i64>,
    /// The address of the first element; only its alignment counts. 0 for index leaves.
    pub address: u64,
    /// Bytes of an element; 0 for index leaves, which are computed and not read.
    pub bytes: usize,
    /// Whether every element is addressed on its own (gathers and scatters).
    pub indexed: bool,
}

/// How far apart neighbouring points of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// They are one element.
    Same = 0,
    /// They lie next to each other.
    Next = 1,
    /// They lie apart.
    Apart = 2,
    /// They lie apart, but neighbours along the axis before lie next to each other: the operand is transposed.
    Across = 3,
}

/// How the rows of a `Row` kernel or the points of a map are walked; other kinds have one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Several blocks share a row, the last to finish combines their chunks.
    Split,
    /// A block of a map takes a square tile of the last two axes and turns transposed operands in shared memory.
    Tiled,
}

/// What a kernel's text is specialised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Outer axes after collapsing.
    pub outer: usize,
    /// Inner axes after collapsing; 0 in maps.
    pub inner: usize,
    /// Consecutive points one access takes.
    pub vec: u32,
    /// Steps of leaves, then stores, along the axis threads run along.
    pub steps: Vec<Step>,
    /// Whether positions need 64 bits.
    pub wide: bool,
    /// How rows are walked.
    pub walk: Walk,
}

/// The grid of a launch and the memory it needs beside its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Launch {
    /// Blocks.
    pub blocks: u64,
    /// Threads a block.
    pub threads: u32,
    /// Bytes behind every [`Arg::Stage`] and [`Arg::Partial`], in argument order.
    pub scratch: Vec<(Arg, usize)>,
    /// Number of u32 counters.
    pub counters: usize,
}

impl Geometry {
    /// Merges neighbouring axes wherever every operand allows it and drops axes of extent 1; at least one axis stays in each group.
    pub fn collapse(&self, kernel: &Kernel) -> Geometry {
        let has_inner = kernel.kind != Kind::Map;
        let outer = self.merged(0..self.outer.len());
        let inner = self.merged(self.outer.len()..self.outer.len() + self.inner.len());
        let levels = kernel.leaves.iter().map(|l| l.level);
        let levels = levels.chain(kernel.stores.iter().map(|s| kernel.store_level(s)));
        let operands = self.operands.iter().zip(levels).map(|(access, level)| {
            let strides = match level {
                Level::All => vec![],
                Level::Elem if has_inner => [outer.strides_of(access), inner.strides_of(access)].concat(),
                Level::Row | Level::Elem => outer.strides_of(access),
            };
            Access { strides, ..access.clone() }
        });
        let operands = operands.collect();
        Geometry { outer: outer.extents(), inner: if has_inner { inner.extents() } else { vec![] }, operands }
    }

    fn merged(&self, axes: std::ops::Range<usize>) -> Merged {
        let all = [self.outer.as_slice(), &self.inner].concat();
        let mut merged: Vec<(i64, usize)> = vec![];
        for axis in axes.filter(|&a| all[a] != 1) {
            match merged.last_mut() {
                Some((extent, last)) if self.operands.iter().all(|o| o.mergeable(*last, axis, all[axis])) => {
                    (*extent, *last) = (*extent * all[axis], axis);
                }
                _ => merged.push((all[axis], axis)),
            }
        }
        Merged(merged)
    }

    /// The number of rows, columns, lines or (in a map) points.
    pub fn rows(&self) -> i64 {
        self.outer.iter().product()
    }

    /// The length of a row, column or line.
    pub fn len(&self) -> i64 {
        self.inner.iter().product()
    }

    /// Whether there is no point to run over.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0 || self.len() == 0
    }

    /// Whether a leaf of a map is transposed in the program's text and in memory, over extents that are worth a tile.
    fn is_turned(&self, kernel: &Kernel, leaf: usize) -> bool {
        let (info, access) = (&kernel.leaves[leaf], &self.operands[leaf]);
        let [.., before, last] = self.outer[..] else { return false };
        let [.., before_stride, last_stride] = access.strides[..] else { return false };
        is_turnable(kernel, info) && before.min(last) >= TILE / 2 && before_stride == 1 && last_stride > 1
    }

    /// The tiles of a map's last two axes.
    fn tiles(&self) -> i64 {
        let [ref rest @ .., before, last] = self.outer[..] else { unreachable!("a tiled map has two axes") };
        rest.iter().product::<i64>() * ceil_div(before, TILE) * ceil_div(last, TILE)
    }

    /// Whether some position does not fit 31 bits.
    fn is_wide(&self) -> bool {
        let all = [self.outer.as_slice(), &self.inner].concat();
        let far = |access: &Access| {
            let reach: i128 =
                access.strides.iter().zip(&all).map(|(s, n)| i128::from(s.abs()) * i128::from(n - 1).max(0)).sum();
            reach >= 1 << 31
        };
        let points: i128 = all.iter().map(|&n| i128::from(n)).product();
        points >= (1 << 31) - (1 << 20) || self.operands.iter().any(far)
    }
}

/// Axes after merging: the extent and the last original axis of each.
struct Merged(Vec<(i64, usize)>);

impl Merged {
    fn extents(&self) -> Vec<i64> {
        if self.0.is_empty() { vec![1] } else { self.0.iter().map(|(extent, _)| *extent).collect() }
    }

    fn strides_of(&self, access: &Access) -> Vec<i64> {
        if self.0.is_empty() { vec![0] } else { self.0.iter().map(|(_, axis)| access.strides[*axis]).collect() }
    }
}

impl Access {
    /// Whether walking `outer` and then `inner` is one walk. An operand that does not see the axes does not mind.
    fn mergeable(&self, outer: usize, inner: usize, inner_extent: i64) -> bool {
        match (self.strides.get(outer), self.strides.get(inner)) {
            (Some(o), Some(i)) => *o == i * inner_extent,
            _ => true,
        }
    }

    /// Whether accesses of `vec` neighbouring elements are aligned wherever the walk leads.
    fn aligned(&self, vec: u32, along: usize) -> bool {
        let access = (u64::from(vec) * self.bytes as u64).min(16);
        let far = self.strides.iter().enumerate().filter(|(axis, _)| *axis != along);
        let bytes = |stride: i64| stride.unsigned_abs() * self.bytes as u64;
        self.address.is_multiple_of(access) && far.into_iter().all(|(_, s)| bytes(*s).is_multiple_of(access))
    }
}

impl Variant {
    /// The variant for collapsed axes.
    pub fn choose(kernel: &Kernel, axes: &Geometry) -> Variant {
        let along = axis_of_threads(kernel, axes);
        let mut steps = axes.operands.iter().map(|o| step(o, along)).collect::<Vec<_>>();
        (0..kernel.leaves.len()).filter(|k| axes.is_turned(kernel, *k)).for_each(|k| steps[k] = Step::Across);
        let widest = vector(kernel, axes, &steps, along);
        let (walk, vec) = match kernel.kind {
            Kind::Row => rows_walk(kernel, axes, widest),
            Kind::Line => (Walk::Plain, 1),
            Kind::Column => (Walk::Plain, columns_vec(axes, widest)),
            Kind::Map if steps.contains(&Step::Across) => (Walk::Tiled, 1),
            Kind::Map => (Walk::Plain, widest),
        };
        // An access of one point looks only at whether its operand is turned: one text serves all steps. A row is long
        // enough for its positions to be worth less arithmetic.
        if vec == 1 && kernel.kind != Kind::Row {
            steps.iter_mut().filter(|step| **step != Step::Across).for_each(|step| *step = Step::Apart);
        }
        Variant { outer: axes.outer.len(), inner: axes.inner.len(), vec, steps, wide: axes.is_wide(), walk }
    }

    /// The variant of a matmul template: all axes of the product, one element an access.
    pub fn product(epilogue: &Kernel) -> Variant {
        let operands = epilogue.leaves.len() + epilogue.stores.len();
        let steps = vec![Step::Apart; operands];
        Variant { outer: super::BATCH_AXES + 2, inner: 0, vec: 1, steps, wide: true, walk: Walk::Plain }
    }

    /// The defines that specialise the text: this kernel, its element types and this variant, without the leading `-D`.
    pub fn defines(&self, kernel: &Kernel, params: &[DType]) -> Vec<String> {
        let mut defines = vec![format!("KERNEL_{}", kernel.name)];
        for (n, dtype) in params.iter().enumerate() {
            defines.push(format!("T{n}={}", c_type(*dtype)));
            defines.push(format!("C{n}={}", c_type(dtype.compute())));
        }
        defines.push(format!("RANK={}", self.outer));
        if self.inner > 0 {
            defines.push(format!("INNER_RANK={}", self.inner));
        }
        defines.push(format!("VEC={}", self.vec));
        let steps = self.steps.iter().enumerate();
        defines.extend(steps.map(|(operand, step)| format!("STEP_{operand}={}", *step as u8)));
        defines.push(format!("IDX={}", if self.wide { "long long" } else { "int" }));
        match self.walk {
            Walk::Plain => {}
            Walk::Keep { team, items, whole } => {
                defines.extend([format!("TEAM={team}"), format!("ITEMS={items}"), format!("WHOLE={}", whole as u8)]);
            }
            Walk::Stream { team } => defines.extend(["STREAM".into(), format!("TEAM={team}")]),
            Walk::Split => defines.push("SPLIT".into()),
            Walk::Tiled => defines.push("TILED".into()),
        }
        defines
    }

    /// The grid and the scratch memory for collapsed axes. There is always at least one block, which finishes what an empty walk leaves undone.
    pub fn launch(&self, kernel: &Kernel, axes: &Geometry) -> Launch {
        let rows = axes.rows();
        let vec = i64::from(self.vec);
        let threads = match (kernel.kind, self.walk) {
            (_, Walk::Keep { team: 32, .. }) | (Kind::Line, _) => 128,
            (_, Walk::Keep { team, .. } | Walk::Stream { team }) => team,
            _ => THREADS,
        };
        let chunks = self.chunks(kernel, axes.len());
        let blocks = match kernel.kind {
            Kind::Map if self.walk == Walk::Tiled => axes.tiles(),
            Kind::Map => ceil_div(rows, vec * i64::from(threads * UNROLL)),
            Kind::Line => ceil_div(rows, i64::from(threads)),
            Kind::Column => ceil_div(rows, vec * i64::from(TILE_COLUMNS)) * chunks,
            Kind::Row => match self.walk {
                Walk::Keep { team, .. } => ceil_div(rows, i64::from(threads / team)),
                _ => rows * chunks,
            },
        };
        let scratch = arguments(kernel).into_iter().filter_map(|arg| {
            let bytes = match arg {
                Arg::Stage(stmt) => value_bytes(kernel, stmt) * rows as usize,
                Arg::Partial(stmt) if chunks > 1 || self.walk == Walk::Split => {
                    accumulator_bytes(kernel, stmt) * (rows * chunks) as usize
                }
                Arg::Partial(_) => 0,
                _ => return None,
            };
            Some((arg, bytes))
        });
        let scratch = scratch.collect();
        let counters = match (kernel.kind, self.walk) {
            (Kind::Row, Walk::Split) => rows as usize + 1,
            (Kind::Column, _) => ceil_div(rows, vec * i64::from(TILE_COLUMNS)) as usize + 1,
            _ => usize::from(Phases::of(kernel).has_finish()),
        };
        Launch { blocks: blocks.max(1) as u64, threads, scratch, counters }
    }

    /// The grid of a matmul template.
    pub fn launch_product(&self, batch: i64, m: i64, n: i64) -> Launch {
        let tile = i64::from(TILE_PRODUCT);
        let blocks = batch * ceil_div(m, tile) * ceil_div(n, tile);
        Launch { blocks: blocks.max(1) as u64, threads: THREADS, scratch: vec![], counters: 0 }
    }

    /// The chunks of the canonical order that are spread over blocks.
    fn chunks(&self, kernel: &Kernel, len: i64) -> i64 {
        match (kernel.kind, self.walk) {
            (Kind::Row, Walk::Split) => {
                let blocks = ceil_div(len, BLOCK).max(1);
                ceil_div(blocks, ceil_div(blocks, LANES))
            }
            (Kind::Column, _) => {
                let chunk = ceil_div(ceil_div(len, ceil_div(len, 256).clamp(1, 256)), 256).max(1) * 256;
                ceil_div(len, chunk).max(1)
            }
            _ => 1,
        }
    }
}

/// Whether a leaf is read through a written transposition, so that the text has a body that turns tiles.
pub fn is_turnable(kernel: &Kernel, leaf: &Leaf) -> bool {
    let permuted = leaf.views.iter().any(|v| matches!(v, View::Permute(_)));
    let plain = matches!(leaf.source, LeafSource::Buf(_)) && leaf.indexed.is_none() && leaf.level == Level::Elem;
    kernel.kind == Kind::Map && permuted && plain
}

/// The CUDA spelling of an element type in generated text.
pub fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::F16 => "fuse_f16",
        DType::BF16 => "fuse_bf16",
        DType::I64 => "long long",
        DType::I32 => "int",
        DType::U8 => "unsigned char",
        DType::Bool => "bool",
        generic => generic.name(),
    }
}

/// The axis neighbouring threads run along: the last of a row, in columns and lines the last outer one.
fn axis_of_threads(kernel: &Kernel, axes: &Geometry) -> usize {
    match kernel.kind {
        Kind::Row => axes.outer.len() + axes.inner.len() - 1,
        Kind::Map | Kind::Column | Kind::Line => axes.outer.len() - 1,
    }
}

fn step(access: &Access, along: usize) -> Step {
    match access.strides.get(along) {
        Some(0) => Step::Same,
        Some(1) => Step::Next,
        _ => Step::Apart,
    }
}

/// The widest access all operands allow, at most 16 bytes of the narrowest element type and 8 points.
fn vector(kernel: &Kernel, axes: &Geometry, steps: &[Step], along: usize) -> u32 {
    let read: Vec<&Access> = axes
        .operands
        .iter()
        .zip(steps)
        .filter(|(o, step)| **step == Step::Next && o.bytes > 0 && !o.indexed)
        .map(|(o, _)| o)
        .collect();
    let Some(narrowest) = read.iter().map(|o| o.bytes).min() else { return 1 };
    let extent = *[axes.outer.as_slice(), &axes.inner].concat().get(along).unwrap_or(&1);
    // A map over one axis has a scalar tail; every other walk needs whole accesses.
    let tail_is_fine = kernel.kind == Kind::Map && axes.outer.len() == 1;
    let whole = |vec: u32| tail_is_fine || extent % i64::from(vec) == 0;
    let one_inner_axis = kernel.kind != Kind::Row || axes.inner.len() == 1;
    let mut vec = (16 / narrowest as u32).clamp(1, 8);
    while vec > 1 && !(one_inner_axis && whole(vec) && read.iter().all(|o| o.aligned(vec, along))) {
        vec /= 2;
    }
    vec
}

/// How rows are walked: short ones by a warp each, middling ones by a block that keeps them, long ones once a phase, few long ones by many blocks.
fn rows_walk(kernel: &Kernel, axes: &Geometry, widest: u32) -> (Walk, u32) {
    let phases = Phases::of(kernel);
    let (rows, len) = (axes.rows(), axes.len());
    if len > BLOCK && rows < FEW_BLOCKS && splittable(&phases) {
        return (Walk::Split, widest.min(4));
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

/// At most 4 columns a thread, for the shared memory they join in, and few enough that a tile has columns for all threads.
fn columns_vec(axes: &Geometry, widest: u32) -> u32 {
    let mut vec = widest.min(4);
    while vec > 1 && axes.rows() < i64::from(vec * TILE_COLUMNS) {
        vec /= 2;
    }
    vec
}

fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}
