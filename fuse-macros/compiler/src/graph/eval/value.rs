//! Tensors of the reference evaluator.

use crate::op::Num;
use crate::types::{DType, Ty};

/// A tensor of the reference evaluator: its elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub dims: Vec<usize>,
    /// Elements.
    pub data: Vec<Num>,
}

impl Value {
    /// A tensor from its parts.
    pub fn new(dtype: DType, dims: Vec<usize>, data: Vec<Num>) -> Value {
        assert_eq!(dims.iter().product::<usize>(), data.len(), "elements of a value of extents {dims:?}");
        Value { dtype, dims, data }
    }

    /// A tensor of floats, rounded to their element type.
    pub fn floats(dtype: DType, dims: &[usize], data: &[f64]) -> Value {
        Value::new(dtype, dims.to_vec(), data.iter().map(|&x| Num::F(x).round(dtype)).collect())
    }

    /// A tensor of integers, wrapped to their element type.
    pub fn ints(dtype: DType, dims: &[usize], data: &[i64]) -> Value {
        Value::new(dtype, dims.to_vec(), data.iter().map(|&x| Num::I(x).round(dtype)).collect())
    }

    /// A tensor of bools.
    pub fn bools(dims: &[usize], data: &[bool]) -> Value {
        Value::new(DType::Bool, dims.to_vec(), data.iter().map(|&x| Num::B(x)).collect())
    }

    /// The elements of a tensor of floats.
    pub fn as_floats(&self) -> Vec<f64> {
        self.data.iter().map(|x| x.f()).collect()
    }

    /// The elements of a tensor of integers.
    pub fn as_ints(&self) -> Vec<i64> {
        self.data.iter().map(|x| x.i()).collect()
    }

    /// Every element rounded or wrapped to the element type.
    pub(super) fn rounded(self) -> Value {
        let data = self.data.iter().map(|x| x.round(self.dtype)).collect();
        Value { data, ..self }
    }

    /// A tensor of this type by row-major positions.
    pub(super) fn positions(ty: &Ty, element: impl FnMut(usize) -> Num) -> Value {
        let dims = known(ty);
        let count = dims.iter().product();
        Value::new(ty.dtype, dims, (0..count).map(element).collect())
    }

    /// A tensor of this type by indices.
    pub(super) fn build<E>(ty: &Ty, mut element: impl FnMut(&[usize]) -> Result<Num, E>) -> Result<Value, E> {
        let dims = known(ty);
        let count: usize = dims.iter().product();
        let data = (0..count).map(|at| element(&unravel(at, &dims))).collect::<Result<_, _>>()?;
        Ok(Value::new(ty.dtype, dims, data))
    }

    /// The element at an index.
    pub(super) fn at(&self, index: &[usize]) -> Num {
        self.data[self.position(index)]
    }

    /// The element that broadcasting puts at an index of a result with at least as many axes.
    pub(super) fn broadcast_at(&self, index: &[usize]) -> Num {
        let own = &index[index.len() - self.dims.len()..];
        let index: Vec<usize> =
            own.iter().zip(&self.dims).map(|(&i, &extent)| if extent == 1 { 0 } else { i }).collect();
        self.at(&index)
    }

    /// The row-major position of an index.
    pub(super) fn position(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.dims).fold(0, |at, (&i, &extent)| at * extent + i)
    }
}

/// The extents of a type without symbols.
fn known(ty: &Ty) -> Vec<usize> {
    ty.dims.iter().map(|dim| dim.as_const().expect("evaluated types have known extents") as usize).collect()
}

/// The index at a row-major position.
pub(super) fn unravel(mut at: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (axis, &extent) in dims.iter().enumerate().rev() {
        index[axis] = at % extent;
        at /= extent;
    }
    index
}
