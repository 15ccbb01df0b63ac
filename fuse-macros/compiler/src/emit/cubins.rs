//! Machine code of kernels, compiled while the user's crate is built, so that a program's first call needs no NVRTC.
//!
//! `FUSE_ARCHS` lists the architectures: `sm_90a,sm_80`. For each of them every kernel is compiled in the texts of
//! [`ahead`], at most [`MOST_AHEAD`](crate::plan::abi::MOST_AHEAD), and once for every float type
//! where the function is generic. Without NVRTC on the machine that builds, nothing is embedded, and it says so.

mod nvrtc;

use super::cuda::{self, compile};
use crate::plan::abi::{Target, Variant, ahead, ahead_of_product};
use crate::plan::{Kernel, Plan, Step, instantiate};
use crate::types::DType;
use nvrtc::Nvrtc;
use std::num::NonZero;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The variable that lists the architectures.
pub const VARIABLE: &str = "FUSE_ARCHS";

/// What generic element types may stand for.
const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// One kernel, compiled.
pub struct Cubin {
    /// Its name.
    pub kernel: String,
    /// The architecture it is for.
    pub arch: String,
    /// What the generic element types stand for.
    pub params: Vec<DType>,
    /// The text it was compiled from.
    pub variant: Variant,
    /// The machine code.
    pub code: Vec<u8>,
}

/// The kernels of plans for the architectures of the environment.
pub fn of(plans: &[Plan]) -> Vec<Cubin> {
    let archs = std::env::var(VARIABLE).unwrap_or_default();
    let archs: Vec<&str> = archs.split(',').map(str::trim).filter(|arch| !arch.is_empty()).collect();
    if archs.is_empty() {
        return vec![];
    }
    match Nvrtc::find() {
        Some(nvrtc) => compiled(nvrtc, plans, &archs),
        None => {
            tell_once(format_args!("NVRTC was not found, so no kernels are embedded for {}", archs.join(", ")));
            vec![]
        }
    }
}

/// Compiles all kernels, on as many threads as there are processors.
fn compiled(nvrtc: &Nvrtc, plans: &[Plan], archs: &[&str]) -> Vec<Cubin> {
    let wanted: Vec<Wanted> = plans.iter().flat_map(|plan| wanted(plan, archs)).collect();
    let (next, cores) = (AtomicUsize::new(0), thread::available_parallelism().map_or(1, NonZero::get));
    let work = || {
        let mut done = vec![];
        while let Some((index, wanted)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|k| Some((k, wanted.get(k)?)))
        {
            done.extend(wanted.compile(nvrtc).map(|cubin| (index, cubin)));
        }
        done
    };
    let mut done: Vec<(usize, Cubin)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(wanted.len())).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("compiling does not panic")).collect()
    });
    // The same source gives the same bytes, whichever thread was faster.
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, cubin)| cubin).collect()
}

/// A kernel to be compiled.
struct Wanted {
    kernel: Kernel,
    source: String,
    contract: bool,
    arch: String,
    params: Vec<DType>,
    variant: Variant,
}

impl Wanted {
    /// Compiles it. What cannot be is left to the run time, which says why.
    fn compile(&self, nvrtc: &Nvrtc) -> Option<Cubin> {
        let Wanted { kernel, source, contract, arch, params, variant } = self;
        let defines = variant.defines(kernel, params);
        let defines = defines.iter().map(|define| compile::name_and_value(define));
        let source = compile::with_defines(&kernel.name, defines, source);
        match nvrtc.compile(&kernel.name, &source, compile::options(arch, *contract)) {
            Ok(code) => Some(Cubin {
                kernel: kernel.name.clone(),
                arch: arch.clone(),
                params: params.clone(),
                variant: variant.clone(),
                code,
            }),
            Err(log) => {
                tell_once(format_args!("`{}` is not embedded for {arch}: {log}", kernel.name));
                None
            }
        }
    }
}

/// What is to be compiled of a plan.
fn wanted(plan: &Plan, archs: &[&str]) -> Vec<Wanted> {
    let source = cuda::text(plan);
    let mut all = vec![];
    for (params, arch) in params(plan).iter().flat_map(|params| archs.iter().map(move |arch| (params, arch))) {
        let concrete = instantiate(plan, params);
        for (kernel, variants) in concrete.steps.iter().flat_map(|step| of_step(&concrete, step, &target(arch))) {
            all.extend(variants.into_iter().map(|variant| Wanted {
                kernel: kernel.clone(),
                source: source.clone(),
                contract: plan.contract,
                arch: (*arch).to_owned(),
                params: params.clone(),
                variant,
            }));
        }
    }
    all
}

/// The kernels of a step and their texts.
fn of_step<'p>(plan: &Plan, step: &'p Step, target: &Target) -> Vec<(&'p Kernel, Vec<Variant>)> {
    let own = |kernel: &'p Kernel| (kernel, ahead(plan, kernel, target));
    match step {
        Step::Kernel(kernel) => vec![own(kernel)],
        Step::Matmul(matmul) => {
            let product = (&matmul.epilogue, ahead_of_product(plan, matmul, target));
            [product].into_iter().chain(matmul.lib.rest.as_ref().map(own)).collect()
        }
    }
}

/// What the generic element types of a plan may stand for together.
fn params(plan: &Plan) -> Vec<Vec<DType>> {
    let number = |dtype: DType| match dtype {
        DType::Param(n) | DType::Compute(n) => n as usize + 1,
        _ => 0,
    };
    let dtypes = plan.bufs.iter().map(|buf| buf.ty.dtype).chain(plan.scalars.iter().copied());
    match dtypes.map(number).max().unwrap_or(0) {
        0 => vec![vec![]],
        count => FLOATS.map(|dtype| vec![dtype; count]).into(),
    }
}

/// A device of this architecture.
fn target(arch: &str) -> Target {
    let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
    let capability = digits.parse().unwrap_or(75);
    let (multiprocessors, shared) = match capability {
        90.. => (132, 227 << 10),
        80 => (108, 163 << 10),
        _ => (64, 48 << 10),
    };
    let shared_per_multiprocessor = shared + (1 << 10);
    Target { capability, multiprocessors, shared_per_block: shared, shared_per_multiprocessor }
}

/// Tells who builds, once for each crate.
fn tell_once(text: std::fmt::Arguments<'_>) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| eprintln!("fuse: {text}; they are compiled at run time"));
}
