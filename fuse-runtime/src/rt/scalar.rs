//! Host scalars on their way into a kernel.

use crate::dtype::Element;
use crate::math::Convert;
use fuse_compiler::op::Literal;

/// A host scalar, exact: floats keep 64 bits until a kernel takes them at its compute type.
pub type Scalar = Literal;

/// A host scalar from an element.
pub fn scalar<T: Element>(value: T) -> Scalar {
    value.to_literal()
}

/// The scalar in an element type, by the rules of a cast.
#[inline(always)]
pub(crate) fn scalar_as<T: Convert>(scalar: Scalar) -> T {
    match scalar {
        Literal::Float(value) => T::of_f64(value),
        Literal::Int(value) => T::of_i64(value),
        Literal::Bool(value) => T::of_i64(i64::from(value)),
    }
}
