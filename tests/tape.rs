//! Gradients on the eager tape: the value and the gradients of plain Rust.

mod common;

use common::device;
use fuse_runtime::prelude::*;

fn vector(data: &[f32]) -> Tensor<f32, 1> {
    Tensor::from_slice(data, [data.len()], device())
}

#[test]
fn a_product_has_the_gradients_of_its_factors() {
    let (a, b) = (vector(&[1.0, 2.0]), vector(&[3.0, 4.0]));
    let (value, (a_grad, b_grad)) = value_and_grad((&a, &b), |(a, b)| (a * b).sum_all());
    assert_eq!((value.item(), a_grad.to_vec(), b_grad.to_vec()), (11.0, vec![3.0, 4.0], vec![1.0, 2.0]));
}

#[test]
fn one_tensor_and_arrays_come_back_as_they_were_given() {
    let x = vector(&[1.0, -2.0]);
    let (_, grad): (_, Tensor<f32, 1>) = value_and_grad(&x, |x| (&x * &x).sum_all());
    assert_eq!(grad.to_vec(), [2.0, -4.0]);
    let (_, grads): (_, [Tensor<f32, 1>; 2]) = value_and_grad([&x, &x], |[x, y]| (x * y).sum_all());
    assert_eq!(grads.map(|grad| grad.to_vec()), [[1.0, -2.0], [1.0, -2.0]]);
    let (_, (_, (grad,))) = value_and_grad((&x, (&x,)), |(x, (y,))| (x * 2.0 + y * 3.0).sum_all());
    assert_eq!(grad.to_vec(), [3.0, 3.0]);
}

#[test]
fn every_kind_of_view_is_walked_back() {
    let x = Tensor::from_slice(&(0..12).map(f64::from).collect::<Vec<_>>(), [3, 4], device());
    let weights = Tensor::<f64, 1>::randn([12], device());
    let f = |x: Tensor<f64, 2>| {
        let turned = x.t().transpose(0, 1).permute([1, 0]).flip([0]);
        let parts: [Tensor<f64, 2>; 2] = turned.chunk(0);
        let rows = turned.unbind(1);
        let wide = parts[0].unsqueeze(0).expand([2, 2, 3]).contiguous();
        let joined = Tensor::cat([&parts[1], &turned.slice(0, -1, 100)], 0).reshape([9]);
        let part = weights.narrow(0, 0, 9);
        (joined * part).sum_all()
            + wide.mean_all()
            + (&rows[1] * &rows[2]).sum_all()
            + parts[1].narrow(1, 2, 1).squeeze(1).sum_all()
    };
    let (_, grad) = value_and_grad(&x, f);
    for (k, found) in grad.to_vec().into_iter().enumerate() {
        let moved = |step: f64| {
            let mut data = x.to_vec();
            data[k] += step;
            f(Tensor::from_vec(data, [3, 4], device())).item()
        };
        let wanted = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!((found - wanted).abs() < 1e-7, "element {k}: {found}, by differences {wanted}");
    }
}

#[test]
fn writes_are_followed() {
    let (x, y) = (vector(&[1.0, 2.0, 3.0]), vector(&[5.0]));
    let (value, (x_grad, y_grad)) = value_and_grad((&x, &y), |(mut x, y)| {
        let before = x.clone();
        x.slice_assign(0, 1, 2, &y);
        x *= 2.0;
        let mut z = x.clone();
        z.copy_(&y);
        (x * before).sum_all() + z.sum_all()
    });
    assert_eq!(value.item(), 2.0 + 20.0 + 18.0 + 15.0);
    assert_eq!(x_grad.to_vec(), [4.0, 10.0, 12.0]);
    assert_eq!(y_grad.to_vec(), [7.0]);
    assert_eq!(x.to_vec(), [1.0, 2.0, 3.0]);
}

#[test]
fn constants_stop_gradients() {
    let x = vector(&[3.0]);
    let gradient = |f: fn(Tensor<f32, 1>) -> Tensor<f32, 0>| value_and_grad(&x, f).1.to_vec();
    assert_eq!(gradient(|x| (&x * x.detach()).sum_all()), [3.0]);
    assert_eq!(gradient(|x| (&x * x.detach() * &x).sum_all()), [18.0]);
    assert_eq!(gradient(|x| (&x * x.item()).sum_all()), [3.0]);
    assert_eq!(gradient(|x| (x.floor() + x.cast::<i64>().cast::<f32>()).sum_all()), [0.0]);
    assert_eq!(gradient(|_| Tensor::full([], 1.0, device())), [0.0]);
    assert_eq!(gradient(|x| x.max_all() + x.argmax(0).cast::<f32>()), [1.0]);
}

#[test]
fn the_mask_of_dropout_is_drawn_once() {
    let x = Tensor::<f32, 1>::ones([1000], device());
    let (value, mask) = value_and_grad(&x, |x| x.dropout(0.5, true).sum_all());
    assert_eq!(value.item(), mask.sum_all().item());
    assert!(mask.to_vec().iter().all(|&x| x == 0.0 || x == 2.0));
}

#[test]
fn host_control_flow_is_followed_as_it_ran() {
    let x = vector(&[2.0]);
    let (value, grad) = value_and_grad(&x, |x| {
        let mut y = x.clone();
        while y.item() < 50.0 {
            y = if y.item() > 10.0 { &y * 3.0 } else { &y * &x };
        }
        y.sum_all()
    });
    assert_eq!((value.item(), grad.to_vec()), (144.0, vec![288.0]));
}

#[compile]
fn score(x: &Tensor<f32, 1>, w: &Tensor<f32, 1>) -> Tensor<f32, 0> {
    (x * w).tanh().sum_all()
}

#[test]
fn a_compiled_function_inside_is_followed_op_by_op() {
    let (x, w) = (vector(&[0.5, -0.25]), vector(&[1.0, 2.0]));
    let (value, grad) = value_and_grad(&w, |w| score(&x, &w));
    let (plain, plain_grad) = value_and_grad(&w, |w| (&x * w).tanh().sum_all());
    assert_eq!((value.item(), grad.to_vec()), (plain.item(), plain_grad.to_vec()));
}

#[test]
fn results_come_back_as_results() {
    let x = vector(&[2.0]);
    let outcome: Result<(Tensor<f32, 0>, Tensor<f32, 1>), Error> = value_and_grad(&x, |x| Ok((&x * &x).sum_all()));
    assert_eq!(outcome.unwrap().1.to_vec(), [4.0]);
    let outcome = value_and_grad(&x, |_| -> Result<Tensor<f32, 0>, Error> { Err(Error::compile("no")) });
    assert_eq!(outcome.unwrap_err().to_string(), "no");
}

#[test]
fn variables_that_outlive_the_call_are_constants() {
    let x = vector(&[2.0]);
    let mut kept = None;
    value_and_grad(&x, |x| {
        kept = Some(&x * 2.0);
        x.sum_all()
    });
    let kept = kept.unwrap();
    let (_, grad) = value_and_grad(&x, |x| (x * &kept).sum_all());
    assert_eq!(grad.to_vec(), [4.0]);
}

#[test]
fn gradients_are_differentiated_again() {
    let x = Tensor::<f64, 1>::from_slice(&[2.0, -1.0], [2], device());
    let cubes = |x: &Tensor<f64, 1>| value_and_grad(x, |x| (&x * &x * &x).sum_all()).1;
    let (value, second) = value_and_grad(&x, |x| cubes(&x).sum_all());
    assert_eq!((value.item(), second.to_vec()), (15.0, vec![12.0, -6.0]));
    let seconds = |x: &Tensor<f64, 1>| value_and_grad(x, |x| cubes(&x).sum_all()).1;
    let (_, third) = value_and_grad(&x, |x| (seconds(&x) * &x).sum_all());
    assert_eq!(third.to_vec(), [24.0, -12.0]);
}

/// The inner call takes the outer variable for a constant, and the outer one sees all that the inner one does.
#[test]
fn variables_of_two_calls_are_kept_apart() {
    let (x, y) = (vector(&[2.0]), vector(&[3.0]));
    let (value, grad) = value_and_grad(&x, |x| {
        let (inner, y_grad) = value_and_grad(&y, |y| (&x * &y * &y).sum_all());
        inner * 100.0 + (y_grad * &x).sum_all()
    });
    // 100 x y^2 + 2 x^2 y
    assert_eq!((value.item(), grad.to_vec()), (1824.0, vec![924.0]));
    let detached = value_and_grad(&x, |x| value_and_grad(&y, |y| (x.detach() * y * &x).sum_all()).1.sum_all()).1;
    assert_eq!(detached.to_vec(), [2.0]);
}

#[test]
fn second_derivatives_are_those_of_finite_differences() {
    let w = Tensor::<f64, 2>::randn([4, 3], device());
    let x = Tensor::<f64, 2>::randn([5, 4], device());
    let mask = Tensor::<f64, 2>::rand([5, 3], device()).gt(0.3);
    let slope = |w: &Tensor<f64, 2>| {
        value_and_grad(w, |w| {
            let scores = x.matmul(&w).masked_fill(&mask, -1.0);
            scores.softmax(-1).narrow(0, 1, 3).ln().mean_all() + scores.gelu().std(0).sum_all()
        })
        .1
    };
    let direction = Tensor::<f64, 2>::randn([4, 3], device());
    let along = |w: &Tensor<f64, 2>| (slope(w) * &direction).sum_all();
    let (_, found) = value_and_grad(&w, |w| along(&w));
    common::check(&found, &w, |w| along(w).item());
}

#[test]
fn a_second_value_comes_back_beside_the_first() {
    let x = vector(&[1.0, -2.0]);
    let ((loss, (signs, count)), grad) = value_and_grad(&x, |x| ((&x * &x).sum_all(), (x.gt(0.0), 2)));
    assert_eq!((loss.item(), signs.to_vec(), count), (5.0, vec![true, false], 2));
    assert_eq!(grad.to_vec(), [2.0, -4.0]);
}

#[test]
fn whatever_comes_behind_the_number_of_a_tuple_comes_back() {
    let x = vector(&[1.0, -2.0]);
    let ((loss, double, count), grad) = value_and_grad(&x, |x| ((&x * &x).sum_all(), x * 2.0, 2));
    assert_eq!((loss.item(), double.to_vec(), count), (5.0, vec![2.0, -4.0], 2));
    assert_eq!(grad.to_vec(), [2.0, -4.0]);
    let fallible = |x: Tensor<f32, 1>| Ok::<_, Error>((x.sum_all(), 1, "a", 2.0));
    assert_eq!(value_and_grad(&x, fallible).unwrap().1.to_vec(), [1.0, 1.0]);
}

#[test]
fn cotangents_add_up_in_reverse_program_order_and_their_own_type() {
    let x = Tensor::from_slice(&[bf16::from_f32(1.0)], [1], device());
    let (_, grad) = value_and_grad(&x, |x| (&x * 256.0 + &x * 1.0 + &x * 1.0).sum_all());
    // 1 + 1, then + 256. From the other end 256 + 1 would round to 256 in bf16, twice.
    assert_eq!(grad.cast::<f32>().to_vec(), [258.0]);
}
