//! Running one op at once.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::raw::RawTensor;
use crate::storage::CudaBuffer;
use fuse_compiler::op::{Attr, Literal, Op};
use fuse_compiler::types::DType;

/// An operand of an eager op.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor. If nothing else holds its storage, the result may take it over; a call that fails leaves it unchanged.
    Tensor(RawTensor),
    /// A host scalar of this element type; beside halves f32, their compute type.
    Scalar(Literal, DType),
}

/// Runs the op called `op` on `device`, where all tensors among `args` are.
///
/// Operands come in the order of the row's signature, receiver first; `attrs` are the row's other parameters in order.
pub fn run(device: Device, op: &str, args: &[Arg], attrs: &[Attr]) -> Result<Vec<RawTensor>> {
    let row = Op::find(op).ok_or_else(|| Error::compile(format!("no op is called `{op}`")))?;
    Err(Error::compile(format!("`{}` of {args:?} with {attrs:?} has no plan on {device}", row.name)))
}

/// Returns the first fault that the data of `memory` depends on, once. The stream must have been waited for.
pub(crate) fn check_faults(memory: &CudaBuffer) -> Result<()> {
    let context = memory.buffer().context();
    match context.take_fault(memory.last_call()) {
        None => Ok(()),
        Some(fault) => Err(Error::index("kernel", format!("{fault:?}"))),
    }
}
