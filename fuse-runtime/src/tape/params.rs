//! What gradients are taken for.

use super::tuples::for_tuples;
use crate::dtype::Float;
use crate::optim::{Name, Parameters};
use crate::raw::RawTensor;
use crate::tensor::Tensor;

/// What gradients are taken for: a reference to a tensor, to a struct of [`parameters!`](crate::parameters) that can be
/// cloned, or to a vector of those; a tuple of such references, an array.
///
/// What else is in a struct is cloned, and so are parameters that are no floats.
pub trait Params {
    /// Variables in their place.
    type Vars;
    /// Their gradients.
    type Grads;

    /// The variables, made one after the other.
    #[doc(hidden)]
    fn vars(&self, variable: &mut dyn FnMut(&RawTensor) -> RawTensor) -> Self::Vars;

    /// The gradients, taken in the same order.
    #[doc(hidden)]
    fn grads(self, next: &mut dyn FnMut() -> RawTensor) -> Self::Grads;
}

impl<T: Float, const R: usize> Params for &Tensor<T, R> {
    type Vars = Tensor<T, R>;
    type Grads = Tensor<T, R>;

    fn vars(&self, variable: &mut dyn FnMut(&RawTensor) -> RawTensor) -> Self::Vars {
        Tensor::from_raw(variable(self.raw()))
    }

    fn grads(self, next: &mut dyn FnMut() -> RawTensor) -> Self::Grads {
        Tensor::from_raw(next())
    }
}

impl<'p, P> Params for &'p Vec<P>
where
    &'p P: Params,
{
    type Vars = Vec<<&'p P as Params>::Vars>;
    type Grads = Vec<<&'p P as Params>::Grads>;

    fn vars(&self, variable: &mut dyn FnMut(&RawTensor) -> RawTensor) -> Self::Vars {
        self.iter().map(|param| param.vars(variable)).collect()
    }

    fn grads(self, next: &mut dyn FnMut() -> RawTensor) -> Self::Grads {
        self.iter().map(|param| param.grads(next)).collect()
    }
}

/// A model with other tensors for its parameters, as far as these are floats.
#[doc(hidden)]
pub fn replaced<M: Parameters + Clone>(model: &M, by: &mut dyn FnMut(&RawTensor) -> RawTensor) -> M {
    let mut model = model.clone();
    model.visit_mut(&mut Name::default(), &mut |_, tensor| {
        if tensor.dtype().is_float() {
            *tensor = by(tensor);
        }
    });
    model
}

impl<P: Params, const N: usize> Params for [P; N] {
    type Vars = [P::Vars; N];
    type Grads = [P::Grads; N];

    fn vars(&self, variable: &mut dyn FnMut(&RawTensor) -> RawTensor) -> Self::Vars {
        self.each_ref().map(|param| param.vars(variable))
    }

    fn grads(self, next: &mut dyn FnMut() -> RawTensor) -> Self::Grads {
        self.map(|param| param.grads(next))
    }
}

macro_rules! tuples {
    ($($($name:ident $param:ident)*;)*) => {$(
        impl<$($name: Params),*> Params for ($($name,)*) {
            type Vars = ($($name::Vars,)*);
            type Grads = ($($name::Grads,)*);

            fn vars(&self, variable: &mut dyn FnMut(&RawTensor) -> RawTensor) -> Self::Vars {
                let ($($param,)*) = self;
                ($($param.vars(variable),)*)
            }

            fn grads(self, next: &mut dyn FnMut() -> RawTensor) -> Self::Grads {
                let ($($param,)*) = self;
                ($($param.grads(next),)*)
            }
        }
    )*};
}

for_tuples!(tuples);
