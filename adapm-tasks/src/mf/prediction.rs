//! The data points of a split, predicted by the means of row and column and a share of the product
//! of their factors, and how far predictions are off.
//!
//! # Means
//! Shrunken means of rows and columns are the part of a prediction that needs no factors.
//!
//! The value of a cell is taken to be `mean + a_row + b_column + rest`, where the `a` and the `b`
//! vary around 0. With the residuals `r = value - mean - b_column` of rows (of columns with
//! `a_row`), by the method of moments:
//!
//! ```text
//!   within    variance of r within rows, about their means
//!   between   variance of the a: (mean square between rows - within) / cells of a row
//!   a_row     g * sum(r) / (cells + within / between)        0 if `between` is not positive
//! ```
//!
//! Rows of few cells are drawn to 0, those of many hardly. `g` is the [gain] of the same formula
//! without the cell itself: it is near 1, but where few cells or an outlier made `between`. Rows
//! and columns take turns.
//!
//! Sums run in the order of cells, in f64: every node has the same bits.
//!
//! # Gain
//! The gain is the share of predictions that is worth adding, measured on cells that they were not
//! made from.
//!
//! For residuals `r` and predictions `p` of them, the factor with the least squared error is `g =
//! sum(r p) / sum(p p)`. Its standard error is `sqrt(sum((p (r - g p))^2)) / sum(p p)`, which holds
//! whatever the deviation of each residual (White 1980). What is added is `g` less one standard
//! error, between 0 and 1 times the predictions: nothing where it might as well be noise, nearly
//! all of it where there are many cells.

use serde::{Deserialize, Serialize};
use std::iter;
use std::ops::Range;

use adapm_core::Key;

use crate::matrix::dot;
use crate::mf::cells::Cell;
use crate::mf::ratings::Held;
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Evaluation;

/// Predicts a split of ratings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prediction<'a> {
    pub(crate) split: Split,
    pub(crate) held: &'a Held,
    pub(crate) means: &'a Means,
    pub(crate) scale: Scale,
    /// Number of rows: the key of the first column.
    pub(crate) rows: u32,
    /// Number of factors.
    pub(crate) dim: usize,
    /// Floats of a value: the factors come first.
    pub(crate) value_len: usize,
    /// Bounds of what is predicted.
    pub(crate) range: Option<(f32, f32)>,
}

/// The factor on products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// It is known.
    Known(f64),
    /// The deviation of residuals, times the share that these data points show to be worth adding.
    Judged(f64),
}

/// A worker's memory for predictions.
#[derive(Debug, Default)]
pub(crate) struct Predictor {
    keys: Vec<Key>,
    values: Vec<f32>,
}

/// Returns the figures of predictions of `held` by means, and by `factor` times the product of each
/// of its cells that were seen; without products by the means alone.
pub(crate) fn figures(
    held: &Held,
    means: &Means,
    factor: f64,
    products: &[f32],
    range: Option<(f32, f32)>,
) -> RatingMetrics {
    let products =
        products.iter().map(|product| factor * f64::from(*product)).chain(iter::repeat(0.0));
    let clip = |value: f64| {
        range.map_or(value, |(least, largest)| value.clamp(f64::from(least), f64::from(largest)))
    };
    let seen = held.cells.iter().zip(products).map(|(cell, product)| {
        f64::from(cell.value) - clip(means.predict(Some(cell.row), Some(cell.column)) + product)
    });
    let unseen = held
        .unseen
        .iter()
        .map(|point| f64::from(point.value) - clip(means.predict(point.row, point.column)));
    RatingMetrics { unseen: held.unseen.len() as u64, ..RatingMetrics::of(seen.chain(unseen)) }
}

impl Evaluation for Prediction<'_> {
    /// The product for a cell whose row and column were seen.
    type Answer = f32;
    type Figures = RatingMetrics;
    type Evaluator = Predictor;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.held.cells.len()
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn evaluator(&self) -> Predictor {
        Predictor::default()
    }

    fn evaluate<P: Parameters>(
        &self,
        predictor: &mut Predictor,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<f32>,
    ) -> Result<(), P::Error> {
        let cells = &self.held.cells[items];
        let Predictor { keys, values } = predictor;
        keys.clear();
        keys.extend(cells.iter().map(|cell| Key(u64::from(cell.row))));
        // Cells are in the order of columns: one pull of a column serves all its cells.
        let columns = cells.chunk_by(|a, b| a.column == b.column);
        keys.extend(
            columns.clone().map(|cells| Key(u64::from(self.rows) + u64::from(cells[0].column))),
        );
        values.resize(keys.len() * self.value_len, 0.0);
        parameters.pull(keys, values)?;
        let (rows, column_values) = values.split_at(cells.len() * self.value_len);
        let mut rows = rows.chunks_exact(self.value_len);
        for (cells, column) in columns.zip(column_values.chunks_exact(self.value_len)) {
            for row in rows.by_ref().take(cells.len()) {
                answers.push(dot(&row[..self.dim], &column[..self.dim]));
            }
        }
        Ok(())
    }

    fn figures(&self, answers: &[f32]) -> RatingMetrics {
        let Self { held, means, range, .. } = *self;
        match self.scale {
            Scale::Known(factor) => figures(held, means, factor, answers, range),
            Scale::Judged(deviation) => {
                let of_cell = |(cell, product): (&Cell, &f32)| {
                    Products::of(means.residual(cell), deviation * f64::from(*product))
                };
                let gain = gain(held.cells.iter().zip(answers).map(of_cell));
                RatingMetrics { gain, ..figures(held, means, gain * deviation, answers, range) }
            }
        }
    }
}

/// Figures over data points that were predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RatingMetrics {
    /// Data points.
    pub predicted: u64,
    /// Those of them with a row or column that train does not know: what is known of the other one
    /// was predicted, or the training mean.
    pub unseen: u64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// The share of the products of factors that was added to the means, 0 to 1: by these data
    /// points if they are selected on.
    pub gain: f64,
}

impl RatingMetrics {
    /// Returns the figures of errors, all of data points that were seen and with all of the
    /// products; 0 if there is none. Sums run in order, in f64.
    pub(crate) fn of(errors: impl Iterator<Item = f64>) -> Self {
        let (mut predicted, mut squares, mut absolute) = (0_u64, 0.0, 0.0);
        for error in errors {
            (predicted, squares, absolute) =
                (predicted + 1, squares + error * error, absolute + error.abs());
        }
        let over = 1.0 / predicted.max(1) as f64;
        Self {
            predicted,
            unseen: 0,
            rmse: (squares * over).sqrt(),
            mae: absolute * over,
            gain: 1.0,
        }
    }
}

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
    /// Returns the means of cells of a matrix of `rows` x `columns`, over which it goes 17 times.
    /// Of no cell: 0.
    pub(crate) fn of<'a>(
        cells: impl Iterator<Item = &'a Cell> + Clone,
        rows: usize,
        columns: usize,
    ) -> Self {
        let (mut count, mut sum) = (0.0, 0.0);
        cells.clone().for_each(|cell| (count, sum) = (count + 1.0, sum + f64::from(cell.value)));
        let mut means = Self { mean: sum / f64::max(count, 1.0), ..Self::default() };
        for _ in 0..TURNS {
            let residual =
                |cell: &Cell| f64::from(cell.value) - means.predict(None, Some(cell.column));
            means.rows =
                effects(cells.clone().map(|cell| (cell.row as usize, residual(cell))), rows);
            let residual =
                |cell: &Cell| f64::from(cell.value) - means.predict(Some(cell.row), None);
            means.columns =
                effects(cells.clone().map(|cell| (cell.column as usize, residual(cell))), columns);
        }
        means
    }

    /// Returns the prediction for a row and a column; `None`: one that no training cell has, which
    /// is taken to be as the mean of all.
    pub(crate) fn predict(&self, row: Option<u32>, column: Option<u32>) -> f64 {
        self.mean + effect(&self.rows, row) + effect(&self.columns, column)
    }

    /// Returns the rest of a cell's value without the means.
    pub(crate) fn residual(&self, cell: &Cell) -> f64 {
        f64::from(cell.value) - self.predict(Some(cell.row), Some(cell.column))
    }
}

/// Returns the effect of a row or column among those of all.
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

/// Returns the effects of `len` rows (or columns) by pairs of a row and the residual of one of its
/// cells; none if they hardly differ.
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
    let effect = |group: Group| {
        if group.cells > 0.0 { gain * group.sum / (group.cells + prior) } else { 0.0 }
    };
    groups.into_iter().map(effect).collect()
}

/// Returns the variance within groups over that between them; `None` if no variance between them
/// shows. `squares` is the sum of squared residuals.
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

/// Sums over the predictions of one cell, which may have been left out several times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Products {
    /// Of residual times prediction.
    pub(crate) crossed: f64,
    /// Of squared predictions.
    pub(crate) squared: f64,
}

impl Products {
    /// Adds a prediction of a residual.
    pub(crate) fn add(&mut self, residual: f64, prediction: f64) {
        self.crossed += residual * prediction;
        self.squared += prediction * prediction;
    }

    /// Returns one prediction of a residual.
    pub(crate) fn of(residual: f64, prediction: f64) -> Self {
        let mut products = Self::default();
        products.add(residual, prediction);
        products
    }
}

/// Returns the factor for predictions, 0 to 1, by the sums of each cell; 0 if there are fewer than
/// two cells.
pub(crate) fn gain(cells: impl Iterator<Item = Products>) -> f64 {
    let (mut count, mut all, mut squares) = (0.0, Products::default(), [0.0; 3]);
    cells.for_each(|Products { crossed, squared }| {
        count += 1.0;
        all = Products { crossed: all.crossed + crossed, squared: all.squared + squared };
        squares[0] += crossed * crossed;
        squares[1] += crossed * squared;
        squares[2] += squared * squared;
    });
    let best = all.crossed / all.squared;
    // The sum of (crossed - best * squared)^2.
    let square = (squares[0] - 2.0 * best * squares[1] + best * best * squares[2]).max(0.0);
    let gain = best - (square * count / (count - 1.0)).sqrt() / all.squared;
    // It is no number if there is one cell, or no prediction but 0.
    if best.is_finite() && gain > 0.0 { gain.min(1.0) } else { 0.0 }
}

/// Data points that are predicted at once.
const BATCH: usize = 1024;

/// Turns of rows and columns: more of them change the fourth digit of an error at most.
const TURNS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_count_by_their_squares_and_by_their_size() {
        let metrics = RatingMetrics::of([1.0, 0.0, -3.0].into_iter());
        assert_eq!((metrics.predicted, metrics.unseen), (3, 0));
        assert!(
            (metrics.rmse.powi(2) - 10.0 / 3.0).abs() < 1e-12
                && (metrics.mae - 4.0 / 3.0).abs() < 1e-12
        );
        assert_eq!(
            RatingMetrics::of([].into_iter()),
            RatingMetrics { gain: 1.0, ..RatingMetrics::default() }
        );
    }

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
        let means = of(
            9,
            8,
            |row, column| if (row, column) == (3, 3) { 1e6 } else { (row * column % 3) as f32 },
        );
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

    fn gain_of(pairs: &[(f64, f64)]) -> f64 {
        gain(pairs.iter().map(|(residual, prediction)| Products::of(*residual, *prediction)))
    }

    #[test]
    fn exact_predictions_count_in_full_and_useless_ones_not_at_all() {
        assert_eq!(gain_of(&[(1.0, 1.0), (-2.0, -2.0), (0.5, 0.5)]), 1.0);
        assert_eq!(gain_of(&[(1.0, 2.0), (-2.0, -4.0), (0.5, 1.0)]), 0.5);
        assert_eq!(gain_of(&[(1.0, 0.25), (-2.0, -0.5)]), 1.0, "never more than in full");
        for useless in
            [&[][..], &[(1.0, 1.0)], &[(1.0, 0.0), (2.0, 0.0)], &[(1.0, -1.0), (2.0, -2.0)]]
        {
            assert_eq!(gain_of(useless), 0.0, "{useless:?}");
        }
        assert_eq!(gain_of(&[(f64::NAN, 1.0), (1.0, 1.0)]), 0.0);
        assert_eq!(gain_of(&[(f64::INFINITY, 1.0), (1.0, 1.0)]), 0.0);
    }

    #[test]
    fn one_standard_error_is_taken_off() {
        // Four residuals 1 +- 0.5 of predictions 1: g = 1, standard error sqrt(4 / 3) * sqrt(4 *
        // 0.25) / 4.
        let expected = 1.0 - (4.0_f64 / 3.0).sqrt() / 4.0;
        assert!(
            (gain_of(&[(1.5, 1.0), (0.5, 1.0), (1.5, 1.0), (0.5, 1.0)]) - expected).abs() < 1e-12
        );
    }
}
