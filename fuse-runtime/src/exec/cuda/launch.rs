//! One launch of a generated kernel.

use super::ahead::Ahead;
use super::attention::target_of_attention;
use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::kernel_id::KernelId;
use super::matmul::{target_of_products, tensor_cores_are_forced};
use super::scratch::counters;
use super::texts::KernelTexts;
use super::tune::Tuned;
use crate::cuda::{self, Args, Buffer, Function, Mark};
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::rt::{Scalar, scalar_as};
use fuse_compiler::emit::cuda::compile::name_and_value;
use fuse_compiler::plan::abi::{self, Arg, Choice, Geometry, Launch, Variant};
use fuse_compiler::plan::{Expr, Fused, Kernel, Matmul, Phases, Products};
use fuse_compiler::types::DType;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What a program keeps between its calls on GPUs.
pub(crate) struct Functions {
    /// Which texts its kernels have.
    texts: KernelTexts,
    /// How its kernels are walked fastest, where that was timed.
    pub(super) tuned: Tuned,
    /// Loaded kernels, by device, kernel and variant.
    loaded: RwLock<HashMap<(usize, String, Variant), Function>>,
    /// The same of those that run several maps.
    maps: RwLock<HashMap<MapsKey, Function>>,
    /// How many calls in a row had no kernels loaded, though their layouts were new.
    settled: AtomicUsize,
    /// Launches made ready, by device, kernel and layouts.
    prepared: RwLock<HashMap<PreparedKey, Arc<Prepared>>>,
}

type MapsKey = (usize, String, Vec<Variant>);

type PreparedKey = (usize, KernelId, Geometry);

/// After so many calls of new layouts that had no kernels loaded the next most likely have none either.
const SETTLED: usize = 8;

/// So many texts a kernel of several maps has, before one for any layouts has to do.
const MOST_OF_MAPS: usize = 8;

/// So many layouts are kept ready; with more the oldest are made again.
const PREPARED: usize = 256;

impl Functions {
    /// What was compiled ahead; `dynamic` is that of the attribute.
    pub fn new(dynamic: Option<bool>, ahead: Ahead) -> Self {
        Functions {
            texts: KernelTexts::new(dynamic, ahead),
            tuned: Tuned::default(),
            loaded: RwLock::default(),
            maps: RwLock::default(),
            settled: AtomicUsize::new(0),
            prepared: RwLock::default(),
        }
    }

    /// A kernel in a variant; compiled the first time it is asked for.
    pub(super) fn get(&self, call: &CudaCall<'_>, kernel: &Kernel, variant: &Variant) -> Result<Function> {
        let key = (call.ordinal, kernel.name.clone(), variant.clone());
        if let Some(function) = read(&self.loaded).get(&key) {
            return Ok(function.clone());
        }
        let function = match self.texts.ahead.code(kernel, &call.context.facts().arch, variant) {
            Some(code) => call.context.compiled_function(code, call.source, &kernel.name)?,
            None => {
                let defines = variant.defines(kernel, call.params);
                let defines = defines.iter().map(|define| name_and_value(define));
                let defines: Vec<(&str, String)> = defines.map(|(name, value)| (name, value.to_owned())).collect();
                call.context.function(call.source, &kernel.name, &defines, call.contract)?
            }
        };
        write(&self.loaded).insert(key, function.clone());
        Ok(function)
    }

    /// A kernel that runs several maps, each in a variant.
    pub(super) fn maps(&self, call: &CudaCall<'_>, name: &str, maps: &[(&Kernel, &Variant)]) -> Result<Function> {
        let variants = maps.iter().map(|(_, variant)| (*variant).clone()).collect();
        let key = (call.ordinal, name.to_owned(), variants);
        if let Some(function) = read(&self.maps).get(&key) {
            return Ok(function.clone());
        }
        let defines = abi::maps::defines(name, maps, call.params);
        let defines = defines.iter().map(|define| name_and_value(define));
        let defines: Vec<(&str, String)> = defines.map(|(name, value)| (name, value.to_owned())).collect();
        let function = call.context.function(call.source, name, &defines, call.contract)?;
        write(&self.maps).insert(key, function.clone());
        Ok(function)
    }

    /// Whether kernels were compiled with the crate: the first call takes those, which make no products and run no maps together.
    pub(super) fn has_ahead(&self) -> bool {
        !self.texts.ahead.is_empty()
    }

    /// Whether there is such a kernel in these variants, or may still be one of its own for them.
    pub(super) fn has_room_for_maps(&self, call: &CudaCall<'_>, name: &str, variants: &[Variant]) -> bool {
        let all = read(&self.maps);
        let mut own = all.keys().filter(|(on, kernel, _)| *on == call.ordinal && kernel == name);
        own.clone().count() < MOST_OF_MAPS || own.any(|(.., other)| other == variants)
    }

    /// The text of a kernel for collapsed axes. Where nothing can be compiled it is one for which there is machine code.
    fn text(&self, call: &CudaCall<'_>, kernel: &Kernel, best: &Variant, axes: &Geometry, often: bool) -> Choice {
        let choice = self.texts.choose(call, kernel, best, axes, often);
        if self.texts.ahead.is_empty() || cuda::compiles() || self.get(call, kernel, &choice.variant).is_ok() {
            return choice;
        }
        self.texts.compiled_before(call, kernel, best, axes).unwrap_or(choice)
    }

    /// Whether kernels are likely to be loaded for the next layouts on a device: none were, or some for one of the latest.
    pub(super) fn may_grow(&self, ordinal: usize) -> bool {
        let has_some = read(&self.loaded).keys().any(|(on, ..)| *on == ordinal)
            || read(&self.maps).keys().any(|(on, ..)| *on == ordinal);
        self.settled.load(Ordering::Relaxed) < SETTLED || !has_some
    }

    /// How many kernels are loaded.
    pub(crate) fn count(&self) -> usize {
        read(&self.loaded).len() + read(&self.maps).len()
    }

    /// Notes whether a call of new layouts had kernels loaded.
    pub(super) fn note_growth(&self, grew: bool) {
        if grew {
            self.settled.store(0, Ordering::Relaxed);
        } else {
            self.settled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a kernel whose name ends like this was loaded.
    #[cfg(test)]
    pub(crate) fn has_loaded(&self, name: &str) -> bool {
        read(&self.loaded).keys().any(|(_, kernel, _)| kernel.ends_with(name))
            || read(&self.maps).keys().any(|(_, kernel, _)| kernel.ends_with(name))
    }

    /// What can be known of a launch from its layouts.
    pub(super) fn prepare(&self, call: &CudaCall<'_>, kernel: &Kernel, geometry: &Geometry) -> Result<Arc<Prepared>> {
        self.prepare_as(call, kernel, geometry, |often| Prepared::kernel(call, kernel, geometry, often))
    }

    /// The same of a matmul template, see [`Variant::product`].
    pub(super) fn prepare_product(
        &self,
        call: &CudaCall<'_>,
        matmul: &Matmul,
        axes: &Geometry,
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(call, &matmul.epilogue, axes, |often| Prepared::product(call, matmul, axes, often))
    }

    /// The same of several products in one kernel, whose own text would be `best`, see [`Variant::products`].
    pub(super) fn prepare_products(
        &self,
        call: &CudaCall<'_>,
        products: &Products,
        axes: &Geometry,
        best: &Variant,
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(call, &products.program, axes, |often| Prepared::products(call, products, axes, best, often))
    }

    /// The same of attention in one kernel, see [`Variant::attention`].
    pub(super) fn prepare_attention(
        &self,
        call: &CudaCall<'_>,
        fused: &Fused,
        part: abi::Part,
        axes: &Geometry,
    ) -> Result<Arc<Prepared>> {
        self.prepare_as(call, part.program(fused), axes, |often| Prepared::attention(call, fused, part, axes, often))
    }

    fn prepare_as(
        &self,
        call: &CudaCall<'_>,
        kernel: &Kernel,
        geometry: &Geometry,
        make: impl FnOnce(bool) -> Result<Prepared>,
    ) -> Result<Arc<Prepared>> {
        let key = (call.ordinal, KernelId::of(kernel), geometry.clone());
        let found = read(&self.prepared).get(&key).cloned();
        if let Some(prepared) = found.as_ref().filter(|prepared| !prepared.wants_own_text()) {
            return Ok(prepared.clone());
        }
        // Layouts that come again are worth a text of their own, and so are those of functions that are to be tuned.
        let prepared = Arc::new(make(found.is_some() || call.tunes)?);
        let mut all = write(&self.prepared);
        if all.len() >= PREPARED {
            all.clear();
        }
        all.insert(key, prepared.clone());
        Ok(prepared)
    }

    /// Makes a launch ready anew when it is next asked for.
    pub(super) fn forget(&self, call: &CudaCall<'_>, kernel: &Kernel, geometry: &Geometry) {
        write(&self.prepared).remove(&(call.ordinal, KernelId::of(kernel), geometry.clone()));
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Launches a generated kernel.
pub(super) fn launch_kernel(call: &CudaCall<'_>, kernel: &Kernel, buffers: &mut Buffers<'_>) -> Result<()> {
    let bound = bind(kernel, buffers, call.sizes)?;
    if call.tunes && !call.context.is_tracing() {
        call.tune(kernel, &bound);
    }
    call.functions.prepare(call, kernel, &bound.geometry)?.launch(call, kernel, &bound, &[])
}

/// A launch but for what changes from call to call: addresses, scalars, sizes, random draws.
pub(super) struct Prepared {
    /// None where there is nothing to launch.
    function: Option<Function>,
    launch: Launch,
    args: Vec<Part>,
    /// Whether there will be a text of its own for the layout if it comes again.
    may_change: bool,
    launched: AtomicBool,
}

/// An argument, packed already if it follows from the layouts.
enum Part {
    Packed(Vec<u8>, usize),
    Open(Arg),
}

impl Prepared {
    /// A launch of a kernel over axes that are not collapsed yet; `often`: whether they have come before.
    fn kernel(call: &CudaCall<'_>, kernel: &Kernel, geometry: &Geometry, often: bool) -> Result<Self> {
        let axes = geometry.collapse(kernel);
        let best = call.best(kernel, &axes);
        let Choice { variant, may_change } = call.functions.text(call, kernel, &best, &axes, often);
        Ok(Prepared { may_change, ..Prepared::walked(call, kernel, &axes, &variant)? })
    }

    /// A launch of a kernel over collapsed axes in a variant that serves them.
    pub(super) fn walked(call: &CudaCall<'_>, kernel: &Kernel, axes: &Geometry, variant: &Variant) -> Result<Self> {
        let axes = axes.padded(variant.outer, variant.inner);
        let launch = variant.launch(kernel, &axes, &call.context.facts().target());
        let nothing = axes.rows() == 0 && !Phases::of(kernel).has_finish();
        Prepared::new(call, kernel, (&axes, variant), launch, abi::arguments(kernel), nothing)
    }

    /// A launch that is made together with others, see [`super::list`].
    pub(super) fn for_list(call: &CudaCall<'_>, kernel: &Kernel, axes: &Geometry, variant: &Variant) -> Result<Self> {
        let launch = variant.launch(kernel, axes, &call.context.facts().target());
        Prepared::new(call, kernel, (axes, variant), launch, abi::arguments(kernel), true)
    }

    /// A launch of a matmul template over the axes that [`Variant::product`] takes.
    fn product(call: &CudaCall<'_>, matmul: &Matmul, axes: &Geometry, often: bool) -> Result<Self> {
        let kernel = &matmul.epilogue;
        let target = target_of_products(call);
        let best = call.best_product(matmul, axes, &target);
        let best = match tensor_cores_are_forced() {
            true => best.in_thirds(matmul.dtype, axes, &target).in_halves(kernel, matmul.dtype, axes, &target),
            false => best,
        };
        let Choice { variant, may_change } = call.functions.text(call, kernel, &best, axes, often);
        Ok(Prepared { may_change, ..Prepared::multiplied(call, matmul, axes, &variant)? })
    }

    /// A launch of a matmul template in a variant that serves its axes.
    pub(super) fn multiplied(call: &CudaCall<'_>, matmul: &Matmul, axes: &Geometry, variant: &Variant) -> Result<Self> {
        let (kernel, args) = (&matmul.epilogue, abi::matmul_arguments(&matmul.epilogue, 1));
        let launch = variant.launch_product(1, axes, &target_of_products(call));
        Prepared::new(call, kernel, (axes, variant), launch, args, axes.rows() == 0)
    }

    /// A launch of several products over the axes that [`Variant::products`] takes.
    fn products(
        call: &CudaCall<'_>,
        products: &Products,
        axes: &Geometry,
        best: &Variant,
        often: bool,
    ) -> Result<Self> {
        let (kernel, count) = (&products.program, products.count);
        let Choice { variant, may_change } = call.functions.text(call, kernel, best, axes, often);
        let launch = variant.launch_product(count, axes, &target_of_products(call));
        let args = abi::matmul_arguments(kernel, count);
        Ok(Prepared { may_change, ..Prepared::new(call, kernel, (axes, &variant), launch, args, false)? })
    }

    /// A launch of attention over the axes that [`Variant::attention`] takes.
    fn attention(call: &CudaCall<'_>, fused: &Fused, part: abi::Part, axes: &Geometry, often: bool) -> Result<Self> {
        let (kernel, target) = (part.program(fused), target_of_attention(call));
        let best = Variant::attention(fused, part, axes, &target).expect("it was asked before");
        let Choice { variant, may_change } = call.functions.text(call, kernel, &best, axes, often);
        let launch = variant.launch_attention(axes, &target);
        let args = abi::attention_arguments(fused, part);
        let prepared = Prepared::new(call, kernel, (axes, &variant), launch, args, false)?;
        Ok(Prepared { may_change, ..prepared })
    }

    fn new(
        call: &CudaCall<'_>,
        kernel: &Kernel,
        (axes, variant): (&Geometry, &Variant),
        launch: Launch,
        args: Vec<Arg>,
        nothing: bool,
    ) -> Result<Self> {
        let function = if nothing { None } else { Some(call.functions.get(call, kernel, variant)?) };
        let strides_of = |operand: usize| &axes.operands[operand].strides;
        let strides =
            |operand| Part::Packed(abi::strides(variant, strides_of(operand)), if variant.wide { 8 } else { 4 });
        let longs = |values: &[i64]| Part::Packed(values.iter().flat_map(|value| value.to_ne_bytes()).collect(), 8);
        let matrices = kernel.leaves.len() + kernel.stores.len();
        let part = |arg| match arg {
            Arg::LeafStrides(k) => strides(k as usize),
            Arg::StoreStrides(k) => strides(kernel.leaves.len() + k as usize),
            Arg::Outer => Part::Packed(abi::outer(kernel, variant, axes), 8),
            Arg::Inner => Part::Packed(abi::inner(variant, axes), 8),
            Arg::LeftStrides => longs(strides_of(matrices)),
            Arg::RightStrides => longs(strides_of(matrices + 1)),
            Arg::Heads(k) => longs(strides_of(matrices + k as usize)),
            Arg::Attention => Part::Packed(abi::attention_shape(variant, axes, &target_of_attention(call)), 8),
            Arg::Product => longs(&[axes.outer.as_slice(), &axes.inner].concat()),
            open => Part::Open(open),
        };
        let (args, launched) = (args.into_iter().map(part).collect(), AtomicBool::new(false));
        Ok(Prepared { function, launch, args, may_change: false, launched })
    }

    /// Whether the layout was launched before with a text that it shares, and may have one of its own.
    fn wants_own_text(&self) -> bool {
        self.may_change && self.launched.load(Ordering::Relaxed)
    }

    /// Launches with the operands of a call; matmul templates and attention also take the addresses of their matrices.
    pub fn launch(&self, call: &CudaCall<'_>, kernel: &Kernel, bound: &Bound, matrices: &[u64]) -> Result<()> {
        let Some(function) = &self.function else { return Ok(()) };
        self.launched.store(true, Ordering::Relaxed);
        let beside = Beside::new(call, &self.launch)?;
        let args = self.args(call, kernel, bound, matrices, &beside);
        let grid = [grid(kernel, self.launch.blocks)?, 1, 1];
        call.context.launch(function, grid, [self.launch.threads, 1, 1], self.launch.shared, &args)
    }

    /// How many blocks it has, and its packed arguments; for kernels that exchange nothing between blocks.
    pub(super) fn member(&self, call: &CudaCall<'_>, kernel: &Kernel, bound: &Bound) -> Result<(u64, Vec<u8>)> {
        let beside = Beside::new(call, &self.launch)?;
        Ok((self.launch.blocks, self.args(call, kernel, bound, &[], &beside).bytes().to_vec()))
    }

    /// How many blocks it has.
    pub(super) fn blocks(&self) -> u64 {
        self.launch.blocks
    }

    /// Appends its arguments to others; for kernels that exchange nothing between blocks.
    pub(super) fn append(&self, args: &mut Args, call: &CudaCall<'_>, kernel: &Kernel, bound: &Bound) -> Result<()> {
        let beside = Beside::new(call, &self.launch)?;
        self.push_args(args, call, kernel, bound, (&[], &beside));
        Ok(())
    }

    fn args(&self, call: &CudaCall<'_>, kernel: &Kernel, bound: &Bound, matrices: &[u64], beside: &Beside) -> Args {
        let mut args = Args::new();
        self.push_args(&mut args, call, kernel, bound, (matrices, beside));
        args
    }

    fn push_args(
        &self,
        args: &mut Args,
        call: &CudaCall<'_>,
        kernel: &Kernel,
        bound: &Bound,
        (matrices, beside): (&[u64], &Beside),
    ) {
        for part in &self.args {
            match part {
                Part::Packed(bytes, align) => {
                    args.push_bytes(bytes, *align);
                }
                Part::Open(Arg::LeftMatrix) => {
                    args.pointer(matrices[0]);
                }
                Part::Open(Arg::RightMatrix(n)) => {
                    args.pointer(matrices[1 + *n as usize]);
                }
                Part::Open(Arg::Matrix(k)) => {
                    args.pointer(matrices[*k as usize]);
                }
                Part::Open(Arg::MatrixTo(k)) => {
                    args.pointer_mut(matrices[*k as usize]);
                }
                // Behind the matrices of attention lie what its rows sum to, and what is kept of its weights.
                Part::Open(arg @ (Arg::Logs | Arg::Sums | Arg::Kept)) => {
                    args.pointer(matrices[matrices.len() - from_the_end(*arg)]);
                }
                Part::Open(arg @ (Arg::LogsTo | Arg::SumsTo | Arg::KeptTo)) => {
                    args.pointer_mut(matrices[matrices.len() - from_the_end(*arg)]);
                }
                Part::Open(arg) => push(args, *arg, call, kernel, bound, beside),
            }
        }
    }
}

/// How far from the end the address stands of what attention has beside its matrices.
fn from_the_end(arg: Arg) -> usize {
    match arg {
        Arg::Logs | Arg::LogsTo => 3,
        Arg::Sums | Arg::SumsTo => 2,
        _ => 1,
    }
}

/// Blocks as a grid counts them.
pub(super) fn grid(kernel: &Kernel, blocks: u64) -> Result<u32> {
    let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32);
    blocks.ok_or_else(|| Error::shape(&kernel.name, "more blocks than a grid can have"))
}

/// Memory of a launch beside its operands. It may be let go of after the launch: the stream frees it behind the kernel.
struct Beside {
    /// For values that blocks exchange.
    scratch: Vec<(Arg, Option<Buffer>)>,
    /// The address of counters, which are there for good.
    counters: u64,
}

impl Beside {
    fn new(call: &CudaCall<'_>, launch: &Launch) -> Result<Self> {
        let mut scratch = Vec::with_capacity(launch.scratch.len());
        for &(arg, bytes) in &launch.scratch {
            scratch.push((arg, if bytes > 0 { Some(Buffer::new(call.context, bytes)?) } else { None }));
        }
        let counters = match launch.counters {
            0 => 0,
            count => counters(call.context, count)?,
        };
        Ok(Beside { scratch, counters })
    }

    fn address(&self, arg: Arg) -> u64 {
        let found = self.scratch.iter().find(|(of, _)| *of == arg);
        found.and_then(|(_, buffer)| buffer.as_ref()).map_or(0, Buffer::ptr)
    }
}

/// Appends an argument that changes from call to call.
fn push(args: &mut Args, arg: Arg, call: &CudaCall<'_>, kernel: &Kernel, bound: &Bound, beside: &Beside) {
    let store = |k: u32| &bound.operands[kernel.leaves.len() + k as usize];
    match arg {
        Arg::Leaf(k) => args.pointer(bound.operands[k as usize].start),
        Arg::LeafAxis(k) => args.push(bound.operands[k as usize].axis),
        Arg::Store(k) => args.pointer_mut(store(k).start),
        Arg::StoreAxis(k) => args.push(store(k).axis),
        Arg::Scalar(k, dtype) => push_scalar(args, call.scalars[k as usize], dtype).mark(Mark::Scalar(k, dtype)),
        Arg::Size(stmt) => match &kernel.stmt(stmt).expr {
            Expr::Size(dim) => args.push(call.sizes.value(dim)),
            other => unreachable!("{other:?} is no size"),
        },
        Arg::Seed => args.push(call.draws.first().map_or(0, |draw| draw.seed)).mark(Mark::Seed),
        Arg::Offset(draw) => args.push(call.draws[draw as usize].offset).mark(Mark::Offset(draw)),
        Arg::Fault => args.push(call.context.fault_address()),
        Arg::Call => args.push(call.number).mark(Mark::Call),
        Arg::Failed => args.push(call.context.failed_address()),
        Arg::Stage(_) | Arg::Partial(_) => args.pointer_mut(beside.address(arg)),
        Arg::Counters => args.pointer_mut(beside.counters),
        Arg::Asked => args.push(0u64).mark(Mark::Asked),
        packed => unreachable!("{packed:?} follows from the layouts or the matrices"),
    };
}

fn push_scalar(args: &mut Args, scalar: Scalar, dtype: DType) -> &mut Args {
    match dtype {
        DType::F32 => args.push(scalar_as::<f32>(scalar)),
        DType::F64 => args.push(scalar_as::<f64>(scalar)),
        DType::I64 => args.push(scalar_as::<i64>(scalar)),
        DType::I32 => args.push(scalar_as::<i32>(scalar)),
        DType::U8 => args.push(scalar_as::<u8>(scalar)),
        DType::Bool => args.push(u8::from(scalar_as::<bool>(scalar))),
        other => unreachable!("no scalar is passed as {other}"),
    }
}
