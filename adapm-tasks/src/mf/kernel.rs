//! The inner loop: stochastic gradient descent on cells of one column, on plain slices that the
//! compiler vectorises.
//!
//! For a cell `x` with factors `w` of its row and `h` of its column, `e = x - w * h`:
//!
//! ```text
//!   loss    e^2 + p |w|^2 + q |h|^2          p, q: penalties
//!   dw      2 (p w - e h)                    dh   2 (q h - e w)
//!   AdaGrad step -rate * g / sqrt(acc + g^2), acc += g^2      (element by element)
//!   SGD     step -rate * g
//! ```
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

/// Cells with the values they need, which follow their updates. A value is [`Rule::value_len`]
/// long.
pub(crate) struct Cells<'a> {
    pub(crate) visits: &'a [Visit],
    pub(crate) rows: &'a mut [f32],
    pub(crate) columns: &'a mut [f32],
    /// Weight of the squared norm of each row, for each of its cells.
    pub(crate) row_penalties: &'a [f32],
    /// Weight of the squared norm of each column, for each of its cells.
    pub(crate) column_penalties: &'a [f32],
}

impl Rule {
    /// Returns the rule of the first steps.
    pub(crate) fn of(config: &TrainConfig) -> Self {
        Self { optimizer: config.optimizer, learning_rate: config.rate(), dim: config.dim }
    }

    /// Floats of a value: factors, and an accumulator for each if the optimizer has them.
    pub(crate) fn value_len(self) -> usize {
        match self.optimizer {
            Optimizer::AdaGrad => 2 * self.dim,
            Optimizer::Sgd => self.dim,
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
    let len = if ADAGRAD { 2 * dim } else { dim };
    let mut loss = 0.0;
    for visits in cells.visits.chunks(SUMMED) {
        let (mut errors, mut norms) = (0.0, [0.0; LANES]);
        for visit in visits {
            let (row, column) = (usize::from(visit.row), usize::from(visit.column));
            let gradient = CellGradient {
                observed: visit.value,
                row_penalty: cells.row_penalties[row],
                column_penalty: cells.column_penalties[column],
                learning_rate: rule.learning_rate,
            };
            let row = &mut cells.rows[row * len..][..len];
            let column = &mut cells.columns[column * len..][..len];
            let error = gradient.step::<ADAGRAD>(row, column, dim, &mut norms);
            errors += error * error;
        }
        loss += f64::from(errors) + f64::from(total(norms));
    }
    loss
}

/// The part of the gradient that all elements of a cell share.
#[derive(Clone, Copy)]
struct CellGradient {
    observed: f32,
    row_penalty: f32,
    column_penalty: f32,
    learning_rate: f32,
}

/// Some elements of a row and a column, with their accumulators.
#[derive(Clone, Copy)]
struct Elements {
    row: Lanes,
    row_squares: Lanes,
    column: Lanes,
    column_squares: Lanes,
}

type Lanes = [f32; LANES];

impl CellGradient {
    /// Steps on one cell; gives its error before, and adds its squared norms before, by their
    /// weights, to `norms`.
    #[inline(always)]
    fn step<const ADAGRAD: bool>(
        self,
        row: &mut [f32],
        column: &mut [f32],
        dim: usize,
        norms: &mut Lanes,
    ) -> f32 {
        let (row, row_squares) = row.split_at_mut(dim);
        let (column, column_squares) = column.split_at_mut(dim);
        let error = self.observed - self.product(row, column, norms);
        let (whole, rest) = (dim / LANES * LANES, dim % LANES);
        for at in (0..whole).step_by(LANES) {
            let mut elements = Elements {
                row: load(&row[at..]),
                row_squares: if ADAGRAD { load(&row_squares[at..]) } else { ONES },
                column: load(&column[at..]),
                column_squares: if ADAGRAD { load(&column_squares[at..]) } else { ONES },
            };
            self.move_lanes::<ADAGRAD>(-2.0 * error, &mut elements);
            store(&mut row[at..], &elements.row);
            store(&mut column[at..], &elements.column);
            if ADAGRAD {
                store(&mut row_squares[at..], &elements.row_squares);
                store(&mut column_squares[at..], &elements.column_squares);
            }
        }
        if rest > 0 {
            let mut elements = Elements {
                row: load_rest(&row[whole..], 0.0),
                row_squares: if ADAGRAD { load_rest(&row_squares[whole..], 1.0) } else { ONES },
                column: load_rest(&column[whole..], 0.0),
                column_squares: if ADAGRAD {
                    load_rest(&column_squares[whole..], 1.0)
                } else {
                    ONES
                },
            };
            self.move_lanes::<ADAGRAD>(-2.0 * error, &mut elements);
            row[whole..].copy_from_slice(&elements.row[..rest]);
            column[whole..].copy_from_slice(&elements.column[..rest]);
            if ADAGRAD {
                row_squares[whole..].copy_from_slice(&elements.row_squares[..rest]);
                column_squares[whole..].copy_from_slice(&elements.column_squares[..rest]);
            }
        }
        error
    }

    /// `w * h`.
    #[inline(always)]
    fn product(self, row: &[f32], column: &[f32], norms: &mut Lanes) -> f32 {
        let mut products = [0.0; LANES];
        let ((w, w_rest), (h, h_rest)) = (row.as_chunks::<LANES>(), column.as_chunks::<LANES>());
        for (w, h) in w.iter().zip(h) {
            self.add_products(w, h, &mut products, norms);
        }
        if !w_rest.is_empty() {
            let (w, h) = (load_rest(w_rest, 0.0), load_rest(h_rest, 0.0));
            self.add_products(&w, &h, &mut products, norms);
        }
        total(products)
    }

    #[inline(always)]
    fn add_products(self, w: &Lanes, h: &Lanes, products: &mut Lanes, norms: &mut Lanes) {
        for lane in 0..LANES {
            products[lane] += w[lane] * h[lane];
            norms[lane] +=
                self.row_penalty * w[lane] * w[lane] + self.column_penalty * h[lane] * h[lane];
        }
    }

    /// Moves elements down the gradient; `error` is twice the error, negated.
    #[inline(always)]
    fn move_lanes<const ADAGRAD: bool>(self, error: f32, elements: &mut Elements) {
        let (row_penalty, column_penalty) = (2.0 * self.row_penalty, 2.0 * self.column_penalty);
        let Elements { mut row, mut row_squares, mut column, mut column_squares } = *elements;
        for lane in 0..LANES {
            let g = row_penalty * row[lane] + error * column[lane];
            let k = column_penalty * column[lane] + error * row[lane];
            if ADAGRAD {
                row_squares[lane] += g * g;
                column_squares[lane] += k * k;
                row[lane] -= self.learning_rate * g * inverse_root(row_squares[lane]);
                column[lane] -= self.learning_rate * k * inverse_root(column_squares[lane]);
            } else {
                row[lane] -= self.learning_rate * g;
                column[lane] -= self.learning_rate * k;
            }
        }
        *elements = Elements { row, row_squares, column, column_squares };
    }
}

#[inline(always)]
fn load(values: &[f32]) -> Lanes {
    *values.first_chunk().expect("there are whole lanes")
}

#[inline(always)]
fn store(values: &mut [f32], lanes: &Lanes) {
    *values.first_chunk_mut().expect("there are whole lanes") = *lanes;
}

/// Fewer elements than lanes, and `padding` after them.
#[inline(always)]
fn load_rest(values: &[f32], padding: f32) -> Lanes {
    let mut lanes = [padding; LANES];
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
const ONES: Lanes = [1.0; LANES];

#[cfg(test)]
mod tests;
