//! What `grad(..)` puts beside a function, in every form a function has, against finite differences.

use crate::common::{check, device};
use fuse_runtime::prelude::*;

#[compile(grad(w1, b1, w2, b2))]
fn perceptron(
    #[dims(N, I)] x: &Tensor<f64, 2>,
    #[dims(N)] targets: &Tensor<i64, 1>,
    #[dims(I, H)] w1: &Tensor<f64, 2>,
    #[dims(H)] b1: &Tensor<f64, 1>,
    #[dims(H, O)] w2: &Tensor<f64, 2>,
    #[dims(O)] b2: &Tensor<f64, 1>,
) -> Tensor<f64, 0> {
    let hidden = (x.matmul(w1) + b1).gelu();
    (hidden.matmul(w2) + b2).cross_entropy(targets)
}

#[test]
fn a_perceptron_has_the_gradients_of_finite_differences() {
    let d = device();
    let (x, targets) = (Tensor::randn([5, 3], d), Tensor::from_slice(&[0, 2, -100, 1, 3], [5], d));
    let (w1, b1) = (Tensor::randn([3, 6], d), Tensor::randn([6], d));
    let (w2, b2) = (Tensor::randn([6, 4], d), Tensor::randn([4], d));
    let (loss, (w1_grad, b1_grad, w2_grad, b2_grad)) = perceptron::value_and_grad(&x, &targets, &w1, &b1, &w2, &b2);
    let f = |w1: &_, b1: &_, w2: &_, b2: &_| perceptron(&x, &targets, w1, b1, w2, b2).item();
    assert_eq!(loss.item(), f(&w1, &b1, &w2, &b2), "the value is that of the function");
    check(&w1_grad, &w1, |w1| f(w1, &b1, &w2, &b2));
    check(&b1_grad, &b1, |b1| f(&w1, b1, &w2, &b2));
    check(&w2_grad, &w2, |w2| f(&w1, &b1, w2, &b2));
    check(&b2_grad, &b2, |b2| f(&w1, &b1, &w2, b2));
    let three = Tensor::full([], 3.0, d);
    let (_, (.., b2_triple)) = perceptron::vjp(&x, &targets, &w1, &b1, &w2, &b2, &three);
    check(&b2_triple, &b2, |b2| 3.0 * f(&w1, &b1, &w2, b2));
}

/// Beside the graph of a call stand those of `value_and_grad` and `vjp`, and the two that a tape runs.
#[test]
fn gradients_are_told_beside_the_function() {
    let report = perceptron::explain();
    assert_eq!((report.graphs().len(), report.gradients().len()), (1, 4), "{report}");
    assert_eq!(report.gradients()[0].name, "perceptron::value_and_grad");
    let text = report.to_string();
    assert!(text.contains("gradient of hidden.matmul(w2)"), "{text}");
    for kernel in report.gradients().iter().flat_map(|graph| &graph.kernels) {
        assert!(perceptron::CUDA.contains(&kernel.name), "{}", kernel.name);
    }
}

#[compile(grad(x, weight))]
fn scores(x: &Tensor<f64, 2>, bias: &Tensor<f64, 1>, weight: Tensor<f64, 2>) -> Tensor<f64, 2> {
    (x.matmul(&weight) + bias).tanh().softmax(-1)
}

#[test]
fn a_function_of_open_extents_is_differentiated_for_a_cotangent() {
    let d = device();
    for bias in [3, 1] {
        let (x, bias, weight) = (Tensor::randn([4, 2], d), Tensor::randn([bias], d), Tensor::randn([2, 3], d));
        let cotangent = Tensor::randn([4, 3], d);
        let f = |x: &_, weight: &Tensor<f64, 2>| (scores(x, &bias, weight.clone()) * &cotangent).sum_all().item();
        let (value, (x_grad, weight_grad)) = scores::vjp(&x, &bias, weight.clone(), &cotangent);
        assert_eq!(value.to_vec(), scores(&x, &bias, weight.clone()).to_vec());
        check(&x_grad, &x, |x| f(x, &weight));
        check(&weight_grad, &weight, |weight| f(&x, weight));
    }
}

#[compile(grad(bias))]
fn shifted(x: &Tensor<f64, 2>, bias: &Tensor<f64, 1>) -> Tensor<f64, 2> {
    (x + bias).sigmoid()
}

#[test]
fn what_was_broadcast_is_summed_again() {
    let d = device();
    for extent in [3, 1] {
        let (x, bias, cotangent) = (Tensor::randn([2, 3], d), Tensor::randn([extent], d), Tensor::randn([2, 3], d));
        let (_, bias_grad) = shifted::vjp(&x, &bias, &cotangent);
        check(&bias_grad, &bias, |bias| (shifted(&x, bias) * &cotangent).sum_all().item());
    }
}

#[compile(grad(w, unused))]
#[allow(unused_variables)]
fn squared<T: Float>(x: &Tensor<T, 1>, w: &Tensor<T, 1>, unused: &Tensor<T, 2>) -> Result<Tensor<T, 0>, Error> {
    let product = x * w;
    Ok((&product * &product).sum_all())
}

#[test]
fn a_generic_function_may_return_a_result() {
    fn of<T: Float>() {
        let d = device();
        let vector = |data: [f64; 3]| Tensor::from_slice(&data.map(T::from_f64), [3], d);
        let (x, w, unused) = (vector([1.0, 2.0, 3.0]), vector([1.0, -1.0, 0.5]), Tensor::<T, 2>::ones([2, 2], d));
        let (value, (w_grad, unused_grad)) = squared::value_and_grad(&x, &w, &unused).unwrap();
        assert_eq!(value.cast::<f64>().item(), 7.25);
        assert_eq!(w_grad.cast::<f64>().to_vec(), [2.0, -8.0, 9.0]);
        assert_eq!(unused_grad.cast::<f64>().to_vec(), [0.0; 4]);
        assert!(squared::value_and_grad(&x, &Tensor::ones([4], d), &unused).is_err());
    }
    of::<f32>();
    of::<f64>();
    of::<f16>();
    of::<bf16>();
}

#[compile(grad(x, w), backend = "eager")]
fn gated(x: &Tensor<f32, 2>, w: Tensor<f32, 1>) -> Result<Tensor<f32, 2>, Error> {
    Ok((x * &w).gelu() * x.softmax(-1))
}

#[compile(grad(x, w))]
fn gated_and_fused(x: &Tensor<f32, 2>, w: Tensor<f32, 1>) -> Result<Tensor<f32, 2>, Error> {
    Ok((x * &w).gelu() * x.softmax(-1))
}

#[test]
fn compiled_gradients_are_those_of_the_tape_bit_for_bit() {
    let d = device();
    let (x, w, cotangent) = (Tensor::randn([5, 33], d), Tensor::randn([33], d), Tensor::randn([5, 33], d));
    let (value, (x_grad, w_grad)) = gated_and_fused::vjp(&x, w.clone(), &cotangent).unwrap();
    let (eager, (x_tape, w_tape)) = gated::vjp(&x, w, &cotangent).unwrap();
    assert_eq!(value.to_vec(), eager.to_vec());
    assert_eq!(x_grad.to_vec(), x_tape.to_vec());
    assert_eq!(w_grad.to_vec(), w_tape.to_vec());
    assert!(gated::vjp(&x, Tensor::ones([2], d), &cotangent).is_err());
}

#[compile(grad(x, w))]
fn stepwise(x: &Tensor<f64, 1>, w: &Tensor<f64, 1>, squared: bool) -> Tensor<f64, 0> {
    let mut y = if squared { x * x } else { x.sin() };
    while y.sum_all().item() < 4.0 {
        y = y.exp() + w;
    }
    (y * w).sum_all()
}

#[test]
fn a_function_of_several_graphs_is_differentiated_along_the_path_it_takes() {
    let d = device();
    let (x, w) = (Tensor::from_slice(&[0.3, -0.2], [2], d), Tensor::from_slice(&[0.5, 0.25], [2], d));
    for squared in [true, false] {
        let (value, (x_grad, w_grad)) = stepwise::value_and_grad(&x, &w, squared);
        assert_eq!(value.item(), stepwise(&x, &w, squared).item());
        check(&x_grad, &x, |x| stepwise(x, &w, squared).item());
        check(&w_grad, &w, |w| stepwise(&x, w, squared).item());
    }
}

#[test]
fn gradients_of_a_companion_are_differentiated_again() {
    let d = device();
    let (x, bias) = (Tensor::<f64, 2>::randn([2, 3], d), Tensor::randn([3], d));
    let (ones, direction) = (Tensor::ones([2, 3], d), Tensor::randn([3], d));
    let along = |bias: &Tensor<f64, 1>| (shifted::vjp(&x, bias, &ones).1 * &direction).sum_all();
    let (value, second) = value_and_grad(&bias, |bias| along(&bias));
    assert_eq!(value.item(), along(&bias).item());
    check(&second, &bias, |bias| along(bias).item());
}

struct Layer {
    eps: f64,
}

#[compile]
impl Layer {
    /// Normalises, and keeps what is written.
    #[compile(grad(x, weight))]
    fn forward(&self, x: &Tensor<f64, 2>, weight: &Tensor<f64, 1>, last: &mut Tensor<f64, 2>) -> Tensor<f64, 2> {
        let eps: f64 = self.eps;
        let y = x.rms_norm(weight, eps);
        last.copy_(&y);
        y * x
    }
}

#[test]
fn methods_have_gradients_and_keep_their_effects() {
    let d = device();
    let layer = Layer { eps: 1e-5 };
    let (x, weight, cotangent) = (Tensor::randn([3, 4], d), Tensor::randn([4], d), Tensor::randn([3, 4], d));
    let f = |x: &_, weight: &_| {
        let mut last = Tensor::zeros([3, 4], d);
        (layer.forward(x, weight, &mut last) * &cotangent).sum_all().item()
    };
    let mut last = Tensor::zeros([3, 4], d);
    let (_, (x_grad, weight_grad)) = layer.forward_vjp(&x, &weight, &mut last, &cotangent);
    assert_eq!(last.to_vec(), x.rms_norm(&weight, 1e-5).to_vec());
    check(&x_grad, &x, |x| f(x, &weight));
    check(&weight_grad, &weight, |weight| f(&x, weight));
}

#[compile(grad(x))]
fn dropped(x: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    x.dropout(0.5, true).sum_all()
}

#[test]
fn the_mask_of_backward_is_that_of_forward() {
    let d = device();
    let (value, mask) = dropped::value_and_grad(&Tensor::ones([1000], d));
    assert_eq!(value.item(), mask.sum_all().item());
    assert!(mask.to_vec().iter().all(|&x| x == 0.0 || x == 2.0));
    let (_, again) = dropped::value_and_grad(&Tensor::ones([1000], d));
    assert_ne!(mask.to_vec(), again.to_vec(), "every call draws anew");
}
