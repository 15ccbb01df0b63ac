//! What an optimiser updates and a checkpoint holds: tensors of any type and rank, each under a name.

use crate::dtype::Element;
use crate::raw::RawTensor;
use crate::tensor::Tensor;
use std::fmt::Display;

/// Tensors of mixed rank and element type, each under a name, in an order that is always the same.
///
/// A tensor is one, and so are tuples, arrays, slices, vectors and options of them, and references to what may be written.
/// For a struct of them [`parameters!`](crate::parameters) writes the implementation. Gradients are such a list, too, with one
/// tensor for each parameter.
///
/// ```
/// use fuse_runtime::optim::{Parameters, names};
/// use fuse_runtime::prelude::*;
///
/// struct Layer<T: Float> {
///     weight: Tensor<T, 2>,
///     bias: Tensor<T, 1>,
/// }
/// fuse_runtime::parameters!(Layer<T> { weight, bias });
///
/// let layer = |d| Layer { weight: Tensor::<f32, 2>::eye(2, d), bias: Tensor::zeros([2], d) };
/// let model = vec![layer(Device::cpu()), layer(Device::cpu())];
/// assert_eq!(names(&model), ["0.weight", "0.bias", "1.weight", "1.bias"]);
/// ```
pub trait Parameters {
    /// Calls `f` with the name and the tensor of every parameter.
    fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor));

    /// The same with tensors to write to. A write must keep element type, rank and device.
    fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor));
}

/// The name of a parameter while it is put together: what leads to it, joined by dots.
#[derive(Debug, Default)]
pub struct Name(String);

impl Name {
    /// A name that starts with `prefix`.
    pub fn new(prefix: &str) -> Self {
        Name(prefix.to_owned())
    }

    /// Goes one step further for as long as `body` runs.
    pub fn within<R>(&mut self, part: impl Display, body: impl FnOnce(&mut Name) -> R) -> R {
        let before = self.0.len();
        let dot = if before == 0 { "" } else { "." };
        self.0 += &format!("{dot}{part}");
        let out = body(self);
        self.0.truncate(before);
        out
    }

    /// The name so far.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The names of all parameters, in order.
pub fn names(parameters: &impl Parameters) -> Vec<String> {
    tensors(parameters, "").into_iter().map(|(name, _)| name).collect()
}

/// How many numbers all parameters hold.
///
/// ```
/// use fuse_runtime::optim::numel;
/// use fuse_runtime::prelude::*;
/// let (w, b) = (Tensor::<f32, 2>::eye(3, Device::cpu()), Tensor::<f32, 1>::zeros([3], Device::cpu()));
/// assert_eq!(numel(&(w, b)), 12);
/// ```
pub fn numel(parameters: &impl Parameters) -> usize {
    tensors(parameters, "").iter().map(|(_, tensor)| tensor.numel()).sum()
}

/// All parameters with names that start with `prefix`.
pub(crate) fn tensors<'a>(parameters: &'a impl Parameters, prefix: &str) -> Vec<(String, &'a RawTensor)> {
    let mut all = Vec::new();
    parameters.visit(&mut Name::new(prefix), &mut |name, tensor| all.push((name.to_owned(), tensor)));
    all
}

impl<T: Element, const R: usize> Parameters for Tensor<T, R> {
    fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor)) {
        f(name.as_str(), self.raw());
    }

    fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor)) {
        let before = (self.raw().dtype(), self.raw().layout().rank());
        f(name.as_str(), self.raw_mut());
        assert_eq!((self.raw().dtype(), self.raw().layout().rank()), before, "a parameter keeps its type");
    }
}

impl<P: Parameters + ?Sized> Parameters for &mut P {
    fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor)) {
        (**self).visit(name, f);
    }

    fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor)) {
        (**self).visit_mut(name, f);
    }
}

impl<P: Parameters> Parameters for [P] {
    fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor)) {
        self.iter().enumerate().for_each(|(k, one)| name.within(k, |name| one.visit(name, f)));
    }

    fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor)) {
        self.iter_mut().enumerate().for_each(|(k, one)| name.within(k, |name| one.visit_mut(name, f)));
    }
}

macro_rules! as_slices {
    ($($(#$const:tt)? $ty:ty;)*) => {$(
        impl<P: Parameters $(, const $const: usize)?> Parameters for $ty {
            fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor)) {
                self.as_slice().visit(name, f);
            }

            fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor)) {
                self.as_mut_slice().visit_mut(name, f);
            }
        }
    )*};
}

as_slices! {
    Vec<P>;
    #N [P; N];
}

/// Nothing, or what it holds, under the same name.
impl<P: Parameters> Parameters for Option<P> {
    fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor)) {
        self.iter().for_each(|one| one.visit(name, f));
    }

    fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor)) {
        self.iter_mut().for_each(|one| one.visit_mut(name, f));
    }
}

macro_rules! tuples {
    ($($(($field:tt $name:ident))*;)*) => {$(
        impl<$($name: Parameters),*> Parameters for ($($name,)*) {
            fn visit<'a>(&'a self, name: &mut Name, f: &mut dyn FnMut(&str, &'a RawTensor)) {
                $(name.within($field, |name| self.$field.visit(name, f));)*
            }

            fn visit_mut(&mut self, name: &mut Name, f: &mut dyn FnMut(&str, &mut RawTensor)) {
                $(name.within($field, |name| self.$field.visit_mut(name, f));)*
            }
        }
    )*};
}

tuples! {
    (0 A);
    (0 A) (1 B);
    (0 A) (1 B) (2 C);
    (0 A) (1 B) (2 C) (3 D);
    (0 A) (1 B) (2 C) (3 D) (4 E);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J) (10 K);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J) (10 K) (11 L);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J) (10 K) (11 L) (12 M);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J) (10 K) (11 L) (12 M) (13 N);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J) (10 K) (11 L) (12 M) (13 N) (14 O);
    (0 A) (1 B) (2 C) (3 D) (4 E) (5 F) (6 G) (7 H) (8 I) (9 J) (10 K) (11 L) (12 M) (13 N) (14 O) (15 P);
}

/// Implements [`Parameters`](crate::optim::Parameters) for a struct: its fields, each under its name. If the struct can be
/// cloned, [`value_and_grad`](crate::value_and_grad) takes a reference to it.
///
/// The fields that are named are parameters themselves: tensors, other such structs, vectors of them. A type parameter is
/// an element type, [`Float`](crate::Float).
///
/// ```
/// use fuse_runtime::prelude::*;
///
/// struct Norm<T: Float> {
///     weight: Tensor<T, 1>,
///     eps: f64, // no parameter
/// }
/// fuse_runtime::parameters!(Norm<T> { weight });
///
/// let norm = Norm { weight: Tensor::<bf16, 1>::ones([8], Device::cpu()), eps: 1e-5 };
/// assert_eq!(fuse_runtime::optim::names(&norm), ["weight"]);
/// # let _ = norm.eps;
/// ```
#[macro_export]
macro_rules! parameters {
    ($model:ident $(<$($element:ident),+>)? { $($field:ident),+ $(,)? }) => {
        impl$(<$($element: $crate::Float),+>)? $crate::optim::Parameters for $model$(<$($element),+>)? {
            fn visit<'a>(
                &'a self,
                name: &mut $crate::optim::Name,
                f: &mut dyn FnMut(&str, &'a $crate::RawTensor),
            ) {
                $(name.within(stringify!($field), |name| $crate::optim::Parameters::visit(&self.$field, name, f));)+
            }

            fn visit_mut(
                &mut self,
                name: &mut $crate::optim::Name,
                f: &mut dyn FnMut(&str, &mut $crate::RawTensor),
            ) {
                $(name.within(stringify!($field), |name| $crate::optim::Parameters::visit_mut(&mut self.$field, name, f));)+
            }
        }

        // The lifetime lets structs be that cannot be cloned.
        impl$(<$($element: $crate::Float),+>)? $crate::Params for &$model$(<$($element),+>)?
        where
            for<'any> $model$(<$($element),+>)?: ::core::clone::Clone,
        {
            type Vars = $model$(<$($element),+>)?;
            type Grads = $model$(<$($element),+>)?;

            fn vars(&self, variable: &mut dyn FnMut(&$crate::RawTensor) -> $crate::RawTensor) -> Self::Vars {
                $crate::rt::replaced(*self, variable)
            }

            fn grads(self, next: &mut dyn FnMut() -> $crate::RawTensor) -> Self::Grads {
                $crate::rt::replaced(self, &mut |_| next())
            }
        }
    };
}
