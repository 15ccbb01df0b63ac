//! Running one op at once.

use crate::device::Device;
use crate::error::{Error, Result};
use crate::raw::RawTensor;
use fuse_compiler::op::{Attr, Literal, Op};

/// An operand of an eager op.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor. If nothing else holds its storage, the result may take it over; a call that fails leaves it unchanged.
    Tensor(RawTensor),
    /// A host scalar in the compute type of the op's receiver.
    Scalar(Literal),
}

/// Runs the op called `op` on `device`, where all tensors among `args` are.
///
/// Operands come in the order of the row's signature, receiver first; `attrs` are the row's other parameters in order.
pub fn run(device: Device, op: &str, args: &[Arg], attrs: &[Attr]) -> Result<Vec<RawTensor>> {
    let row = Op::find(op).ok_or_else(|| Error::compile(format!("no op is called `{op}`")))?;
    Err(Error::compile(format!("`{}` of {args:?} with {attrs:?} has no plan on {device}", row.name)))
}
