//! What gradients are taken of.

use super::record::settled;
use super::tuples::for_tuples;
use crate::dtype::Float;
use crate::error::{Error, catch};
use crate::raw::RawTensor;
use crate::tensor::Tensor;

/// What a function that has gradients returns: a tensor of rank 0, a tuple that begins with one, or a `Result` of these.
#[diagnostic::on_unimplemented(
    message = "gradients are of one number: a `Tensor` of floats and rank 0, not of `{Self}`",
    note = "`sum_all` and `mean_all` reduce to rank 0; what else comes back stands behind it, in a tuple",
    note = "a function under `#[compile(grad(..))]` has a `vjp` for any result, which takes its cotangents"
)]
pub trait Outcome {
    /// The value with gradients.
    type With<G>;

    /// Adds the gradients of the number to the value.
    #[doc(hidden)]
    #[track_caller]
    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G>;
}

impl<T: Float> Outcome for Tensor<T, 0> {
    type With<G> = (Tensor<T, 0>, G);

    #[track_caller]
    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G> {
        let gradients = gradients(self.raw());
        (Tensor::from_raw(settled(self.into())), gradients)
    }
}

impl<O: Outcome, E: From<Error>> Outcome for Result<O, E> {
    type With<G> = Result<O::With<G>, E>;

    fn with<G>(self, gradients: impl FnOnce(&RawTensor) -> G) -> Self::With<G> {
        let value = self?;
        Ok(catch(|| value.with(gradients))?)
    }
}

macro_rules! tuples {
    ($first:ident $value:ident; $($number:ident $loss:ident $($name:ident $beside:ident)*;)*) => {$(
        impl<T: Float, $($name),*> Outcome for (Tensor<T, 0>, $($name,)*) {
            type With<Gradients> = (Self, Gradients);

            #[track_caller]
            fn with<Gradients>(
                self,
                gradients: impl FnOnce(&RawTensor) -> Gradients,
            ) -> Self::With<Gradients> {
                let ($loss, $($beside,)*) = self;
                let ($loss, gradients) = $loss.with(gradients);
                (($loss, $($beside,)*), gradients)
            }
        }
    )*};
}

for_tuples!(tuples);
