//! Kernels on a GPU: operands become addresses and strides, layouts choose a variant of the text, and what the variant
//! needs is packed in the order the emitter wrote it.

mod ahead;
mod attention;
mod bind;
mod call;
mod functions;
mod kernel_id;
mod launch;
mod list;
mod matmul;
mod products;
mod run;
mod scratch;
mod small;
mod tape;
mod texts;
mod tune;
mod tune_product;
mod warm;

pub(crate) use ahead::Ahead;
pub(crate) use call::{Names, describe_fault};
pub(crate) use functions::Functions;
pub(crate) use list::{ListText, as_list};
#[cfg(test)]
pub(crate) use matmul::{on_tensor_cores, with_template};
pub(crate) use run::{run, run_again, run_branch, run_loop};
pub(crate) use tape::Tapes;
