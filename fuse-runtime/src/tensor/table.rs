//! The methods that follow from the op table: elementwise, along an axis, reductions.
//!
//! Each row of such a form is one call of one of these macros, with the name, the class of `T`, the element type of the
//! result and the docs; a new row needs no line here.

use super::call::{call, call_along};
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
                call_along(stringify!($name), self.raw(), dim)
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
                call_along(stringify!($name), self.raw(), dim)
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
