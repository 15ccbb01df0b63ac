//! Element types, extents and tensor types: the vocabulary every stage shares.

mod dim;
mod dtype;

pub use dim::{Dim, Sym};
pub use dtype::DType;

use serde::{Deserialize, Serialize};
use std::fmt;

/// The rank that tensors whose rank is a const parameter are brought to, by leading axes of extent 1.
pub const OPEN_RANK: usize = 6;

/// The type of a tensor value inside a graph: its element type and its extents.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ty {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first. Empty for rank 0.
    pub dims: Vec<Dim>,
}

impl Ty {
    /// A tensor type from its parts.
    pub fn new(dtype: DType, dims: impl Into<Vec<Dim>>) -> Self {
        Ty { dtype, dims: dims.into() }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The number of elements as a formula.
    pub fn numel(&self) -> Dim {
        self.dims.iter().cloned().fold(Dim::Const(1), Dim::mul)
    }

    /// How many elements there are where every extent that is open is taken to be 256: enough to compare sizes by.
    pub fn likely_numel(&self) -> i64 {
        self.dims.iter().map(|dim| dim.eval(&|_| 256).max(1)).product()
    }

    /// The same extents with another element type.
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Ty { dtype, dims: self.dims.clone() }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, d) in self.dims.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
        }
        write!(f, "]")
    }
}
