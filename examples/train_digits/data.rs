//! The handwritten digits, shuffled and split.

use flate2::read::GzDecoder;
use fuse_runtime::prelude::*;
use std::error::Error as StdError;
use std::io::Read;
use std::path::Path;

/// Images of 8 by 8 pixels from 0 to 1, row by row, and what they show.
pub struct Digits {
    pub images: Tensor<f32, 2>,
    pub labels: Tensor<i64, 1>,
}

/// How far pictures to train on are moved, down and to the right; the first of the set as they are.
const MOVES: [[isize; 2]; 9] = [[0, 0], [-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]];

/// Reads the file, shuffles it, and splits the last fifth off for testing.
pub fn load(path: &Path, device: Device) -> Result<(Digits, Digits), Box<dyn StdError>> {
    let file = std::fs::File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text)?;
    let rows: Vec<Vec<i64>> = text.lines().map(numbers).collect::<Result<_, _>>()?;
    if let Some(short) = rows.iter().position(|row| row.len() != 65) {
        return Err(format!("line {} of {} has no 64 pixels and a digit", short + 1, path.display()).into());
    }
    let order = shuffled(rows.len());
    let (train, test) = order.split_at(rows.len() * 4 / 5);
    Ok((Digits::of(&rows, train, &MOVES, device), Digits::of(&rows, test, &MOVES[..1], device)))
}

fn numbers(line: &str) -> Result<Vec<i64>, std::num::ParseIntError> {
    line.split(',').map(|number| number.trim().parse()).collect()
}

/// The numbers below `n` in a random order, from the generator of the processor.
fn shuffled(n: usize) -> Vec<usize> {
    let keys = Tensor::<f32, 1>::rand([n], Device::cpu()).to_vec();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    order
}

impl Digits {
    fn of(rows: &[Vec<i64>], which: &[usize], moves: &[[isize; 2]], device: Device) -> Self {
        let all = || moves.iter().flat_map(|by| which.iter().map(move |&k| (by, &rows[k])));
        let pixels: Vec<f32> = all().flat_map(|(by, row)| moved(&row[..64], *by)).collect();
        let labels: Vec<i64> = all().map(|(_, row)| row[64]).collect();
        let count = labels.len();
        Digits {
            images: Tensor::from_vec(pixels, [count, 64], device),
            labels: Tensor::from_vec(labels, [count], device),
        }
    }

    /// How many different pictures there are to train on.
    pub fn pictures(&self) -> usize {
        self.labels.numel() / MOVES.len()
    }

    /// All pictures to train on in a random order, in batches; every other one is moved by a pixel.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = Digits> {
        let pictures = self.pictures();
        let chance = Tensor::<f32, 1>::rand([pictures], Device::cpu()).to_vec();
        let which = |k: usize| {
            let by = (chance[k] * 2.0 * MOVES.len() as f32) as usize;
            (MOVES.get(by).map_or(0, |_| by) * pictures + k) as i64
        };
        let which: Vec<i64> = shuffled(pictures).into_iter().map(which).collect();
        let which = Tensor::from_vec(which, [pictures], self.labels.device());
        (0..pictures).step_by(size).map(move |first| {
            let which = which.narrow(0, first, size.min(pictures - first));
            Digits { images: self.images.index_select(0, &which), labels: self.labels.index_select(0, &which) }
        })
    }
}

/// The pixels of a picture that was moved, from 0 to 1.
fn moved(pixels: &[i64], [down, right]: [isize; 2]) -> impl Iterator<Item = f32> {
    (0..64).map(move |at| {
        let (y, x) = (at / 8 - down, at % 8 - right);
        let inside = (0..8).contains(&y) && (0..8).contains(&x);
        if inside { pixels[(8 * y + x) as usize] as f32 / 16.0 } else { 0.0 }
    })
}
