//! A graph in the driver's terms: its nodes, kept up to date.

use super::nodes::{Handles, add, add_test, capture, copy_params, with_params, with_test};
use super::{Node, Work};
use crate::cuda::driver::{Context, Real};
use crate::cuda::status::check;
use crate::error::Result;
use cudarc::driver::sys::{self, CUgraphNodeType_enum as kind, CUresult};

/// A graph as the driver has it.
pub(super) struct Built {
    pub exec: Executable,
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

pub(super) struct Executable(pub sys::CUgraphExec);

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: as above; if it is under way, the driver frees it when it is done.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

impl Built {
    /// The context is current. Kernels that wait by themselves are started early, where the driver can do that.
    pub fn new(real: &Real, context: &Context, nodes: &[Node]) -> Result<Built> {
        if context.starts_early() {
            let early = Built::made(real, context, nodes, true);
            return early.or_else(|_| Built::made(real, context, nodes, false));
        }
        Built::made(real, context, nodes, false)
    }

    fn made(real: &Real, context: &Context, nodes: &[Node], early: bool) -> Result<Built> {
        let graph = Template::new()?;
        let mut handles: Vec<Handles> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after: Vec<sys::CUgraphNode> =
                node.after.iter().flat_map(|&before| handles[before].ends.iter().copied()).collect();
            let part = node.inside.map(|(outer, part)| handles[outer].nested().parts[part]);
            let own = part.unwrap_or(graph.0);
            let overlaps = early && may_overlap(node, nodes, &handles);
            handles.push(add(real, context, own, &node.work, &after, overlaps)?);
        }
        for (k, node) in nodes.iter().enumerate() {
            if let Work::Loop { next, .. } = node.work {
                let inside = nodes.iter().zip(&handles).filter(|(node, _)| node.inside == Some((k, 0)));
                let ends: Vec<sys::CUgraphNode> =
                    inside.flat_map(|(_, handles)| handles.ends.iter().copied()).collect();
                let body = handles[k].nested();
                let test = add_test(context, body.parts[0], &body.condition, next, &ends)?;
                handles[k].all.push(test);
            }
        }
        let mut exec = Executable(std::ptr::null_mut());
        // SAFETY: the graph is complete, and the driver writes one handle.
        check(unsafe { sys::cuGraphInstantiateWithFlags(&mut exec.0, graph.0, 0) }, "make a graph ready")?;
        Ok(Built { exec, _graph: graph, nodes: handles })
    }

    /// Tells the driver about nodes that have changed. `false` where that takes a new graph.
    pub fn update(&self, real: &Real, context: &Context, nodes: &[Node]) -> Result<bool> {
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
                Work::Loop { first, next } => self.look(context, handles, &[*first, *next])?,
                Work::Branch { test } => self.look(context, handles, &[*test])?,
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

    /// Has the tests of a loop or a branch look elsewhere.
    fn look(&self, context: &Context, handles: &Handles, flags: &[u64]) -> Result<CUresult> {
        // The node that they decide about comes behind the first of them.
        let tests = handles.all.iter().take(1).chain(handles.all.iter().skip(2));
        for (&test, &flag) in tests.zip(flags) {
            let status = with_test(context, &handles.nested().condition, flag, |params| {
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

/// Whether a node may be started before the one it waits for is done: a kernel that waits by itself, behind one other kernel.
/// A chain of such waits for all of it, since a kernel is done only when it has waited. In a loop it takes longer.
fn may_overlap(node: &Node, nodes: &[Node], handles: &[Handles]) -> bool {
    let waits = match &node.work {
        Work::Launch { function, .. } => function.waits(),
        _ => false,
    };
    waits && node.inside.is_none() && matches!(node.after[..], [before] if is_kernel(&nodes[before], &handles[before]))
}

/// Whether a node is one kernel. A product of several launches may end in something else.
fn is_kernel(node: &Node, handles: &Handles) -> bool {
    matches!(node.work, Work::Launch { .. } | Work::Product(..)) && handles.all.len() == 1
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
