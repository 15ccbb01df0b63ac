//! Writes to tensors that are values: nobody else sees them.

use crate::cases::*;

#[compile]
fn read_then_write(x: &mut Tensor<i64, 2>) -> Tensor<i64, 2> {
    let mut y = &*x * 2;
    y += 4;
    let two: Tensor<i64, 0> = Tensor::full([], 2, x.device());
    x.slice_assign(1, 2, 5, &two);
    y
}

#[compile]
fn scale_and_add(x: &mut Tensor<f32, 1>, y: &Tensor<f32, 1>) -> Tensor<f32, 1> {
    *x *= 10.0;
    &*x + y
}

#[compile]
fn add_transpose(a: &mut Tensor<f32, 2>) {
    let turned = a.t();
    *a += &turned;
}

#[compile]
fn shift_along(v: &mut Tensor<f32, 1>) -> Tensor<f32, 1> {
    let n = v.size(0) as isize;
    let front = v.slice(0, 0, n - 1);
    v.slice_assign(0, 1, n, &front);
    Tensor::cat([v.slice(0, 1, n), Tensor::full([1], 9.0, v.device())], 0)
}

#[compile]
fn step(p: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    (p - 1.0, p.clone())
}

#[compile]
fn twice(x: &Tensor<f32, 1>) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    let y = x + 1.0;
    (y.clone(), y)
}

#[compile(mode = "max-autotune")]
fn tuned_increment(x: &mut Tensor<f32, 1>, c: &Tensor<i64, 1>) -> Tensor<i64, 0> {
    *x += 1.0;
    x.cast::<i64>().sum_all() + c.sum_all()
}

/// Runs a function and its eager twin.
macro_rules! both {
    ($function:ident, |$run:ident| $body:expr) => {{
        {
            let $run = $function;
            $body
        }
        {
            let $run = $function::eager;
            $body
        }
    }};
}

#[test]
fn case_068_a_read_before_a_write() {
    both!(read_then_write, |run| {
        let mut x = Tensor::arange(-6i64, 6, device()).reshape([2, 6]);
        let kept = x.clone();
        let y = run(&mut x);
        assert_eq!(y.to_vec2(), [[-8, -6, -4, -2, 0, 2], [4, 6, 8, 10, 12, 14]]);
        assert_eq!(x.to_vec2(), [[-6, -5, 2, 2, 2, -1], [0, 1, 2, 2, 2, 5]]);
        assert_eq!(kept.to_vec(), (-6..6).collect::<Vec<i64>>());
    });
}

#[test]
fn case_069_arguments_that_share_memory() {
    both!(scale_and_add, |run| {
        let mut x = Tensor::from([1.0f32, 2.0, 3.0, 4.0, 5.0]).to_device(device());
        let y = Tensor::ones([5], device());
        assert_eq!(run(&mut x, &y).to_vec(), [11.0, 21.0, 31.0, 41.0, 51.0]);
        let s = Tensor::arange(1.0f32, 10.0, device());
        let (mut x, y) = (s.slice(0, 0, 5), s.slice(0, 3, 8));
        // Tensors are values: the write is not seen through `s`, so y stays 4, 5, 6, 7, 8.
        assert_eq!(run(&mut x, &y).to_vec(), [14.0, 25.0, 36.0, 47.0, 58.0]);
        assert_eq!(s.to_vec(), (1..10).map(|k| k as f32).collect::<Vec<_>>());
    });
}

#[test]
fn case_071_an_update_that_reads_other_positions() {
    both!(add_transpose, |run| {
        let mut a = Tensor::arange(1.0f32, 10.0, device()).reshape([3, 3]);
        run(&mut a);
        assert_eq!(a.to_vec2(), [[2.0, 6.0, 10.0], [6.0, 10.0, 14.0], [10.0, 14.0, 18.0]]);
        let n = 512;
        for _ in 0..3 {
            let mut a = Tensor::arange(0i64, (n * n) as i64, device()).cast::<f32>().reshape([n, n]);
            run(&mut a);
            let want: Vec<f32> = (0..n * n).map(|i| ((i / n) * n + i % n + (i % n) * n + i / n) as f32).collect();
            assert_eq!(a.to_vec(), want);
        }
    });
    both!(shift_along, |run| {
        let mut v = Tensor::arange(0.0f32, 6.0, device());
        assert_eq!(run(&mut v).to_vec(), [0.0, 1.0, 2.0, 3.0, 4.0, 9.0]);
        assert_eq!(v.to_vec(), [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    });
}

#[test]
fn case_073_results_share_nothing() {
    both!(step, |run| {
        let p = Tensor::from([1.0f32, 2.0, 3.0]).to_device(device());
        let (mut q, mut same) = run(&p);
        q *= 0.9;
        same *= 0.9;
        assert_eq!(p.to_vec(), [1.0, 2.0, 3.0]);
    });
    both!(twice, |run| {
        let (mut a, b) = run(&Tensor::from([1.0f32, 2.0]).to_device(device()));
        a *= 10.0;
        assert_eq!((a.to_vec(), b.to_vec()), (vec![20.0, 30.0], vec![2.0, 3.0]));
    });
}

#[test]
fn case_074_tuning_does_not_run_a_write_twice() {
    both!(tuned_increment, |run| {
        let mut x = Tensor::ones([1000], device());
        let sum = run(&mut x, &Tensor::zeros([1], device()));
        assert_eq!(sum.item(), 2000);
        assert_eq!(x.to_vec(), [2.0; 1000]);
    });
}
