//! The inner loop: stochastic gradient descent on cells of one column, on plain slices that the
//! compiler vectorises.
//!
//! For a cell `x` with factors `w` of its row and `h` of its column, `e = x - w * h`:
//!
//! ```text
//!   loss    e^2 + p |w|^2 + q |h|^2          p, q: penalties
//!   dw      2 (p w - e h)                    dh   2 (q h - e w)
//!   AdaGrad acc += |g|^2 / dim, step -rate * g / sqrt(acc)      (one acc a vector)
//!   SGD     step -rate * g
//! ```
//!
//! `|g|^2` follows from `|w|^2`, `|h|^2` and `w * h`, so a cell goes over its elements twice: for
//! these products, and for the step.
//!
//! Cells are taken one after the other, each with row and column as those before left them.

use crate::matrix::total;
use crate::mf::config::{Optimizer, TrainConfig};
use crate::mf::tiles::Visit;
use crate::simd::{self, Kernel};

/// The rule of steps on cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) optimizer: Optimizer,
    pub(crate) learning_rate: f32,
    /// Number of factors.
    pub(crate) dim: usize,
}

/// Cells with what they need of their rows and columns.
pub(crate) struct Cells<'a> {
    pub(crate) visits: &'a [Visit],
    pub(crate) rows: Vectors<'a>,
    pub(crate) columns: Vectors<'a>,
}

/// Rows or columns, which follow their updates.
pub(crate) struct Vectors<'a> {
    /// `dim` of each.
    pub(crate) factors: &'a mut [f32],
    /// AdaGrad's accumulator of each; none if the optimizer has none.
    pub(crate) squares: &'a mut [f32],
    /// Weight of the squared norm of each, for each of its cells.
    pub(crate) penalties: &'a [f32],
}

impl Rule {
    /// Returns the rule of the first steps.
    pub(crate) fn of(config: &TrainConfig) -> Self {
        Self { optimizer: config.optimizer, learning_rate: config.rate(), dim: config.dim }
    }

    /// Floats of a value: factors, and what the optimizer keeps.
    pub(crate) fn value_len(self) -> usize {
        self.dim + self.state_len()
    }

    /// Floats that the optimizer keeps of a vector.
    pub(crate) fn state_len(self) -> usize {
        match self.optimizer {
            Optimizer::AdaGrad => 1,
            Optimizer::Sgd => 0,
        }
    }

    /// Steps on every cell. Gives the sum of the losses, each before its step. What is too large
    /// for the arithmetic is no finite number in the loss or in a value afterwards.
    pub(crate) fn train(self, cells: Cells<'_>) -> f64 {
        simd::run(Training { rule: self, cells })
    }
}

/// The loop of [`Rule::train`].
struct Training<'a> {
    rule: Rule,
    cells: Cells<'a>,
}

impl Kernel for Training<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<const WIDE: bool>(self) -> f64 {
        train_lanes(self.rule, self.cells)
    }
}

#[inline(always)]
fn train_lanes(rule: Rule, cells: Cells<'_>) -> f64 {
    match (rule.optimizer, rule.dim) {
        // The usual rank, for which the compiler knows how often each loop goes round.
        (Optimizer::AdaGrad, 32) => train_by::<true>(rule, 32, cells),
        (Optimizer::AdaGrad, dim) => train_by::<true>(rule, dim, cells),
        (Optimizer::Sgd, dim) => train_by::<false>(rule, dim, cells),
    }
}

#[inline(always)]
fn train_by<const ADAGRAD: bool>(rule: Rule, dim: usize, cells: Cells<'_>) -> f64 {
    let Cells { visits, rows, columns } = cells;
    let mut loss = 0.0;
    for visits in visits.chunks(SUMMED) {
        let mut losses = 0.0;
        for visit in visits {
            let (row, column) = (usize::from(visit.row), usize::from(visit.column));
            let w = &mut rows.factors[row * dim..][..dim];
            let h = &mut columns.factors[column * dim..][..dim];
            let products = Products::of(w, h);
            let error = visit.value - products.both;
            let (p, q) = (rows.penalties[row], columns.penalties[column]);
            losses += error * error + p * products.row + q * products.column;
            let (mut row_rate, mut column_rate) = (rule.learning_rate, rule.learning_rate);
            if ADAGRAD {
                let [g, k] = products.squared_gradients(error, (p, q));
                row_rate *= shrink(&mut rows.squares[row], g / dim as f32);
                column_rate *= shrink(&mut columns.squares[column], k / dim as f32);
            }
            let step = Step {
                row_kept: 1.0 - 2.0 * row_rate * p,
                row_added: 2.0 * row_rate * error,
                column_kept: 1.0 - 2.0 * column_rate * q,
                column_added: 2.0 * column_rate * error,
            };
            step.take(w, h);
        }
        loss += f64::from(losses);
    }
    loss
}

#[inline(always)]
fn add_products(w: &Lanes, h: &Lanes, [both, row, column]: &mut [Lanes; 3]) {
    for lane in 0..LANES {
        both[lane] += w[lane] * h[lane];
        row[lane] += w[lane] * w[lane];
        column[lane] += h[lane] * h[lane];
    }
}

/// Adds a squared gradient to an accumulator, and returns the factor of the rate.
#[inline(always)]
fn shrink(accumulator: &mut f32, square: f32) -> f32 {
    *accumulator += square;
    inverse_root(*accumulator)
}

/// What a cell needs to know of its row `w` and column `h`.
#[derive(Clone, Copy)]
struct Products {
    /// `w * h`
    both: f32,
    /// `|w|^2`
    row: f32,
    /// `|h|^2`
    column: f32,
}

type Lanes = [f32; LANES];

impl Products {
    #[inline(always)]
    fn of(w: &[f32], h: &[f32]) -> Self {
        let mut sums = [[0.0; LANES]; 3];
        let ((w, w_rest), (h, h_rest)) = (w.as_chunks::<LANES>(), h.as_chunks::<LANES>());
        for (w, h) in w.iter().zip(h) {
            add_products(w, h, &mut sums);
        }
        if !w_rest.is_empty() {
            add_products(&load_rest(w_rest), &load_rest(h_rest), &mut sums);
        }
        let [both, row, column] = sums;
        Self { both: total(both), row: total(row), column: total(column) }
    }

    /// Returns the squared norms of the gradients of row and column.
    #[inline(always)]
    fn squared_gradients(self, error: f32, (p, q): (f32, f32)) -> [f32; 2] {
        let Self { both, row, column } = self;
        let g = p * p * row - 2.0 * p * error * both + error * error * column;
        let k = q * q * column - 2.0 * q * error * both + error * error * row;
        [4.0 * not_below_zero(g), 4.0 * not_below_zero(k)]
    }
}

/// Mends what rounding has made of a small square; what is no number stays none.
#[inline(always)]
fn not_below_zero(square: f32) -> f32 {
    if square < 0.0 { 0.0 } else { square }
}

/// A step of a row and a column: of each a part is kept, and so much of the other one added.
#[derive(Clone, Copy)]
struct Step {
    row_kept: f32,
    row_added: f32,
    column_kept: f32,
    column_added: f32,
}

impl Step {
    #[inline(always)]
    fn take(self, w: &mut [f32], h: &mut [f32]) {
        for (w, h) in w.iter_mut().zip(h) {
            (*w, *h) = (
                self.row_kept * *w + self.row_added * *h,
                self.column_kept * *h + self.column_added * *w,
            );
        }
    }
}

/// Fewer elements than lanes, and zeros after them.
#[inline(always)]
fn load_rest(values: &[f32]) -> Lanes {
    let mut lanes = [0.0; LANES];
    lanes[..values.len()].copy_from_slice(values);
    lanes
}

/// `1 / sqrt(x)` for a normal positive `x`, relative error below 5e-6: a guess by its bits, then
/// Newton twice. Roots and divisions of the machine cost more than all the rest of a cell; this one
/// gives the same bits everywhere.
#[inline(always)]
fn inverse_root(x: f32) -> f32 {
    let guess = f32::from_bits(0x5f37_59df_u32.wrapping_sub(x.to_bits() >> 1));
    let half = 0.5 * x;
    let better = guess * (1.5 - half * guess * guess);
    better * (1.5 - half * better * better)
}

const LANES: usize = 16;
/// Cells whose losses are summed up in f32.
const SUMMED: usize = 64;

#[cfg(test)]
mod tests;
