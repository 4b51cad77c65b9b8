//! The residuals that are trained on: the training cells of ratings but those held back, less their
//! means, in units of the deviation of what is left.
//!
//! So a learning rate and a penalty mean the same for values of any scale. Generated cells exist
//! only where they are trained on. Their means are 0 by construction, and their deviation is known,
//! so that no node needs the cells of another.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::mf::cells::Cell;
use crate::mf::prediction::Means;
use crate::mf::ratings::{Held, Ratings, Train, sort_by_column};

/// The cells to train on.
#[derive(Debug)]
pub(crate) struct Residuals<'a> {
    ratings: &'a Ratings,
    /// Places of the cells held back, ascending.
    held: Vec<usize>,
    means: Means,
    /// Of what the means leave; 0 if that is less than an `f32` of the values can tell.
    deviation: f64,
    /// 1 / deviation, or 0.
    inverse: f64,
}

impl<'a> Residuals<'a> {
    /// Returns the training cells but those at the places `held`, which ascend. Goes over them 18
    /// times.
    pub(crate) fn new(ratings: &'a Ratings, held: Vec<usize>) -> Self {
        let (means, deviation) = match &ratings.train {
            Train::Synthetic(synthetic) => (Means::default(), synthetic.deviation()),
            Train::Cells(cells) => {
                let pieces = kept(cells, 0..cells.len(), &held);
                let kept = || pieces.iter().copied().flatten();
                let means = Means::of(kept(), ratings.rows(), ratings.columns());
                let (mut squares, mut largest) = (0.0, 0.0_f64);
                kept().for_each(|cell| {
                    squares += means.residual(cell).powi(2);
                    largest = largest.max(f64::from(cell.value).abs());
                });
                let deviation = (squares / (cells.len() - held.len()).max(1) as f64).sqrt();
                let is_seen = deviation > largest * f64::from(f32::EPSILON);
                (means, if is_seen { deviation } else { 0.0 })
            }
        };
        let inverse = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
        Self { ratings, held, means, deviation, inverse }
    }

    /// Returns the means that are taken off.
    pub(crate) fn means(&self) -> &Means {
        &self.means
    }

    /// Returns the deviation of what is left, which is the unit of residuals.
    pub(crate) fn deviation(&self) -> f64 {
        self.deviation
    }

    pub(crate) fn rows(&self) -> u32 {
        self.ratings.rows
    }

    pub(crate) fn columns(&self) -> u32 {
        self.ratings.columns
    }

    /// Returns true if cells are generated when they are asked for, which takes longer than to read
    /// them.
    pub(crate) fn are_generated(&self) -> bool {
        self.ratings.is_generated()
    }

    /// Returns the number of cells.
    pub(crate) fn len(&self) -> u64 {
        self.ratings.train_len() - self.held.len() as u64
    }

    /// Returns the number of cells in these rows.
    pub(crate) fn cells_in(&self, rows: Range<u32>) -> u64 {
        let all = self.ratings.cells_in(rows.clone());
        let Train::Cells(cells) = &self.ratings.train else { return all };
        all - self.held_in(&cells.places(rows)).len() as u64
    }

    /// Returns the number of cells of each row, and of each column. Goes over all of them.
    pub(crate) fn counts_by_vector(&self) -> [Vec<u32>; 2] {
        let mut counts = [vec![0; self.ratings.rows()], vec![0; self.ratings.columns()]];
        self.for_each(0..self.rows(), |cell| {
            counts[0][cell.row as usize] += 1;
            counts[1][cell.column as usize] += 1;
        });
        counts
    }

    /// Passes the cells of these rows, row by row, ascending, with residuals for values.
    pub(crate) fn for_each(&self, rows: Range<u32>, mut each: impl FnMut(Cell)) {
        let Self { means, inverse, .. } = self;
        match &self.ratings.train {
            Train::Synthetic(synthetic) => {
                let inverse = *inverse as f32;
                synthetic
                    .for_each(rows, &mut |cell| each(Cell { value: cell.value * inverse, ..cell }));
            }
            Train::Cells(cells) => {
                let places = cells.places(rows);
                for cells in kept(cells, places.clone(), self.held_in(&places)) {
                    for cell in cells {
                        each(Cell { value: (means.residual(cell) * inverse) as f32, ..*cell });
                    }
                }
            }
        }
    }

    /// Places of the cells held back, ascending.
    pub(crate) fn held_places(&self) -> &[usize] {
        &self.held
    }

    /// Returns the cells held back, as they are in the ratings.
    pub(crate) fn held(&self) -> Held {
        let Train::Cells(cells) = &self.ratings.train else { return Held::default() };
        let mut held: Vec<Cell> = self.held.iter().map(|place| cells[*place]).collect();
        sort_by_column(&mut held);
        Held { cells: held, unseen: Vec::new() }
    }

    /// Places of cells held back among these.
    fn held_in(&self, places: &Range<usize>) -> &[usize] {
        let bound = |place: usize| self.held.partition_point(|other| *other < place);
        &self.held[bound(places.start)..bound(places.end)]
    }
}

/// Returns the cells at `places` but those `held`, which ascend and are among them, in pieces.
fn kept<'a>(cells: &'a [Cell], places: Range<usize>, held: &[usize]) -> Vec<&'a [Cell]> {
    let starts = [places.start].into_iter().chain(held.iter().map(|place| place + 1));
    let ends = held.iter().copied().chain([places.end]);
    starts
        .zip(ends)
        .filter(|(start, end)| start < end)
        .map(|(start, end)| &cells[start..end])
        .collect()
}

/// Draws cells to hold back: so many that no row and no column loses its last one, by `seed`,
/// ascending; fewer if there are no more.
pub(crate) fn draw(ratings: &Ratings, count: usize, seed: u64) -> Vec<usize> {
    let Train::Cells(cells) = &ratings.train else { return Vec::new() };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ DRAW_STREAM);
    let mut seen: HashSet<usize, FixedState> = HashSet::default();
    // Where most rows have one cell, most that are drawn have to stay.
    let drawn = (0..count.min(cells.len()).saturating_mul(DRAWS))
        .map(|_| random.random_range(0..cells.len()));
    let places = drawn.filter(|place| seen.insert(*place));
    spare(cells, places, count, ratings.counts_by_vector())
}

/// Divides the training cells into `parts` parts at random, each to be held back in turn,
/// ascending: but for the cells without which a row or column would have none.
pub(crate) fn divide(ratings: &Ratings, parts: usize, seed: u64) -> Vec<Vec<usize>> {
    let Train::Cells(cells) = &ratings.train else { return Vec::new() };
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed ^ DRAW_STREAM));
    let counts = ratings.counts_by_vector();
    let part = |part| {
        let places = order.iter().copied().skip(part).step_by(parts);
        spare(cells, places, usize::MAX, counts.clone())
    };
    (0..parts).map(part).collect()
}

/// Returns the first `count` of these places that no row and no column needs, ascending, by the
/// number of cells of each.
fn spare(
    cells: &[Cell],
    places: impl Iterator<Item = usize>,
    count: usize,
    [mut rows, mut columns]: [Vec<u32>; 2],
) -> Vec<usize> {
    let is_spare = |place: &usize| {
        let (row, column) =
            (&mut rows[cells[*place].row as usize], &mut columns[cells[*place].column as usize]);
        let is_spare = *row > 1 && *column > 1;
        if is_spare {
            (*row, *column) = (*row - 1, *column - 1);
        }
        is_spare
    };
    let mut spare: Vec<usize> = places.filter(is_spare).take(count).collect();
    spare.sort_unstable();
    spare
}

/// Places that are drawn for each cell to be held back, at most.
const DRAWS: usize = 8;
/// Apart from what else is drawn by a seed.
const DRAW_STREAM: u64 = 0x6865_6c64;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::mf::cells::tests::cells_of;
    use crate::mf::synthetic::SyntheticConfig;

    /// Ratings of cells by row and column, in this order.
    fn ratings_of(cells: impl Iterator<Item = (u32, u32, f32)>) -> Ratings {
        let cells: Vec<Cell> =
            cells.map(|(row, column, value)| Cell { row, column, value }).collect();
        let synthetic =
            SyntheticConfig { rows: 40, columns: 20, cells: 1, ..SyntheticConfig::default() };
        let train = Train::Cells(cells_of(cells, 40));
        Ratings { train, ..Ratings::synthetic(synthetic).expect("valid") }
    }

    /// 40 rows of up to 20 cells, row 7 of one.
    pub(in crate::mf) fn ratings() -> Ratings {
        let cells = (0..800).filter(|at| at % 3 != 0 && (at / 20 != 7 || at % 20 == 5));
        ratings_of(cells.map(|at| (at / 20, at % 20, (at % 11) as f32 + 1e3)))
    }

    #[test]
    fn cells_held_back_are_those_that_are_not_passed() {
        let ratings = ratings();
        let held = draw(&ratings, 100, 1);
        assert_eq!((held.len(), held.is_sorted()), (100, true));
        assert_ne!(held, draw(&ratings, 100, 2));
        let residuals = Residuals::new(&ratings, held);
        let mut passed = Vec::new();
        residuals.for_each(0..40, |cell| passed.push((cell.row, cell.column)));
        assert_eq!(passed.len() as u64, residuals.len());
        assert!(passed.is_sorted());
        let parts = [0..7, 7..8, 8..40].map(|rows| residuals.cells_in(rows));
        assert_eq!(parts.iter().sum::<u64>(), residuals.len());
        passed.extend(residuals.held().cells.iter().map(|cell| (cell.row, cell.column)));
        passed.sort_unstable();
        let mut all = Vec::new();
        ratings.for_each(0..40, |cell| all.push((cell.row, cell.column)));
        assert_eq!(passed, all);
    }

    #[test]
    fn no_row_and_no_column_loses_its_last_cell() {
        let ratings = ratings();
        let held = draw(&ratings, usize::MAX, 1);
        assert!(held.len() > 300, "{}", held.len());
        let counts = Residuals::new(&ratings, held).counts_by_vector();
        assert!(counts.iter().flatten().all(|count| *count > 0), "{counts:?}");
        let parts = divide(&ratings, 5, 1);
        let mut all = parts.concat();
        assert!(parts.iter().all(|part| part.is_sorted() && part.len() > 90));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), parts.iter().map(Vec::len).sum::<usize>(), "no cell is in two parts");
    }

    #[test]
    fn residuals_have_mean_0_and_deviation_1() {
        for ratings in [ratings(), Ratings::synthetic(SyntheticConfig::default()).expect("valid")] {
            let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
            Residuals::new(&ratings, Vec::new()).for_each(0..ratings.rows, |cell| {
                let value = f64::from(cell.value);
                (count, sum, squares) = (count + 1.0, sum + value, squares + value * value);
            });
            assert!((sum / count).abs() < 0.05, "{}", sum / count);
            assert!((squares / count - 1.0).abs() < 0.1, "{}", squares / count);
        }
    }

    #[test]
    fn values_that_are_all_equal_leave_nothing() {
        for value in [0.0, 0.1, 7.0, -3e6] {
            let ratings = ratings_of((0..50).map(|at| (at / 7, at % 7, value)));
            let residuals = Residuals::new(&ratings, vec![3, 9]);
            assert_eq!(residuals.deviation(), 0.0, "{value}");
            residuals.for_each(0..8, |cell| assert_eq!(cell.value, 0.0));
        }
    }
}
