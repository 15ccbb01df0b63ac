//! One launch of a generated kernel.

use super::attention::target_of_attention;
use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::matmul::{target_of_products, tensor_cores_are_forced};
use super::scratch::counters;
use crate::cuda::{self, Args, Buffer, Function, Mark};
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::rt::{Scalar, scalar_as};
use fuse_compiler::plan::abi::{self, Arg, Choice, Geometry, Launch, Variant};
use fuse_compiler::plan::{Expr, Fused, Kernel, Matmul, Phases, Products};
use fuse_compiler::types::DType;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Launches a generated kernel.
pub(super) fn launch_kernel(call: &CudaCall<'_>, kernel: &Kernel, buffers: &mut Buffers<'_>) -> Result<()> {
    let bound = bind(kernel, buffers, call.sizes)?;
    if call.tunes && !call.context.is_tracing() {
        call.tune(kernel, &bound);
    }
    call.functions.prepare(call, kernel, &bound.geometry)?.launch(call, kernel, &bound, &[])
}

/// A launch of several steps in one. `None` where there is nothing to compile it with: the steps may have been compiled ahead.
pub(super) fn unless_steps_may_be_compiled(prepared: Result<Arc<Prepared>>) -> Result<Option<Arc<Prepared>>> {
    match prepared {
        Err(_) if !cuda::compiles() => Ok(None),
        prepared => prepared.map(Some),
    }
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
    pub(super) fn kernel(call: &CudaCall<'_>, kernel: &Kernel, geometry: &Geometry, often: bool) -> Result<Self> {
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
    pub(super) fn product(call: &CudaCall<'_>, matmul: &Matmul, axes: &Geometry, often: bool) -> Result<Self> {
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
    pub(super) fn products(
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
    pub(super) fn attention(
        call: &CudaCall<'_>,
        fused: &Fused,
        part: abi::Part,
        axes: &Geometry,
        often: bool,
    ) -> Result<Self> {
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
    pub(super) fn wants_own_text(&self) -> bool {
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
