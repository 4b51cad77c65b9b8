//! The inner loop: stochastic gradient descent on cells of one column, on plain slices that the compiler vectorises.
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
//! Cells are taken one after the other, each with the column as the one before left it: what one worker computes does not
//! depend on how its cells were cut into runs. A row that comes twice in a run is read as it was before the run; its updates
//! add up.

use crate::mf::config::Optimizer;
use crate::simd;

/// How cells are stepped on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) optimizer: Optimizer,
    pub(crate) learning_rate: f32,
    /// Number of factors.
    pub(crate) dim: usize,
}

/// Cells of one column, with the values they need and room for updates. A value is [`Rule::value_len`] long.
pub(crate) struct Cells<'a> {
    /// Observed values.
    pub(crate) observed: &'a [f32],
    /// The value of the column, which follows its updates.
    pub(crate) column: &'a mut [f32],
    /// What the run adds to the column.
    pub(crate) column_update: &'a mut [f32],
    /// Values of the rows.
    pub(crate) rows: &'a [f32],
    /// What the run adds to each row: overwritten.
    pub(crate) row_updates: &'a mut [f32],
    /// Weight of the squared norm of each row.
    pub(crate) row_penalties: &'a [f32],
    /// Weight of the squared norm of the column, for each cell.
    pub(crate) column_penalty: f32,
}

impl Rule {
    /// Floats of a value: factors, and an accumulator for each if the optimizer has them.
    pub(crate) fn value_len(self) -> usize {
        match self.optimizer {
            Optimizer::AdaGrad => 2 * self.dim,
            Optimizer::Sgd => self.dim,
        }
    }

    /// Steps on every cell. Gives the sum of the losses, each before its step, or `None` if a loss or a gradient is too large
    /// for the arithmetic or no number: the updates are worth nothing then.
    pub(crate) fn train(self, cells: Cells<'_>) -> Option<f64> {
        simd::factorize(self, cells)
    }
}

/// The loop behind [`Rule::train`], inlined into one function per instruction set.
#[inline(always)]
pub(crate) fn train_lanes(rule: Rule, cells: Cells<'_>) -> Option<f64> {
    let len = rule.value_len();
    let Cells { observed, column, column_update, rows, row_updates, row_penalties, column_penalty } = cells;
    let rows = rows.chunks_exact(len).zip(row_updates.chunks_exact_mut(len)).zip(row_penalties);
    let (mut loss, mut squares) = (0.0, [0.0; LANES]);
    for (observed, ((row, update), row_penalty)) in observed.iter().zip(rows) {
        let (factors, accumulators) = row.split_at(rule.dim);
        let [product, row_norm, column_norm] = products(factors, &column[..rule.dim]);
        let error = observed - product;
        let cell = error * error + row_penalty * row_norm + column_penalty * column_norm;
        loss += f64::from(cell);
        let slopes = Slopes {
            error: -2.0 * error,
            row_penalty: 2.0 * row_penalty,
            column_penalty: 2.0 * column_penalty,
            learning_rate: rule.learning_rate,
        };
        let (step, squared) = update.split_at_mut(rule.dim);
        let (column, column_accumulators) = column.split_at_mut(rule.dim);
        let (column_step, column_squared) = column_update.split_at_mut(rule.dim);
        match rule.optimizer {
            Optimizer::AdaGrad => {
                let row = Row { factors, accumulators, step, squared };
                let column = Column {
                    factors: column,
                    accumulators: column_accumulators,
                    step: column_step,
                    squared: column_squared,
                };
                slopes.adagrad(row, column, &mut squares);
            }
            Optimizer::Sgd => slopes.sgd(factors, step, column, column_step, &mut squares),
        }
    }
    (loss.is_finite() && total(squares).is_finite()).then_some(loss)
}

/// What all elements of a cell have in common: minus twice the error, twice the penalties, the rate.
#[derive(Clone, Copy)]
struct Slopes {
    error: f32,
    row_penalty: f32,
    column_penalty: f32,
    learning_rate: f32,
}

/// A row, and what a cell adds to it.
struct Row<'a> {
    factors: &'a [f32],
    accumulators: &'a [f32],
    step: &'a mut [f32],
    squared: &'a mut [f32],
}

/// A column, and what the cells of a run add to it.
struct Column<'a> {
    factors: &'a mut [f32],
    accumulators: &'a mut [f32],
    step: &'a mut [f32],
    squared: &'a mut [f32],
}

impl Slopes {
    #[inline(always)]
    fn of_row(self, w: f32, h: f32) -> f32 {
        self.row_penalty * w + self.error * h
    }

    #[inline(always)]
    fn of_column(self, w: f32, h: f32) -> f32 {
        self.column_penalty * h + self.error * w
    }

    #[inline(always)]
    fn adagrad(self, row: Row<'_>, column: Column<'_>, squares: &mut [f32; LANES]) {
        let (w, w_rest) = row.factors.as_chunks::<LANES>();
        let (a, a_rest) = row.accumulators.as_chunks::<LANES>();
        let (dw, dw_rest) = row.step.as_chunks_mut::<LANES>();
        let (da, da_rest) = row.squared.as_chunks_mut::<LANES>();
        let (h, h_rest) = column.factors.as_chunks_mut::<LANES>();
        let (b, b_rest) = column.accumulators.as_chunks_mut::<LANES>();
        let (dh, dh_rest) = column.step.as_chunks_mut::<LANES>();
        let (db, db_rest) = column.squared.as_chunks_mut::<LANES>();
        let rows = w.iter().zip(a).zip(dw).zip(da);
        for ((((w, a), dw), da), (((h, b), dh), db)) in rows.zip(h.iter_mut().zip(b).zip(dh).zip(db)) {
            for lane in 0..LANES {
                let (g, k) = (self.of_row(w[lane], h[lane]), self.of_column(w[lane], h[lane]));
                let (g2, k2) = (g * g, k * k);
                dw[lane] = -self.learning_rate * g * inverse_root(a[lane] + g2);
                da[lane] = g2;
                let step = -self.learning_rate * k * inverse_root(b[lane] + k2);
                dh[lane] += step;
                db[lane] += k2;
                h[lane] += step;
                b[lane] += k2;
                squares[lane] += g2 + k2;
            }
        }
        for lane in 0..w_rest.len() {
            let (g, k) =
                (self.of_row(w_rest[lane], h_rest[lane]), self.of_column(w_rest[lane], h_rest[lane]));
            let (g2, k2) = (g * g, k * k);
            dw_rest[lane] = -self.learning_rate * g * inverse_root(a_rest[lane] + g2);
            da_rest[lane] = g2;
            let step = -self.learning_rate * k * inverse_root(b_rest[lane] + k2);
            dh_rest[lane] += step;
            db_rest[lane] += k2;
            h_rest[lane] += step;
            b_rest[lane] += k2;
            squares[lane] += g2 + k2;
        }
    }

    #[inline(always)]
    fn sgd(self, w: &[f32], dw: &mut [f32], h: &mut [f32], dh: &mut [f32], squares: &mut [f32; LANES]) {
        let (w, w_rest) = w.as_chunks::<LANES>();
        let (dw, dw_rest) = dw.as_chunks_mut::<LANES>();
        let (h, h_rest) = h.as_chunks_mut::<LANES>();
        let (dh, dh_rest) = dh.as_chunks_mut::<LANES>();
        for ((w, dw), (h, dh)) in w.iter().zip(dw).zip(h.iter_mut().zip(dh)) {
            for lane in 0..LANES {
                let (g, k) = (self.of_row(w[lane], h[lane]), self.of_column(w[lane], h[lane]));
                dw[lane] = -self.learning_rate * g;
                let step = -self.learning_rate * k;
                dh[lane] += step;
                h[lane] += step;
                squares[lane] += g * g + k * k;
            }
        }
        for lane in 0..w_rest.len() {
            let (g, k) =
                (self.of_row(w_rest[lane], h_rest[lane]), self.of_column(w_rest[lane], h_rest[lane]));
            dw_rest[lane] = -self.learning_rate * g;
            let step = -self.learning_rate * k;
            dh_rest[lane] += step;
            h_rest[lane] += step;
            squares[lane] += g * g + k * k;
        }
    }
}

/// `w * h`, `w * w`, `h * h`.
#[inline(always)]
fn products(w: &[f32], h: &[f32]) -> [f32; 3] {
    let mut sums = [[0.0; LANES]; 3];
    let ((w, w_rest), (h, h_rest)) = (w.as_chunks::<LANES>(), h.as_chunks::<LANES>());
    for (w, h) in w.iter().zip(h) {
        for lane in 0..LANES {
            sums[0][lane] += w[lane] * h[lane];
            sums[1][lane] += w[lane] * w[lane];
            sums[2][lane] += h[lane] * h[lane];
        }
    }
    for (lane, (w, h)) in w_rest.iter().zip(h_rest).enumerate() {
        sums[0][lane] += w * h;
        sums[1][lane] += w * w;
        sums[2][lane] += h * h;
    }
    sums.map(total)
}

/// The sum of all lanes, by halves.
#[inline(always)]
fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// `1 / sqrt(x)` for a normal positive `x`, relative error below 5e-6: a guess by its bits, then Newton twice. Roots and
/// divisions of the machine cost more than all the rest of a cell; this one gives the same bits everywhere.
#[inline(always)]
fn inverse_root(x: f32) -> f32 {
    let guess = f32::from_bits(0x5f37_59df_u32.wrapping_sub(x.to_bits() >> 1));
    let half = 0.5 * x;
    let better = guess * (1.5 - half * guess * guess);
    better * (1.5 - half * better * better)
}

const LANES: usize = 16;

#[cfg(test)]
mod tests;
