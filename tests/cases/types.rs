//! Bool, casts, scalars beside tensors.

use crate::cases::*;

traps! {
    fn masks_to_numbers(x: f32 2, z: f32 1) -> (Tensor<i32, 2>, Tensor<f32, 2>, Tensor<u8, 2>, Tensor<bool, 1>) {
        let mask = x.gt(0.0);
        (mask.cast::<i32>(), mask.cast::<f32>(), mask.cast::<u8>(), z.cast::<bool>())
    }
    fn weak_scalar(h: f16 1) -> Tensor<f16, 1> {
        h + 0.1
    }
    fn masks_of_two_types(m: i64 1, n: u8 1) -> Tensor<bool, 1> {
        m.gt(1) & n.gt(1)
    }
    fn exact_compare(c: i64 1, d: i64 1) -> (Tensor<bool, 1>, Tensor<bool, 1>) {
        (c.eq(9007199254740992), d.eq(16777216))
    }
}

#[test]
fn case_044_bool_casts_use_the_value() {
    let x = Tensor::from([[2.0f32, 0.0, 5.0], [0.0, 0.0, 700.0]]);
    let ones = [[1, 0, 1], [0, 0, 1]];
    let want = (
        Tensor::from(ones),
        Tensor::from(ones.map(|row| row.map(|k| k as f32))),
        Tensor::from(ones.map(|row| row.map(|k| k as u8))),
        Tensor::from([true, false, true, true]),
    );
    masks_to_numbers::trap().exactly((x, Tensor::from([f32::NAN, -0.0, 0.25, -3.0])), want);
}

#[test]
fn case_046_scalars_are_weak() {
    weak_scalar::trap().pointwise().exactly((hf([1.0, 2048.0]),), hf([1.099609375, 2048.0]));
}

#[test]
fn case_047_masks_of_two_types_combine() {
    let inputs = (Tensor::from([1i64, 2, 3]), Tensor::from([2u8, 0, 9]));
    masks_of_two_types::trap().pointwise().exactly(inputs, Tensor::from([false, false, true]));
}

#[test]
fn case_049_integers_compare_exactly() {
    let inputs = (Tensor::from([9007199254740993i64]), Tensor::from([16777217i64]));
    exact_compare::trap().pointwise().exactly(inputs, (Tensor::from([false]), Tensor::from([false])));
}
