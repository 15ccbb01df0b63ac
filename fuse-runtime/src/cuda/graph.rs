//! CUDA graphs: many launches as one.
//!
//! A graph is built from the launches of a call and the hazards between them, so that independent ones run side by side.
//! What differs between calls is written into its nodes; only those that changed are told to the driver. Products by the
//! library are captured, and captured again where their matrices lie elsewhere: the library does not say which of its
//! arguments are addresses.

use super::cublaslt::Target;
use super::driver::{Backend, Context, Real};
use super::lanes::Lane;
use super::matmul::{Matmul, Product};
use super::module::{Function, packed};
use super::status::check;
use crate::error::Result;
use crate::log::{self, Topic};
use cudarc::driver::sys::{self, CUgraphNodeType_enum as kind, CUresult};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first driver that captures into a graph there is already.
const SINCE: u32 = 12030;
/// The first driver whose graphs may repeat a part of themselves.
const LOOPS_SINCE: u32 = 12040;

/// A graph that can be launched again and again.
pub(crate) struct Graph {
    context: Arc<Context>,
    nodes: Vec<Node>,
    exec: Exec,
    lane: Lane,
}

/// One launch of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What is launched.
    pub work: Work,
    /// The nodes that come before it.
    pub after: Vec<usize>,
    /// The loop it is a part of.
    pub inside: Option<usize>,
    changed: bool,
}

/// What a node launches.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A kernel.
    Launch {
        /// Which.
        function: Function,
        /// Blocks in the grid.
        grid: [u32; 3],
        /// Threads in a block.
        block: [u32; 3],
        /// Dynamic shared memory in bytes.
        shared: u32,
        /// The packed arguments.
        args: Box<[u8]>,
    },
    /// A product by the library, of matrices that lie where the second says.
    Product(Box<Product>, Matmul),
    /// Bytes that are copied.
    Copy {
        /// Where to.
        to: u64,
        /// Where from.
        from: u64,
        /// How many.
        bytes: usize,
    },
    /// The nodes inside are launched as long as a bool on the device holds.
    Loop {
        /// Where it lies the first time.
        first: u64,
        /// Where it lies when they have been launched.
        next: u64,
    },
}

enum Exec {
    Real(Built),
    Recording,
}

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How many graphs there are in this process.
pub(crate) fn graphs() -> usize {
    LIVE.load(Ordering::Relaxed)
}

impl Node {
    /// A node behind others.
    pub(crate) fn new(work: Work, after: Vec<usize>) -> Node {
        Node { work, after, inside: None, changed: false }
    }

    /// The same as a part of a loop.
    pub(crate) fn within(self, inside: Option<usize>) -> Node {
        Node { inside, ..self }
    }
}

impl Graph {
    /// A graph of these launches, in an order in which each comes behind those it waits for. `None` where the driver is too
    /// old.
    pub(crate) fn new(context: &Arc<Context>, nodes: Vec<Node>) -> Result<Option<Graph>> {
        let loops = nodes.iter().any(|node| matches!(node.work, Work::Loop { .. }));
        let since = if loops { LOOPS_SINCE } else { SINCE };
        if context.facts().driver_version < since || (loops && context.set_condition().is_none()) {
            return Ok(None);
        }
        let exec = match &context.backend {
            Backend::Real(real) => {
                real.make_current()?;
                Exec::Real(Built::new(real, context, &nodes)?)
            }
            Backend::Recording(_) => Exec::Recording,
            Backend::Tracing(_) => return Ok(None),
        };
        LIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Graph { context: context.clone(), nodes, exec, lane: context.lane() }))
    }

    /// Whether this thread launches on the stream the graph was made for, whose scratch memory it uses.
    pub(crate) fn is_of_this_stream(&self) -> bool {
        self.lane == self.context.lane()
    }

    /// Writes over a part of the packed arguments of a kernel.
    pub(crate) fn write(&mut self, node: usize, at: usize, bytes: &[u8]) {
        let Node { work: Work::Launch { args, .. }, changed, .. } = &mut self.nodes[node] else {
            unreachable!("only kernels have packed arguments")
        };
        let old = &mut args[at..at + bytes.len()];
        if old != bytes {
            old.copy_from_slice(bytes);
            *changed = true;
        }
    }

    /// Multiplies matrices that lie elsewhere.
    pub(crate) fn multiply(&mut self, node: usize, matmul: Matmul) {
        let Node { work: Work::Product(_, old), changed, .. } = &mut self.nodes[node] else {
            unreachable!("only products have matrices")
        };
        if *old != matmul {
            *old = matmul;
            *changed = true;
        }
    }

    /// Copies between other places.
    pub(crate) fn copy(&mut self, node: usize, to: u64, from: u64) {
        let Node { work: Work::Copy { to: old_to, from: old_from, .. }, changed, .. } = &mut self.nodes[node] else {
            unreachable!("only copies go from one place to another")
        };
        if (*old_to, *old_from) != (to, from) {
            (*old_to, *old_from) = (to, from);
            *changed = true;
        }
    }

    /// Looks elsewhere whether a loop goes on.
    pub(crate) fn repeat(&mut self, node: usize, first: u64, next: u64) {
        let Node { work: Work::Loop { first: old_first, next: old_next }, changed, .. } = &mut self.nodes[node] else {
            unreachable!("only loops are repeated")
        };
        if (*old_first, *old_next) != (first, next) {
            (*old_first, *old_next) = (first, next);
            *changed = true;
        }
    }

    /// Tells the driver what has changed, and launches.
    pub(crate) fn launch(&mut self) -> Result<()> {
        let changed = self.nodes.iter().filter(|node| node.changed).count();
        log::line(Topic::Launch, format_args!("graph of {} launches, {changed} of them changed", self.nodes.len()));
        match (&self.context.backend, &mut self.exec) {
            (Backend::Real(real), Exec::Real(built)) => {
                real.make_current()?;
                if changed > 0 && !built.update(real, &self.context, &self.nodes)? {
                    *built = Built::new(real, &self.context, &self.nodes)?;
                }
                let library = self.nodes.iter().find_map(|node| match &node.work {
                    Work::Product(product, _) => product.workspace(),
                    _ => None,
                });
                // Those of another thread's product must not come in between.
                let _turn = library.map(|library| library.turn(&self.context, real)).transpose()?;
                // SAFETY: the executable graph and the stream live, and what the nodes point at does by the caller's promise.
                check(unsafe { sys::cuGraphLaunch(built.exec.0, self.context.stream(real)) }, "launch a graph")?;
            }
            (Backend::Recording(recorder), _) => recorder.graph(self.lane, &self.nodes),
            _ => unreachable!("a graph belongs to its context"),
        }
        self.nodes.iter_mut().for_each(|node| node.changed = false);
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // One that is under way is freed by the driver when it is done. A failure means that the driver is gone.
        let _ = self.context.make_current();
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A graph as the driver has it.
struct Built {
    exec: Executable,
    /// The nodes of the executable graph are named by those of the graph it was made from.
    _graph: Template,
    nodes: Vec<Handles>,
}

// SAFETY: the driver's handles may be used from any thread, one at a time.
unsafe impl Send for Built {}

struct Template(sys::CUgraph);

impl Drop for Template {
    fn drop(&mut self) {
        // SAFETY: the handle was created and is used by nobody else.
        unsafe { sys::cuGraphDestroy(self.0) };
    }
}

struct Executable(sys::CUgraphExec);

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: as above; if it is under way, the driver frees it when it is done.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// The driver's nodes for one of ours.
struct Handles {
    all: Vec<sys::CUgraphNode>,
    /// Those that everything behind waits for.
    ends: Vec<sys::CUgraphNode>,
    /// Of a loop.
    body: Option<LoopBody>,
}

/// What a loop repeats, and what says whether it does.
struct LoopBody {
    graph: sys::CUgraph,
    condition: Condition,
}

/// Whether a loop goes on, and the kernel that says it.
struct Condition {
    handle: sys::CUgraphConditionalHandle,
    set: Function,
}

impl Handles {
    fn one(node: sys::CUgraphNode) -> Handles {
        Handles { all: vec![node], ends: vec![node], body: None }
    }
}

impl Built {
    /// The context is current.
    fn new(real: &Real, context: &Context, nodes: &[Node]) -> Result<Built> {
        let graph = Template::new()?;
        let mut handles: Vec<Handles> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> =
                node.after.iter().flat_map(|&before| handles[before].ends.iter().copied()).collect();
            let loop_body = node.inside.and_then(|outer| handles[outer].body.as_ref());
            let own = loop_body.map_or(graph.0, |body| body.graph);
            handles.push(add(real, context, own, &node.work, &after)?);
        }
        for (k, node) in nodes.iter().enumerate() {
            if let Work::Loop { next, .. } = node.work {
                let inside = nodes.iter().zip(&handles).filter(|(node, _)| node.inside == Some(k));
                let ends: Vec<sys::CUgraphNode> =
                    inside.flat_map(|(_, handles)| handles.ends.iter().copied()).collect();
                let body = handles[k].body.as_ref().expect("a loop has a body");
                let test = add_test(context, body.graph, &body.condition, next, &ends)?;
                handles[k].all.push(test);
            }
        }
        let mut exec = Executable(std::ptr::null_mut());
        // SAFETY: the graph is complete, and the driver writes one handle.
        check(unsafe { sys::cuGraphInstantiateWithFlags(&mut exec.0, graph.0, 0) }, "make a graph ready")?;
        Ok(Built { exec, _graph: graph, nodes: handles })
    }

    /// Tells the driver about nodes that have changed. `false` where that takes a new graph.
    fn update(&self, real: &Real, context: &Context, nodes: &[Node]) -> Result<bool> {
        for (node, handles) in nodes.iter().zip(&self.nodes).filter(|(node, _)| node.changed) {
            let done = match &node.work {
                Work::Launch { function, grid, block, shared, args } => {
                    let handle = function.ready(context, *shared, args.len())?;
                    with_params(handle, *grid, *block, *shared, args, |params| {
                        // SAFETY: the node is a kernel of this graph; the driver copies the arguments.
                        unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.exec.0, handles.all[0], params) }
                    })
                }
                Work::Copy { to, from, bytes } => {
                    let params = copy_params(*to, *from, *bytes);
                    // SAFETY: the node is a copy of this graph.
                    unsafe { sys::cuGraphExecMemcpyNodeSetParams(self.exec.0, handles.all[0], &params, real.context) }
                }
                Work::Loop { first, next } => self.repeat(context, handles, *first, *next)?,
                Work::Product(product, matmul) => {
                    let again = Template::new()?;
                    let captured = capture(real, context, again.0, product, matmul, &[])?;
                    self.take_over(real, &captured.all, &handles.all)
                }
            };
            if done != CUresult::CUDA_SUCCESS {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Has both tests of a loop look elsewhere.
    fn repeat(&self, context: &Context, handles: &Handles, first: u64, next: u64) -> Result<CUresult> {
        let (Some(body), [first_test, _, next_test]) = (&handles.body, &handles.all[..]) else {
            unreachable!("a loop has two tests")
        };
        for (&test, flag) in [first_test, next_test].into_iter().zip([first, next]) {
            let status = with_test(context, &body.condition, flag, |params| {
                // SAFETY: the node is a kernel of this graph; the driver copies the arguments.
                unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.exec.0, test, params) }
            })?;
            if status != CUresult::CUDA_SUCCESS {
                return Ok(status);
            }
        }
        Ok(CUresult::CUDA_SUCCESS)
    }

    /// Gives nodes of the executable graph the arguments of others like them.
    fn take_over(&self, real: &Real, from: &[sys::CUgraphNode], to: &[sys::CUgraphNode]) -> CUresult {
        if from.len() != to.len() {
            return CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
        for (&from, &to) in from.iter().zip(to) {
            // SAFETY: all nodes live; arguments are read while the graph they were captured in does.
            let status = unsafe { take_over(self.exec.0, real.context, from, to) };
            if status != CUresult::CUDA_SUCCESS {
                return status;
            }
        }
        CUresult::CUDA_SUCCESS
    }
}

/// # Safety
/// All handles live, and `to` is a node of what `exec` was made from.
unsafe fn take_over(
    exec: sys::CUgraphExec,
    context: sys::CUcontext,
    from: sys::CUgraphNode,
    to: sys::CUgraphNode,
) -> CUresult {
    let (mut new, mut old) = (kind::CU_GRAPH_NODE_TYPE_EMPTY, kind::CU_GRAPH_NODE_TYPE_EMPTY);
    // SAFETY: the caller's promise; structs of numbers and pointers may be zero until the driver fills them.
    unsafe {
        sys::cuGraphNodeGetType(from, &mut new);
        sys::cuGraphNodeGetType(to, &mut old);
        match new {
            _ if new != old => CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
            kind::CU_GRAPH_NODE_TYPE_KERNEL => {
                let mut params: sys::CUDA_KERNEL_NODE_PARAMS = std::mem::zeroed();
                match sys::cuGraphKernelNodeGetParams_v2(from, &mut params) {
                    CUresult::CUDA_SUCCESS => sys::cuGraphExecKernelNodeSetParams_v2(exec, to, &params),
                    status => status,
                }
            }
            kind::CU_GRAPH_NODE_TYPE_MEMSET => {
                let mut params: sys::CUDA_MEMSET_NODE_PARAMS = std::mem::zeroed();
                match sys::cuGraphMemsetNodeGetParams(from, &mut params) {
                    CUresult::CUDA_SUCCESS => sys::cuGraphExecMemsetNodeSetParams(exec, to, &params, context),
                    status => status,
                }
            }
            _ => CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        }
    }
}

impl Template {
    fn new() -> Result<Template> {
        let mut graph = Template(std::ptr::null_mut());
        // SAFETY: the driver writes one handle.
        check(unsafe { sys::cuGraphCreate(&mut graph.0, 0) }, "create a graph")?;
        Ok(graph)
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

fn add(
    real: &Real,
    context: &Context,
    graph: sys::CUgraph,
    work: &Work,
    after: &[sys::CUgraphNode],
) -> Result<Handles> {
    let mut node = std::ptr::null_mut();
    match work {
        Work::Launch { function, grid, block, shared, args } => {
            let handle = function.ready(context, *shared, args.len())?;
            let status = with_params(handle, *grid, *block, *shared, args, |params| {
                // SAFETY: graph and nodes live, the driver copies the arguments.
                unsafe { sys::cuGraphAddKernelNode_v2(&mut node, graph, after.as_ptr(), after.len(), params) }
            });
            check(status, format_args!("add `{}` to a graph", function.entry()))?;
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
        Work::Loop { first, .. } => return add_loop(real, context, graph, *first, after),
    }
    Ok(Handles::one(node))
}

/// The first test of a loop, and the loop without its body.
fn add_loop(
    real: &Real,
    context: &Context,
    graph: sys::CUgraph,
    first: u64,
    after: &[sys::CUgraphNode],
) -> Result<Handles> {
    let set = context.set_condition().expect("a graph with loops is made where it can be loaded");
    let mut handle = 0;
    // SAFETY: graph and context live, and the driver writes one handle.
    let status = unsafe { sys::cuGraphConditionalHandleCreate(&mut handle, graph, real.context, 0, 0) };
    check(status, "make the condition of a loop")?;
    let condition = Condition { handle, set };
    let test = add_test(context, graph, &condition, first, after)?;
    // SAFETY: a struct of numbers and pointers may be zero until it is filled.
    let mut params: sys::CUgraphNodeParams = unsafe { std::mem::zeroed() };
    params.type_ = kind::CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
        size: 1,
        phGraph_out: std::ptr::null_mut(),
        ctx: real.context,
    };
    let mut node = std::ptr::null_mut();
    // SAFETY: graph and nodes live; the driver says in the parameters where the body is, which lives as long as the graph.
    let body = unsafe {
        let no_data = std::ptr::null();
        check(sys::cuGraphAddNode_v2(&mut node, graph, &test, no_data, 1, &mut params), "add a loop to a graph")?;
        *params.__bindgen_anon_1.conditional.phGraph_out
    };
    Ok(Handles { all: vec![test, node], ends: vec![node], body: Some(LoopBody { graph: body, condition }) })
}

/// A kernel that has a loop go on if the bool at an address holds.
fn add_test(
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
    check(status, "add the test of a loop to a graph")?;
    Ok(node)
}

fn with_test(
    context: &Context,
    condition: &Condition,
    flag: u64,
    use_it: impl FnOnce(*const sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult,
) -> Result<CUresult> {
    let args: Vec<u8> = [condition.handle, flag].iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(with_params(condition.set.ready(context, 0, args.len())?, [1; 3], [1; 3], 0, &args, use_it))
}

/// The launches of a product as nodes of a graph.
fn capture(
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
    Ok(Handles { all, ends: ends?, body: None })
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

fn with_params(
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

fn copy_params(to: u64, from: u64, bytes: usize) -> sys::CUDA_MEMCPY3D {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Args, Recorded};

    #[test]
    fn a_graph_launches_what_was_last_written_into_it() {
        let context = Context::recording("sm_90a");
        let function = context.function("extern \"C\" __global__ void k0(long long n) {}", "k0", &[], false).unwrap();
        let mut args = Args::new();
        args.push(7i64);
        let work = || Work::Launch {
            function: function.clone(),
            grid: [1; 3],
            block: [32, 1, 1],
            shared: 0,
            args: args.bytes().into(),
        };
        let nodes = vec![Node::new(work(), vec![]), Node::new(work(), vec![0])];
        let mut graph = Graph::new(&context, nodes).unwrap().unwrap();
        graph.write(1, 0, &9i64.to_ne_bytes());
        graph.launch().unwrap();
        let [Recorded::Graph { launches, after }] = &context.recorded()[..] else { panic!("one graph") };
        let values: Vec<i64> = launches
            .iter()
            .map(|launch| match launch {
                Recorded::Launch { args, .. } => i64::from_ne_bytes(args[..].try_into().unwrap()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((values, &after[..]), (vec![7, 9], &[vec![], vec![0]][..]));
    }
}
