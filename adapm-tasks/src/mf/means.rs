//! Shrunken means of rows and columns: the part of a prediction that needs no factors.
//!
//! The value of a cell is taken to be `mean + a_row + b_column + rest`, where the `a` and the `b` vary around 0. With the residuals
//! `r = value - mean - b_column` of rows (of columns with `a_row`), by the method of moments:
//!
//! ```text
//!   within    variance of r within rows, about their means
//!   between   variance of the a: (mean square between rows - within) / cells of a row
//!   a_row     g * sum(r) / (cells + within / between)        0 if `between` is not positive
//! ```
//!
//! Rows of few cells are drawn to 0, those of many hardly. `g` is the [gain](crate::mf::gain) of the same formula without the cell
//! itself: it is near 1, but where few cells or an outlier made `between`. Rows and columns take turns.
//!
//! Sums run in the order of cells, in f64: every node has the same bits.

use crate::mf::cell::Cell;
use crate::mf::gain::{Products, gain};

/// The mean of all cells, and what rows and columns differ from it by.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Means {
    pub(crate) mean: f64,
    /// By row; empty if no row differs.
    pub(crate) rows: Vec<f64>,
    /// By column; empty if no column differs.
    pub(crate) columns: Vec<f64>,
}

impl Means {
    /// The means of cells of a matrix of `rows` x `columns`, over which it goes 17 times. Of no cell: 0.
    pub(crate) fn of<'a>(cells: impl Iterator<Item = &'a Cell> + Clone, rows: usize, columns: usize) -> Self {
        let (mut count, mut sum) = (0.0, 0.0);
        cells.clone().for_each(|cell| (count, sum) = (count + 1.0, sum + f64::from(cell.value)));
        let mut means = Self { mean: sum / f64::max(count, 1.0), ..Self::default() };
        for _ in 0..TURNS {
            let residual = |cell: &Cell| f64::from(cell.value) - means.predict(None, Some(cell.column));
            means.rows = effects(cells.clone().map(|cell| (cell.row as usize, residual(cell))), rows);
            let residual = |cell: &Cell| f64::from(cell.value) - means.predict(Some(cell.row), None);
            means.columns =
                effects(cells.clone().map(|cell| (cell.column as usize, residual(cell))), columns);
        }
        means
    }

    /// The prediction for a row and a column; `None`: one that no training cell has, which is taken to be as the mean of all.
    pub(crate) fn predict(&self, row: Option<u32>, column: Option<u32>) -> f64 {
        self.mean + effect(&self.rows, row) + effect(&self.columns, column)
    }

    /// What is left of the value of a cell.
    pub(crate) fn residual(&self, cell: &Cell) -> f64 {
        f64::from(cell.value) - self.predict(Some(cell.row), Some(cell.column))
    }
}

/// The effect of a row or column among those of all.
fn effect(effects: &[f64], of: Option<u32>) -> f64 {
    of.and_then(|index| effects.get(index as usize)).copied().unwrap_or(0.0)
}

/// Cells of a row, or of a column.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    cells: f64,
    /// Of residuals.
    sum: f64,
}

/// The effects of `len` rows (or columns) by pairs of a row and the residual of one of its cells; none if they hardly differ.
fn effects(residuals: impl Iterator<Item = (usize, f64)> + Clone, len: usize) -> Vec<f64> {
    let (mut groups, mut squares) = (vec![Group::default(); len], 0.0);
    residuals.clone().for_each(|(row, residual)| {
        groups[row].cells += 1.0;
        groups[row].sum += residual;
        squares += residual * residual;
    });
    let Some(prior) = prior(&groups, squares) else { return Vec::new() };
    let without = |(row, residual): (usize, f64)| {
        let Group { cells, sum } = groups[row];
        let others = if cells > 1.0 { (sum - residual) / (cells - 1.0 + prior) } else { 0.0 };
        Products::of(residual, others)
    };
    let gain = gain(residuals.map(without));
    if gain == 0.0 {
        return Vec::new();
    }
    let effect =
        |group: Group| if group.cells > 0.0 { gain * group.sum / (group.cells + prior) } else { 0.0 };
    groups.into_iter().map(effect).collect()
}

/// The variance within groups over that between them; `None` if no variance between them shows. `squares` is the sum of squared
/// residuals.
fn prior(groups: &[Group], squares: f64) -> Option<f64> {
    let occupied = groups.iter().filter(|group| group.cells > 0.0);
    let (mut count, mut cells, mut sum, mut cells_squared, mut means) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for group in occupied {
        (count, cells, sum) = (count + 1.0, cells + group.cells, sum + group.sum);
        cells_squared += group.cells * group.cells;
        means += group.sum * group.sum / group.cells;
    }
    if count < 2.0 || cells <= count {
        return None;
    }
    let within = ((squares - means) / (cells - count)).max(0.0);
    let square_between = (means - sum * sum / cells) / (count - 1.0);
    let between = (square_between - within) * (count - 1.0) / (cells - cells_squared / cells);
    (between > 0.0).then(|| within / between)
}

/// Turns of rows and columns: more of them change the fourth digit of an error at most.
const TURNS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: u32, columns: u32, value: impl Fn(u32, u32) -> f32) -> Means {
        let cells: Vec<Cell> = (0..rows * columns)
            .map(|at| {
                let (row, column) = (at / columns, at % columns);
                Cell { row, column, value: value(row, column) }
            })
            .collect();
        Means::of(cells.iter(), rows as usize, columns as usize)
    }

    #[test]
    fn sums_of_a_row_and_a_column_are_found() {
        let value = |row: u32, column: u32| 1e3 + 2.0 * row as f32 - 3.0 * column as f32;
        let means = of(30, 20, value);
        for (row, column) in [(0, 0), (29, 19), (7, 11)] {
            let off = means.predict(Some(row), Some(column)) - f64::from(value(row, column));
            assert!(off.abs() < 0.05, "{row} {column}: {off}");
        }
        // An unknown column is as the mean of all columns.
        let expected = 1e3 + 2.0 * 7.0 - 3.0 * 9.5;
        assert!((means.predict(Some(7), None) - expected).abs() < 0.05);
        assert_eq!(means.predict(None, None), means.mean);
    }

    #[test]
    fn what_does_not_differ_has_no_effects() {
        let constant = of(9, 8, |_, _| 0.1);
        assert_eq!((constant.rows, constant.columns), (Vec::new(), Vec::new()));
        let checkered = of(9, 8, |row, column| if (row + column) % 2 == 0 { 1.0 } else { -1.0 });
        assert_eq!((checkered.rows, checkered.columns), (Vec::new(), Vec::new()));
        let by_column = of(9, 8, |_, column| column as f32);
        assert_eq!((by_column.rows.len(), by_column.columns.len()), (0, 8));
    }

    #[test]
    fn an_outlier_is_not_taken_for_an_effect() {
        let means =
            of(9, 8, |row, column| if (row, column) == (3, 3) { 1e6 } else { (row * column % 3) as f32 });
        assert_eq!((means.rows.len(), means.columns.len()), (0, 0));
    }

    #[test]
    fn one_cell_one_row_and_one_column_have_a_mean() {
        for (rows, columns) in [(1, 1), (1, 5), (5, 1)] {
            let means = of(rows, columns, |row, column| (row + column) as f32);
            let expected = f64::from(rows + columns - 2) / 2.0;
            assert_eq!(means, Means { mean: expected, ..Means::default() });
        }
        assert_eq!(Means::of([].iter(), 0, 0), Means::default());
    }
}
