//! What products and attention are made of, and the files that it goes from process to process in: f32 numbers, which hold those of
//! every narrower type, too.

use fuse_runtime::Generator;
use fuse_runtime::prelude::*;
use half::{bf16, f16};
use std::path::{Path, PathBuf};

/// The operands of a product.
#[derive(Clone, Copy)]
pub enum Values {
    Normal,
    /// No sum has anything to cancel, so all that is cut off adds up.
    Positive,
    /// The second half of a sum takes the first half back but for its last bits.
    Cancelling,
    /// Exponents from 0 far down.
    Wide,
    /// Left operands about the least that the type holds, subnormal ones among them.
    Tiny,
    /// A few infinities of either sign, and NaN.
    Special,
}

impl Values {
    pub const ALL: [Values; 6] =
        [Values::Normal, Values::Positive, Values::Cancelling, Values::Wide, Values::Tiny, Values::Special];

    pub fn name(self) -> &'static str {
        match self {
            Values::Normal => "normal",
            Values::Positive => "all positive",
            Values::Cancelling => "cancelling",
            Values::Wide => "wide exponents",
            Values::Tiny => "tiny",
            Values::Special => "infinities and NaN",
        }
    }
}

/// How attention's queries and keys meet.
#[derive(Clone, Copy)]
pub enum Scores {
    Normal,
    /// Sixteen times as large, so that a few weights are nearly everything.
    Large,
}

impl Scores {
    pub const ALL: [Scores; 2] = [Scores::Normal, Scores::Large];

    pub fn name(self) -> &'static str {
        match self {
            Scores::Normal => "normal",
            Scores::Large => "large scores",
        }
    }
}

/// What a type can hold, as powers of two.
struct Exponents {
    /// The last bit of a number between 1 and 2.
    last: f64,
    /// How far down `Wide` goes.
    span: f64,
    /// Where `Tiny` lies: from what all types of parts hold down to what is subnormal.
    tiny: [f64; 2],
}

impl Exponents {
    fn of(dtype: &str) -> Exponents {
        match dtype {
            "f32" => Exponents { last: -23.0, span: 40.0, tiny: [-100.0, -130.0] },
            "bf16" => Exponents { last: -7.0, span: 40.0, tiny: [-100.0, -130.0] },
            _ => Exponents { last: -10.0, span: 10.0, tiny: [-10.0, -20.0] },
        }
    }
}

/// `m x k` and `k x n` numbers of a type.
pub fn operands(values: Values, dtype: &str, [m, k, n]: [usize; 3]) -> [Vec<f32>; 2] {
    let exponents = Exponents::of(dtype);
    Generator::new(k as u64).scope(|| {
        let (mut a, mut b) = (normal(m * k), normal(k * n));
        match values {
            Values::Normal => {}
            Values::Positive => [&mut a, &mut b].into_iter().flatten().for_each(|value| *value = value.abs()),
            Values::Cancelling => cancel(&mut a, &mut b, [k, n], exponents.last),
            Values::Wide => [&mut a, &mut b].into_iter().for_each(|values| scale(values, [0.0, -exponents.span])),
            Values::Tiny => {
                scale(&mut a, exponents.tiny);
                // So that products are neither tiny nor large.
                scale(&mut b, [-exponents.tiny[0], -exponents.tiny[0]]);
            }
            Values::Special => [&mut a, &mut b].into_iter().for_each(|values| strew(values)),
        }
        [rounded(a, dtype), rounded(b, dtype)]
    })
}

/// Queries, keys and values.
pub fn heads(scores: Scores, dtype: &str, extents: [usize; 4]) -> [Vec<f32>; 3] {
    let count = extents.iter().product();
    Generator::new(0).scope(|| {
        let mut operands = [normal(count), normal(count), normal(count)];
        if matches!(scores, Scores::Large) {
            scale(&mut operands[0], [4.0, 4.0]);
        }
        operands.map(|values| rounded(values, dtype))
    })
}

fn normal(count: usize) -> Vec<f64> {
    Tensor::<f64, 1>::randn([count], Device::cpu()).to_vec()
}

/// Makes the second half of every sum the first one's opposite, a few last bits apart.
fn cancel(a: &mut [f64], b: &mut [f64], [k, n]: [usize; 2], last: f64) {
    let apart = normal(a.len());
    for (row, apart) in a.chunks_mut(k).zip(apart.chunks(k)) {
        for j in 0..k / 2 {
            row[j] = row[j].abs();
            row[k / 2 + j] = -row[j] * (1.0 + apart[j] * (last + 2.0).exp2());
        }
    }
    b.iter_mut().for_each(|value| *value = value.abs());
    b.copy_within(0..k / 2 * n, k / 2 * n);
}

/// Multiplies by powers of two with exponents from a range.
fn scale(values: &mut [f64], [from, to]: [f64; 2]) {
    let draws = Tensor::<f64, 1>::rand([values.len()], Device::cpu()).to_vec();
    values.iter_mut().zip(draws).for_each(|(value, draw)| *value *= (from + (to - from) * draw).round().exp2());
}

/// Puts infinities, NaN and zeros in a few places.
fn strew(values: &mut [f64]) {
    const STRANGE: [f64; 4] = [f64::INFINITY, f64::NEG_INFINITY, 0.0, f64::NAN];
    let apart = values.len() / 16;
    // An odd number of elements apart, so that they lie in different rows and columns.
    (0..16).for_each(|k| values[(k * (apart - 37)) | 1] = STRANGE[k % STRANGE.len()]);
}

/// To the element type.
fn rounded(values: Vec<f64>, dtype: &str) -> Vec<f32> {
    let round = match dtype {
        "f32" => |value| value as f32,
        "bf16" => |value| bf16::from_f64(value).to_f32(),
        _ => |value| f16::from_f64(value).to_f32(),
    };
    values.into_iter().map(round).collect()
}

/// Writes each of some operands, and says where.
pub fn write_all(folder: &Path, operands: &[Vec<f32>]) -> Vec<PathBuf> {
    let write = |(number, values): (usize, &Vec<f32>)| {
        let path = folder.join(format!("operand{number}"));
        write(&path, values);
        path
    };
    operands.iter().enumerate().map(write).collect()
}

/// Writes numbers.
pub fn write(path: &Path, values: &[f32]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Reads numbers.
pub fn read(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
