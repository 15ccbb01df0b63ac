//! The table of rows.

/// What may attend to what.
#[derive(Clone, Copy)]
pub enum Mask {
    /// All queries to all keys.
    All,
    /// A query to the keys up to its own place.
    Causal,
    /// A bool for every query and key.
    Bool,
    /// A number that is added to the score of every query and key.
    Added,
}

/// A row: an element type, the extents `[batch, heads, heads of keys, queries, keys, elements of a head]`, and the mask.
pub type Row = (&'static str, [usize; 6], Mask);

use Mask::{Added, All, Bool, Causal};

/// Heads of 32 to 256 elements, sequences of 128 to 8192, square and crosswise, and a few queries of many keys, as a decoder has them.
pub const ROWS: [Row; 45] = [
    ("bf16", [8, 12, 12, 512, 512, 64], All),
    ("bf16", [8, 12, 12, 512, 512, 64], Causal),
    ("bf16", [32, 12, 12, 128, 128, 64], All),
    ("bf16", [16, 12, 12, 256, 256, 64], All),
    ("bf16", [4, 16, 16, 1024, 1024, 64], Causal),
    ("bf16", [4, 16, 16, 2048, 2048, 64], All),
    ("bf16", [4, 16, 16, 2048, 2048, 64], Causal),
    ("bf16", [2, 16, 16, 4096, 4096, 64], Causal),
    ("bf16", [1, 16, 16, 8192, 8192, 64], All),
    ("bf16", [8, 16, 16, 512, 512, 128], All),
    ("bf16", [4, 16, 16, 1024, 1024, 128], Causal),
    ("bf16", [4, 16, 16, 2048, 2048, 128], All),
    ("bf16", [4, 16, 16, 4096, 4096, 128], Causal),
    ("bf16", [1, 16, 16, 8192, 8192, 128], Causal),
    ("bf16", [16, 8, 8, 1024, 1024, 32], All),
    ("bf16", [4, 16, 16, 1000, 1000, 80], All),
    ("bf16", [4, 8, 8, 2048, 2048, 96], Causal),
    ("bf16", [4, 8, 8, 2048, 2048, 256], All),
    ("bf16", [2, 8, 8, 4096, 4096, 256], Causal),
    ("bf16", [8, 12, 12, 512, 1024, 64], All),
    ("bf16", [8, 12, 12, 1024, 128, 64], All),
    ("bf16", [4, 16, 16, 333, 777, 128], All),
    ("bf16", [4, 32, 8, 1024, 1024, 128], Causal),
    ("bf16", [2, 32, 8, 4096, 4096, 128], Causal),
    ("bf16", [4, 16, 1, 2048, 2048, 64], All),
    ("bf16", [4, 16, 16, 1024, 1024, 64], Bool),
    ("bf16", [4, 16, 16, 1024, 1024, 128], Added),
    ("bf16", [4, 32, 32, 1, 8192, 128], All),
    ("bf16", [16, 32, 8, 1, 4096, 128], All),
    ("bf16", [1, 32, 8, 1, 8192, 128], All),
    ("bf16", [8, 12, 12, 1, 1024, 64], All),
    ("bf16", [1, 8, 8, 64, 8192, 128], All),
    ("f16", [8, 12, 12, 512, 512, 64], All),
    ("f16", [4, 16, 16, 2048, 2048, 64], Causal),
    ("f16", [4, 16, 16, 1024, 1024, 128], All),
    ("f16", [2, 16, 16, 4096, 4096, 128], Causal),
    ("f16", [16, 6, 6, 197, 197, 64], All),
    ("f32", [8, 12, 12, 512, 512, 64], All),
    ("f32", [8, 12, 12, 512, 512, 64], Causal),
    ("f32", [4, 16, 16, 2048, 2048, 64], Causal),
    ("f32", [32, 12, 12, 128, 128, 64], All),
    ("f32", [4, 16, 16, 1024, 1024, 128], All),
    ("f32", [8, 8, 8, 512, 512, 32], Bool),
    ("f32", [4, 12, 12, 300, 1500, 64], All),
    ("f32", [4, 16, 4, 1024, 1024, 64], Causal),
];

/// What a row is called.
pub fn name((dtype, [batch, heads, groups, queries, keys, depth], mask): Row) -> String {
    let of = if groups == heads { String::new() } else { format!("/{groups}") };
    let across = if keys == queries { String::new() } else { format!("/{keys}") };
    format!(
        "{dtype} {batch}x{heads}{of}x{queries}{across}x{depth}{}",
        word(mask).map_or(String::new(), |word| format!(" {word}"))
    )
}

/// What a mask is called.
pub fn word(mask: Mask) -> Option<&'static str> {
    match mask {
        All => None,
        Causal => Some("causal"),
        Bool => Some("bool"),
        Added => Some("added"),
    }
}
