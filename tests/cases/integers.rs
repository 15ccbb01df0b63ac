//! Integers wrap at their width at every step, and never go through floats.

use crate::cases::*;

traps! {
    fn divisions_i32(a: i32 1, b: i32 1) -> [Tensor<i32, 1>; 5] {
        let (q, r) = (a.floor_divide(b), a.remainder(b));
        let back = &q * b + &r;
        [q, r, a / b, a % b, back]
    }
    fn divisions_i64(a: i64 1, b: i64 1) -> [Tensor<i64, 1>; 5] {
        let (q, r) = (a.floor_divide(b), a.remainder(b));
        let back = &q * b + &r;
        [q, r, a / b, a.fmod(b), back]
    }
    fn most_negative_i32(a: i32 1, b: i32 1) -> [Tensor<i32, 1>; 5] {
        [a.floor_divide(b), a.remainder(b), a / b, -a, a.abs()]
    }
    fn most_negative_i64(a: i64 1, b: i64 1) -> [Tensor<i64, 1>; 5] {
        [a.floor_divide(b), a.remainder(b), a / b, -a, a.abs()]
    }
    fn shifts(v: i64 1, k: i64 1) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 1>) {
        (v >> k, v << k, v.bitwise_right_shift(k), v.bitwise_left_shift(k))
    }
    fn byte_shifts(u: u8 1, j: u8 1) -> (Tensor<u8, 1>, Tensor<u8, 1>) {
        (u << j, u >> j)
    }
    fn arithmetic_shift(x: i64 1, k: i64 1, y: i32 1) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i32, 1>) {
        (x >> k, (0 - (0 - x)) >> k, y >> 31)
    }
    fn bytes_wrap(u: u8 1, p: u8 1, q: u8 1, c: u8 1, x: f32 1) -> (Tensor<i32, 1>, Tensor<f32, 1>, Tensor<i64, 0>, Tensor<f32, 1>) {
        let zero = q - q;
        (
            (u + u).cast::<i32>(),
            (p * p * p * p * p).cast::<f32>().cos(),
            (&zero - q.abs()).sum_all(),
            (c - c - c).cast::<f32>() + x,
        )
    }
    fn bytes_compare(g: u8 1) -> Tensor<bool, 1> {
        (g - g - g).lt(4)
    }
    fn powers(a: i64 1, b: i64 1) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 1>) {
        (a.powi(-1), a.powi(-2), b.powi(39))
    }
    fn wide_integers(c: i64 1) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 0>, Tensor<i64, 1>) {
        (c + 0, c - 9007199254740992, c.max_all(), c + i64::MIN)
    }
    fn float_floor_f32(a: f32 1, b: f32 1) -> Tensor<f32, 1> {
        a.floor_divide(b)
    }
    fn float_floor_f64(a: f64 1, b: f64 1) -> Tensor<f64, 1> {
        a.floor_divide(b)
    }
}

#[test]
fn case_031_floor_and_truncation() {
    let (a, b) = (Tensor::from([7, -7, 7, -7]), Tensor::from([2, 2, -2, -2]));
    let want = [[3, -4, -4, 3], [1, 1, -1, -1], [3, -3, -3, 3], [1, -1, 1, -1], [7, -7, 7, -7]];
    divisions_i32::trap().pointwise().exactly((a.clone(), b.clone()), want.map(Tensor::from));
    let want = want.map(|row| Tensor::from(row.map(i64::from)));
    divisions_i64::trap().pointwise().exactly((a.cast(), b.cast()), want);
}

#[test]
fn case_033_most_negative_by_minus_one() {
    let want = [i32::MIN, 0, i32::MIN, i32::MIN, i32::MIN].map(|x| Tensor::from([x]));
    most_negative_i32::trap().pointwise().exactly((Tensor::from([i32::MIN]), Tensor::from([-1])), want);
    let want = [i64::MIN, 0, i64::MIN, i64::MIN, i64::MIN].map(|x| Tensor::from([x]));
    most_negative_i64::trap().pointwise().exactly((Tensor::from([i64::MIN]), Tensor::from([-1i64])), want);
}

#[test]
fn case_035_shift_counts_outside_the_width() {
    let (v, k) = (Tensor::from([77i64, -77, 1, 8, -8]), Tensor::from([64i64, 64, 65, -1, -1]));
    let (right, left) = (Tensor::from([0i64, -1, 0, 0, -1]), Tensor::from([0i64; 5]));
    shifts::trap().pointwise().exactly((v, k), (right.clone(), left.clone(), right, left));
    let (u, j) = (Tensor::from([255u8, 255]), Tensor::from([8u8, 7]));
    byte_shifts::trap().pointwise().exactly((u, j), (Tensor::from([0u8, 128]), Tensor::from([0u8, 1])));
}

#[test]
fn case_036_right_shift_is_arithmetic() {
    let inputs = (Tensor::from([-1i64, -8]), Tensor::from([31i64, 1]), Tensor::from([-1]));
    let want = Tensor::from([-1i64, -4]);
    arithmetic_shift::trap().pointwise().exactly(inputs, (want.clone(), want, Tensor::from([-1])));
}

#[test]
fn case_038_bytes_wrap_at_every_step() {
    let inputs = (
        Tensor::from([128u8, 200]),
        Tensor::from([4u8]),
        Tensor::from([200u8, 200]),
        Tensor::from([7u8]),
        Tensor::from([0.5f32]),
    );
    let want = (Tensor::from([0, 144]), Tensor::from([1.0f32]), scalar(112i64), Tensor::from([249.5f32]));
    bytes_wrap::trap().exactly(inputs, want);
    bytes_compare::trap().pointwise().exactly((Tensor::from([6u8]),), Tensor::from([false]));
}

#[test]
fn case_040_integer_powers_and_constants() {
    let (a, b) = (Tensor::from([2i64, 1, -1, 0]), Tensor::from([3i64]));
    let want = (Tensor::from([0i64, 1, -1, 0]), Tensor::from([0i64, 1, 1, 0]), Tensor::from([4052555153018976267i64]));
    powers::trap().exactly((a, b), want);
    let values = [9007199254740993i64, -9007199254740993, 4611686018427387905];
    let want = (
        Tensor::from(values),
        Tensor::from([1i64, -18014398509481985, 4602678819172646913]),
        scalar(4611686018427387905i64),
        Tensor::from(values.map(|c| c.wrapping_add(i64::MIN))),
    );
    wide_integers::trap().exactly((Tensor::from(values),), want);
}

#[test]
fn case_041_float_floor_division() {
    let a = Tensor::from([1.0f32, 0.5, 6.0, 1.0, -1.0]);
    let b = Tensor::from([0.1f32, 0.1, 0.2, 0.33333334, 0.1]);
    float_floor_f32::trap().pointwise().exactly((a, b), Tensor::from([9.0f32, 4.0, 29.0, 2.0, -10.0]));
    let (a, b) = (Tensor::from([1.0f64, 0.5, 6.0]), Tensor::from([0.1f64, 0.1, 0.2]));
    float_floor_f64::trap().pointwise().exactly((a, b), Tensor::from([9.0f64, 4.0, 29.0]));
}
