//! One launch of a generated kernel.

use super::bind::{Bound, bind};
use super::call::CudaCall;
use super::scratch::counters;
use crate::cuda::{Args, Buffer, Function};
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::rt::{Scalar, scalar_as};
use fuse_compiler::plan::abi::{self, Arg, Geometry, Launch, Variant};
use fuse_compiler::plan::{Expr, Kernel, Phases};
use fuse_compiler::types::DType;
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

/// The functions of a program that have been loaded, by device, kernel and variant.
#[derive(Default)]
pub(crate) struct Functions(RwLock<HashMap<(usize, String, Variant), Function>>);

impl Functions {
    /// A kernel in a variant; compiled the first time it is asked for.
    pub(super) fn get(&self, call: &CudaCall<'_>, kernel: &Kernel, variant: &Variant) -> Result<Function> {
        let key = (call.ordinal, kernel.name.clone(), variant.clone());
        if let Some(function) = self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&key) {
            return Ok(function.clone());
        }
        let defines = variant.defines(kernel, call.params);
        let defines: Vec<(&str, String)> = defines.iter().map(|define| name_and_value(define)).collect();
        let function = call.context.function(call.source, &kernel.name, &defines)?;
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(key, function.clone());
        Ok(function)
    }
}

fn name_and_value(define: &str) -> (&str, String) {
    match define.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (define, String::new()),
    }
}

/// Launches a generated kernel.
pub(super) fn launch_kernel(call: &CudaCall<'_>, kernel: &Kernel, buffers: &mut Buffers<'_>) -> Result<()> {
    let bound = bind(kernel, buffers, call.sizes)?;
    let axes = bound.geometry.collapse(kernel);
    if axes.rows() == 0 && !Phases::of(kernel).has_finish() {
        return Ok(());
    }
    let variant = Variant::choose(kernel, &axes);
    let launch = variant.launch(kernel, &axes);
    let packing = Packing::new(call, kernel, &bound, axes, variant, &launch)?;
    let mut args = Args::new();
    for arg in abi::arguments(kernel) {
        packing.push(&mut args, arg);
    }
    packing.launch(&launch, &args)
}

/// Everything the arguments of a launch are made of.
pub(super) struct Packing<'a> {
    call: &'a CudaCall<'a>,
    kernel: &'a Kernel,
    bound: &'a Bound,
    axes: Geometry,
    variant: Variant,
    /// Memory for values that blocks exchange.
    scratch: Vec<(Arg, Option<Buffer>)>,
    counters: Option<Arc<Buffer>>,
}

impl<'a> Packing<'a> {
    /// Allocates what the launch needs beside its operands.
    pub fn new(
        call: &'a CudaCall<'a>,
        kernel: &'a Kernel,
        bound: &'a Bound,
        axes: Geometry,
        variant: Variant,
        launch: &Launch,
    ) -> Result<Self> {
        let mut scratch = Vec::with_capacity(launch.scratch.len());
        for &(arg, bytes) in &launch.scratch {
            let buffer = if bytes > 0 { Some(Buffer::new(call.context, bytes)?) } else { None };
            scratch.push((arg, buffer));
        }
        let counters = match launch.counters {
            0 => None,
            count => Some(counters(call.context, call.ordinal, count)?),
        };
        Ok(Packing { call, kernel, bound, axes, variant, scratch, counters })
    }

    /// Appends one argument.
    pub fn push(&self, args: &mut Args, arg: Arg) {
        let leaves = self.kernel.leaves.len();
        let store = |k: u32| leaves + k as usize;
        match arg {
            Arg::Leaf(k) => args.pointer(self.bound.operands[k as usize].start),
            Arg::LeafStrides(k) => self.push_strides(args, k as usize),
            Arg::LeafAxis(k) => args.push(self.bound.operands[k as usize].axis),
            Arg::Store(k) => args.pointer(self.bound.operands[store(k)].start),
            Arg::StoreStrides(k) => self.push_strides(args, store(k)),
            Arg::StoreAxis(k) => args.push(self.bound.operands[store(k)].axis),
            Arg::Scalar(k, dtype) => push_scalar(args, self.call.scalars[k as usize], dtype),
            Arg::Size(stmt) => match &self.kernel.stmt(stmt).expr {
                Expr::Size(dim) => args.push(self.call.sizes.value(dim)),
                other => unreachable!("{other:?} is no size"),
            },
            Arg::Seed => args.push(self.call.draws.first().map_or(0, |draw| draw.seed)),
            Arg::Offset(draw) => args.push(self.call.draws[draw as usize].offset),
            Arg::Fault => args.pointer(self.call.context.fault_address()),
            Arg::Call => args.push(self.call.number),
            Arg::Stage(_) | Arg::Partial(_) => args.pointer(self.scratch_address(arg)),
            Arg::Counters => args.pointer(self.counters.as_ref().map_or(0, |counters| counters.ptr())),
            Arg::Outer => args.push_bytes(&abi::outer(self.kernel, &self.variant, &self.axes), 8),
            Arg::Inner => args.push_bytes(&abi::inner(&self.variant, &self.axes), 8),
            Arg::LeftMatrix | Arg::RightMatrix | Arg::LeftStrides | Arg::RightStrides | Arg::Product => {
                unreachable!("only a matmul template takes matrices")
            }
        };
    }

    /// Loads the variant and launches it.
    pub fn launch(&self, launch: &Launch, args: &Args) -> Result<()> {
        let function = self.call.functions.get(self.call, self.kernel, &self.variant)?;
        let blocks = u32::try_from(launch.blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32);
        let blocks = blocks.ok_or_else(|| Error::shape(&self.kernel.name, "more blocks than a grid can have"))?;
        self.call.context.launch(&function, [blocks, 1, 1], [launch.threads, 1, 1], 0, args)
    }

    fn push_strides<'b>(&self, args: &'b mut Args, operand: usize) -> &'b mut Args {
        let align = if self.variant.wide { 8 } else { 4 };
        args.push_bytes(&abi::strides(&self.variant, &self.axes.operands[operand].strides), align)
    }

    fn scratch_address(&self, arg: Arg) -> u64 {
        let found = self.scratch.iter().find(|(of, _)| *of == arg);
        found.and_then(|(_, buffer)| buffer.as_ref()).map_or(0, Buffer::ptr)
    }
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
