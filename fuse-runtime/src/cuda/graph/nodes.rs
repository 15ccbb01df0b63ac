//! The nodes of a graph in the driver: how they are added, and their parameters.

use super::Work;
use crate::cuda::cublaslt::Target;
use crate::cuda::driver::{Context, Real};
use crate::cuda::matmul::{Matmul, Product};
use crate::cuda::module::{Function, packed};
use crate::cuda::status::check;
use crate::error::Result;
use cudarc::driver::sys::{self, CUgraphNodeType_enum as kind, CUresult};

/// The driver's nodes for one of ours.
pub(super) struct Handles {
    pub all: Vec<sys::CUgraphNode>,
    /// Those that everything behind waits for.
    pub ends: Vec<sys::CUgraphNode>,
    /// Of a loop or a branch.
    nested: Option<Nested>,
}

/// What a loop repeats, or a branch chooses from, and what says so.
pub(super) struct Nested {
    pub parts: Vec<sys::CUgraph>,
    pub condition: Condition,
}

/// Whether a loop goes on or the first part of a branch is taken, and the kernel that says it.
pub(super) struct Condition {
    handle: sys::CUgraphConditionalHandle,
    set: Function,
}

impl Handles {
    fn one(node: sys::CUgraphNode) -> Handles {
        Handles { all: vec![node], ends: vec![node], nested: None }
    }

    /// What a loop or a branch has inside.
    pub(super) fn nested(&self) -> &Nested {
        self.nested.as_ref().expect("only loops and branches have something inside")
    }
}

fn nodes_of(graph: sys::CUgraph) -> Result<Vec<sys::CUgraphNode>> {
    let mut count = 0;
    // SAFETY: without a place for nodes the driver counts them; then there is room for as many.
    unsafe {
        check(sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &mut count), "look at a graph")?;
        // The driver refuses to list none.
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut nodes = vec![std::ptr::null_mut(); count];
        check(sys::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count), "look at a graph")?;
        Ok(nodes)
    }
}

pub(super) fn add(
    real: &Real,
    context: &Context,
    graph: sys::CUgraph,
    work: &Work,
    after: &[sys::CUgraphNode],
    overlaps: bool,
) -> Result<Handles> {
    let mut node = std::ptr::null_mut();
    let waited_for = if overlaps { &[] } else { after };
    match work {
        Work::Launch { function, grid, block, shared, args } => {
            let handle = function.ready(context, *shared, args.len())?;
            let status = with_params(handle, *grid, *block, *shared, args, |params| {
                // SAFETY: graph and nodes live, the driver copies the arguments.
                unsafe { sys::cuGraphAddKernelNode_v2(&mut node, graph, waited_for.as_ptr(), waited_for.len(), params) }
            });
            check(status, format_args!("add `{}` to a graph", function.entry()))?;
            if overlaps {
                overlap(graph, after[0], node)?;
            }
        }
        Work::Copy { to, from, bytes } => {
            let params = copy_params(*to, *from, *bytes);
            // SAFETY: as above.
            let status = unsafe {
                sys::cuGraphAddMemcpyNode(&mut node, graph, after.as_ptr(), after.len(), &params, real.context)
            };
            check(status, "add a copy to a graph")?;
        }
        Work::Product(product, matmul) => return capture(real, context, graph, product, matmul, after),
        Work::Loop { first, .. } => {
            let kind = (sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE, 1);
            return add_nested(real, context, graph, kind, *first, after);
        }
        Work::Branch { test } => {
            let kind = (sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 2);
            return add_nested(real, context, graph, kind, *test, after);
        }
    }
    Ok(Handles::one(node))
}

/// Has a kernel started as soon as all blocks of another one allow it, or are done.
fn overlap(graph: sys::CUgraph, before: sys::CUgraphNode, node: sys::CUgraphNode) -> Result<()> {
    const PROGRAMMATIC_PORT: u8 = 1;
    let programmatic = sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8;
    let edge = sys::CUgraphEdgeData { from_port: PROGRAMMATIC_PORT, to_port: 0, type_: programmatic, reserved: [0; 5] };
    // SAFETY: graph and nodes live, and there is one of each.
    check(
        unsafe { sys::cuGraphAddDependencies_v2(graph, &before, &node, &edge, 1) },
        "let two kernels of a graph overlap",
    )
}

/// The first test of a loop or a branch, and it without what is inside.
fn add_nested(
    real: &Real,
    context: &Context,
    graph: sys::CUgraph,
    (type_, size): (sys::CUgraphConditionalNodeType, u32),
    flag: u64,
    after: &[sys::CUgraphNode],
) -> Result<Handles> {
    let set = context.set_condition().expect("such a graph is made where it can be loaded");
    let mut handle = 0;
    // SAFETY: graph and context live, and the driver writes one handle.
    let status = unsafe { sys::cuGraphConditionalHandleCreate(&mut handle, graph, real.context, 0, 0) };
    check(status, "make the condition of a part of a graph")?;
    let condition = Condition { handle, set };
    let test = add_test(context, graph, &condition, flag, after)?;
    // SAFETY: a struct of numbers and pointers may be zero until it is filled.
    let mut params: sys::CUgraphNodeParams = unsafe { std::mem::zeroed() };
    params.type_ = kind::CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.__bindgen_anon_1.conditional =
        sys::CUDA_CONDITIONAL_NODE_PARAMS { handle, type_, size, phGraph_out: std::ptr::null_mut(), ctx: real.context };
    let mut node = std::ptr::null_mut();
    // SAFETY: graph and nodes live; the driver says in the parameters where as many parts are as were asked for, which live as
    // long as the graph.
    let parts = unsafe {
        let no_data = std::ptr::null();
        let added = sys::cuGraphAddNode_v2(&mut node, graph, &test, no_data, 1, &mut params);
        check(added, "add a loop or a branch to a graph")?;
        std::slice::from_raw_parts(params.__bindgen_anon_1.conditional.phGraph_out, size as usize).to_vec()
    };
    Ok(Handles { all: vec![test, node], ends: vec![node], nested: Some(Nested { parts, condition }) })
}

/// A kernel that has a loop go on, or the first part of a branch taken, if the bool at an address holds.
pub(super) fn add_test(
    context: &Context,
    graph: sys::CUgraph,
    condition: &Condition,
    flag: u64,
    after: &[sys::CUgraphNode],
) -> Result<sys::CUgraphNode> {
    let mut node = std::ptr::null_mut();
    let status = with_test(context, condition, flag, |params| {
        // SAFETY: graph and nodes live, the driver copies the arguments.
        unsafe { sys::cuGraphAddKernelNode_v2(&mut node, graph, after.as_ptr(), after.len(), params) }
    })?;
    check(status, "add a test to a graph")?;
    Ok(node)
}

pub(super) fn with_test(
    context: &Context,
    condition: &Condition,
    flag: u64,
    use_it: impl FnOnce(*const sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult,
) -> Result<CUresult> {
    let args: Vec<u8> = [condition.handle, flag].iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(with_params(condition.set.ready(context, 0, args.len())?, [1; 3], [1; 3], 0, &args, use_it))
}

/// The launches of a product as nodes of a graph.
pub(super) fn capture(
    real: &Real,
    context: &Context,
    graph: sys::CUgraph,
    product: &Product,
    matmul: &Matmul,
    after: &[sys::CUgraphNode],
) -> Result<Handles> {
    let before = nodes_of(graph)?;
    let stream = real.capture_stream()?;
    let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
    let doing = "capture a product of matrices";
    let no_data = std::ptr::null();
    // SAFETY: nobody else uses the stream while it is locked; graph and nodes live.
    check(
        unsafe { sys::cuStreamBeginCaptureToGraph(*stream, graph, after.as_ptr(), no_data, after.len(), mode) },
        doing,
    )?;
    let launched = product.launch_on(Target { context, real, stream: *stream }, matmul);
    let ends = ends_of(*stream);
    let mut same = std::ptr::null_mut();
    // SAFETY: the stream is being captured; the graph it gives is ours.
    let ended = unsafe { sys::cuStreamEndCapture(*stream, &mut same) };
    launched?;
    check(ended, doing)?;
    let all = nodes_of(graph)?.into_iter().filter(|node| !before.contains(node)).collect();
    Ok(Handles { all, ends: ends?, nested: None })
}

/// The nodes that what is captured next would wait for.
fn ends_of(stream: sys::CUstream) -> Result<Vec<sys::CUgraphNode>> {
    let mut status = sys::CUstreamCaptureStatus_enum::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut nodes, mut edges, mut count) = (std::ptr::null(), std::ptr::null(), 0);
    let (no_id, no_graph) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the driver writes what it is given places for; the list lives until the capture goes on.
    unsafe {
        let asked =
            sys::cuStreamGetCaptureInfo_v3(stream, &mut status, no_id, no_graph, &mut nodes, &mut edges, &mut count);
        check(asked, "look at what was captured")?;
        Ok(if count == 0 { Vec::new() } else { std::slice::from_raw_parts(nodes, count).to_vec() })
    }
}

pub(super) fn with_params(
    func: sys::CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    args: &[u8],
    use_it: impl FnOnce(*const sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult,
) -> CUresult {
    let mut len = args.len();
    let mut extra = packed(args, &mut len);
    use_it(&sys::CUDA_KERNEL_NODE_PARAMS {
        func,
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: shared,
        kernelParams: std::ptr::null_mut(),
        extra: extra.as_mut_ptr(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    })
}

pub(super) fn copy_params(to: u64, from: u64, bytes: usize) -> sys::CUDA_MEMCPY3D {
    let device = sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE;
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}
