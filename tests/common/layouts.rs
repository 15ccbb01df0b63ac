//! The same values, lying in memory in another way.

use super::values::raw_of;
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::Num;
use fuse_compiler::types::DType;
use fuse_runtime::{Device, Layout, RawTensor};

/// How a tensor lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lay {
    /// Row-major without gaps.
    Contiguous,
    /// Column-major: the transpose of a row-major tensor.
    Transposed,
    /// A part of a larger tensor along the last axis, from position 1 on.
    OddOffset,
    /// Backwards along every axis.
    Flipped,
    /// Repeated along its first axis, with stride 0: only of values that repeat so, see [`Lay::adapt`].
    Broadcast,
}

impl Lay {
    /// All of them.
    pub const ALL: [Lay; 5] = [Lay::Contiguous, Lay::Transposed, Lay::OddOffset, Lay::Flipped, Lay::Broadcast];

    /// Those that any values can have.
    pub const FREE: [Lay; 4] = [Lay::Contiguous, Lay::Transposed, Lay::OddOffset, Lay::Flipped];

    /// The values a tensor in this layout can have: under `Broadcast` the first part along the first axis, repeated.
    pub fn adapt(self, value: Value) -> Value {
        if self != Lay::Broadcast || value.data.is_empty() || value.dims.is_empty() {
            return value;
        }
        let part = value.data.len() / value.dims[0];
        let data = value.data[..part].repeat(value.dims[0]);
        Value::new(value.dtype, value.dims, data)
    }
}

/// A tensor on `device` of these values in this layout. What lies between the elements is no number that passes unnoticed.
pub fn lay_out(value: &Value, lay: Lay, device: Device) -> RawTensor {
    let backwards: Vec<isize> = (0..value.dims.len() as isize).rev().collect();
    let raw = match lay {
        Lay::Contiguous => raw_of(value),
        Lay::OddOffset => gaps(value),
        Lay::Transposed => through(value, |layout| layout.permute(&backwards)),
        Lay::Flipped => through(value, |layout| layout.flip(&backwards)),
        Lay::Broadcast if value.data.is_empty() || value.dims.is_empty() => raw_of(value),
        Lay::Broadcast => {
            let first = view(&raw_of(value), |layout| layout.narrow(0, 0, 1));
            view(&first.copied().expect("a small copy"), |layout| layout.broadcast_to(&value.dims))
        }
    };
    if device.is_cpu() {
        return raw;
    }
    // The storage travels as it is, so that the layout is the same on every device.
    let elements = raw.storage().bytes() / raw.dtype().bytes();
    let whole = raw.with_layout(Layout::contiguous(&[elements]));
    whole.to_device(device).expect("a small tensor fits onto the device").with_layout(*raw.layout())
}

/// Values that lie in memory as `turn`, which undoes itself, sees them.
fn through(value: &Value, turn: impl Fn(&Layout) -> fuse_runtime::Result<Layout>) -> RawTensor {
    let turned = view(&raw_of(value), &turn).copied().expect("a small copy");
    view(&turned, turn)
}

fn view(raw: &RawTensor, layout: impl Fn(&Layout) -> fuse_runtime::Result<Layout>) -> RawTensor {
    raw.with_layout(layout(raw.layout()).expect("the layout exists"))
}

/// Every row between one element before and two behind.
fn gaps(value: &Value) -> RawTensor {
    let row = value.dims.last().copied().unwrap_or(1);
    let rows: usize = value.dims.iter().rev().skip(1).product();
    let outside = outside(value.dtype);
    let mut data = vec![];
    for at in 0..rows {
        data.push(outside);
        data.extend(&value.data[at * row..(at + 1) * row]);
        data.extend([outside, outside]);
    }
    let mut dims = value.dims.clone();
    let wide = Value::new(value.dtype, vec![data.len()], data);
    let mut strides = vec![1; dims.len()];
    if let Some(last) = dims.last_mut() {
        *last += 3;
    }
    for axis in (0..strides.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * dims[axis + 1] as isize;
    }
    raw_of(&wide).with_layout(Layout::strided(&value.dims, &strides, 1))
}

/// What lies between the elements.
fn outside(dtype: DType) -> Num {
    match dtype {
        DType::Bool => Num::B(true),
        dtype if dtype.is_int() => Num::I(101),
        _ => Num::F(f64::NAN),
    }
}
