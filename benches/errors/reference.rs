//! Products and attention in f64, and how far from them something is.

use std::fmt;

/// What results should be, and what an error of each is measured by.
pub struct Reference {
    values: Vec<f64>,
    sizes: Vec<f64>,
}

/// How far results are from a reference.
pub struct Errors {
    pub mean: f64,
    pub most: f64,
    /// Results that are not finite.
    strange: usize,
    /// Those that are not finite here or there, and not the same.
    misplaced: usize,
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Errors { misplaced: 1.., .. } => write!(f, "{} misplaced", self.misplaced),
            Errors { strange: 1.., .. } => f.write_str("same places"),
            Errors { mean, most, .. } => write!(f, "{mean:.1e}, {most:.1e}"),
        }
    }
}

/// Rows of a product that are worked on at once, so that a row of the right operand is read once for all.
const TOGETHER: usize = 8;

impl Reference {
    /// The product of `m x k` and `k x n` numbers, with `sum |a||b|`.
    pub fn product(a: &[f32], b: &[f32], [m, k, n]: [usize; 3]) -> Reference {
        let b: Vec<f64> = b.iter().map(|&value| value.into()).collect();
        let (mut values, mut sizes) = (vec![0.0; m * n], vec![0.0; m * n]);
        let pieces = a.chunks(TOGETHER * k).zip(values.chunks_mut(TOGETHER * n).zip(sizes.chunks_mut(TOGETHER * n)));
        in_parallel(pieces, |(a, (values, sizes))| {
            for (at, b) in b.chunks(n).enumerate() {
                let rows = values.chunks_mut(n).zip(sizes.chunks_mut(n));
                for (a, (values, sizes)) in a.chunks(k).map(|row| f64::from(row[at])).zip(rows) {
                    for ((value, size), b) in values.iter_mut().zip(sizes).zip(b) {
                        *value += a * b;
                        *size += (a * b).abs();
                    }
                }
            }
        });
        Reference { values, sizes }
    }

    /// Attention of queries, keys and values, with the sum of the values' sizes under the weights.
    pub fn attention([q, k, v]: &[Vec<f32>; 3], [batch, heads, rows, depth]: [usize; 4]) -> Reference {
        let count = batch * heads * rows * depth;
        let (mut values, mut sizes) = (vec![0.0; count], vec![0.0; count]);
        let head = rows * depth;
        let operands = q.chunks(head).zip(k.chunks(head)).zip(v.chunks(head));
        in_parallel(operands.zip(values.chunks_mut(head).zip(sizes.chunks_mut(head))), |(((q, k), v), to)| {
            for (q, (values, sizes)) in q.chunks(depth).zip(to.0.chunks_mut(depth).zip(to.1.chunks_mut(depth))) {
                for (weight, v) in weights(q, k).into_iter().zip(v.chunks(depth)) {
                    for ((value, size), &v) in values.iter_mut().zip(sizes.iter_mut()).zip(v) {
                        *value += weight * f64::from(v);
                        *size += weight * f64::from(v.abs());
                    }
                }
            }
        });
        Reference { values, sizes }
    }

    /// How far results are from this.
    pub fn errors(&self, got: &[f32]) -> Errors {
        assert_eq!(got.len(), self.values.len(), "a result for every element");
        let mut errors = Errors { mean: 0.0, most: 0.0, strange: 0, misplaced: 0 };
        let mut finite = 0.0;
        for ((&want, size), got) in self.values.iter().zip(&self.sizes).zip(got.iter().map(|&got| f64::from(got))) {
            if want.is_finite() && got.is_finite() {
                let error = if got == want { 0.0 } else { (got - want).abs() / size };
                errors.mean += error;
                errors.most = errors.most.max(error);
                finite += 1.0;
            } else {
                errors.strange += 1;
                errors.misplaced += usize::from(got != want && !(got.is_nan() && want.is_nan()));
            }
        }
        errors.mean /= f64::max(finite, 1.0);
        errors
    }
}

/// The weights that a query gives every key.
fn weights(q: &[f32], keys: &[f32]) -> Vec<f64> {
    let scale = (q.len() as f64).powf(-0.5);
    let score = |key: &[f32]| q.iter().zip(key).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() * scale;
    let scores: Vec<f64> = keys.chunks(q.len()).map(score).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Does all of some work, on every core.
fn in_parallel<P: Send>(pieces: impl Iterator<Item = P> + Send, work: impl Fn(P) + Sync) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pieces = std::sync::Mutex::new(pieces);
    let next = || pieces.lock().expect("no piece is taken in panic").next();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| std::iter::from_fn(next).for_each(&work));
        }
    });
}
