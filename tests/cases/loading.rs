//! Generated sources, caches, memory.

use crate::cases::*;

mod doubled {
    use super::*;

    #[compile]
    pub fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x * 2.0
    }
}

mod raised {
    use super::*;

    #[compile]
    pub fn f(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
        x + 100.0
    }
}

#[compile]
fn generic<T: Float, const N: usize>(x: &Tensor<T, 1>) -> Tensor<T, 1> {
    x * T::from_f64(N as f64)
}

traps! {
    fn constants(x: f32 1) -> [Tensor<f32, 1>; 10] {
        [
            x + f32::INFINITY,
            x + f32::NEG_INFINITY,
            x + f32::NAN,
            x + f32::MIN,
            x + f32::MAX,
            x + 1e-45,
            x + -0.0,
            x + 0.1,
            x + 16777217.0,
            x + 1e30,
        ]
    }
    fn integer_constants(k: i64 1) -> [Tensor<i64, 1>; 3] {
        [k + i64::MIN, k + i64::MAX, k + -1]
    }
}

#[test]
fn case_127_functions_of_one_name_stay_apart() {
    let x = Tensor::from([0.0f32, 1.0, 2.0]).to_device(device());
    for _ in 0..2 {
        assert_eq!(doubled::f(&x).to_vec(), [0.0, 2.0, 4.0]);
        assert_eq!(raised::f(&x).to_vec(), [100.0, 101.0, 102.0]);
        assert_eq!(generic::<f32, 2>(&x).to_vec(), [0.0, 2.0, 4.0]);
        assert_eq!(generic::<f32, 3>(&x).to_vec(), [0.0, 3.0, 6.0]);
        assert_eq!(generic::<f64, 3>(&x.cast::<f64>()).to_vec(), [0.0, 3.0, 6.0]);
    }
}

#[test]
fn case_128_constants_in_generated_text() {
    let values = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN, f32::MAX, 1e-45, 0.0, 0.1, 16777216.0, 1e30];
    constants::trap().pointwise().exactly((Tensor::from([0.0f32]),), values.map(|v| Tensor::from([v])));
    integer_constants::trap()
        .pointwise()
        .exactly((Tensor::from([0i64]),), [i64::MIN, i64::MAX, -1].map(|v| Tensor::from([v])));
}

#[test]
fn case_130_many_threads_call_one_function_first() {
    let call = || {
        let x = Tensor::from([1.0f32, 2.0]).to_device(device());
        assert_eq!(fuse_first(&x).to_vec(), [4.0, 7.0]);
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(call);
        }
    });
}

#[compile]
fn fuse_first(x: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    x * 3.0 + 1.0
}
