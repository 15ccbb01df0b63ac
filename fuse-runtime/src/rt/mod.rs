//! What emitted code talks to. Public for the macro, not for people: names here may change with any version.

mod body;
mod branch;
mod cubin;
mod derivative;
mod device_loop;
mod glue;
mod graph;
mod host;
mod indexed;
mod ins;
mod open_rank;
mod outs;
pub mod recorder;
mod report;
mod scalar;
mod segment;
mod simd;
mod sums;

pub use crate::math;
pub use crate::reduce;
pub use crate::tape::{hvp, replaced, try_vjp, vjp, vjp_untyped};
pub use body::{BLOCK, Body, DynBody};
pub use branch::{Joined, branch};
pub use cubin::Cubin;
pub use derivative::{Derivative, Way};
pub use device_loop::while_loop;
pub use fuse_compiler::options::Mode;
pub use fuse_compiler::types::DType;
pub use glue::{WeakScalar, check_count, check_dim, fallible, launched, replace, solve_dim, weak_scalar};
pub use graph::{Callable, run_graph};
pub use host::{HostInt, int, wants_eager, wants_eager_for};
pub use indexed::{Gather, Scatter};
pub use ins::Ins;
pub use open_rank::{is_open_to, narrowed, widened, widened_size};
pub use outs::Outs;
pub use report::{explanation, tell_breaks};
pub use scalar::{Scalar, scalar};
pub use segment::{Config, Inputs, Segment};
pub(crate) use sums::SumsOf;
pub use sums::{Lanes, Sums};

pub(crate) use indexed::Indexed;
pub(crate) use ins::{CallFacts, Draw, LeafRun, Summed};
pub(crate) use outs::{StageRun, StoreRun};
pub(crate) use scalar::scalar_as;
pub(crate) use simd::{Level, level, vectorised};
