//! The methods that follow from the op table: elementwise, along an axis, reductions.
//!
//! Each row of such a form is one call of one of these macros, with the name, the class of `T`, the element type of the
//! result and the docs; a new row needs no line here.

use super::call::{axis, call};
use super::operand::tensor;
use super::{AnyRank, Lower, Lowered, Operand, Rank, Tensor};
use crate::dtype::{Bits, Element, Float, Int, Num};

macro_rules! unary {
    ($name:ident, $class:ident, $out:ty, $doc:literal) => {
        impl<T: $class, const R: usize> Tensor<T, R> {
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self) -> Tensor<$out, R> {
                call(stringify!($name), &[tensor(self)], &[])
            }
        }
    };
}

macro_rules! binary {
    ($name:ident, $class:ident, $out:ty, $doc:literal) => {
        impl<T: $class, const R: usize> Tensor<T, R> {
            #[doc = $doc]
            #[doc = ""]
            #[doc = "The other operand is a tensor, owned or borrowed, or a scalar, and broadcasts."]
            #[track_caller]
            pub fn $name<O: Operand<T, R>>(&self, other: O) -> <O::Out as AnyRank>::Tensor<$out> {
                call(stringify!($name), &[tensor(self), other.into_arg()], &[])
            }
        }
    };
}

macro_rules! along {
    ($name:ident, $class:ident, $out:ty, $doc:literal) => {
        impl<T: $class, const R: usize> Tensor<T, R> {
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self, dim: isize) -> Tensor<$out, R> {
                call(stringify!($name), &[tensor(self)], &[axis(dim)])
            }
        }
    };
}

macro_rules! reduce {
    ($name:ident, $class:ident, $out:ty, $doc:literal) => {
        impl<T: $class, const R: usize> Tensor<T, R> {
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self, dim: isize) -> Lowered<$out, R>
            where
                Rank<R>: Lower,
            {
                call(stringify!($name), &[tensor(self)], &[axis(dim)])
            }
        }
    };
}

macro_rules! reduce_all {
    ($name:ident, $class:ident, $out:ty, $doc:literal) => {
        impl<T: $class, const R: usize> Tensor<T, R> {
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self) -> Tensor<$out, 0> {
                call(stringify!($name), &[tensor(self)], &[])
            }
        }
    };
}

fuse_macros::table_methods! {}

#[cfg(test)]
mod tests {
    use fuse_compiler::op::{Call, methods, table};

    /// The ops whose methods and functions are written out in the other files of this folder.
    const BY_HAND: &[&str] = &[
        "addmm",
        "arange",
        "baddbmm",
        "cast",
        "cat",
        "chunk",
        "clamp",
        "copy_",
        "cross_entropy",
        "cross_entropy_with",
        "detach",
        "dropout",
        "embedding",
        "expand",
        "eye",
        "flip",
        "from_slice",
        "from_vec",
        "full",
        "gather",
        "index_add",
        "index_copy",
        "index_copy_",
        "index_select",
        "item",
        "layer_norm",
        "leaky_relu",
        "linear",
        "masked_fill",
        "matmul",
        "narrow",
        "ones",
        "permute",
        "powi",
        "rand",
        "randn",
        "repeat",
        "reshape",
        "rms_norm",
        "scaled_dot_product_attention",
        "scatter_add",
        "slice",
        "scaled_matmul",
        "slice_assign",
        "squeeze",
        "stack",
        "std_correction",
        "t",
        "to_device",
        "to_vec",
        "transpose",
        "tril",
        "triu",
        "unbind",
        "unsqueeze",
        "var_correction",
        "where_cond",
        "zeros",
    ];

    #[test]
    fn every_op_of_the_table_is_a_method() {
        let regular: Vec<&str> = methods::regular().map(|method| method.row.name).collect();
        let missing: Vec<&str> = table()
            .iter()
            .filter(|op| op.call != Call::Internal && !regular.contains(&op.name) && !BY_HAND.contains(&op.name))
            .map(|op| op.name)
            .collect();
        assert!(missing.is_empty(), "no method is written for {missing:?}");
    }
}
