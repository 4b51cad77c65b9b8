//! A worker's step: the cells of a chunk.
//!
//! ```text
//!   pull(columns, rows) -> cells one after the other (kernel) -> push(what each vector has moved by)
//! ```
//!
//! A chunk is one pull and one push, so that a cell costs a share of a key each way, not two keys.
//! Every cell sees what this worker did before, as if it were pulled and pushed alone; what others
//! did meanwhile it sees a chunk later. The amount by which a vector has moved is added to the
//! value that it has by then, so no update is lost.

use adapm_core::{Clock, Key};
use adapm_runtime::Random;

use crate::mf::config::{Penalty, TrainConfig};
use crate::mf::kernel::{Cells, Rule, Vectors};
use crate::mf::order::Chunk;
use crate::mf::residuals::Residuals;
use crate::run::parameters::Parameters;
use crate::run::task::{Batch, StepError};

/// A chunk at its place in a worker's time.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) chunk: Chunk,
    pub(crate) clock: Clock,
}

impl<S> Batch<S> for Load {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn examples(&self) -> u64 {
        self.chunk.cells.len() as u64
    }

    fn sample(&mut self) -> Option<&mut S> {
        None
    }
}

/// Weights of squared norms, to be multiplied with the penalty.
#[derive(Debug)]
pub(crate) enum Weights {
    /// 1 for each cell.
    Cell,
    /// The weight of each row and each column, counted for each of its cells.
    Own { rows: Vec<f32>, columns: Vec<f32> },
}

impl Weights {
    /// Returns the weights by which `penalty` counts each cell, or each vector once.
    pub(crate) fn new(residuals: &Residuals<'_>, penalty: Penalty) -> Self {
        match penalty {
            Penalty::Cell => Self::Cell,
            Penalty::Vector => {
                let of = |counts: Vec<u32>| {
                    counts.into_iter().map(|count| 1.0 / count.max(1) as f32).collect()
                };
                let [rows, columns] = residuals.counts_by_vector().map(of);
                Self::Own { rows, columns }
            }
        }
    }
}

/// A worker's memory for steps, kept from chunk to chunk.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    /// The columns, then the rows.
    keys: Vec<Key>,
    /// Their values before the chunk, and after it the amounts by which they have moved.
    pulled: Vec<f32>,
    /// Their factors and accumulators as they move.
    factors: Vec<f32>,
    squares: Vec<f32>,
    /// Weights of their squared norms.
    penalties: Vec<f32>,
    /// The weight of all of them in the running epoch.
    penalty: f32,
}

impl WorkerState {
    /// Begins an epoch with this penalty.
    pub(crate) fn begin(&mut self, penalty: f32) {
        self.penalty = penalty;
    }

    /// Trains on a chunk, and returns the sum of its losses. Column `j` is key `rows + j`. Ends the
    /// step.
    pub(crate) fn train<P: Parameters>(
        &mut self,
        chunk: &Chunk,
        rule: Rule,
        weights: &Weights,
        rows: u32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let (columns, len) = (chunk.columns.len(), rule.value_len());
        self.keys.clear();
        self.keys
            .extend(chunk.columns.iter().map(|column| Key(u64::from(rows) + u64::from(*column))));
        self.keys.extend(chunk.rows.iter().map(|row| Key(u64::from(*row))));
        self.pulled.resize(self.keys.len() * len, 0.0);
        parameters.pull(&self.keys, &mut self.pulled)?;
        self.split(rule);
        self.weigh(chunk, weights);

        let (column_factors, row_factors) = self.factors.split_at_mut(columns * rule.dim);
        let (column_squares, row_squares) = self.squares.split_at_mut(columns * rule.state_len());
        let (column_penalties, row_penalties) = self.penalties.split_at(columns);
        let loss = rule.train(Cells {
            visits: &chunk.cells,
            rows: Vectors { factors: row_factors, squares: row_squares, penalties: row_penalties },
            columns: Vectors {
                factors: column_factors,
                squares: column_squares,
                penalties: column_penalties,
            },
        });
        if !self.differ(rule) || !loss.is_finite() {
            return Err(StepError::NotFinite(self.blamed(columns, len)));
        }
        parameters.push(&self.keys, &self.pulled)?;
        parameters.advance_clock();
        Ok(loss)
    }

    /// Lays factors and accumulators apart: so those of the usual ranks fill lines of the cache.
    fn split(&mut self, rule: Rule) {
        self.factors.clear();
        self.squares.clear();
        for value in self.pulled.chunks_exact(rule.value_len()) {
            let (factors, squares) = value.split_at(rule.dim);
            self.factors.extend_from_slice(factors);
            self.squares.extend_from_slice(squares);
        }
    }

    /// Lays out the penalties of columns and rows.
    fn weigh(&mut self, chunk: &Chunk, weights: &Weights) {
        let penalty = self.penalty;
        self.penalties.clear();
        match weights {
            Weights::Cell => self.penalties.resize(self.keys.len(), penalty),
            Weights::Own { rows, columns } => {
                self.penalties
                    .extend(chunk.columns.iter().map(|column| penalty * columns[*column as usize]));
                self.penalties.extend(chunk.rows.iter().map(|row| penalty * rows[*row as usize]));
            }
        }
    }

    /// Replaces what was pulled by what it has moved by. Returns true if all of that are finite
    /// numbers.
    fn differ(&mut self, rule: Rule) -> bool {
        let (mut are_finite, mut squares) = (true, self.squares.iter());
        let mut differ = |pulled: &mut f32, value: &f32| {
            *pulled = value - *pulled;
            are_finite &= pulled.is_finite();
        };
        let factors = self.factors.chunks_exact(rule.dim);
        for (pulled, factors) in self.pulled.chunks_exact_mut(rule.value_len()).zip(factors) {
            let (pulled_factors, pulled_squares) = pulled.split_at_mut(rule.dim);
            pulled_factors.iter_mut().zip(factors).for_each(|(from, to)| differ(from, to));
            pulled_squares.iter_mut().zip(&mut squares).for_each(|(from, to)| differ(from, to));
        }
        are_finite
    }

    /// Returns the key to name when a chunk went wrong: the first row that has moved by no finite
    /// number, else the first such column, else the first column.
    fn blamed(&self, columns: usize, len: usize) -> Key {
        let is_bad =
            |key: &usize| !self.pulled[key * len..][..len].iter().all(|moved| moved.is_finite());
        let key = (columns..self.keys.len()).chain(0..columns).find(is_bad);
        self.keys[key.unwrap_or(0)]
    }
}

/// Initial values: by seed and key alone, so that any node can compute any of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Start {
    pub(crate) seed: u64,
    /// Number of factors.
    pub(crate) dim: usize,
    /// Standard deviation of a factor.
    pub(crate) deviation: f32,
}

impl Start {
    /// Returns the initial values of these choices and a seed.
    pub(crate) fn of(config: &TrainConfig, seed: u64) -> Self {
        Self { seed, dim: config.dim, deviation: config.initial_deviation }
    }

    /// Fills a value: uniform factors, AdaGrad's initial accumulator after them if there is room.
    /// Uniform, since it needs no function whose last bit depends on the machine.
    pub(crate) fn value(self, key: Key, value: &mut [f32]) {
        // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
        let place = key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Random::new(self.seed ^ place);
        let bound = self.deviation * 3f32.sqrt();
        let (factors, accumulator) = value.split_at_mut(self.dim);
        factors.fill_with(|| bound * (2.0 * random.unit() as f32 - 1.0));
        accumulator.fill(ACCUMULATOR);
    }
}

/// AdaGrad's initial accumulator: about the square of a first gradient. From a smaller one the
/// first steps are as long as the rate for any gradient, which is far for factors that begin near
/// 0.
const ACCUMULATOR: f32 = 0.1;

#[cfg(test)]
mod tests {
    use adapm_core::Key;

    use super::*;
    use crate::mf::cells::Cell;
    use crate::mf::config::Optimizer;
    use crate::run::managed::Arrays;
    use crate::run::parameters::Shape;

    const ROWS: u32 = 6;

    fn worker_state(penalty: f32) -> WorkerState {
        let mut worker_state = WorkerState::default();
        worker_state.begin(penalty);
        worker_state
    }

    fn rule(optimizer: Optimizer) -> Rule {
        Rule { optimizer, learning_rate: 0.05, dim: 5 }
    }

    fn arrays(rule: Rule) -> Arrays {
        let start = Start { seed: 3, dim: 5, deviation: 0.6 };
        let shape = Shape::new(&[(9, rule.value_len())]);
        Arrays::new(shape, None, |key, value| start.value(key, value))
    }

    /// Returns the cells of some columns, in order.
    fn chunk(columns: &[(u32, &[u32])]) -> Chunk {
        let cells = columns.iter().flat_map(|(column, rows)| {
            rows.iter().map(|row| Cell { row: *row, column: *column, value: *row as f32 - 2.0 })
        });
        Chunk::gather(&cells.collect::<Vec<_>>())
    }

    fn all(arrays: &mut Arrays, rule: Rule) -> Vec<f32> {
        let mut values = vec![0.0; 9 * rule.value_len()];
        let Ok(()) = arrays.pull(&(0..9).map(Key).collect::<Vec<_>>(), &mut values);
        values
    }

    #[test]
    fn a_chunk_does_what_its_cells_do_one_by_one() {
        for optimizer in [Optimizer::AdaGrad, Optimizer::Sgd] {
            let rule = rule(optimizer);
            let (mut together, mut apart) = (arrays(rule), arrays(rule));
            let (mut worker_state, runs) =
                (worker_state(0.1), [(2, [0, 3, 5].as_slice()), (0, &[3]), (1, &[1, 3])]);
            let loss = worker_state
                .train(&chunk(&runs), rule, &Weights::Cell, ROWS, &mut together)
                .expect("finite");
            let mut sum = 0.0;
            for (column, rows) in runs {
                for row in rows {
                    let one = chunk(&[(column, &[*row])]);
                    sum += worker_state
                        .train(&one, rule, &Weights::Cell, ROWS, &mut apart)
                        .expect("finite");
                }
            }
            assert!((loss - sum).abs() < 1e-6 * sum, "{loss} {sum}");
            for (a, b) in all(&mut together, rule).into_iter().zip(all(&mut apart, rule)) {
                assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{a} {b}");
            }
        }
    }

    #[test]
    fn the_loss_falls_and_rows_that_do_not_occur_stay() {
        let rule = rule(Optimizer::AdaGrad);
        let mut arrays = arrays(rule);
        let before = all(&mut arrays, rule);
        let (mut worker_state, chunk) =
            (worker_state(0.1), chunk(&[(0, &[0, 1, 3]), (2, &[1, 3])]));
        let mut losses = Vec::new();
        for _ in 0..100 {
            losses.push(
                worker_state
                    .train(&chunk, rule, &Weights::Cell, ROWS, &mut arrays)
                    .expect("finite"),
            );
        }
        assert!(losses[99] < 0.5 * losses[0], "{} {}", losses[0], losses[99]);
        let after = all(&mut arrays, rule);
        for key in 0..9 {
            let value = key * rule.value_len()..(key + 1) * rule.value_len();
            assert_eq!(
                before[value.clone()] != after[value],
                [0, 1, 3, 6, 8].contains(&key),
                "{key}"
            );
        }
    }

    #[test]
    fn own_penalties_are_those_of_the_row_and_the_column() {
        let rule = rule(Optimizer::Sgd);
        let equal = |penalty| {
            let mut arrays = arrays(rule);
            worker_state(penalty)
                .train(&chunk(&[(1, &[4])]), rule, &Weights::Cell, ROWS, &mut arrays)
                .expect("finite");
            all(&mut arrays, rule)
        };
        let mut arrays = arrays(rule);
        let (mut rows, mut columns) = (vec![9.0; 6], vec![9.0; 3]);
        (rows[4], columns[1]) = (0.5, 0.25);
        let own = Weights::Own { rows, columns };
        worker_state(2.0)
            .train(&chunk(&[(1, &[4])]), rule, &own, ROWS, &mut arrays)
            .expect("finite");
        let values = all(&mut arrays, rule);
        assert_eq!(values[20..25], equal(1.0)[20..25]);
        assert_eq!(values[35..40], equal(0.5)[35..40]);
    }

    #[test]
    fn what_is_no_number_is_blamed_and_not_pushed() {
        let rule = rule(Optimizer::AdaGrad);
        let mut arrays = arrays(rule);
        let mut poison = vec![0.0; rule.value_len()];
        poison[3] = f32::NAN;
        let Ok(()) = arrays.push(&[Key(3)], &poison);
        let before = all(&mut arrays, rule);
        let chunk = chunk(&[(0, &[0, 1, 3])]);
        let outcome = worker_state(0.1).train(&chunk, rule, &Weights::Cell, ROWS, &mut arrays);
        assert_eq!(outcome, Err(StepError::NotFinite(Key(3))));
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&all(&mut arrays, rule)), bits(&before));
    }

    const START: Start = Start { seed: 1, dim: 1000, deviation: 0.02 };

    fn of(start: Start, key: u64) -> Vec<f32> {
        let mut value = vec![0.0; 2 * start.dim];
        start.value(Key(key), &mut value);
        value
    }

    #[test]
    fn values_depend_on_seed_and_key_alone_and_have_the_deviation() {
        assert_eq!(of(START, 2), of(START, 2));
        assert_ne!(of(START, 2), of(START, 3));
        assert_ne!(of(START, 2), of(Start { seed: 2, ..START }, 2));
        let value = of(START, 2);
        let square = value[..1000].iter().map(|x| x * x).sum::<f32>() / 1000.0;
        assert!((square.sqrt() - 0.02).abs() < 0.002, "{}", square.sqrt());
        assert!(value[1000..].iter().all(|x| *x == ACCUMULATOR));
    }
}
