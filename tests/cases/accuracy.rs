//! Functions near the points where they lose digits.

use crate::cases::*;

traps! {
    fn erf(x: f32 1) -> Tensor<f32, 1> {
        x.erf()
    }
    fn rounded(x: f32 1) -> (Tensor<f32, 1>, Tensor<i32, 1>, Tensor<f32, 1>) {
        (x.round(), x.round().cast::<i32>(), (x * 0.5).round())
    }
    fn norm_then_reciprocal(x: f32 2, w: f32 1, b: f32 1) -> (Tensor<f32, 2>, Tensor<f32, 2>) {
        let n = x.layer_norm(w, b, 0.0);
        let y = 1.0 / (n.abs() + 1e-3);
        (n, y)
    }
}

#[test]
fn case_083_erf_near_zero() {
    let x = Tensor::from([1e-8f32, 1e-7, 1e-5, 0.001, -1e-6, 0.5, 1.0, 3.0]);
    let want =
        [1.1283792e-8f32, 1.1283792e-7, 1.12837915e-5, 0.0011283788, -1.1283792e-6, 0.5204999, 0.8427008, 0.9999779];
    erf::trap().pointwise().within(5e-7, 0.0, (x.clone(),), Tensor::from(want));
    let whole = erf::alone(&x.to_device(device())).to_vec();
    for n in 1..=8 {
        let part = x.slice(0, 0, n).to_device(device());
        assert_eq!(erf::alone(&part).to_vec(), whole[..n as usize]);
    }
}

#[test]
fn case_085_round_half_to_even() {
    let x = Tensor::from([0.5f32, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0]);
    let want = (
        Tensor::from([0.0f32, 2.0, 2.0, 4.0, -0.0, -2.0, -2.0, 0.0, 8388609.0]),
        Tensor::from([0, 2, 2, 4, 0, -2, -2, 0, 8388609]),
        Tensor::from([0.0f32, 1.0, 1.0, 2.0, -0.0, -1.0, -1.0, 0.0, 4194304.0]),
    );
    rounded::trap().pointwise().exactly((x,), want);
}

#[test]
fn case_086_normalised_then_inverted() {
    let ones = Tensor::from([1.0f32; 4]);
    let want = (
        Tensor::from([[-1.3416228f32, -0.44722256, 0.44717777, 1.3416677]]),
        Tensor::from([[0.74481076f32, 2.2310345, 2.2312574, 0.74478596]]),
    );
    let inputs = (Tensor::from([[1.0f32, 2.0, 3.0, 4.0001]]), ones.clone(), ones * 0.0);
    norm_then_reciprocal::trap().within(1e-6, 2e-7, inputs, want);
}
