//! How a product is cut: into strips of columns, whose part of the right operand is arranged once, and strips into tiles.

use super::gemm::TILE_ROWS;
use super::matmul::Product;

/// Columns of a tile, best first: those whose panels over a stretch of the inner axis the second cache holds.
const COLUMNS: [usize; 3] = [512, 256, 128];
/// Tiles have no fewer rows than this where that would give threads more of them.
const LEAST_ROWS: usize = 28;

/// The extents of tiles.
pub(super) struct Cut {
    pub rows: usize,
    pub columns: usize,
    /// Groups of rows of a matrix, strips of a right operand.
    groups: usize,
    strips: usize,
    batch: usize,
    right_matrices: usize,
    m: usize,
    n: usize,
}

/// Some columns of one matrix of the right operand.
pub(super) struct Strip {
    pub matrix: usize,
    pub column: usize,
    pub columns: usize,
}

/// Part of the product: some rows and columns of one matrix of the batch.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub batch: usize,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl Cut {
    /// Large tiles, but some for every thread, with as many rows each: whole groups of those that registers hold, where there are tiles
    /// enough. The right operand may be one matrix for the whole batch.
    pub fn of(product: &Product, right_matrices: usize, threads: usize, group: usize) -> Self {
        let &Product { batch, m, n, .. } = product;
        let wanted = if threads == 1 { 1 } else { 4 * threads };
        let least = m.div_ceil(TILE_ROWS);
        let most = m.div_ceil(LEAST_ROWS);
        let enough = |columns: &&usize| batch * n.div_ceil(**columns) * most >= wanted;
        let columns = (*COLUMNS.iter().find(enough).unwrap_or(&COLUMNS[COLUMNS.len() - 1])).min(n);
        let strips = n.div_ceil(columns);
        let rows = m.div_ceil(wanted.div_ceil(batch * strips).clamp(least, most));
        let whole = rows.next_multiple_of(group).min(TILE_ROWS / group * group);
        let rows = if batch * strips * m.div_ceil(whole) >= wanted { whole } else { rows };
        Cut { rows, columns, groups: m.div_ceil(rows), strips, batch, right_matrices, m, n }
    }

    /// How many strips there are.
    pub fn strips(&self) -> usize {
        self.right_matrices * self.strips
    }

    /// A strip.
    pub fn strip(&self, number: usize) -> Strip {
        let column = number % self.strips * self.columns;
        Strip { matrix: number / self.strips, column, columns: self.columns.min(self.n - column) }
    }

    /// How many tiles a strip has, in all matrices that it is multiplied with.
    pub fn tiles_of_strip(&self) -> usize {
        self.groups * (self.batch / self.right_matrices)
    }

    /// A tile of a strip.
    pub fn tile(&self, strip: &Strip, number: usize) -> Tile {
        let row = number % self.groups * self.rows;
        let batch = if self.right_matrices == 1 { number / self.groups } else { strip.matrix };
        Tile { batch, row, rows: self.rows.min(self.m - row), column: strip.column, columns: strip.columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::RawTensor;

    fn cut(batch: usize, m: usize, n: usize, right_matrices: usize, threads: usize) -> Cut {
        let nothing = || RawTensor::from_slice(&[0f32; 0], &[0, 0]).unwrap();
        Cut::of(&Product { a: nothing(), b: nothing(), batch, m, n, k: 64 }, right_matrices, threads, 14)
    }

    #[test]
    fn tiles_cover_the_product_once() {
        for (batch, m, n, matrices, threads) in
            [(1, 1, 1, 1, 1), (3, 130, 700, 3, 2), (3, 130, 700, 1, 2), (1, 1024, 3072, 1, 16), (2, 5, 4000, 2, 8)]
        {
            let cut = cut(batch, m, n, matrices, threads);
            let mut times = vec![0; batch * m * n];
            for strip in (0..cut.strips()).map(|number| cut.strip(number)) {
                for tile in (0..cut.tiles_of_strip()).map(|number| cut.tile(&strip, number)) {
                    assert!(tile.rows <= TILE_ROWS && tile.rows <= cut.rows && tile.columns <= cut.columns);
                    for row in tile.row..tile.row + tile.rows {
                        let first = (tile.batch * m + row) * n + tile.column;
                        times[first..first + tile.columns].iter_mut().for_each(|times| *times += 1);
                    }
                }
            }
            assert!(times.iter().all(|&times| times == 1), "{batch} x {m} x {n}, {matrices} right, {threads} threads");
        }
    }

    #[test]
    fn every_thread_has_tiles() {
        for (m, n, threads) in [(256, 256, 2), (1024, 768, 2), (1024, 3072, 16), (1, 4096, 8)] {
            let cut = cut(1, m, n, 1, threads);
            assert!(cut.strips() * cut.tiles_of_strip() >= 4 * threads, "{m} x {n}, {threads} threads");
        }
    }
}
