//! The variant of a kernel that the layouts of a call ask for.

use super::attention::GROUP_THREADS;
use super::geometry::{Access, Geometry};
use super::resident::{self, Target};
use super::walk::{LANES, Walk, rows_walk};
use super::{Arg, THREADS, TILE_COLUMNS, UNROLL, accumulator_bytes, arguments, ceil_div, least_chunk, value_bytes};
use crate::plan::{Kernel, Kind, Phases};
use crate::types::DType;
use serde::{Deserialize, Serialize};

/// How far apart neighbouring points of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// What a kernel's text is specialised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Bytes of dynamic shared memory a block.
    pub shared: u32,
    /// Bytes behind every [`Arg::Stage`] and [`Arg::Partial`], in argument order.
    pub scratch: Vec<(Arg, usize)>,
    /// Number of u32 counters.
    pub counters: usize,
}

/// With fewer blocks column sums wait for memory rather than read it: 4096 x 768 halves took 7.4 us on an H200 in 96.
const ENOUGH_COLUMN_BLOCKS: i64 = 256;

impl Variant {
    /// The variant for collapsed axes.
    pub fn choose(kernel: &Kernel, axes: &Geometry, target: &Target) -> Variant {
        let walked = Walked::new(kernel, axes);
        let Walked { ref steps, widest } = walked;
        let (walk, vec) = match kernel.kind {
            Kind::Row => rows_walk(kernel, axes, steps, widest, target),
            Kind::Line => (Walk::Plain, 1),
            Kind::Column => (Walk::Plain, columns_vec(axes, widest)),
            Kind::Map if steps.contains(&Step::Across) => {
                (Walk::Tiled { tile: axes.tile(kernel) }, tile_vec(axes, steps, widest))
            }
            Kind::Map => (Walk::Plain, widest),
        };
        walked.variant(kernel, axes, walk, vec)
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
            Walk::Resident { team, kept } => {
                defines.extend(["RESIDENT".into(), format!("TEAM={team}"), format!("KEPT={kept}")]);
            }
            Walk::Split => defines.push("SPLIT".into()),
            Walk::Tiled { tile } => defines.extend(["TILED".into(), format!("TILE={tile}")]),
            Walk::Strips { rows, right } => defines.extend([format!("FEW={rows}"), format!("RIGHT={}", right as u8)]),
            Walk::Slim { rows, columns, left, right } => defines.extend([
                format!("SLIM={rows}"),
                format!("STRIP={columns}"),
                format!("LEFT={}", left as u8),
                format!("RIGHT={}", right as u8),
            ]),
            Walk::Thirds { columns, shares, left, right } => defines.extend([
                format!("THIRDS={columns}"),
                format!("SHARES={}", shares as u8),
                format!("LEFT={}", left as u8),
                format!("RIGHT={}", right as u8),
            ]),
            Walk::Halves { columns, left, right } => defines.extend([
                format!("HALVES={columns}"),
                format!("LEFT={}", left as u8),
                format!("RIGHT={}", right as u8),
            ]),
            Walk::Attention { depth, columns, groups, keys, .. } => defines.extend([
                format!("HEAD_DEPTH={depth}"),
                format!("HEAD_COLUMNS={columns}"),
                format!("HEAD_GROUPS={groups}"),
                format!("HEAD_KEYS={keys}"),
                format!("HEAD_THREADS={}", GROUP_THREADS * (groups + 1)),
            ]),
            Walk::Warps { depth, columns, rows, keys, pieces, .. } => defines.extend([
                format!("HEAD_DEPTH={depth}"),
                format!("HEAD_COLUMNS={columns}"),
                format!("HEAD_ROWS={rows}"),
                format!("HEAD_KEYS={keys}"),
                format!("HEAD_PIECES={pieces}"),
                format!("HEAD_THREADS={GROUP_THREADS}"),
            ]),
            Walk::Product { tile, left, right } => defines.extend([
                format!("TILE={tile}"),
                format!("LEFT={}", left as u8),
                format!("RIGHT={}", right as u8),
            ]),
        }
        defines
    }

    /// The grid and the scratch memory for collapsed axes. There is always at least one block, which finishes what an empty walk leaves undone.
    pub fn launch(&self, kernel: &Kernel, axes: &Geometry, target: &Target) -> Launch {
        let rows = axes.rows();
        let vec = i64::from(self.vec);
        let threads = match (kernel.kind, self.walk) {
            (_, Walk::Keep { team: 32, .. }) | (Kind::Line, _) => 128,
            (_, Walk::Keep { team, .. } | Walk::Stream { team } | Walk::Resident { team, .. }) => team,
            _ => THREADS,
        };
        let chunks = self.chunks(kernel, axes.len());
        let blocks = match kernel.kind {
            Kind::Map => match self.walk {
                Walk::Tiled { tile } => axes.tiles(tile),
                _ => ceil_div(rows, vec * i64::from(threads * UNROLL)),
            },
            Kind::Line => ceil_div(rows, i64::from(threads)),
            Kind::Column => ceil_div(rows, vec * i64::from(TILE_COLUMNS)) * chunks,
            Kind::Row => match self.walk {
                Walk::Keep { team, .. } => ceil_div(rows, i64::from(threads / team)),
                Walk::Resident { .. } => resident::blocks(kernel, axes, target),
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
        let shared = match self.walk {
            Walk::Resident { .. } => resident::shared(kernel, axes) as u32,
            _ => 0,
        };
        Launch { blocks: blocks.max(1) as u64, threads, shared, scratch, counters }
    }

    /// The chunks of the canonical order that are spread over blocks.
    fn chunks(&self, kernel: &Kernel, len: i64) -> i64 {
        match (kernel.kind, self.walk) {
            (Kind::Row, Walk::Split) => {
                let blocks = ceil_div(len, least_chunk(kernel)).max(1);
                ceil_div(blocks, ceil_div(blocks, LANES))
            }
            (Kind::Column, _) => column_chunks(len),
            _ => 1,
        }
    }
}

/// What follows from the layouts, however the axes are walked.
pub(super) struct Walked {
    steps: Vec<Step>,
    /// The widest access all operands allow.
    pub(super) widest: u32,
}

impl Walked {
    pub(super) fn new(kernel: &Kernel, axes: &Geometry) -> Walked {
        let along = axis_of_threads(kernel, axes);
        let mut steps = axes.operands.iter().map(|o| step(o, along)).collect::<Vec<_>>();
        (0..kernel.leaves.len()).filter(|k| axes.is_turned(kernel, *k)).for_each(|k| steps[k] = Step::Across);
        let widest = vector(kernel, axes, &steps, along);
        Walked { steps, widest }
    }

    /// The variant that walks the axes in this way.
    pub(super) fn variant(mut self, kernel: &Kernel, axes: &Geometry, walk: Walk, vec: u32) -> Variant {
        // An access of one point looks only at whether its operand is turned: one text serves all steps. A row is long
        // enough for its positions to be worth less arithmetic.
        if vec == 1 && kernel.kind != Kind::Row {
            self.steps.iter_mut().filter(|step| **step != Step::Across).for_each(|step| *step = Step::Apart);
        }
        Variant { outer: axes.outer.len(), inner: axes.inner.len(), vec, steps: self.steps, wide: axes.is_wide(), walk }
    }
}

/// The CUDA spelling of an element type in generated text.
pub fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::F16 => "fuse_f16",
        DType::BF16 => "fuse_bf16",
        DType::F8E4M3 => "fuse_e4m3",
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

pub(super) fn step(access: &Access, along: usize) -> Step {
    match access.strides.get(along) {
        Some(0) => Step::Same,
        Some(1) => Step::Next,
        _ => Step::Apart,
    }
}

/// The widest access all operands allow, at most 16 bytes of the narrowest element type and 8 points.
pub(super) fn vector(kernel: &Kernel, axes: &Geometry, steps: &[Step], along: usize) -> u32 {
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

/// At most 4 points an access, as many as transposed operands have aligned along the axis before the last.
fn tile_vec(axes: &Geometry, steps: &[Step], widest: u32) -> u32 {
    let before = axes.outer.len() - 2;
    let turned: Vec<&Access> =
        axes.operands.iter().zip(steps).filter(|(_, step)| **step == Step::Across).map(|(o, _)| o).collect();
    let mut vec = turned.iter().map(|o| 16 / o.bytes.max(1) as u32).fold(widest.min(4), u32::min);
    while vec > 1 && !(axes.outer[before] % i64::from(vec) == 0 && turned.iter().all(|o| o.aligned(vec, before))) {
        vec /= 2;
    }
    vec
}

/// At most 4 columns a thread, for the shared memory they join in, few enough that a tile has columns for all threads, and that
/// there are enough blocks.
fn columns_vec(axes: &Geometry, widest: u32) -> u32 {
    let blocks = |vec: u32| ceil_div(axes.rows(), i64::from(vec * TILE_COLUMNS)) * column_chunks(axes.len());
    let mut vec = widest.min(4);
    while vec > 1 && (axes.rows() < i64::from(vec * TILE_COLUMNS) || blocks(vec) < ENOUGH_COLUMN_BLOCKS) {
        vec /= 2;
    }
    vec
}

/// The chunks of the canonical order of columns of so many rows.
fn column_chunks(len: i64) -> i64 {
    let chunk = ceil_div(ceil_div(len, ceil_div(len, 256).clamp(1, 256)), 256).max(1) * 256;
    ceil_div(len, chunk).max(1)
}
