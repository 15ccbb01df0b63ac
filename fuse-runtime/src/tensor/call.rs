//! From typed methods to eager ops.

use super::AnyTensor;
use crate::device::Device;
use crate::eager::{self, Arg};
use crate::error::{Error, OrRaise, Result};
use crate::raw::RawTensor;
use crate::tape::{self, What};
use fuse_compiler::op::{Attr, Op};
use fuse_compiler::types::Dim;

/// Runs an op with tensor operands and one result; panics with the error as payload.
#[track_caller]
pub(crate) fn call<O: AnyTensor>(op: &str, args: &[Arg], attrs: &[Attr]) -> O {
    O::from_raw(try_call(op, args, attrs).or_raise())
}

/// Runs an op without tensor operands and with one result on `device`.
#[track_caller]
pub(crate) fn call_on<O: AnyTensor>(device: Device, op: &str, args: &[Arg], attrs: &[Attr]) -> O {
    O::from_raw(eager::run(device, op, args, attrs).map(only).or_raise())
}

/// Runs an op with tensor operands and one result.
pub(crate) fn try_call(op: &str, args: &[Arg], attrs: &[Attr]) -> Result<RawTensor> {
    eager::run(common_device(op, args)?, op, args, attrs).map(only)
}

/// What an op made of a tensor without being run, for it is another view or a copy, written on the tensor's tape.
pub(crate) fn seen(
    tensor: &RawTensor,
    op: &str,
    attrs: impl FnOnce() -> Vec<Attr>,
    result: Result<RawTensor>,
) -> Result<RawTensor> {
    let args = || [Arg::Tensor(tensor.clone())];
    let result = match result {
        Ok(result) if tensor.var().is_none() => return Ok(result),
        Ok(result) => result,
        Err(error) => return Err(refused(op, &args(), &attrs(), error)),
    };
    let args = args();
    let tapes = tape::traced(&args);
    match tapes.is_empty() {
        true => Ok(result),
        false => Ok(only(tape::record(&tapes, &What::Op(Op::named(op), attrs()), &args, vec![result]))),
    }
}

/// The error of operands that a way around the op has refused: the op's own, so that it says the same wherever it is run.
pub(crate) fn refused(op: &str, args: &[Arg], attrs: &[Attr], error: Error) -> Error {
    eager::refusal(op, args, attrs).unwrap_or(error)
}

/// The device of all tensors among `args`.
fn common_device(op: &str, args: &[Arg]) -> Result<Device> {
    let mut devices = args.iter().filter_map(|arg| match arg {
        Arg::Tensor(tensor) => Some(tensor.device()),
        Arg::Scalar(..) => None,
    });
    let Some(first) = devices.next() else {
        return Ok(Device::cpu());
    };
    match devices.find(|&device| device != first) {
        None => Ok(first),
        Some(other) => Err(mixed_devices(op, first, other)),
    }
}

/// Tensors on two devices, both named.
pub(crate) fn mixed_devices(op: &str, first: Device, other: Device) -> Error {
    Error::device(op, format!("one tensor is on {first} and another on {other}; move one with `to_device`"))
}

fn only(results: Vec<RawTensor>) -> RawTensor {
    let [result]: [RawTensor; 1] = results.try_into().expect("the op has one result");
    result
}

/// A dim as the caller wrote it.
pub(crate) fn axis(dim: isize) -> Attr {
    Attr::Int(dim as i64)
}

/// A position of Python's, as far out as any axis reaches.
pub(crate) fn position(tensor: &RawTensor, at: isize) -> Attr {
    let longest = tensor.shape().iter().max().map_or(0, |&extent| extent as isize);
    Attr::Dim(Dim::Const(at.clamp(-longest, longest) as i64))
}

/// Sizes as attributes.
pub(crate) fn sizes(sizes: &[usize]) -> Attr {
    Attr::Dims(sizes.iter().map(|&n| Dim::Const(n as i64)).collect())
}
