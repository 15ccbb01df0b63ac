//! Every generated text compiles: each kernel, in the variants its layouts can ask for, for three generations of devices.
//!
//! Machine code is made once for every kernel, and once for every way of walking; it takes as long as all before it, and what only
//! the assembler checks stands in helpers that the other texts have too.
//!
//! Needs NVRTC in the library path or its file in `FUSE_NVRTC`; needs no GPU.

mod programs;

use fuse_compiler::emit::cuda;
use fuse_compiler::plan::Step as PlanStep;
use fuse_compiler::plan::abi::{self, BATCH_AXES, Lie, Part, Step, Variant, Walk, is_turnable};
use fuse_compiler::plan::{Fused, Kernel, Kind, Phases, Plan, verify};
use fuse_compiler::types::DType;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::num::NonZero;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const ARCHITECTURES: [&str; 3] = ["compute_75", "sm_80", "sm_90a"];

#[test]
fn every_kernel_compiles_in_every_variant() {
    let Some(nvrtc) = Nvrtc::find() else {
        assert!(std::env::var_os("FUSE_REQUIRE_NVRTC").is_none(), "NVRTC is required and not in the library path");
        eprintln!("skipped: NVRTC is not in the library path and FUSE_NVRTC is not set");
        return;
    };
    let only = std::env::var("FUSE_ONLY").ok();
    let programs = [programs::all(), vec![("scaled_matmul", programs::scaled_matmul().plan)]].concat();
    let (next, assembled) = (AtomicUsize::new(0), Assembled::default());
    let work = || {
        while let Some((name, plan)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
                every_variant_compiles(&nvrtc, &assembled, name, plan);
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
}

/// Programs that bring kernels of others together, or repeat them for another type: one variant of each way of walking will do.
const ALIKE: [&str; 9] = [
    "argmax_u8",
    "attention_training_masked",
    "dropout_of_sums",
    "dropout_twice",
    "gate_up_f32",
    "linear_relu_generic",
    "norm_residual",
    "projections_generic",
    "softmax_generic",
];

/// Programs whose kernels between them have every way of walking.
const NAMED: [&str; 5] = ["cross_entropy", "column_sum", "linear_relu_f32", "gate_up", "attention_fused"];

#[test]
fn a_variable_may_be_called_what_a_text_calls_something_of_its_own() {
    let Some(nvrtc) = Nvrtc::find() else { return };
    let all = programs::all();
    let named = NAMED.map(|name| all.iter().find(|(own, _)| *own == name).expect("there is such a program"));
    let rounds: Vec<(&str, Plan)> =
        named.iter().flat_map(|(name, plan)| renamed(plan).map(|plan| (*name, plan))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((name, plan)) = rounds.get(next.fetch_add(1, Ordering::Relaxed)) {
            every_walk_compiles(&nvrtc, name, plan);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
}

/// The plan with its buffers and values named after words of its kernels' texts, as often as it takes until all have been names.
fn renamed(plan: &Plan) -> impl Iterator<Item = Plan> {
    let text = cuda::text(plan);
    let kernels = text.split_once("#if defined(KERNEL_").expect("there is a kernel").1.to_owned();
    let is_word = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.starts_with("fuse_");
    let words = kernels.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_word);
    let words: BTreeSet<String> = words.map(str::to_owned).collect();
    let words: Vec<String> = words.into_iter().collect();
    let count = names(&mut plan.clone()).len();
    let plans: Vec<Plan> = words
        .chunks(count)
        .map(|words| {
            let mut plan = plan.clone();
            names(&mut plan).into_iter().zip(words).for_each(|(name, word)| word.clone_into(name));
            plan
        })
        .collect();
    plans.into_iter()
}

/// Where the names of buffers and of values stand.
fn names(plan: &mut Plan) -> Vec<&mut String> {
    let bufs = plan.bufs.iter_mut().map(|buf| &mut buf.name);
    let stmts = plan.steps.iter_mut().flat_map(PlanStep::kernels_mut).flat_map(|kernel| &mut kernel.stmts);
    bufs.chain(stmts.map(|stmt| stmt.name.get_or_insert_default())).collect()
}

/// Every kernel in one variant of each way of walking.
fn every_walk_compiles(nvrtc: &Nvrtc, name: &str, plan: &Plan) {
    let text = cuda::text(plan);
    for (kernel, variants) in kernels(plan) {
        for variant in one_of_each_walk(variants) {
            let defines = variant.defines(kernel, &[]);
            if let Err(log) = nvrtc.compile(&text, &defines, "compute_90a") {
                panic!("{name}, {} with {defines:?}:\n{log}\n{}", kernel.name, numbered(&text));
            }
        }
    }
}

/// The first variant of each way of walking.
fn one_of_each_walk(mut variants: Vec<Variant>) -> Vec<Variant> {
    let mut seen = HashSet::new();
    variants.retain(|variant| seen.insert(std::mem::discriminant(&variant.walk)));
    variants
}

/// What there is machine code of.
#[derive(Default)]
struct Assembled(Mutex<HashSet<String>>);

impl Assembled {
    /// The architecture to compile for: as far as machine code, if a kernel or a way of walking these types has none yet.
    fn target(&self, of: [String; 2], arch: &str) -> String {
        let mut all = self.0.lock().expect("no thread panics with it");
        let is_new = arch.starts_with("sm_") && of.map(|text| all.insert(text)).contains(&true);
        if is_new { arch.to_owned() } else { arch.replace("sm_", "compute_") }
    }
}

fn every_variant_compiles(nvrtc: &Nvrtc, assembled: &Assembled, name: &str, plan: &Plan) {
    let types: BTreeSet<&str> = plan.bufs.iter().map(|buf| buf.ty.dtype.name()).collect();
    verify::verify(plan);
    list_compiles(nvrtc, name, plan);
    small_kernels_compile(nvrtc, name, plan);
    let text = cuda::text(plan);
    for (kernel, mut variants) in kernels(plan) {
        if ALIKE.contains(&name) {
            variants = one_of_each_walk(variants);
        }
        let pairs = variants.iter().enumerate().flat_map(|(k, variant)| {
            let own = own_architectures(variant);
            own.unwrap_or(&ARCHITECTURES[k % 3..][..1]).iter().map(move |arch| (variant, arch))
        });
        let pairs: Vec<_> = pairs.filter(|(variant, arch)| exists(plan, kernel, variant, arch)).collect();
        // The plain ones come last, and are the fastest to assemble.
        for (variant, arch) in pairs.into_iter().rev() {
            for params in instances(plan).into_iter().filter(|params| suits(variant, params)) {
                let defines = variant.defines(kernel, &params);
                let own = format!("{name} {} {params:?}", kernel.name);
                let way = format!("{:?} {:?} {types:?} {params:?} {arch}", kernel.kind, variant.walk);
                let target = assembled.target([own, way], arch);
                if let Err(log) = nvrtc.compile(&text, &defines, &target) {
                    panic!("{name}, {} for {arch} with {defines:?}:\n{log}\n{}", kernel.name, numbered(&text));
                }
            }
        }
    }
}

/// The text that launches a map for a list, in each room.
fn list_compiles(nvrtc: &Nvrtc, name: &str, plan: &Plan) {
    let Some(kernel) = abi::list::kernel(plan) else { return };
    let text = cuda::list(plan, kernel);
    let steps = vec![Step::Next; kernel.leaves.len() + kernel.stores.len()];
    let variant = Variant { outer: 1, inner: 0, vec: 4, steps, wide: false, walk: Walk::Plain };
    for ((room, arch), params) in abi::list::ROOMS.iter().zip(ARCHITECTURES).zip(instances(plan).iter().cycle()) {
        let generics = variant.defines(kernel, params).into_iter().filter(|define| define.starts_with(['T', 'C']));
        let defines: Vec<String> = abi::list::defines(kernel, &variant, *room).into_iter().chain(generics).collect();
        if let Err(log) = nvrtc.compile(&text, &defines, arch) {
            panic!("{name}, a list of {} for {arch} with {defines:?}:\n{log}\n{}", kernel.name, numbered(&text));
        }
    }
}

/// The texts that launch several small kernels, each in a variant of its own.
fn small_kernels_compile(nvrtc: &Nvrtc, name: &str, plan: &Plan) {
    let text = cuda::text(plan);
    for small in &plan.small {
        let all: Vec<Vec<Variant>> = small.steps(plan).map(small_walks).collect();
        for ((n, arch), params) in ARCHITECTURES.iter().enumerate().zip(instances(plan).iter().cycle()) {
            let variants = all.iter().enumerate().map(|(k, own)| &own[(n + k) % own.len()]);
            let pairs: Vec<(&Kernel, &Variant)> = small.steps(plan).zip(variants).collect();
            let defines = abi::small::defines(&small.name, &pairs, params);
            if let Err(log) = nvrtc.compile(&text, &defines, arch) {
                panic!("{name}, {} for {arch} with {defines:?}:\n{log}\n{}", small.name, numbered(&text));
            }
        }
    }
}

/// The variants that may share a launch.
fn small_walks(kernel: &Kernel) -> Vec<Variant> {
    let is_small = |walk: Walk| matches!(walk, Walk::Plain | Walk::Keep { team: 32 | 256, .. });
    variants(kernel).into_iter().filter(|variant| is_small(variant.walk) && !variant.wide).collect()
}

/// The only generations of devices that have the instructions of a variant.
fn own_architectures(variant: &Variant) -> Option<&'static [&'static str]> {
    match variant.walk {
        Walk::Thirds { .. } | Walk::Halves { .. } | Walk::Attention { .. } => Some(&ARCHITECTURES[2..]),
        Walk::Warps { rows: 16, .. } => Some(&ARCHITECTURES[1..]),
        Walk::Warps { .. } => Some(&ARCHITECTURES[1..2]),
        _ => None,
    }
}

/// Whether what generic types stand for can be multiplied so.
fn suits(variant: &Variant, params: &[DType]) -> bool {
    params.iter().all(|dtype| match variant.walk {
        Walk::Thirds { .. } => *dtype == DType::F32,
        Walk::Attention { part, depth, columns, groups, keys, .. } => {
            let sizes = &(depth, columns, groups, keys);
            let of_floats = FLOATS_BACK.contains(sizes) || part == Part::Forward && FLOATS.contains(sizes);
            // The way back of halves is compiled where it is of halves alone.
            if *dtype == DType::F32 {
                of_floats || part == Part::Drops
            } else {
                dtype.is_half() && !FLOATS_BACK.contains(sizes)
            }
        }
        Walk::Halves { .. } | Walk::Slim { .. } | Walk::Warps { .. } => dtype.is_half(),
        _ => true,
    })
}

/// Copies to shared memory that go on behind a thread came with compute capability 8.0, for at least 4 bytes at a time.
fn exists(plan: &Plan, kernel: &Kernel, variant: &Variant, arch: &str) -> bool {
    let is_small =
        |leaf: usize| kernel.leaves[leaf].buf().is_some_and(|buf| plan.bufs[buf.0 as usize].ty.dtype.bytes() == 1);
    let large = || variant.vec >= 4 || !abi::resident_leaves(kernel).into_iter().any(is_small);
    !matches!(variant.walk, Walk::Resident { .. }) || arch == ARCHITECTURES[2] || arch == ARCHITECTURES[1] && large()
}

/// What generic types stand for.
fn instances(plan: &Plan) -> Vec<Vec<DType>> {
    let generic = plan.bufs.iter().any(|b| matches!(b.ty.dtype, DType::Param(_)));
    if generic { vec![vec![DType::F32], vec![DType::F64], vec![DType::F16], vec![DType::BF16]] } else { vec![vec![]] }
}

fn kernels(plan: &Plan) -> Vec<(&Kernel, Vec<Variant>)> {
    let mut found = vec![];
    // The steps of attention in training are compiled where it is of halves.
    let is_again = |fused: &Fused| fused.back.is_some() && fused.steps.steps(plan).2.dtype.is_generic();
    let steps = if plan.fused.iter().any(is_again) { &[][..] } else { &plan.steps[..] };
    for step in steps {
        match step {
            PlanStep::Kernel(kernel) => found.push((kernel, variants(kernel))),
            PlanStep::Matmul(m) => {
                found.push((&m.epilogue, products(&m.epilogue, m.dtype)));
                found.extend(m.lib.rest.as_ref().map(|rest| (rest, variants(rest))));
            }
        }
    }
    for products in &plan.products {
        let dtype = products.steps(plan).next().expect("there are several").dtype;
        found.push((&products.program, several_products(&products.program, dtype, products.count)));
    }
    for fused in &plan.fused {
        let back: &[Part] = if fused.back.is_some() { &Part::BACK } else { &[] };
        let parts = Part::forward(fused).iter().chain(back);
        found.extend(parts.map(|part| (part.program(fused), attentions(plan, fused, *part))));
    }
    found
}

/// Sizes of heads, warpgroups and keys of a block that attention of halves, and of floats, may have, and their ways back.
const HALVES: [(u32, u32, u32, u32); 4] = [(64, 64, 3, 128), (128, 128, 2, 128), (96, 32, 1, 128), (256, 160, 2, 64)];
const FLOATS: [(u32, u32, u32, u32); 3] = [(64, 64, 2, 64), (128, 128, 2, 64), (96, 32, 1, 64)];
const BACK: [(u32, u32, u32, u32); 3] = FLOATS;
const FLOATS_BACK: [(u32, u32, u32, u32); 2] = [(64, 32, 2, 64), (96, 128, 1, 64)];

/// The same of attention by warps: elements of a row of keys and of values, rows of a tile and of what goes past it, pieces. With a way
/// back there are no small tiles.
const WARPS: [(u32, u32, u32, u32, u32); 3] = [(64, 64, 16, 64, 4), (96, 32, 128, 64, 2), (256, 160, 64, 32, 2)];
const WARPS_OF_QUERIES: [(u32, u32, u32, u32, u32); 3] =
    [(64, 64, 64, 64, 2), (96, 128, 64, 32, 2), (256, 160, 64, 16, 2)];
const WARPS_OF_KEYS: [(u32, u32, u32, u32, u32); 3] =
    [(64, 64, 64, 64, 2), (128, 96, 64, 16, 2), (256, 160, 32, 32, 2)];

/// Every number of groups, and heads of every way of padding.
fn attentions(plan: &Plan, fused: &Fused, part: Part) -> Vec<Variant> {
    let program = part.program(fused);
    let operands = program.leaves.len() + program.stores.len();
    let with = |walk, wide| Variant {
        outer: BATCH_AXES + 2,
        inner: 0,
        vec: 1,
        steps: vec![if part == Part::Drops { Step::Next } else { Step::Apart }; operands],
        wide,
        walk,
    };
    let of = |&(depth, columns, groups, keys): &(u32, u32, u32, u32)| {
        with(Walk::Attention { part, depth, columns, groups, keys, is_causal: true }, groups == 1)
    };
    let keeps = fused.back.is_some();
    let of_warps = |&(depth, columns, rows, keys, pieces): &(u32, u32, u32, u32, u32)| {
        with(Walk::Warps { part, depth, columns, rows, keys, pieces, is_causal: true, keeps }, rows == 64)
    };
    let (.., values) = fused.steps.steps(plan);
    let all: Vec<_> = match values.dtype {
        _ if part == Part::Drops => vec![&(0, 0, 1, 0)],
        DType::F32 | DType::Param(_) if fused.back.is_some() => FLOATS_BACK.iter().collect(),
        _ if part != Part::Forward => BACK.iter().collect(),
        _ if fused.back.is_some() => HALVES.iter().collect(),
        DType::F32 => FLOATS.iter().collect(),
        DType::Param(_) => HALVES.iter().chain(&FLOATS).collect(),
        _ => HALVES.iter().collect(),
    };
    let by_warps = match part {
        _ if values.dtype == DType::F32 => &[][..],
        Part::Drops => &[],
        Part::Forward => &WARPS[usize::from(keeps)..],
        // Generic ones are compiled where they are of halves alone.
        _ if values.dtype.is_generic() => &[],
        Part::Queries => &WARPS_OF_QUERIES,
        Part::Keys => &WARPS_OF_KEYS,
    };
    all.into_iter().map(of).chain(by_warps.iter().map(of_warps)).collect()
}

/// Dense and strided, narrow and wide, and every way of walking rows.
fn variants(kernel: &Kernel) -> Vec<Variant> {
    let operands = kernel.leaves.len() + kernel.stores.len();
    let inner = usize::from(kernel.kind != Kind::Map);
    let of =
        |outer, inner, vec, step, wide, walk| Variant { outer, inner, vec, steps: vec![step; operands], wide, walk };
    let splits = abi::arguments(kernel).iter().any(|arg| matches!(arg, abi::Arg::Partial(_)));
    let draws = kernel.stmts.iter().any(|stmt| stmt.expr.is_draw());
    let keeps = Phases::of(kernel).walks.len() > 1 && !abi::resident_leaves(kernel).is_empty();
    let walks = match kernel.kind {
        Kind::Row => [
            Walk::Keep { team: 32, items: 2, whole: false },
            Walk::Keep { team: 64, items: 3, whole: true },
            Walk::Keep { team: 128, items: 4, whole: false },
            Walk::Keep { team: 256, items: 16, whole: true },
            Walk::Resident { team: 512, kept: 0 },
            Walk::Resident { team: 512, kept: 2 },
            Walk::Stream { team: 256 },
            Walk::Stream { team: 512 },
            Walk::Stream { team: 1024 },
            Walk::Split,
        ]
        .into_iter()
        .filter(|walk| splits || *walk != Walk::Split)
        .filter(|walk| keeps || !matches!(walk, Walk::Resident { .. }))
        .filter(|walk| !draws || !matches!(walk, Walk::Resident { kept: 1.., .. }))
        .collect(),
        Kind::Map if kernel.leaves.iter().any(|l| is_turnable(kernel, l)) => {
            vec![Walk::Plain, Walk::Tiled { tile: 64 }, Walk::Tiled { tile: 32 }]
        }
        _ => vec![Walk::Plain],
    };
    let mut variants = vec![];
    for walk in walks {
        let vec = match (kernel.kind, walk) {
            (Kind::Line, _) => 1,
            (_, Walk::Keep { team: 128, .. }) => 8,
            (_, Walk::Stream { team: 1024 }) => 1,
            (_, Walk::Stream { team: 512 }) => 2,
            _ => 4,
        };
        if matches!(walk, Walk::Tiled { .. }) {
            variants.push(of(2, 0, 4, Step::Across, false, walk));
            variants.push(of(2, 0, 1, Step::Across, false, walk));
            variants.push(of(3, 0, 2, Step::Apart, true, walk));
            continue;
        }
        if matches!(walk, Walk::Resident { .. }) {
            let kept = [(1, false), (2, true), (3, false)];
            variants.extend(kept.map(|(outer, wide)| of(outer, inner, 2, Step::Next, wide, walk)));
            continue;
        }
        variants.push(of(1, inner, vec, Step::Next, false, walk));
        variants.push(of(3, 2 * inner, 1, Step::Apart, false, walk));
        variants.push(of(2, inner, 1, Step::Same, true, walk));
    }
    variants
}

/// The ways of a product that several products have, in tiles with columns for all of them.
fn several_products(program: &Kernel, dtype: DType, count: u32) -> Vec<Variant> {
    let is_there = |variant: &Variant| match variant.walk {
        Walk::Thirds { columns, .. } => columns % (32 * count) == 0,
        Walk::Halves { columns, .. } => columns % (64 * count) == 0,
        Walk::Strips { right, .. } => right != Lie::Apart,
        Walk::Slim { .. } => true,
        _ => false,
    };
    products(program, dtype).into_iter().filter(is_there).collect()
}

/// Every way an operand can lie, in each size of tiles, one for each generation of devices.
fn products(epilogue: &Kernel, dtype: DType) -> Vec<Variant> {
    let operands = epilogue.leaves.len() + epilogue.stores.len();
    let of = |tile, left, right, vec, step, wide| Variant {
        outer: BATCH_AXES + 2,
        inner: 0,
        vec,
        steps: vec![step; operands],
        wide,
        walk: Walk::Product { tile, left, right },
    };
    let strips = |rows, right, vec| Variant {
        walk: Walk::Strips { rows, right },
        ..of(0, Lie::Apart, Lie::Apart, vec, Step::Next, false)
    };
    let thirds = |columns, left, right, vec, step, wide| Variant {
        walk: Walk::Thirds { columns, shares: vec == 4 || vec == 1, left, right },
        ..of(0, left, right, vec, step, wide)
    };
    let mut few = vec![];
    if dtype == DType::F32 || dtype.is_generic() {
        few.extend([
            thirds(192, Lie::AlongK, Lie::Across, 4, Step::Next, false),
            thirds(192, Lie::Across, Lie::AlongK, 1, Step::Apart, false),
            thirds(128, Lie::Across, Lie::Across, 2, Step::Next, true),
            thirds(128, Lie::Apart, Lie::Apart, 1, Step::Apart, false),
        ]);
    }
    let slim = |rows, columns, left, right, vec| Variant {
        walk: Walk::Slim { rows, columns, left, right },
        ..of(0, left, right, vec, Step::Next, false)
    };
    let halves = |columns, left, right, vec, step, wide| Variant {
        walk: Walk::Halves { columns, left, right },
        ..of(0, left, right, vec, step, wide)
    };
    if dtype.is_half() || dtype.is_generic() {
        few.extend([
            halves(256, Lie::AlongK, Lie::Across, 8, Step::Next, false),
            halves(192, Lie::Across, Lie::AlongK, 1, Step::Apart, false),
            halves(128, Lie::Across, Lie::Across, 4, Step::Next, true),
        ]);
        few.extend([
            slim(1, 16, Lie::AlongK, Lie::AlongK, 2),
            slim(4, 2, Lie::Apart, Lie::AlongK, 1),
            slim(2, 8, Lie::AlongK, Lie::AlongK, 2),
            slim(1, 64, Lie::Apart, Lie::Across, 2),
            slim(4, 64, Lie::AlongK, Lie::Across, 1),
        ]);
    }
    if dtype == DType::F8E4M3 {
        few.extend([
            halves(256, Lie::AlongK, Lie::AlongK, 8, Step::Next, false),
            halves(192, Lie::AlongK, Lie::AlongK, 1, Step::Apart, false),
            halves(128, Lie::AlongK, Lie::AlongK, 4, Step::Next, true),
        ]);
    }
    if !dtype.is_narrow() {
        few.extend([strips(1, Lie::Across, 2), strips(16, Lie::AlongK, 1), strips(4, Lie::Apart, 2)]);
        few.extend([strips(16, Lie::Across, 1), strips(1, Lie::AlongK, 2), strips(16, Lie::Apart, 1)]);
    }
    let large = if dtype.bytes() == 8 || dtype.is_generic() { 64 } else { 128 };
    few.extend([
        of(large, Lie::AlongK, Lie::Across, 2, Step::Next, false),
        of(64, Lie::Across, Lie::AlongK, 1, Step::Apart, false),
        of(large, Lie::Apart, Lie::Apart, 2, Step::Next, true),
    ]);
    few
}

fn numbered(text: &str) -> String {
    text.lines().enumerate().map(|(n, line)| format!("{:4} {line}\n", n + 1)).collect()
}

type Program = *mut c_void;

/// The first version of NVRTC that can leave out most of what its optimiser does.
const KNOWS_FAST: (c_int, c_int) = (12, 9);

/// The part of NVRTC that compiles.
struct Nvrtc {
    library: libloading::Library,
}

impl Nvrtc {
    fn find() -> Option<Nvrtc> {
        let named = std::env::var("FUSE_NVRTC").ok();
        let candidates = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(str::to_owned);
        let names = named.into_iter().chain(candidates);
        // SAFETY: loading NVRTC runs its initialisers, which need nothing.
        names
            .into_iter()
            .find_map(|name| unsafe { libloading::Library::new(name) }.ok())
            .map(|library| Nvrtc { library })
    }

    fn version(&self) -> (c_int, c_int) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the signature is that of nvrtc.h, and both pointers live through the call.
        unsafe {
            type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
            let version: libloading::Symbol<'_, Version> = self.library.get(b"nvrtcVersion").expect("NVRTC has it");
            assert_eq!(version(&mut major, &mut minor), 0, "NVRTC knows its version");
        }
        (major, minor)
    }

    fn compile(&self, text: &str, defines: &[String], arch: &str) -> Result<(), String> {
        let source = CString::new(text).expect("generated text has no NUL");
        let mut options = vec![
            format!("--gpu-architecture={arch}"),
            "-std=c++17".into(),
            "-fmad=false".into(),
            "-default-device".into(),
        ];
        if arch.starts_with("compute_") && self.version() >= KNOWS_FAST {
            // What the optimiser would make of it is not looked at.
            options.push("--Ofast-compile=max".into());
        }
        options.extend(defines.iter().map(|d| format!("-D{d}")));
        let options: Vec<CString> =
            options.into_iter().map(|o| CString::new(o).expect("options have no NUL")).collect();
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the signatures are those of nvrtc.h, every pointer lives through its call, and the program is destroyed once.
        unsafe {
            type Create = unsafe extern "C" fn(
                *mut Program,
                *const c_char,
                *const c_char,
                c_int,
                *const *const c_char,
                *const *const c_char,
            ) -> c_int;
            let create: libloading::Symbol<'_, Create> = self.library.get(b"nvrtcCreateProgram").expect("NVRTC has it");
            type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
            let compile: libloading::Symbol<'_, Compile> =
                self.library.get(b"nvrtcCompileProgram").expect("NVRTC has it");
            type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
            let destroy: libloading::Symbol<'_, Destroy> =
                self.library.get(b"nvrtcDestroyProgram").expect("NVRTC has it");
            let mut program: Program = ptr::null_mut();
            let made = create(&mut program, source.as_ptr(), c"kernels.cu".as_ptr(), 0, ptr::null(), ptr::null());
            assert_eq!(made, 0, "NVRTC makes a program of any text");
            let result = match compile(program, pointers.len() as c_int, pointers.as_ptr()) {
                0 => Ok(()),
                _ => Err(self.log(program)),
            };
            destroy(&mut program);
            result
        }
    }

    /// # Safety
    /// The program has been compiled and not destroyed.
    unsafe fn log(&self, program: Program) -> String {
        // SAFETY: as promised; the log has the size NVRTC names, its final NUL included.
        unsafe {
            type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
            let size_of: libloading::Symbol<'_, Size> =
                self.library.get(b"nvrtcGetProgramLogSize").expect("NVRTC has it");
            type Log = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
            let log_of: libloading::Symbol<'_, Log> = self.library.get(b"nvrtcGetProgramLog").expect("NVRTC has it");
            let mut size = 0;
            size_of(program, &mut size);
            let mut log = vec![0u8; size.max(1)];
            log_of(program, log.as_mut_ptr().cast());
            CStr::from_bytes_until_nul(&log).map_or_else(|_| String::new(), |l| l.to_string_lossy().into_owned())
        }
    }
}
