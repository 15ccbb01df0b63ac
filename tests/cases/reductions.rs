//! Sums of many, of one, of small integers.

use crate::cases::*;

macro_rules! half_sums {
    ($($name:ident $lines:ident $t:ident)*) => {
        traps! {$(
            fn $name(x: $t 1) -> [Tensor<$t, 0>; 4] {
                let running = x.cumsum(0);
                let last = running.slice(0, -1, i64::MAX as isize).sum_all();
                [x.sum_all(), last, x.mean_all(), x.matmul(x)]
            }
            fn $lines(x: $t 2) -> ([Tensor<$t, 1>; 2], Tensor<$t, 2>) {
                ([x.sum(0), x.mean(0)], x.t().cumsum(1).slice(1, 4095, 4096))
            }
        )*}
    };
}

half_sums! { sums_f16 lines_f16 f16 sums_bf16 lines_bf16 bf16 }

traps! {
    fn long_sums(x: f32 1) -> (Tensor<f32, 0>, Tensor<f32, 0>) {
        (x.sum_all(), x.mean_all())
    }
    fn long_column_sums(z: f32 2) -> Tensor<f32, 1> {
        z.sum(0)
    }
    fn variance_of_one(x: f32 1, y: f32 2) -> (Tensor<f32, 0>, Tensor<f32, 0>, Tensor<f32, 0>, Tensor<f32, 1>) {
        (x.var_all(), x.std_all(), x.var_correction(0, 0), y.var(1))
    }
    fn integer_sums(u: u8 1, b: bool 1, v: u8 1, i: i32 1) -> ([Tensor<i64, 0>; 4], Tensor<i64, 1>) {
        ([u.sum_all(), b.sum_all(), v.prod_all(), i.sum_all()], v.cumsum(0))
    }
}

#[test]
fn case_075_half_sums_do_not_stall() {
    let ones = |dims: [usize; 1]| tensor((0..dims[0]).map(|_| f16::ONE), dims);
    let want = [4096.0f32, 4096.0, 1.0, 4096.0].map(|x| scalar(f16::from_f32(x)));
    sums_f16::trap().exactly((ones([4096]),), want);
    let want = [4096.0f32, 4096.0, 1.0, 4096.0].map(|x| scalar(bf16::from_f32(x)));
    sums_bf16::trap().exactly((ones([4096]).cast::<bf16>(),), want);
    let pair = |x: f32| hf([x, x]);
    let x = ones([8192]).reshape([4096, 2]);
    let want = ([pair(4096.0), pair(1.0)], pair(4096.0).unsqueeze(1));
    lines_f16::trap().exactly((x.clone(),), want);
    let pair = |x: f32| bf([x, x]);
    lines_bf16::trap().exactly((x.cast::<bf16>(),), ([pair(4096.0), pair(1.0)], pair(4096.0).unsqueeze(1)));
}

#[test]
fn case_077_sums_of_many_values() {
    let n = 20_000_000;
    let ones = Tensor::<f32, 1>::ones([n], device());
    for (sum, mean) in [long_sums::alone(&ones), long_sums::alone::eager(&ones)] {
        assert_eq!((sum.item(), mean.item()), (n as f32, 1.0));
    }
    let tenths = Tensor::full([1_000_000], 0.1f32, device());
    assert!((long_sums::alone(&tenths).0.item() - 100_000.0).abs() <= 0.1);
    let columns = ones.reshape([n / 2, 2]);
    assert_eq!(long_column_sums::alone(&columns).to_vec(), [1e7, 1e7]);
    assert_eq!(long_column_sums::alone::eager(&columns).to_vec(), [1e7, 1e7]);
}

#[test]
fn case_079_variance_of_one_element() {
    let nan = f32::NAN;
    let want = (scalar(nan), scalar(nan), scalar(0.0f32), Tensor::from([nan, nan]));
    variance_of_one::trap().exactly((Tensor::from([5.0f32]), Tensor::from([[5.0f32], [6.0]])), want);
}

#[test]
fn case_080_sums_of_integers_are_i64() {
    let inputs = (
        tensor((0..5000).map(|_| 1u8), [5000]),
        tensor((0..300).map(|_| true), [300]),
        Tensor::from([200u8, 100]),
        Tensor::from([1073741824, 1073741824, 5]),
    );
    let want = ([5000i64, 300, 20000, 2147483653].map(scalar), Tensor::from([200i64, 300]));
    integer_sums::trap().exactly(inputs, want);
}
