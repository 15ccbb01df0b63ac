//! `value_and_grad` inside of a compiled function: captured, it gives what the tape gives.

use crate::common::{check, device};
use fuse_runtime::Generator;
use fuse_runtime::prelude::*;

#[compile(fullgraph)]
fn regression(
    x: &Tensor<f32, 2>,
    y: &Tensor<f32, 2>,
    w: &Tensor<f32, 2>,
    b: &Tensor<f32, 1>,
) -> (Tensor<f32, 0>, Tensor<f32, 2>, Tensor<f32, 1>) {
    let (loss, (w_grad, b_grad)) = value_and_grad((w, b), |(w, b)| {
        let error = (x * &w + b).tanh() - y;
        (&error * &error).mean_all()
    });
    (loss, w_grad, b_grad)
}

fn bits<const R: usize>(tensor: &Tensor<f32, R>) -> Vec<u32> {
    tensor.to_vec().into_iter().map(f32::to_bits).collect()
}

#[test]
fn captured_gradients_are_those_of_the_tape_bit_for_bit() {
    let d = device();
    for (rows, columns) in [(5, 33), (1, 3), (4, 1)] {
        let (x, y) = (Tensor::randn([rows, columns], d), Tensor::randn([rows, columns], d));
        let (w, b) = (Tensor::randn([rows, columns], d), Tensor::randn([columns], d));
        let (loss, w_grad, b_grad) = regression(&x, &y, &w, &b);
        let (eager_loss, eager_w, eager_b) = regression::eager(&x, &y, &w, &b);
        assert_eq!(bits(&loss), bits(&eager_loss));
        assert_eq!(bits(&w_grad), bits(&eager_w));
        assert_eq!(bits(&b_grad), bits(&eager_b));
    }
    assert!(regression::explain().breaks().is_empty(), "{}", regression::explain());
}

#[compile(fullgraph)]
fn of_all_shapes(x: &Tensor<f64, 1>, y: &Tensor<f64, 1>) -> [Tensor<f64, 1>; 6] {
    let (_, one) = value_and_grad(x, |x| (&x * &x * y).sum_all());
    let (_, [first, second]) = value_and_grad([x, y], |[x, y]| (x.exp() * y).sum_all());
    let (_, (_, (nested,))) = value_and_grad((x, (y,)), |(x, (y,))| {
        let scaled = x * 3.0;
        (scaled * y.sin()).sum_all()
    });
    let unused = value_and_grad((x, y), |(x, _)| x.sum_all()).1.1;
    let cut = fuse_runtime::value_and_grad(x, |x| (&x * x.detach()).sum_all()).1;
    [one, first, second, nested, unused, cut]
}

#[test]
fn variables_come_in_every_shape_that_parameters_have() {
    let d = device();
    let (x, y) = (Tensor::randn([7], d), Tensor::randn([7], d));
    let (compiled, eager) = (of_all_shapes(&x, &y), of_all_shapes::eager(&x, &y));
    for (compiled, eager) in compiled.iter().zip(&eager) {
        assert_eq!(compiled.to_vec(), eager.to_vec());
    }
    check(&compiled[0], &x, |x| (x * x * &y).sum_all().item());
    check(&compiled[2], &y, |y| (x.exp() * y).sum_all().item());
    assert_eq!(compiled[4].to_vec(), [0.0; 7]);
    assert_eq!(compiled[5].to_vec(), x.to_vec());
}

#[compile(fullgraph)]
fn regularised(x: &Tensor<f32, 2>, w: &Tensor<f32, 2>, training: bool, deep: bool) -> (Tensor<f32, 0>, Tensor<f32, 2>) {
    value_and_grad(w, |w| {
        let mut h = x.matmul(&w).dropout(0.5, training);
        if deep {
            let again = h.relu().matmul(&w);
            h = again.softmax(-1);
        }
        let mut total = h.mean_all();
        for k in 0..2 {
            total = total + (&w * &w).sum_all() * (k as f32);
        }
        total
    })
}

#[test]
fn host_flags_inside_of_a_closure_make_paths() {
    let d = device();
    let (x, w) = (Tensor::randn([4, 4], d), Tensor::randn([4, 4], d));
    for (training, deep) in [(false, false), (false, true), (true, false), (true, true)] {
        // A generator of their own, since other tests draw from the device's meanwhile.
        let (value, grad) = Generator::new(7).scope(|| regularised(&x, &w, training, deep));
        let (eager, eager_grad) = Generator::new(7).scope(|| regularised::eager(&x, &w, training, deep));
        assert_eq!(value.to_vec(), eager.to_vec());
        let pairs = grad.to_vec().into_iter().zip(eager_grad.to_vec());
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{a} {b}"));
    }
}

#[compile(fullgraph)]
fn with_predictions(
    x: &Tensor<f32, 2>,
    targets: &Tensor<i64, 1>,
    w: &Tensor<f32, 2>,
) -> (Tensor<f32, 0>, Tensor<i64, 1>, Tensor<f32, 2>) {
    let ((loss, best), w_grad) = value_and_grad(w, |w| {
        let logits = x.matmul(&w);
        (logits.cross_entropy(targets), logits.argmax(-1))
    });
    (loss, best, w_grad)
}

#[test]
fn a_second_value_comes_back_beside_the_loss() {
    let d = device();
    let (x, w) = (Tensor::randn([5, 3], d), Tensor::randn([3, 4], d));
    let targets = Tensor::from_slice(&[0, 3, 1, 1, 2], [5], d);
    let (loss, best, grad) = with_predictions(&x, &targets, &w);
    let (eager_loss, eager_best, eager_grad) = with_predictions::eager(&x, &targets, &w);
    assert_eq!((loss.item(), best.to_vec()), (eager_loss.item(), eager_best.to_vec()));
    assert_eq!(grad.to_vec(), eager_grad.to_vec());
}

#[compile(fullgraph)]
fn with_norm_and_size(
    x: &Tensor<f32, 2>,
    w: &Tensor<f32, 2>,
) -> ((Tensor<f32, 0>, Tensor<f32, 1>, usize), Tensor<f32, 2>) {
    value_and_grad(w, |w| {
        let y = x.matmul(&w);
        (y.powi(2).mean_all(), y.norm(1), x.size(0))
    })
}

#[test]
fn a_tuple_comes_back_with_what_is_behind_its_loss() {
    let d = device();
    let (x, w) = (Tensor::randn([5, 3], d), Tensor::randn([3, 4], d));
    let ((loss, norms, n), grad) = with_norm_and_size(&x, &w);
    let ((eager_loss, eager_norms, eager_n), eager_grad) = with_norm_and_size::eager(&x, &w);
    assert_eq!((loss.item(), norms.to_vec(), n), (eager_loss.item(), eager_norms.to_vec(), eager_n));
    assert_eq!(grad.to_vec(), eager_grad.to_vec());
}

#[compile(fullgraph)]
fn fallible(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Result<(Tensor<f32, 0>, Tensor<f32, 1>), Error> {
    value_and_grad(w, |w| Ok((x * w).sum_all()))
}

#[test]
fn a_closure_may_give_a_result() {
    let d = device();
    let (x, w) = (Tensor::randn([5], d), Tensor::randn([5], d));
    assert_eq!(fallible(&x, &w).unwrap().1.to_vec(), x.to_vec());
    assert!(fallible(&x, &Tensor::randn([4], d)).is_err());
}

#[compile]
fn halving(x: &Tensor<f64, 1>, w: &Tensor<f64, 1>) -> Tensor<f64, 1> {
    let scale = x.exp();
    let (_, w_grad) = value_and_grad(w, |w| {
        let mut y = &w * &scale;
        while y.sum_all().item() > 1.0 {
            y = y * 0.5;
        }
        (&y * &y).sum_all()
    });
    w_grad + &scale
}

#[compile]
fn branching(x: &Tensor<f64, 1>, w: &Tensor<f64, 1>) -> (Tensor<f64, 0>, Tensor<f64, 1>) {
    value_and_grad(w, |w| {
        let total = (x * w).sum_all();
        if total.item() > 0.0 { total.sqrt() } else { total * 2.0 }
    })
}

#[compile]
fn handed_over(x: &Tensor<f64, 1>, w: &Tensor<f64, 1>) -> Tensor<f64, 1> {
    let squared = |w: Tensor<f64, 1>| (&w * &w * x).sum_all();
    let (_, grad) = value_and_grad(w, squared);
    grad * 2.0
}

/// A closure that no graph holds is followed on the tape; it is told where, and why.
#[test]
fn what_cannot_be_captured_is_followed_on_the_tape() {
    let d = device();
    let (x, w) = (Tensor::from_slice(&[0.5, 1.0], [2], d), Tensor::from_slice(&[3.0, 2.0], [2], d));
    let codes =
        |report: &fuse_runtime::Explanation| report.breaks().iter().map(|found| found.code.clone()).collect::<Vec<_>>();
    assert_eq!(halving(&x, &w).to_vec(), halving::eager(&x, &w).to_vec());
    assert_eq!(codes(halving::explain()), ["B018"], "{}", halving::explain());
    assert_eq!(branching(&x, &w).1.to_vec(), branching::eager(&x, &w).1.to_vec());
    // At 0 the root has an infinite slope, which the path that is taken does not meet.
    let zero = Tensor::zeros([2], d);
    assert_eq!(branching(&x, &zero).1.to_vec(), [1.0, 2.0]);
    assert_eq!(codes(branching::explain()), ["B018"], "{}", branching::explain());
    assert_eq!(handed_over(&x, &w).to_vec(), handed_over::eager(&x, &w).to_vec());
    assert!(codes(handed_over::explain()).contains(&"B018".to_owned()), "{}", handed_over::explain());
}

#[compile(fullgraph)]
fn curvature(x: &Tensor<f64, 1>, w: &Tensor<f64, 2>) -> (Tensor<f64, 0>, Tensor<f64, 1>) {
    value_and_grad(x, |x| {
        let slope = value_and_grad(&x, |x| (w * x).tanh().softmax(-1).ln().mean_all()).1;
        (&slope * &slope).sum_all()
    })
}

#[test]
fn captured_gradients_are_differentiated_again() {
    let d = device();
    let (x, w) = (Tensor::randn([4], d), Tensor::randn([3, 4], d));
    let (value, second) = curvature(&x, &w);
    let (eager_value, eager_second) = curvature::eager(&x, &w);
    assert_eq!(value.item(), eager_value.item());
    let pairs = second.to_vec().into_iter().zip(eager_second.to_vec());
    pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a}, on the tape {b}"));
    check(&second, &x, |x| curvature(x, &w).0.item());
}

#[compile(fullgraph)]
fn descended(w: &Tensor<f64, 1>, lr: f64) -> Tensor<f64, 1> {
    let mut w = w.clone();
    for _ in 0..3 {
        let (_, grad) = value_and_grad(&w, |w| (&w * &w * w.cos()).sum_all());
        w = w - grad * lr;
    }
    w
}

#[test]
fn steps_of_an_unrolled_loop_are_one_graph() {
    let w = Tensor::randn([6], device());
    assert_eq!(descended(&w, 0.1).to_vec(), descended::eager(&w, 0.1).to_vec());
}
