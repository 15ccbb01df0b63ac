//! Sums down the columns of a matrix, of every size and layout: bit for bit what each op by itself gives.

use super::*;
use fuse_runtime::Generator;
use half::bf16;

#[compile(fullgraph)]
fn squares<T: Float>(x: &Tensor<T, 2>) -> Tensor<T, 1> {
    (x * x).sum(0)
}

/// Gradients of a norm's weight and bias: a value for each row, and one for each column, and two sums.
#[compile(fullgraph)]
fn of_a_norm<T: Float>(
    #[dims(N, D)] slope: &Tensor<T, 2>,
    #[dims(N, D)] x: &Tensor<T, 2>,
    #[dims(D)] weight: &Tensor<T, 1>,
) -> (Tensor<T, 1>, Tensor<T, 1>, Tensor<T, 1>) {
    let mean = x.mean_keepdim(1);
    ((slope * (x - mean)).sum(0), slope.mean(0), (slope * weight).prod(0))
}

#[compile(fullgraph)]
fn counted(x: &Tensor<u8, 2>, y: &Tensor<i64, 3>) -> (Tensor<i64, 1>, Tensor<i64, 1>, Tensor<i64, 1>) {
    (x.sum(0), y.sum(0).sum(0), y.prod(1).sum(0))
}

#[compile(fullgraph)]
fn kept(x: &Tensor<f32, 2>) -> Tensor<f32, 1> {
    x.dropout(0.3, true).sum(0)
}

#[compile(fullgraph)]
fn spread(x: &Tensor<f32, 2>) -> (Tensor<f32, 1>, Tensor<f32, 0>) {
    let sums = x.sum(0);
    let all = (&sums / 2.0).sum_all();
    (sums, all)
}

/// Zeros of either sign differ, and all NaN are one.
fn alike<T: Float, const R: usize>(got: &Tensor<T, R>, want: &Tensor<T, R>, what: &str) {
    let [got, want] = [got, want].map(|x| format!("{:?}", x.to_vec()));
    assert!(got == want, "{what}: {got}, not {want}");
}

const ROWS: [usize; 6] = [0, 1, 7, 256, 257, 1300];
const COLUMNS: [usize; 5] = [1, 47, 48, 130, 1100];

fn sums_alike<T: Float>() {
    let d = device();
    for (rows, columns) in ROWS.into_iter().flat_map(|rows| COLUMNS.map(|columns| (rows, columns))) {
        let what = format!("{rows} x {columns} of {}", T::DTYPE);
        let (x, slope) = (Tensor::<T, 2>::randn([rows, columns], d), Tensor::randn([rows, columns], d));
        alike(&squares(&x), &squares::eager(&x), &what);
        let wide = Tensor::<T, 2>::randn([rows, columns + 5], d).slice(1, 3, 3 + columns as isize);
        alike(&squares(&wide), &squares::eager(&wide), &format!("{what}, part of rows"));
        let turned = Tensor::<T, 2>::randn([columns, rows], d).t();
        alike(&squares(&turned), &squares::eager(&turned), &format!("{what}, turned"));
        let weight = Tensor::randn([columns], d) * T::from_f64(0.1) + T::from_f64(1.0);
        let (got, want) = (of_a_norm(&slope, &x, &weight), of_a_norm::eager(&slope, &x, &weight));
        alike(&got.0, &want.0, &what);
        alike(&got.1, &want.1, &what);
        alike(&got.2, &want.2, &what);
    }
}

#[test]
fn sums_of_columns_have_one_order() {
    sums_alike::<f32>();
    sums_alike::<bf16>();
}

#[test]
fn sums_of_many_rows_have_it_too() {
    let x = Tensor::<f32, 2>::randn([70_000, 50], device());
    alike(&squares(&x), &squares::eager(&x), "more chunks than there may be");
    let got = spread(&x);
    let want = spread::eager(&x);
    alike(&got.0, &want.0, "sums");
    alike(&got.1, &want.1, "a sum of the sums");
}

#[test]
fn integers_are_summed_in_64_bits() {
    let d = device();
    let bytes: Vec<u8> = (0..300 * 99).map(|n| (n * 7 % 256) as u8).collect();
    let longs: Vec<i64> = (0..5 * 61 * 80).map(|n| i64::from(n % 1000) - 500).collect();
    let (x, y) = (Tensor::from_vec(bytes, [300, 99], d), Tensor::from_vec(longs, [5, 61, 80], d));
    let (got, want) = (counted(&x, &y), counted::eager(&x, &y));
    assert_eq!(got.0.to_vec(), want.0.to_vec());
    assert_eq!(got.1.to_vec(), want.1.to_vec());
    assert_eq!(got.2.to_vec(), want.2.to_vec());
}

#[test]
fn what_is_dropped_is_the_same() {
    let x = Tensor::<f32, 2>::randn([600, 300], device());
    let drawn = |f: &dyn Fn(&Tensor<f32, 2>) -> Tensor<f32, 1>| Generator::new(7).scope(|| f(&x));
    alike(&drawn(&|x| kept(x)), &drawn(&|x| kept::eager(x)), "dropout");
}
