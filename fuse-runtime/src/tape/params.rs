//! What gradients are taken for, and of what.

use crate::dtype::Float;
use crate::error::Error;
use crate::optim::{Name, Parameters};
use crate::raw::RawTensor;
use crate::tape;
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
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Params),*> Params for ($($name,)*) {
            type Vars = ($($name::Vars,)*);
            type Grads = ($($name::Grads,)*);

            fn vars(&self, variable: &mut dyn FnMut(&RawTensor) -> RawTensor) -> Self::Vars {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                ($($name.vars(variable),)*)
            }

            fn grads(self, next: &mut dyn FnMut() -> RawTensor) -> Self::Grads {
                #[allow(non_snake_case)]
                let ($($name,)*) = self;
                ($($name.grads(next),)*)
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
    A B C D E F G H I J K L;
    A B C D E F G H I J K L M;
    A B C D E F G H I J K L M N;
    A B C D E F G H I J K L M N O;
    A B C D E F G H I J K L M N O P;
}

/// What has gradients for a cotangent of its own extents: a tensor, a pair of one and anything else, or a `Result` of these.
pub trait Differentiable {
    /// The value together with gradients.
    type With<G>;

    /// Adds the gradients of the tensor to the value.
    #[doc(hidden)]
    #[track_caller]
    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G>;
}

impl<T: Float, const R: usize> Differentiable for Tensor<T, R> {
    type With<G> = (Tensor<T, R>, G);

    #[track_caller]
    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G> {
        let gradients = gradients(self.raw());
        (Tensor::from_raw(tape::settled(self.into())), gradients)
    }
}

impl<T: Float, A, const R: usize> Differentiable for (Tensor<T, R>, A) {
    type With<G> = ((Tensor<T, R>, A), G);

    #[track_caller]
    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G> {
        let (value, beside) = self;
        let (value, gradients) = value.with(gradients);
        ((value, beside), gradients)
    }
}

impl<O: Differentiable, E: From<Error>> Differentiable for Result<O, E> {
    type With<G> = Result<O::With<G>, E>;

    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G> {
        let value = self?;
        Ok(crate::error::catch(|| value.with(gradients))?)
    }
}

/// What a function that has gradients returns: a tensor of rank 0, a pair of one and anything else, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "gradients are of one number: a `Tensor` of floats and rank 0, not of `{Self}`",
    note = "`sum_all` and `mean_all` reduce to rank 0; what else comes back stands behind it, in a pair"
)]
pub trait Outcome: Differentiable {}

impl<T: Float> Outcome for Tensor<T, 0> {}

impl<T: Float, A> Outcome for (Tensor<T, 0>, A) {}

impl<O: Outcome, E: From<Error>> Outcome for Result<O, E> {}
