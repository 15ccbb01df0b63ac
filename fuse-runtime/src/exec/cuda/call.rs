//! One call of a plan on a GPU.

use super::attention::{launch_attention, launch_back};
use super::functions::Functions;
use super::launch::launch_kernel;
use super::matmul::launch_matmul;
use super::products::launch_products;
use super::small::launch_small;
use crate::cuda::{self, Context, FaultRecord, Function};
use crate::error::{Error, Result};
use crate::exec::buffers::Buffers;
use crate::exec::faults::{division_by_zero, index_out_of_range};
use crate::exec::symbols::Sizes;
use crate::rt::{Draw, Scalar};
use fuse_compiler::emit::cuda::compile::name_and_value;
use fuse_compiler::plan::{FusedBack, Plan, Step, abi};
use fuse_compiler::types::DType;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// What every step of a call needs.
pub(crate) struct CudaCall<'a> {
    /// The device.
    pub context: &'a Arc<Context>,
    /// Its number.
    pub ordinal: usize,
    /// The CUDA text of the plan.
    pub source: &'a str,
    /// Whether products may be fused with the sums they go into.
    pub contract: bool,
    /// What the generic element types of the text stand for.
    pub params: &'a [DType],
    /// Whether the fastest way of walking its kernels is to be found, as `max-autotune` asks.
    pub tunes: bool,
    /// Kernels that have been loaded.
    pub functions: &'a Functions,
    /// The sizes of the call.
    pub sizes: &'a Sizes,
    /// Host scalars.
    pub scalars: &'a [Scalar],
    /// Where random draws start.
    pub draws: &'a [Draw],
    /// The number of the call, which faults carry.
    pub number: u64,
}

impl CudaCall<'_> {
    /// Launches a step, or attention in one kernel or its way back in two, or products or small kernels in one; says how many steps that
    /// were.
    pub fn steps_at(&self, plan: &Plan, k: usize, buffers: &mut Buffers<'_>) -> Result<usize> {
        if let Some(fused) = plan.fused_at(k)
            && launch_attention(self, plan, fused, buffers)?
        {
            return Ok(fused.count());
        }
        if let Some(back) = plan.back_at(k)
            && launch_back(self, plan, back, buffers)?
        {
            return Ok(FusedBack::STEPS);
        }
        if let Some(products) = plan.products_at(k)
            && launch_products(self, plan, products, buffers)?
        {
            return Ok(products.count as usize);
        }
        if let Some(small) = plan.small_at(k)
            && launch_small(self, plan, small, buffers)?
        {
            return Ok(small.count as usize);
        }
        self.step(&plan.steps[k], buffers).map(|()| 1)
    }

    /// Whether there is something to compile kernels with; the recorder shows what a GPU would do, whatever this machine has.
    pub fn compiles(&self) -> bool {
        self.ordinal == cuda::RECORDER || cuda::compiles()
    }

    /// A kernel of the plan's text, specialised by defines.
    pub fn function(&self, name: &str, defines: &[String]) -> Result<Function> {
        function(self.context, (self.source, self.contract), name, defines)
    }

    /// Launches a step.
    pub fn step(&self, step: &Step, buffers: &mut Buffers<'_>) -> Result<()> {
        match step {
            Step::Kernel(kernel) => launch_kernel(self, kernel, buffers),
            Step::Matmul(matmul) => launch_matmul(self, matmul, buffers),
        }
    }
}

/// A kernel of a text, and whether products in that may be fused with sums, specialised by defines.
pub(super) fn function(
    context: &Context,
    (source, contract): (&str, bool),
    name: &str,
    defines: &[String],
) -> Result<Function> {
    let defines = defines.iter().map(|define| name_and_value(define));
    let defines: Vec<(&str, String)> = defines.map(|(name, value)| (name, value.to_owned())).collect();
    context.function(source, name, &defines, contract)
}

/// What a fault of a program is about.
pub(crate) struct Names {
    name: Box<str>,
    /// The ops, by place.
    ops: Vec<Box<str>>,
}

impl Names {
    /// The names in a plan.
    pub fn of(plan: &Plan) -> Self {
        let ops = plan.places.iter().map(|place| place.op.as_str().into()).collect();
        Names { name: plan.name.as_str().into(), ops }
    }

    /// Remembers what a fault of the call with this number would be about.
    pub(super) fn announce(self: &Arc<Self>, ordinal: usize, number: u64) {
        let mut callers = CALLERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if callers.len() == REMEMBERED {
            callers.pop_front();
        }
        callers.push_back(Caller { ordinal, number, names: self.clone() });
    }
}

/// A call that may fault.
struct Caller {
    ordinal: usize,
    number: u64,
    names: Arc<Names>,
}

/// Faults of older calls are still reported, without their text.
const REMEMBERED: usize = 1024;

static CALLERS: Mutex<VecDeque<Caller>> = Mutex::new(VecDeque::new());

/// A fault that a device has recorded, in words.
pub(crate) fn describe_fault(ordinal: usize, fault: &FaultRecord) -> Error {
    let callers = CALLERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let caller = callers.iter().find(|caller| caller.ordinal == ordinal && caller.number == fault.call);
    let names = caller.map(|caller| &*caller.names);
    let op = names.and_then(|names| names.ops.get(fault.op as usize)).filter(|op| !op.is_empty());
    let name = op.or(names.map(|names| &names.name)).map_or("kernel", |name| name);
    match fault.code {
        abi::FAULT_INDEX => index_out_of_range(name, fault.value, fault.extent),
        _ => division_by_zero(name),
    }
}
