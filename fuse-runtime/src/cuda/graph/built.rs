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
    /// The context is current.
    pub fn new(real: &Real, context: &Context, nodes: &[Node]) -> Result<Built> {
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
