//! Views inside of kernels.

use crate::cases::*;

traps! {
    fn reshape_of_permuted(x: f32 3) -> Tensor<f32, 2> {
        let [a, b, c] = x.dims();
        x.permute([2, 0, 1]).reshape([c, a * b]) + 1.0
    }
    fn offset_operand(x: f32 2, w: f32 2, w3: f32 3) -> (Tensor<f32, 2>, Tensor<f32, 2>, Tensor<f32, 2>) {
        let a = x.matmul(&w.slice(0, 1, 3));
        let b = x.matmul(&w.t().slice(0, 1, 3).slice(1, 1, 3));
        let c = x.matmul(&w3.narrow(0, 2, 1).squeeze(0).slice(0, 1, 3));
        (a, b, c)
    }
    fn mean_of_permuted(x: f32 3) -> Tensor<f32, 2> {
        x.permute([2, 0, 1]).mean(2)
    }
    fn padded_sum(m: bool 2, zero: i64 1) -> Tensor<i64, 1> {
        Tensor::cat([zero.clone(), m.sum(1)], 0)
    }
    fn padded_cumsum(m: bool 2, zero: i64 1) -> Tensor<i64, 1> {
        Tensor::cat([zero.clone(), m.sum(1).cumsum(0)], 0)
    }
    fn two_ranges(t: i32 1, x: f32 2) -> (Tensor<i32, 0>, Tensor<f32, 1>, Tensor<f32, 1>) {
        let a = t.slice(0, 1, 5).max_all() - t.slice(0, 0, 2).min_all();
        let b = x.sum(1) + x.slice(1, 1, 4).max(1);
        let c = x.sum_all() / x.sum(0);
        (a, b, c)
    }
    fn tails(x: f32 1, z: i32 1) -> (Tensor<f32, 0>, Tensor<f32, 0>, Tensor<f32, 0>, Tensor<f32, 0>, Tensor<i32, 0>, Tensor<f32, 0>) {
        (x.max_all(), x.min_all(), (-x.slice(0, 0, 9)).prod_all(), x.sum_all(), z.max_all(), x.softmax(0).sum_all())
    }
    fn tails_of_rows(x: f32 2) -> (Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (x.max(1), x.min(1), x.sum(1), x.softmax(1).sum(1))
    }
    fn tails_of_columns(x: f32 2) -> (Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>, Tensor<f32, 1>) {
        (x.max(0), x.min(0), x.sum(0), x.softmax(0).sum(0))
    }
}

#[test]
fn case_058_reshape_of_a_permuted_tensor() {
    let reordered = |a: usize| {
        let value = move |i: usize| (i % (a * 3) * 4 + i / (a * 3)) as f32 + 1.0;
        (tensor((0..a * 12).map(|i| i as f32), [a, 3, 4]), tensor((0..a * 12).map(value), [4, a * 3]))
    };
    let (x, want) = reordered(2);
    assert_eq!(want.to_vec2()[3], [4.0, 8.0, 12.0, 16.0, 20.0, 24.0]);
    reshape_of_permuted::trap().exactly((x,), want);
    let (x, want) = reordered(3);
    reshape_of_permuted::trap().exactly((x,), want);
}

#[test]
fn case_059_a_view_with_an_offset_as_a_factor() {
    let w = tensor((1..=12).map(|k| k as f32), [4, 3]);
    let w3 = Tensor::stack([&(&w * 0.0), &(&w * 2.0), &w], 0);
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let rows = Tensor::from([[18.0f32, 21.0, 24.0], [40.0, 47.0, 54.0]]);
    let want = (rows.clone(), Tensor::from([[17.0f32, 26.0], [39.0, 60.0]]), rows);
    offset_operand::trap().exactly((x, w, w3), want);
}

#[test]
fn case_061_permute_then_reduce() {
    let x = tensor((0..12).map(|i| i as f32), [2, 2, 3]);
    mean_of_permuted::trap().exactly((x,), Tensor::from([[1.5f32, 7.5], [2.5, 8.5], [3.5, 9.5]]));
    let x = tensor((0..1024).map(|i| i as f32), [2, 2, 256]);
    mean_of_permuted::trap().exactly((x,), tensor((0..512).map(|i| (512 * (i % 2) + 128 + i / 2) as f32), [256, 2]));
}

#[test]
fn case_063_padding_beside_a_reduction() {
    let yes = |dims: [usize; 2]| tensor((0..dims[0] * dims[1]).map(|_| true), dims);
    padded_sum::trap().exactly((yes([1, 300]), Tensor::from([0i64])), Tensor::from([0i64, 300]));
    let rows = yes([3, 16384]);
    padded_sum::trap().exactly((rows.clone(), Tensor::from([0i64])), Tensor::from([0i64, 16384, 16384, 16384]));
    padded_cumsum::trap().exactly((rows, Tensor::from([0i64])), Tensor::from([0i64, 16384, 32768, 49152]));
}

#[test]
fn case_064_reductions_of_different_ranges() {
    let x = Tensor::from([[1.0f32, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]]);
    let want =
        (scalar(5), Tensor::from([19.0f32, 49.0]), Tensor::from([7.857143f32, 6.111111, 5.0, 4.2307692, 3.6666667]));
    two_ranges::trap().nearly((Tensor::from([4, 6, 1, 9, 2]), x), want);
}

/// `-(1 + i mod 7)`, with its least value, the product of the first nine without sign, and its sum.
fn sevens(n: usize) -> (Vec<f32>, f32, f32, f32) {
    let size = |i: usize| (1 + i % 7) as f32;
    let product = (0..n.min(9)).map(size).product();
    ((0..n).map(|i| -size(i)).collect(), -(n.min(7) as f32), product, -(0..n).map(size).sum::<f32>())
}

#[test]
fn case_066_tails_hold_the_identity() {
    for n in [1, 2, 3, 17, 31, 32, 33, 63, 65, 127, 257, 1000, 1025, 4097] {
        let (x, least, product, sum) = sevens(n);
        let z = Tensor::from(x.iter().map(|&v| v as i32).collect::<Vec<_>>());
        let want = (scalar(-1.0f32), scalar(least), scalar(product), scalar(sum), scalar(-1), scalar(1.0f32));
        tails::trap().within(0.0, 1e-6, (Tensor::from(x.clone()), z), want);
        let lines = |value: f32| Tensor::from([value; 3]);
        let want = (lines(-1.0), lines(least), lines(sum), lines(1.0));
        let rows = tensor(x.repeat(3), [3, n]);
        let columns = tensor(x.iter().flat_map(|&v| [v; 3]), [n, 3]);
        tails_of_rows::trap().within(0.0, 1e-6, (rows,), want.clone());
        tails_of_columns::trap().within(0.0, 1e-6, (columns,), want);
    }
}
