//! The update rules as compiled code: every one is a single elementwise kernel that reads and writes each element once.
//!
//! A rule exists twice: for parameters that are updated in their own type (f32, f64), and for halves, whose f32 master
//! copy is updated and then rounded into the parameter. What changes from step to step comes as tensors of rank 0, so that
//! a step that a device decides about (`skip`) needs no answer from it.

use crate::prelude::*;

/// Makes a rule: its two functions, the parameter, the gradient, the states, the facts of a step, the numbers, and the update.
///
/// In the update the parameter and the states are what is written to, and everything has one element type.
macro_rules! rule {
    (
        $(#[$doc:meta])*
        $plain:ident, $mixed:ident($w:ident, $g:ident; $($state:ident)*; $skip:ident, $($fact:ident)*; $($number:ident)*)
        { $($update:tt)* }
    ) => {
        $(#[$doc])*
        #[compile(fullgraph)]
        pub(super) fn $plain<T: Float>(
            #[dims(N)] $w: &mut Tensor<T, 1>,
            $(#[dims(N)] $state: &mut Tensor<T, 1>,)*
            #[dims(N)] $g: &Tensor<T, 1>,
            $skip: &Tensor<bool, 0>,
            $($fact: &Tensor<f64, 0>,)*
            $($number: f64,)*
        ) -> Result<(), Error> {
            $(let $fact = $fact.cast::<T>();)*
            $(let $number = T::from_f64($number);)*
            $($update)*
            Ok(())
        }

        $(#[$doc])*
        #[compile(fullgraph)]
        pub(super) fn $mixed<P: Float>(
            #[dims(N)] param: &mut Tensor<P, 1>,
            #[dims(N)] $w: &mut Tensor<f32, 1>,
            $(#[dims(N)] $state: &mut Tensor<f32, 1>,)*
            #[dims(N)] $g: &Tensor<P, 1>,
            $skip: &Tensor<bool, 0>,
            $($fact: &Tensor<f64, 0>,)*
            $($number: f64,)*
        ) -> Result<(), Error> {
            let $g = &$g.cast::<f32>();
            $(let $fact = $fact.cast::<f32>();)*
            $(let $number = $number as f32;)*
            $($update)*
            *param = $w.cast::<P>();
            Ok(())
        }
    };
}

rule! {
    /// Adam (Kingma and Ba, 2015) with an L2 penalty, as PyTorch's `Adam`.
    adam, adam_mixed(w, g; m v; skip, factor step_size root2; decay rest1 beta2 rest2 eps) {
        let g = g * factor + &*w * decay;
        let mean = &*m + (&g - &*m) * rest1;
        let square = &*v * beta2 + &g * &g * rest2;
        let next = &*w - &mean * step_size / (square.sqrt() / root2 + eps);
        *w = skip.where_cond(&*w, next);
        *m = skip.where_cond(&*m, mean);
        *v = skip.where_cond(&*v, square);
    }
}

rule! {
    /// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), as PyTorch's `AdamW`.
    adamw, adamw_mixed(w, g; m v; skip, factor step_size root2; kept rest1 beta2 rest2 eps) {
        let g = g * factor;
        let mean = &*m + (&g - &*m) * rest1;
        let square = &*v * beta2 + &g * &g * rest2;
        let next = &*w * kept - &mean * step_size / (square.sqrt() / root2 + eps);
        *w = skip.where_cond(&*w, next);
        *m = skip.where_cond(&*m, mean);
        *v = skip.where_cond(&*v, square);
    }
}

rule! {
    /// Gradient descent without momentum.
    sgd, sgd_mixed(w, g; ; skip, factor; decay lr) {
        let next = &*w - (g * factor + &*w * decay) * lr;
        *w = skip.where_cond(&*w, next);
    }
}

rule! {
    /// Gradient descent with momentum; the step goes along `along_g` times the gradient and `along_m` times the momentum.
    momentum, momentum_mixed(w, g; m; skip, factor fresh; decay lr momentum along_g along_m) {
        let g = g * factor + &*w * decay;
        let velocity = &*m * momentum + &g * fresh;
        let next = &*w - (&g * along_g + &velocity * along_m) * lr;
        *w = skip.where_cond(&*w, next);
        *m = skip.where_cond(&*m, velocity);
    }
}

rule! {
    /// Lion (Chen et al., 2023): a step of fixed length along the sign of an interpolated gradient.
    lion, lion_mixed(w, g; m; skip, factor; kept lr beta1 rest1 beta2 rest2 zero) {
        let g = g * factor;
        let along = &*m * beta1 + &g * rest1;
        let shrunk = &*w * kept;
        let next = along.gt(zero).where_cond(&shrunk - lr, along.lt(zero).where_cond(&shrunk + lr, &shrunk));
        let mean = &*m * beta2 + &g * rest2;
        *w = skip.where_cond(&*w, next);
        *m = skip.where_cond(&*m, mean);
    }
}

/// Counts a step that is not skipped.
#[compile(fullgraph)]
pub(super) fn count(step: &mut Tensor<f64, 0>, skip: &Tensor<bool, 0>) -> Result<(), Error> {
    let next = &*step + 1.0;
    *step = skip.where_cond(&*step, next);
    Ok(())
}

/// What Adam corrects its means by in this step: `lr / (1 - beta1^t)` and `sqrt(1 - beta2^t)`.
#[compile(fullgraph)]
pub(super) fn corrections(
    step: &Tensor<f64, 0>,
    lr: f64,
    ln_beta1: f64,
    ln_beta2: f64,
) -> Result<(Tensor<f64, 0>, Tensor<f64, 0>), Error> {
    let bias1 = 1.0 - (step * ln_beta1).exp();
    let bias2 = 1.0 - (step * ln_beta2).exp();
    Ok((lr / bias1, bias2.sqrt()))
}

/// What a gradient counts in the momentum: everything in the first step, `1 - dampening` later.
#[compile(fullgraph)]
pub(super) fn freshness(step: &Tensor<f64, 0>, damped: f64) -> Result<Tensor<f64, 0>, Error> {
    let one = step * 0.0 + 1.0;
    Ok(step.gt(1.0).where_cond(&one * damped, one))
}

/// Adds the squares of a gradient to a sum, in the type they are computed in.
#[compile(fullgraph)]
pub(super) fn add_squares<T: Float>(sum: &mut Tensor<f64, 0>, g: &Tensor<T, 1>) -> Result<(), Error> {
    let g = g.cast::<f32>();
    let squares = (&g * &g).sum_all().cast::<f64>();
    *sum = &*sum + squares;
    Ok(())
}

/// The same in f64.
#[compile(fullgraph)]
pub(super) fn add_squares_f64(sum: &mut Tensor<f64, 0>, g: &Tensor<f64, 1>) -> Result<(), Error> {
    let squares = (g * g).sum_all();
    *sum = &*sum + squares;
    Ok(())
}

/// What gradients are multiplied by so that their norm is at most `max_norm`.
#[compile(fullgraph)]
pub(super) fn clip_factor(norm: &Tensor<f64, 0>, max_norm: f64) -> Result<Tensor<f64, 0>, Error> {
    Ok((max_norm / (norm + 1e-6)).minimum(1.0))
}

/// What gradients of a scaled loss are multiplied by, and whether they overflow.
#[compile(fullgraph)]
pub(super) fn unscale(
    norm: &Tensor<f64, 0>,
    scale: &Tensor<f64, 0>,
    max_norm: f64,
) -> Result<(Tensor<f64, 0>, Tensor<bool, 0>), Error> {
    let clip = (max_norm / (norm / scale + 1e-6)).minimum(1.0);
    Ok((clip / scale, norm.isnan().logical_or(norm.isinf())))
}

/// The scale of the next step.
#[compile(fullgraph)]
pub(super) fn adjust(
    scale: &mut Tensor<f64, 0>,
    good: &mut Tensor<f64, 0>,
    skip: &Tensor<bool, 0>,
    growth: f64,
    backoff: f64,
    interval: f64,
) -> Result<(), Error> {
    let row = &*good + 1.0;
    let grows = row.ge(interval);
    let grown = grows.where_cond(&*scale * growth, &*scale);
    let counted = grows.where_cond(&row * 0.0, row);
    *scale = skip.where_cond(&*scale * backoff, grown);
    *good = skip.where_cond(&*good * 0.0, counted);
    Ok(())
}

/// Multiplies a gradient, in f32.
#[compile(fullgraph)]
pub(super) fn scale<T: Float>(g: &mut Tensor<T, 1>, factor: &Tensor<f64, 0>) -> Result<(), Error> {
    let wide = g.cast::<f32>() * factor.cast::<f32>();
    *g = wide.cast::<T>();
    Ok(())
}

/// The same of f64.
#[compile(fullgraph)]
pub(super) fn scale_f64(g: &mut Tensor<f64, 1>, factor: &Tensor<f64, 0>) -> Result<(), Error> {
    *g = &*g * factor;
    Ok(())
}
