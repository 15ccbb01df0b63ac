//! CUDA graphs: many launches as one.
//!
//! A graph is built from the launches of a call and the hazards between them, so that independent ones run side by side.
//! What differs between calls is written into its nodes; only those that changed are told to the driver. Products by the
//! library are captured, and captured again where their matrices lie elsewhere: the library does not say which of its
//! arguments are addresses.

mod built;
mod nodes;

use super::driver::{Backend, Context};
use super::lanes::Lane;
use super::matmul::{Matmul, Product};
use super::module::Function;
use super::status::check;
use crate::env::is_without;
use crate::error::Result;
use crate::log::{self, Topic};
use built::Built;
use cudarc::driver::sys;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first driver that captures into a graph there is already.
const SINCE: u32 = 12030;
/// The first driver whose graphs may repeat a part of themselves.
const LOOPS_SINCE: u32 = 12040;
/// The first driver whose graphs may choose between two parts.
const BRANCHES_SINCE: u32 = 12080;

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
    /// The loop or branch it is a part of, and of which part.
    pub inside: Option<(usize, usize)>,
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
    /// Of the nodes inside one part is launched: the first if a bool on the device holds.
    Branch {
        /// Where it lies.
        test: u64,
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

    /// The same as a part of a loop or a branch.
    pub(crate) fn within(self, inside: Option<(usize, usize)>) -> Node {
        Node { inside, ..self }
    }
}

impl Work {
    /// The first driver that takes such a node.
    fn since(&self) -> u32 {
        match self {
            Work::Launch { .. } | Work::Product(..) | Work::Copy { .. } => SINCE,
            Work::Loop { .. } => LOOPS_SINCE,
            Work::Branch { .. } => BRANCHES_SINCE,
        }
    }
}

impl Graph {
    /// A graph of these launches, in an order in which each comes behind those it waits for. `None` where the driver is too
    /// old.
    pub(crate) fn new(context: &Arc<Context>, nodes: Vec<Node>) -> Result<Option<Graph>> {
        let since = nodes.iter().map(|node| node.work.since()).max().unwrap_or(SINCE);
        if context.facts().driver_version < since || (since > SINCE && context.set_condition().is_none()) {
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

    /// Looks elsewhere which part of a branch is launched.
    pub(crate) fn decide(&mut self, node: usize, test: u64) {
        let Node { work: Work::Branch { test: old }, changed, .. } = &mut self.nodes[node] else {
            unreachable!("only branches are decided")
        };
        if *old != test {
            *old = test;
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

impl Context {
    /// Whether kernels can be started before those they wait for are done; `FUSE_WITHOUT=overlap` has none started so.
    pub(super) fn starts_early(&self) -> bool {
        let facts = self.facts();
        facts.driver_version >= SINCE && facts.target().capability >= 90 && !is_without("overlap")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // One that is under way is freed by the driver when it is done. A failure means that the driver is gone.
        let _ = self.context.make_current();
        LIVE.fetch_sub(1, Ordering::Relaxed);
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
