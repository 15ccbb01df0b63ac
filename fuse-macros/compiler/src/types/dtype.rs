//! Element types.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DType {
    /// 32-bit IEEE float.
    F32,
    /// 64-bit IEEE float.
    F64,
    /// 16-bit IEEE float.
    F16,
    /// bfloat16.
    BF16,
    /// 8-bit float with 4 bits of exponent and 3 of mantissa, without infinities: PyTorch's `float8_e4m3fn`. It is kept and
    /// multiplied; other arithmetic is done in a type that it is cast to.
    F8E4M3,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 8-bit unsigned integer.
    U8,
    /// Boolean, one byte.
    Bool,
    /// The n-th generic element type of the compiled function (`T: Float`); it becomes a define of the CUDA text.
    Param(u8),
    /// What the n-th generic element type is computed in: f64 for f64, f32 for the other floats.
    Compute(u8),
}

impl DType {
    /// Every concrete element type, in the order of the documentation.
    pub const ALL: [DType; 9] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::F8E4M3,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::Bool,
    ];

    /// The Rust spelling: `f32`, `bf16`, `bool`, or `T0` for a generic one and `C0` for what that is computed in.
    pub fn name(self) -> &'static str {
        const PARAMS: [&str; 4] = ["T0", "T1", "T2", "T3"];
        const COMPUTES: [&str; 4] = ["C0", "C1", "C2", "C3"];
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F8E4M3 => "f8e4m3",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::U8 => "u8",
            DType::Bool => "bool",
            DType::Param(n) => PARAMS[n as usize],
            DType::Compute(n) => COMPUTES[n as usize],
        }
    }

    /// Bytes of one element; 0 for a generic type, whose size is known only where it is instantiated.
    pub fn bytes(self) -> usize {
        match self {
            DType::F64 | DType::I64 => 8,
            DType::F32 | DType::I32 => 4,
            DType::F16 | DType::BF16 => 2,
            DType::F8E4M3 | DType::U8 | DType::Bool => 1,
            DType::Param(_) | DType::Compute(_) => 0,
        }
    }

    /// Whether values are floats with arithmetic: all but fp8. Generic types are always `Float`.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16 | DType::Param(_) | DType::Compute(_))
    }

    /// Whether values are integers (not bool).
    pub fn is_int(self) -> bool {
        matches!(self, DType::I64 | DType::I32 | DType::U8)
    }

    /// Whether the type is known only where the compiled function is instantiated.
    pub fn is_generic(self) -> bool {
        matches!(self, DType::Param(_) | DType::Compute(_))
    }

    /// Whether values are floats of 16 bits.
    pub fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// Whether values are stored in fewer bits than they are computed in.
    pub fn is_narrow(self) -> bool {
        self.is_half() || self == DType::F8E4M3
    }

    /// The type one element is computed in: f32 for halves and fp8, `C0` for `T0`, itself otherwise.
    pub fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 | DType::F8E4M3 => DType::F32,
            DType::Param(n) => DType::Compute(n),
            wide => wide,
        }
    }

    /// Puts concrete types in the place of generic ones.
    pub fn instantiate(self, params: &[DType]) -> DType {
        match self {
            DType::Param(n) => params[n as usize],
            DType::Compute(n) => params[n as usize].compute(),
            concrete => concrete,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
