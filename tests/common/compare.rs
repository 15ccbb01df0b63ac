//! Whether two tensors are equal.

use super::values::value_of;
use fuse_compiler::graph::eval::Value;
use fuse_compiler::op::Num;
use fuse_compiler::types::DType;
use fuse_runtime::RawTensor;

/// Whether two tensors have the same extents and the same bits, NaN payloads aside.
pub fn same_bits(got: &RawTensor, want: &RawTensor) -> Result<(), String> {
    first_difference(&value_of(got), &value_of(want), |_, a, b| identical(a, b))
}

fn identical(a: Num, b: Num) -> bool {
    match (a, b) {
        (Num::F(a), Num::F(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        (a, b) => a == b,
    }
}

/// The first place where two tensors differ.
pub fn first_difference(got: &Value, want: &Value, equal: impl Fn(usize, Num, Num) -> bool) -> Result<(), String> {
    if (got.dtype, &got.dims) != (want.dtype, &want.dims) {
        return Err(format!("got {}{:?}, want {}{:?}", got.dtype, got.dims, want.dtype, want.dims));
    }
    match (0..got.data.len()).find(|&at| !equal(at, got.data[at], want.data[at])) {
        Some(at) => Err(format!("element {at} of {:?}: got {:?}, want {:?}", got.dims, got.data[at], want.data[at])),
        None => Ok(()),
    }
}

/// The distance of two neighbouring numbers of an element type around `x`.
pub fn ulp(x: f64, dtype: DType) -> f64 {
    let (bits, least) = match dtype {
        DType::F64 => (53, -1022),
        DType::F32 => (24, -126),
        DType::F16 => (11, -14),
        DType::F8E4M3 => (4, -6),
        _ => (8, -126),
    };
    let exponent = if x == 0.0 || !x.is_finite() { least } else { (x.abs().log2().floor() as i32).max(least) };
    2f64.powi(exponent - bits + 1)
}
