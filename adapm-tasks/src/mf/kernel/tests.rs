//! Tests of the inner loop: against finite differences, a plain loop in f64, and itself.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::optim::AdaGrad;

const COLUMN_PENALTY: f32 = 0.07;

/// A run of cells, owned.
#[derive(Clone)]
struct Run {
    rule: Rule,
    observed: Vec<f32>,
    column: Vec<f32>,
    rows: Vec<f32>,
    penalties: Vec<f32>,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
struct Done {
    loss: Option<f64>,
    column: Vec<f32>,
    column_update: Vec<f32>,
    row_updates: Vec<f32>,
}

impl Run {
    fn new(optimizer: Optimizer, dim: usize, cells: usize) -> Self {
        let rule = Rule { optimizer, learning_rate: 0.1, dim };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(dim as u64);
        let mut value = || -> Vec<f32> {
            let mut value: Vec<f32> = (0..dim).map(|_| random.random_range(-1.0..1.0)).collect();
            value.resize_with(rule.value_len(), || random.random_range(0.01..2.0));
            value
        };
        let column = value();
        let rows = (0..cells).flat_map(|_| value()).collect();
        let observed = (0..cells).map(|cell| 0.5 * cell as f32 - 1.0).collect();
        let penalties = (0..cells).map(|cell| 0.05 + 0.01 * cell as f32).collect();
        Self { rule, observed, column, rows, penalties }
    }

    fn cells(&self, cells: std::ops::Range<usize>, column: Vec<f32>) -> Done {
        let len = self.rule.value_len();
        let mut done = Done {
            loss: None,
            column,
            column_update: vec![0.0; len],
            row_updates: vec![f32::NAN; cells.len() * len],
        };
        done.loss = self.rule.train(Cells {
            observed: &self.observed[cells.clone()],
            column: &mut done.column,
            column_update: &mut done.column_update,
            rows: &self.rows[cells.start * len..cells.end * len],
            row_updates: &mut done.row_updates,
            row_penalties: &self.penalties[cells],
            column_penalty: COLUMN_PENALTY,
        });
        done
    }

    fn train(&self) -> Done {
        self.cells(0..self.observed.len(), self.column.clone())
    }

    /// The loss of the first cell for other factors, in f64.
    fn loss(&self, row: &[f64], column: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let error = f64::from(self.observed[0]) - dot(row, column);
        error * error
            + f64::from(self.penalties[0]) * dot(row, row)
            + f64::from(COLUMN_PENALTY) * dot(column, column)
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn sgd_steps_along_the_gradient_that_finite_differences_give() {
    for dim in [1, 5, 16, 32, 37] {
        let run = Run::new(Optimizer::Sgd, dim, 1);
        let done = run.train();
        let [row, column] =
            [&run.rows, &run.column].map(|v| v.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        assert!(close(done.loss.expect("finite"), run.loss(&row, &column), 1e-5));
        for element in 0..dim {
            for (of_row, update) in [(true, done.row_updates[element]), (false, done.column_update[element])]
            {
                let at = |by: f64| {
                    let (mut row, mut column) = (row.clone(), column.clone());
                    if of_row {
                        row[element] += by
                    } else {
                        column[element] += by
                    }
                    run.loss(&row, &column)
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(close(f64::from(update), -0.1 * slope, 1e-4), "{dim} {element} {of_row}");
            }
        }
    }
}

#[test]
fn adagrad_divides_the_same_gradient_by_the_root_of_its_squares() {
    for dim in [1, 16, 37] {
        let mut run = Run::new(Optimizer::AdaGrad, dim, 1);
        let mut plain = Run { rule: Rule { optimizer: Optimizer::Sgd, ..run.rule }, ..run.clone() };
        plain.rows.truncate(dim);
        plain.column.truncate(dim);
        let (mut gradient, mut expected) = (vec![0.0; dim], vec![0.0; 2 * dim]);
        let (done, slopes) = (run.train(), plain.train());
        for (value, update, steps) in [
            (&mut run.rows, &done.row_updates, &slopes.row_updates),
            (&mut run.column, &done.column_update, &slopes.column_update),
        ] {
            gradient.iter_mut().zip(steps).for_each(|(slope, step)| *slope = step / -0.1);
            AdaGrad { learning_rate: 0.1 }.update(value, &gradient, &mut expected);
            for (a, b) in update.iter().zip(&expected) {
                assert!(close(f64::from(*a), f64::from(*b), 1e-5), "{a} {b}");
            }
        }
    }
}

#[test]
fn cells_see_the_column_as_the_one_before_left_it_however_they_are_cut() {
    for optimizer in [Optimizer::AdaGrad, Optimizer::Sgd] {
        let run = Run::new(optimizer, 20, 7);
        let whole = run.train();
        let (mut column, mut rows, mut loss) = (run.column.clone(), Vec::new(), 0.0);
        for cells in [0..1, 1..4, 4..7] {
            let done = run.cells(cells, column);
            (column, loss) = (done.column, loss + done.loss.expect("finite"));
            rows.extend(done.row_updates);
        }
        assert_eq!((&column, &rows), (&whole.column, &whole.row_updates));
        assert!(close(loss, whole.loss.expect("finite"), 1e-12));
        for (element, update) in whole.column_update.iter().enumerate() {
            let moved = whole.column[element] - run.column[element];
            assert!(close(f64::from(*update), f64::from(moved), 1e-5));
        }
    }
}

#[test]
fn losses_and_gradients_that_are_no_numbers_are_noticed() {
    for optimizer in [Optimizer::AdaGrad, Optimizer::Sgd] {
        let run = Run::new(optimizer, 20, 3);
        assert!(run.train().loss.is_some());
        for bad in [f32::NAN, f32::INFINITY, 3e38] {
            for place in [0, 19] {
                let mut run = run.clone();
                run.rows[run.rule.value_len() + place] = bad;
                assert_eq!(run.train().loss, None, "{bad} {place}");
            }
        }
        // Whose square is too large only: the loss is finite, an accumulator would not be.
        let mut run = run.clone();
        run.observed[1] = 1e19;
        run.column[..20].fill(30.0);
        assert_eq!(run.train().loss, None);
    }
}

#[test]
fn the_inverse_root_is_as_exact_as_it_says() {
    let mut x = 1e-6_f32;
    while x < 1e30 {
        let relative = f64::from(inverse_root(x)) * f64::from(x).sqrt() - 1.0;
        assert!(relative.abs() < 5e-6, "{x}: {relative}");
        x *= 1.0137;
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for optimizer in [Optimizer::AdaGrad, Optimizer::Sgd] {
        let run = Run::new(optimizer, 37, 9);
        let expected = run.train();
        let (mut column, len) = (run.column.clone(), run.rule.value_len());
        let (mut column_update, mut row_updates) = (vec![0.0; len], vec![0.0; 9 * len]);
        let cells = Cells {
            observed: &run.observed,
            column: &mut column,
            column_update: &mut column_update,
            rows: &run.rows,
            row_updates: &mut row_updates,
            row_penalties: &run.penalties,
            column_penalty: COLUMN_PENALTY,
        };
        let loss = train_lanes(run.rule, cells);
        assert_eq!(Done { loss, column, column_update, row_updates }, expected);
    }
}
