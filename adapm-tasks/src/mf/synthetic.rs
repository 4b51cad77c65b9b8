//! Generated matrices: low rank, skewed rows and columns, noise of known size; any rows without the
//! others.
//!
//! The cell `(i, j)` is `w_i * h_j` plus noise. Factors are uniform with mean 0, such that the
//! product has variance 1. A row has a share of the cells, and draws columns, that fall with their
//! rank as a power with exponent 1.1 (the synthetic data of AdaPM App. C), flattened for the first
//! ranks: a row cannot have more cells than there are columns, nor a column more than rows.
//! Everything about a row follows from seed and row alone, so a node generates the rows it has, and
//! nothing else.
//!
//! ```text
//!   row -> rank -> cells n = share of the rank
//!                  columns: those that are due n times their share >= 1 all, then one of each of the n - k strata
//!                           of equal share in the rest, so that no column comes twice and n come in all
//! ```
//!
//! Test data is drawn anew, rows and columns by their shares: it may meet a training cell, with
//! other noise. The RMSE of the true factors on it is what the best of models can be expected to
//! reach.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::mf::cells::Cell;
use crate::run::config::{ConfigError, not_negative, whole};

/// The choices of a generated matrix. Start from [`SyntheticConfig::default`] and set fields.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SyntheticConfig {
    /// Number of rows. Defaults to 2,000.
    pub rows: u32,
    /// Number of columns. Defaults to 1,000.
    pub columns: u32,
    /// Number of training cells, at most a quarter of all. Defaults to 100,000.
    pub cells: u64,
    /// Number of cells to predict. Defaults to 10,000.
    pub test_cells: u32,
    /// Rank of the matrix without noise. Defaults to 4.
    pub rank: usize,
    /// Standard deviation of the noise; that of the matrix without is 1. Defaults to 0.2.
    pub noise: f32,
    /// Seed of everything. Defaults to 1.
    pub seed: u64,
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self {
            rows: 2_000,
            columns: 1_000,
            cells: 100_000,
            test_cells: 10_000,
            rank: 4,
            noise: 0.2,
            seed: 1,
        }
    }
}

impl fmt::Display for SyntheticConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, columns, rank, noise, seed, .. } = self;
        write!(f, "generated {rows} x {columns} matrix of rank {rank}, noise {noise} (seed {seed})")
    }
}

/// A generated matrix.
#[derive(Clone)]
pub(crate) struct Synthetic {
    config: SyntheticConfig,
    rows: Skew,
    columns: Skew,
    shuffle: Shuffle,
    /// Factors of all columns, `[columns x rank]`.
    column_factors: Arc<Vec<f32>>,
}

impl PartialEq for Synthetic {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
    }
}

impl Synthetic {
    pub(crate) fn new(config: SyntheticConfig) -> Result<Self, ConfigError> {
        let SyntheticConfig { rows, columns, cells, test_cells, rank, noise, seed } = config;
        whole("rank", rank as u64, 1, RANK_MAX)?;
        whole("rows", rows.into(), 1, u32::MAX.into())?;
        whole("columns", columns.into(), 1, FACTORS_MAX / rank as u64)?;
        let cells_max = (u64::from(rows) * u64::from(columns) / DENSITY).max(1);
        whole("cells", cells, 1, cells_max)?;
        whole("test_cells", test_cells.into(), 0, TEST_CELLS_MAX)?;
        not_negative("noise", noise)?;
        let share = |len: u32| f64::from(len) / 2.0 / cells as f64;
        let mut column_factors = vec![0.0; columns as usize * rank];
        for (column, factors) in (0..).zip(column_factors.chunks_exact_mut(rank)) {
            fill_factors(&mut random(seed, COLUMN_STREAM, column), factors);
        }
        Ok(Self {
            config,
            rows: Skew::flattened(EXPONENT, rows, share(columns)),
            columns: Skew::flattened(EXPONENT, columns, share(rows)),
            shuffle: Shuffle::new(rows, seed),
            column_factors: Arc::new(column_factors),
        })
    }

    /// Returns the number of training cells in these rows.
    pub(crate) fn cells(&self, rows: Range<u32>) -> u64 {
        if rows == (0..self.config.rows) {
            return self.config.cells;
        }
        rows.map(|row| self.cells_of_row(row)).sum()
    }

    /// Passes the training cells of these rows, row by row, ascending.
    pub(crate) fn for_each(&self, rows: Range<u32>, each: &mut dyn FnMut(Cell)) {
        let mut factors = vec![0.0; self.config.rank];
        for row in rows {
            let cells = self.cells_of_row(row);
            if cells == 0 {
                continue;
            }
            fill_factors(&mut random(self.config.seed, ROW_STREAM, row), &mut factors);
            let mut random = random(self.config.seed, CELL_STREAM, row);
            self.for_each_column(cells, &mut random, |column, random| {
                let value = self.product(&factors, column) + self.noise(random);
                each(Cell { row, column, value });
            });
        }
    }

    /// Returns the cells to predict.
    pub(crate) fn test(&self) -> Vec<Cell> {
        self.draw(TEST_STREAM, self.config.test_cells)
    }

    /// So many other cells, drawn as those to predict, to select on.
    pub(crate) fn valid(&self, cells: u32) -> Vec<Cell> {
        self.draw(VALID_STREAM, cells)
    }

    /// Returns the standard deviation of a cell.
    pub(crate) fn deviation(&self) -> f64 {
        (1.0 + f64::from(self.config.noise).powi(2)).sqrt()
    }

    fn draw(&self, stream: u64, cells: u32) -> Vec<Cell> {
        let mut random = random(self.config.seed, stream, 0);
        let mut factors = vec![0.0; self.config.rank];
        let mut draw = || {
            let row = self.shuffle.of_rank(self.rows.rank(random.random()));
            let column = self.columns.rank(random.random());
            self.fill_row_factors(row, &mut factors);
            let value = self.product(&factors, column) + self.noise(&mut random);
            Cell { row, column, value }
        };
        (0..cells).map(|_| draw()).collect()
    }

    /// Returns the RMSE of the true factors; 0 if there is no cell.
    pub(crate) fn rmse(&self, cells: &[Cell]) -> f64 {
        let mut factors = vec![0.0; self.config.rank];
        let mut square = |cell: &Cell| {
            self.fill_row_factors(cell.row, &mut factors);
            (f64::from(cell.value) - f64::from(self.product(&factors, cell.column))).powi(2)
        };
        (cells.iter().map(&mut square).sum::<f64>() / cells.len().max(1) as f64).sqrt()
    }

    fn fill_row_factors(&self, row: u32, factors: &mut [f32]) {
        fill_factors(&mut random(self.config.seed, ROW_STREAM, row), factors);
    }

    fn cells_of_row(&self, row: u32) -> u64 {
        self.rows.count(self.shuffle.rank_of(row), self.config.cells)
    }

    /// Passes `cells` different columns, ascending, with the random numbers of the row.
    fn for_each_column(
        &self,
        cells: u64,
        random: &mut Xoshiro256PlusPlus,
        mut each: impl FnMut(u32, &mut Xoshiro256PlusPlus),
    ) {
        let columns = u64::from(self.config.columns);
        // The columns that are due for certain; the others share what is left.
        let (mut certain, mut before) = (0, 0.0);
        while certain < cells && certain < columns {
            let behind = self.columns.cumulative(certain + 1);
            if (cells - certain) as f64 * (behind - before) < 1.0 - before {
                break;
            }
            each(certain as u32, random);
            (certain, before) = (certain + 1, behind);
        }
        let strata = cells - certain;
        let (width, mut next) = ((1.0 - before) / strata as f64, certain);
        for stratum in 0..strata {
            // A column may reach into two strata; the second leaves it to the first.
            let mut draw = || before + (stratum as f64 + random.random::<f64>()) * width;
            let drawn = (0..DRAWS)
                .map(|_| u64::from(self.columns.rank(draw())))
                .find(|column| *column >= next);
            // Rounding must not leave too few columns for the strata to come.
            let column = drawn.unwrap_or(next).min(columns - (strata - stratum));
            each(column as u32, random);
            next = column + 1;
        }
    }

    fn product(&self, row: &[f32], column: u32) -> f32 {
        let rank = self.config.rank;
        let column = &self.column_factors[column as usize * rank..][..rank];
        row.iter().zip(column).map(|(a, b)| a * b).sum()
    }

    /// Returns a sum of four uniform numbers with the deviation of the noise: near enough to
    /// normal, and without a function whose last bit depends on the machine.
    fn noise(&self, random: &mut Xoshiro256PlusPlus) -> f32 {
        let sum: f32 = (0..4).map(|_| random.random::<f32>() - 0.5).sum();
        self.config.noise * 3f32.sqrt() * sum
    }
}

/// Uniform factors with mean 0; the product of two vectors of them has variance 1.
fn fill_factors(random: &mut Xoshiro256PlusPlus, factors: &mut [f32]) {
    let bound = 3f32.sqrt() / (factors.len() as f32).sqrt().sqrt();
    factors.fill_with(|| bound * (2.0 * random.random::<f32>() - 1.0));
}

/// Returns the random numbers of a row or column, for one purpose.
fn random(seed: u64, stream: u64, index: u32) -> Xoshiro256PlusPlus {
    // Spread by a multiplication; the generator mixes its seed itself.
    let place =
        (stream << 32 | u64::from(index)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Xoshiro256PlusPlus::seed_from_u64(seed ^ place)
}

/// Ranks `0..len` with shares that fall as a power: rank `r` has the integral of `(x +
/// flat)^-exponent` from `r` to `r + 1`, so that cumulative shares and their inverse are closed
/// forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skew {
    len: u32,
    /// The exponent less 1.
    power: f64,
    flat: f64,
    first: f64,
    span: f64,
}

impl Skew {
    /// Returns the least flattened shares that are all at most `share_max`, which has to be above
    /// `1 / len`; `exponent` has to be above 1.
    pub(crate) fn flattened(exponent: f64, len: u32, share_max: f64) -> Self {
        let mut flat = 1.0;
        loop {
            let skew = Self::new(exponent, len, flat);
            // An end for shares that are equal up to rounding.
            if skew.cumulative(1) <= share_max || flat > 1e6 * f64::from(len) {
                return skew;
            }
            flat *= 1.5;
        }
    }

    fn new(exponent: f64, len: u32, flat: f64) -> Self {
        let power = exponent - 1.0;
        let first = flat.powf(-power);
        Self { len, power, flat, first, span: first - (f64::from(len) + flat).powf(-power) }
    }

    /// Returns the share of the ranks below `rank`.
    pub(crate) fn cumulative(&self, rank: u64) -> f64 {
        (self.first - (rank as f64 + self.flat).powf(-self.power)) / self.span
    }

    /// Returns the rank at which the cumulative share reaches `share` in 0..1.
    pub(crate) fn rank(&self, share: f64) -> u32 {
        let position = (self.first - share * self.span).powf(-1.0 / self.power) - self.flat;
        (position as u32).min(self.len - 1)
    }

    /// Returns the share of `total` that falls on a rank; all ranks together have exactly `total`.
    pub(crate) fn count(&self, rank: u32, total: u64) -> u64 {
        let below = |rank: u32| match rank {
            0 => 0,
            rank if rank == self.len => total,
            rank => ((self.cumulative(u64::from(rank)) * total as f64).round() as u64).min(total),
        };
        below(rank + 1).saturating_sub(below(rank))
    }
}

/// A permutation of `0..len`, so that ranks are spread over the rows: multiplication by a number
/// without common divisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    len: u64,
    factor: u64,
    inverse: u64,
    offset: u64,
}

impl Shuffle {
    pub(crate) fn new(len: u32, seed: u64) -> Self {
        let len = u64::from(len);
        // Far from multiples of it, neighbours get far apart.
        let mut factor = ((len as f64 * 0.618) as u64).max(1);
        while divisor(factor, len) != 1 {
            factor += 1;
        }
        let offset = Xoshiro256PlusPlus::seed_from_u64(seed).random_range(0..len);
        Self { len, factor, inverse: inverse(factor, len), offset }
    }

    /// Returns the row of a rank.
    pub(crate) fn of_rank(self, rank: u32) -> u32 {
        ((u64::from(rank) * self.factor + self.offset) % self.len) as u32
    }

    /// Returns the rank of a row.
    pub(crate) fn rank_of(self, row: u32) -> u32 {
        let moved = (u64::from(row) + self.len - self.offset) % self.len;
        (moved * self.inverse % self.len) as u32
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Returns the number whose product with `factor` leaves 1 modulo `len`, by Euclid's algorithm.
fn inverse(factor: u64, len: u64) -> u64 {
    let (mut rest, mut next_rest) = (len as i128, factor as i128 % len as i128);
    let (mut times, mut next_times) = (0, 1);
    while next_rest != 0 {
        let quotient = rest / next_rest;
        (rest, next_rest) = (next_rest, rest - quotient * next_rest);
        (times, next_times) = (next_times, times - quotient * next_times);
    }
    times.rem_euclid(len as i128) as u64
}

/// Exponent with which shares fall with the rank (AdaPM App. C).
const EXPONENT: f64 = 1.1;
/// One in so many places can be a training cell.
const DENSITY: u64 = 4;
const RANK_MAX: u64 = 1 << 10;
/// Factors of all columns, which are in memory.
const FACTORS_MAX: u64 = 1 << 30;
/// Cells to predict, which are in memory.
const TEST_CELLS_MAX: u64 = 1 << 28;
/// Draws in a stratum before the next column is taken.
const DRAWS: u32 = 8;
const ROW_STREAM: u64 = 1;
const COLUMN_STREAM: u64 = 2;
const CELL_STREAM: u64 = 3;
const TEST_STREAM: u64 = 4;
const VALID_STREAM: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn synthetic(rows: u32, columns: u32, cells: u64) -> Synthetic {
        Synthetic::new(SyntheticConfig { rows, columns, cells, ..SyntheticConfig::default() })
            .expect("valid")
    }

    fn cells(synthetic: &Synthetic, rows: Range<u32>) -> Vec<Cell> {
        let mut cells = Vec::new();
        synthetic.for_each(rows, &mut |cell| cells.push(cell));
        cells
    }

    #[test]
    fn a_part_is_what_the_whole_has_there() {
        let synthetic = synthetic(300, 200, 9_000);
        let whole = cells(&synthetic, 0..300);
        for cuts in [vec![0, 300], vec![0, 1, 150, 300], vec![0, 40, 80, 299, 300]] {
            let parts: Vec<Cell> =
                cuts.windows(2).flat_map(|cut| cells(&synthetic, cut[0]..cut[1])).collect();
            assert_eq!(parts, whole);
            let counts: u64 = cuts.windows(2).map(|cut| synthetic.cells(cut[0]..cut[1])).sum();
            assert_eq!(counts, 9_000);
        }
    }

    #[test]
    fn every_matrix_has_exactly_its_cells_each_once_and_in_it() {
        for (rows, columns, count) in [
            (1, 4, 1),
            (7, 5, 8),
            (300, 200, 15_000),
            (50, 4_000, 50_000),
            (4_000, 50, 50_000),
            (900, 900, 90),
        ] {
            let cells = cells(&synthetic(rows, columns, count), 0..rows);
            let mut places: Vec<(u32, u32)> =
                cells.iter().map(|cell| (cell.row, cell.column)).collect();
            assert!(places.is_sorted_by_key(|(row, _)| row), "row by row");
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len() as u64, count, "{rows} x {columns}");
            assert!(places.iter().all(|(row, column)| *row < rows && *column < columns));
        }
    }

    #[test]
    fn rows_and_columns_are_skewed_and_the_best_rmse_is_the_noise() {
        let synthetic = synthetic(2_000, 1_000, 100_000);
        let cells = cells(&synthetic, 0..2_000);
        let mut counts = [vec![0_u32; 2_000], vec![0; 1_000]];
        for cell in &cells {
            counts[0][cell.row as usize] += 1;
            counts[1][cell.column as usize] += 1;
        }
        for (counts, mean) in counts.iter_mut().zip([50, 100]) {
            counts.sort_unstable();
            let (median, most) = (counts[counts.len() / 2], counts[counts.len() - 1]);
            assert!(3 * median < 2 * mean && most > 6 * mean, "{median} {mean} {most}");
        }
        let test = synthetic.test();
        assert_eq!(test.len(), 10_000);
        for cells in [&cells, &test] {
            let rmse = synthetic.rmse(cells);
            assert!((rmse - 0.2).abs() < 0.005, "{rmse}");
            let square = |cell: &Cell| f64::from(cell.value).powi(2);
            let deviation = (cells.iter().map(square).sum::<f64>() / cells.len() as f64).sqrt();
            assert!((0.8..1.25).contains(&deviation), "{deviation}");
        }
    }

    #[test]
    fn seeds_make_different_matrices() {
        let of = |seed| {
            let config = SyntheticConfig {
                rows: 50,
                columns: 50,
                cells: 500,
                seed,
                ..SyntheticConfig::default()
            };
            cells(&Synthetic::new(config).expect("valid"), 0..50)
        };
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }

    #[test]
    fn a_few_rows_of_a_matrix_of_a_billion_cells_take_no_more_than_themselves() {
        let synthetic = synthetic(10_000_000, 100_000, 1_000_000_000);
        let rows = 7_000_000..7_000_050;
        let few = cells(&synthetic, rows.clone());
        assert_eq!(few.len() as u64, synthetic.cells(rows));
        assert!(few.len() > 500 && few.len() < 1_000_000, "{}", few.len());
    }

    #[test]
    fn impossible_matrices_are_refused() {
        let error = |config| {
            Synthetic::new(config).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let base = SyntheticConfig::default();
        let rows = error(SyntheticConfig { rows: 0, ..base });
        assert_eq!(rows, "rows 0: give a whole number from 1 to 4294967295");
        let columns = error(SyntheticConfig { columns: u32::MAX, rank: 1024, ..base });
        assert_eq!(columns, "columns 4294967295: give a whole number from 1 to 1048576");
        let cells = error(SyntheticConfig { cells: 500_001, ..base });
        assert_eq!(cells, "cells 500001: give a whole number from 1 to 500000");
        let rank = error(SyntheticConfig { rank: 2_000, ..base });
        assert_eq!(rank, "rank 2000: give a whole number from 1 to 1024");
        let noise = error(SyntheticConfig { noise: f32::NAN, ..base });
        assert_eq!(noise, "noise NaN: give 0 or a positive number");
    }

    #[test]
    fn ranks_and_cumulative_shares_are_inverse() {
        let skew = Skew::flattened(1.1, 10_000, 0.01);
        assert!(skew.cumulative(1) <= 0.01 && skew.cumulative(1) > 0.001);
        assert!((skew.cumulative(10_000) - 1.0).abs() < 1e-12);
        for rank in [0, 1, 17, 9_998, 9_999] {
            let middle = 0.5 * (skew.cumulative(rank) + skew.cumulative(rank + 1));
            assert_eq!(u64::from(skew.rank(middle)), rank);
        }
        assert_eq!((skew.rank(0.0), skew.rank(1.0)), (0, 9_999));
    }

    #[test]
    fn counts_fall_with_the_rank_and_add_up() {
        for (len, total) in [(1, 5), (10, 3), (1_000, 77_777)] {
            let skew = Skew::flattened(1.1, len, 2.0 / f64::from(len));
            let counts: Vec<u64> = (0..len).map(|rank| skew.count(rank, total)).collect();
            assert_eq!(counts.iter().sum::<u64>(), total);
            assert!(counts.windows(2).all(|two| two[1] <= two[0] + 1), "but for rounding");
        }
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_knows_its_inverse() {
        for len in [1, 2, 3, 10, 97, 1_000] {
            let shuffle = Shuffle::new(len, 5);
            let mut rows: Vec<u32> = (0..len).map(|rank| shuffle.of_rank(rank)).collect();
            assert!((0..len).all(|rank| shuffle.rank_of(shuffle.of_rank(rank)) == rank), "{len}");
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..len));
        }
        let large = Shuffle::new(u32::MAX, 5);
        assert_eq!(large.rank_of(large.of_rank(4_000_000_000)), 4_000_000_000);
    }
}
