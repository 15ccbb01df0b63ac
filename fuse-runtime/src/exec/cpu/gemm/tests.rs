//! Products against sums of exact products, with the vectors of every width that this machine has.

use super::*;
use crate::rt::{Level, level};
use half::bf16;

/// Extents m, n and k: less than a vector, ragged panels, whole ones, several stretches.
const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [1, 200, 300],
    [2, 64, 17],
    [3, 31, 257],
    [7, 33, 5],
    [14, 32, 256],
    [16, 9, 2000],
    [29, 100, 513],
    [112, 48, 64],
];

fn levels() -> Vec<Level> {
    #[cfg(target_arch = "x86_64")]
    let all = [Level::Baseline, Level::Avx2, Level::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    let all = [Level::Baseline];
    let most = all.iter().position(|&other| other == level()).unwrap();
    all[..=most].to_vec()
}

/// Small whole numbers, whose products and sums every type here holds.
fn numbers<T: Element>(count: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f64((i * 7 % 5) as f64)).collect()
}

/// A matrix of `[rows, columns]` in one of three layouts: dense rows, dense columns, neither.
fn laid<T: Element>(values: &[T], [rows, columns]: [usize; 2], layout: usize) -> Matrix<T> {
    let strides = [[columns, 1], [1, rows], [2 * columns, 2]][layout];
    assert!((rows - 1) * strides[0] + (columns - 1) * strides[1] < values.len());
    Matrix { start: values.as_ptr(), row_stride: strides[0] as isize, column_stride: strides[1] as isize }
}

fn multiplied<T: Element<Compute: Multiply>>(
    level: Level,
    [m, n, k]: [usize; 3],
    a: Matrix<T>,
    b: Matrix<T>,
) -> Vec<f64> {
    let kernel = T::Compute::kernel(level);
    let width = kernel.columns;
    let mut panels = vec![T::Compute::default(); n.next_multiple_of(width) * k];
    let mut room = Room::<T::Compute>::new(m * n, kernel);
    // SAFETY: the matrices hold those elements, and the panels are arranged.
    unsafe {
        let right = match (m <= DOT_ROWS && b.row_stride == 1, b.as_computed()) {
            (true, Some(b)) => Strip::Columns(b),
            _ => {
                arrange(b, n, k, panels.as_mut_ptr(), width);
                Strip::Panels(panels_in(panels.as_ptr(), width, n, k))
            }
        };
        room.multiply(a, m, &right, n, k);
    }
    room.out(m * n).iter().map(|x| x.to_f64()).collect()
}

fn agrees<T: Element<Compute: Multiply>>() {
    for ([m, n, k], level) in SIZES.into_iter().flat_map(|size| levels().into_iter().map(move |level| (size, level))) {
        let (a, b) = (numbers::<T>(2 * m * k), numbers::<T>(2 * k * n));
        for (of_a, of_b) in (0..3).flat_map(|of_a| (0..3).map(move |of_b| (of_a, of_b))) {
            let (left, right) = (laid(&a, [m, k], of_a), laid(&b, [k, n], of_b));
            let got = multiplied(level, [m, n, k], left, right);
            // SAFETY: the matrices hold m x k and k x n elements.
            let term =
                |i, j, l| unsafe { left.from(i, l).start.read().to_f64() * right.from(l, j).start.read().to_f64() };
            for (at, got) in got.into_iter().enumerate() {
                let want: f64 = (0..k).map(|l| term(at / n, at % n, l)).sum();
                let want = if T::DTYPE == u8::DTYPE { want % 256.0 } else { want };
                assert_eq!(got, want, "{} {m} x {n} x {k} at {at}, {level:?}, layouts {of_a} {of_b}", T::DTYPE);
            }
        }
    }
}

#[test]
fn floats_in_any_layout() {
    agrees::<f32>();
    agrees::<f64>();
    agrees::<bf16>();
}

#[test]
fn integers_wrap() {
    agrees::<i64>();
    agrees::<i32>();
    agrees::<u8>();
}

#[test]
fn an_element_does_not_depend_on_what_is_made_beside_it() {
    let [m, n, k] = [37, 100, 700];
    let value = |i: usize| ((i * 7919 % 1999) as f32 / 999.0 - 1.0).sin();
    let (a, b): (Vec<f32>, Vec<f32>) = ((0..m * k).map(value).collect(), (0..k * n).map(value).collect());
    for level in levels() {
        let (left, right) = (laid(&a, [m, k], 0), laid(&b, [k, n], 0));
        let all = multiplied(level, [m, n, k], left, right);
        for (row, rows, column, columns) in [(0, 1, 0, n), (5, 2, 3, 40), (36, 1, 99, 1), (2, 13, 32, 68)] {
            let part = multiplied(level, [rows, columns, k], left.from(row, 0), right.from(0, column));
            for (at, part) in part.into_iter().enumerate() {
                assert_eq!(part, all[(row + at / columns) * n + column + at % columns], "{level:?}, row {row}");
            }
        }
    }
}

#[test]
fn nothing_to_add_is_zero() {
    let empty: [f32; 0] = [];
    let matrix = Matrix { start: empty.as_ptr(), row_stride: 0, column_stride: 1 };
    assert_eq!(multiplied(level(), [3, 5, 0], matrix, matrix), [0.0; 15]);
}
