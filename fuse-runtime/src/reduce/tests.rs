//! The fast orders against plain transcriptions of their definition.

use super::*;

/// Row order, word for word.
fn row_by_definition(values: &[f32]) -> f32 {
    let tree = |mut lanes: Vec<f32>| {
        lanes.resize(1024, 0.0);
        for stride in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
            for l in (0..1024).step_by(2 * stride) {
                lanes[l] += lanes[l + stride];
            }
        }
        lanes[0]
    };
    let block = |values: &[f32]| {
        let mut lanes = vec![0.0; 1024];
        values.iter().enumerate().for_each(|(e, x)| lanes[e % 1024] += x);
        tree(lanes)
    };
    let blocks: Vec<f32> = values.chunks(16384).map(block).collect();
    if blocks.len() <= 1 {
        return blocks.first().copied().unwrap_or(0.0);
    }
    let chunks = blocks.len().min(1024);
    let per_chunk = blocks.len().div_ceil(chunks);
    tree(blocks.chunks(per_chunk).map(|c| c[1..].iter().fold(c[0], |a, b| a + b)).collect())
}

/// Column order, word for word.
fn column_by_definition(values: &[f32]) -> f32 {
    let sub_block = |values: &[f32]| {
        let mut lanes = [0.0; 8];
        values.iter().enumerate().for_each(|(r, x)| lanes[r % 8] += x);
        for stride in [1, 2, 4] {
            for l in (0..8).step_by(2 * stride) {
                lanes[l] += lanes[l + stride];
            }
        }
        lanes[0]
    };
    if values.is_empty() {
        return 0.0;
    }
    let chunks = values.len().div_ceil(256).min(256);
    let chunk = values.len().div_ceil(chunks).div_ceil(256) * 256;
    let chunk_value = |c: &[f32]| {
        let sums: Vec<f32> = c.chunks(256).map(sub_block).collect();
        sums[1..].iter().fold(sums[0], |a, b| a + b)
    };
    sub_block(&values.chunks(chunk).map(chunk_value).collect::<Vec<_>>())
}

/// Values of many magnitudes, so that another order would show.
fn values(n: usize) -> Vec<f32> {
    (0..n as u64).map(|i| (crate::philox::bits(1, 0, i) as i32 as f32) * 2f32.powi((i % 13) as i32 - 37)).collect()
}

const LENGTHS: [usize; 22] = [
    0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 1000, 1023, 1024, 1025, 4097, 16383, 16384, 16385, 65536, 65537, 300_001,
    17_000_000,
];

#[test]
fn row_sums_follow_the_definition() {
    for n in LENGTHS {
        let x = values(n);
        assert_eq!(row_sum(n, |i| x[i]).to_bits(), row_by_definition(&x).to_bits(), "{n}");
    }
}

#[test]
fn column_sums_follow_the_definition() {
    for n in LENGTHS {
        let x = values(n);
        assert_eq!(column_sum(n, |i| x[i]).to_bits(), column_by_definition(&x).to_bits(), "{n}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let x = values(1_000_003);
    let sum = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (row_sum(x.len(), |i| x[i]).to_bits(), max(x.len(), |i| x[i]).to_bits()))
    };
    assert_eq!(sum(1), sum(3));
    assert_eq!(sum(1), sum(8));
}

#[test]
fn products_and_integers_reduce_too() {
    assert_eq!(row_prod(5, |i| (i + 1) as f64), 120.0);
    assert_eq!(column_prod(0, |_| 7.0f32), 1.0);
    assert_eq!(row_sum(5000, |_| 1i64), 5000);
    assert_eq!(row_sum(2, |_| i64::MAX), -2);
}

#[test]
fn ones_add_up_exactly() {
    assert_eq!(row_sum(20_000_000, |_| 1f32), 2e7);
    assert_eq!(column_sum(10_000_000, |_| 1f32), 1e7);
}

#[test]
fn the_first_nan_wins() {
    let nan = f32::NAN;
    for (x, largest, smallest) in [([nan, 4.6, 1.0], 0, 0), ([1.0, nan, nan], 1, 1), ([0.0, -1.0, 3.0], 2, 1)] {
        assert_eq!((argmax(3, |i| x[i]), argmin(3, |i| x[i])), (largest, smallest));
        assert_eq!(max(3, |i| x[i]).is_nan(), x.iter().any(|v| v.is_nan()));
        assert_eq!(min(3, |i| x[i]).is_nan(), x.iter().any(|v| v.is_nan()));
    }
    assert_eq!(argmax(2, |i| [f32::NEG_INFINITY, -nan][i]), 1);
}

#[test]
fn ties_go_to_the_first_and_zeros_are_ordered() {
    let x: Vec<i32> = (0..5000).map(|i| i % 7).collect();
    assert_eq!((argmax(5000, |i| x[i]), argmin(5000, |i| x[i])), (6, 0));
    assert_eq!(max(2, |i| [-0.0f32, 0.0][i]).to_bits(), 0);
    assert_eq!(min(2, |i| [0.0f64, -0.0][i]).to_bits(), (-0.0f64).to_bits());
    for zeros in [[-0.0f32, 0.0], [0.0, -0.0]] {
        assert_eq!((argmax(2, |i| zeros[i]), argmin(2, |i| zeros[i])), (0, 0));
    }
    assert_eq!((max(0, |_| 0f32), min(0, |_| 0u8)), (f32::NEG_INFINITY, 255));
    assert_eq!((max(3, |i| i == 1), min(3, |i| i != 1)), (true, false));
}

#[test]
fn tails_hold_the_identity() {
    for n in [1, 2, 3, 17, 31, 32, 33, 63, 64, 65, 127, 257, 1000, 1025, 4097] {
        let x = |i: usize| -(1.0 + (i % 7) as f32);
        assert_eq!((max(n, x), min(n, x)), (-1.0, -(n.min(7) as f32)), "{n}");
    }
}
