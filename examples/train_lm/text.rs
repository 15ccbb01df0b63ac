//! A text as numbers, one a character.

use fuse_runtime::Generator;
use fuse_runtime::prelude::*;
use std::path::Path;

/// The characters of a text in order; the number of a character is its place here.
#[derive(Clone)]
pub struct Vocabulary(Vec<char>);

impl Vocabulary {
    pub fn of(text: &str) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        Vocabulary(characters)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers of a text, or the first character that has none.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>, String> {
        let number = |c: char| self.0.binary_search(&c).map(|number| number as i64);
        text.chars().map(|c| number(c).map_err(|_| format!("the model knows no {c:?}"))).collect()
    }

    pub fn decode(&self, number: i64) -> char {
        self.0[number as usize]
    }

    /// Code points, for a checkpoint.
    pub fn to_tensor(&self) -> Tensor<i64, 1> {
        let points: Vec<i64> = self.0.iter().map(|&c| i64::from(u32::from(c))).collect();
        Tensor::from_slice(&points, [points.len()], Device::cpu())
    }

    pub fn from_tensor(points: &Tensor<i64, 1>) -> Result<Self, String> {
        let character = |point: i64| u32::try_from(point).ok().and_then(char::from_u32);
        let characters: Option<Vec<char>> = points.to_vec().into_iter().map(character).collect();
        characters.map(Vocabulary).ok_or("the vocabulary of the checkpoint is damaged".to_owned())
    }
}

/// A long row of characters, on the device.
pub struct Corpus {
    numbers: Tensor<i64, 1>,
}

/// Reads a file, and says what is wrong with it if it cannot be trained on.
pub fn read(path: &Path, context: usize) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    // A tenth is kept for validation, and that has to hold a window and what follows it.
    let needed = 10 * (context + 2);
    match text.chars().count() {
        count if count < needed => {
            Err(format!("{} has {count} characters, a context of {context} needs {needed}", path.display()))
        }
        _ => Ok(text),
    }
}

impl Corpus {
    /// What to train on, and the last tenth to validate with.
    pub fn split(numbers: &[i64], device: Device) -> (Corpus, Corpus) {
        let (train, validate) = numbers.split_at(numbers.len() - numbers.len() / 10);
        let corpus = |part: &[i64]| Corpus { numbers: Tensor::from_slice(part, [part.len()], device) };
        (corpus(train), corpus(validate))
    }

    /// Random windows and, for each of their characters, the one that follows.
    pub fn batch(&self, rows: usize, context: usize, generator: &mut Generator) -> (Tensor<i64, 2>, Tensor<i64, 2>) {
        // A random number has 24 bits, and a text may have more characters than that tells apart.
        let shares = generator.scope(|| Tensor::<f32, 2>::rand([rows, 2], Device::cpu())).to_vec();
        let windows_there = (self.numbers.numel() - context) as f64;
        let start = |share: &[f32]| (f64::from(share[0]) + f64::from(share[1]) / f64::from(1 << 24)) * windows_there;
        let starts: Vec<i64> = shares.chunks(2).map(|share| start(share) as i64).collect();
        let starts = Tensor::from_slice(&starts, [rows, 1], self.numbers.device());
        windows(&self.numbers, &starts, &Tensor::arange(0, context as i64, self.numbers.device()))
    }
}

#[compile]
fn windows(
    numbers: &Tensor<i64, 1>,
    #[dims(B, 1)] starts: &Tensor<i64, 2>,
    #[dims(S)] steps: &Tensor<i64, 1>,
) -> (Tensor<i64, 2>, Tensor<i64, 2>) {
    let [rows, _] = starts.dims();
    let places = starts + steps;
    let places = places.reshape([rows * steps.size(0)]);
    let inputs = numbers.index_select(0, &places).reshape([rows, steps.size(0)]);
    let targets = numbers.index_select(0, &(places + 1)).reshape([rows, steps.size(0)]);
    (inputs, targets)
}
