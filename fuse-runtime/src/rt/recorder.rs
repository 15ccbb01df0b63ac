//! A device that runs nothing: it takes tensors and launches as a GPU does and notes them. What is read from it is 0.
//!
//! Tests show with it, on machines without a GPU, everything of a dispatch but its results.

use crate::cuda::{Context, FaultRecord, RECORDER, Recorded};
use crate::device::Device;
use std::sync::Arc;

/// Something that was launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The name of the kernel; `matmul` for a product by the library, `graph` for a graph; `on` where
    /// what follows is on another stream, `wait` where one waits for another.
    pub kernel: String,
    /// Threads in a block; none of a product or a graph.
    pub threads: u32,
    /// The packed arguments; none of a product or a graph.
    pub args: Vec<u8>,
    /// What a graph launches.
    pub inside: Vec<Launch>,
}

/// The device; there is one in a process.
pub fn device() -> Device {
    Device::recorder()
}

/// Takes the launches since the last time.
pub fn launches() -> Vec<Launch> {
    context().recorded().into_iter().map(launch).collect()
}

fn launch(noted: Recorded) -> Launch {
    let named = |kernel: &str| Launch { kernel: kernel.to_owned(), threads: 0, args: Vec::new(), inside: Vec::new() };
    match noted {
        Recorded::Launch { entry, block, args, .. } => Launch { threads: block[0], args: args.into(), ..named(&entry) },
        Recorded::Matmul(_) => named("matmul"),
        Recorded::Loop => named("while"),
        Recorded::Branch => named("if"),
        Recorded::On(_) => named("on"),
        Recorded::Wait { .. } => named("wait"),
        Recorded::Graph { launches, .. } => {
            Launch { inside: launches.into_iter().map(launch).collect(), ..named("graph") }
        }
    }
}

/// From now on a launch takes as many microseconds as it has threads a block, for tests of what is chosen by timing.
pub fn time_by_threads() {
    context().time_by_threads();
}

/// How many CUDA graphs there are in this process, on any device.
pub fn graphs() -> usize {
    crate::cuda::graphs()
}

/// How many programs would have been compiled so far, each for one kernel in one variant.
pub fn programs() -> usize {
    context().recorded_programs()
}

/// From now on programs are compiled and kept on disk as for a GPU, which takes NVRTC.
pub fn compile_programs() {
    context().compile_recorded();
}

/// Writes a fault as a kernel of the latest call would, of the op at this place of the plan.
pub fn fault(code: u32, op: u32) {
    let context = context();
    let call = context.next_call() - 1;
    context.record_fault(FaultRecord { code, op, call, value: 7, extent: 3, ..FaultRecord::default() });
}

fn context() -> Arc<Context> {
    Context::get(RECORDER).expect("recording takes no GPU")
}
