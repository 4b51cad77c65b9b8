//! Tests of the inner loop: against finite differences, the update rule, and itself.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const ROW_PENALTY: f32 = 0.05;
const COLUMN_PENALTY: f32 = 0.07;

/// Some cells of two columns, with what they need.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    rule: Rule,
    visits: Vec<Visit>,
    rows: Vec<f32>,
    row_squares: Vec<f32>,
    columns: Vec<f32>,
    column_squares: Vec<f32>,
}

impl Run {
    /// Cells of as many rows and one column, or in turns of two.
    fn new(optimizer: Optimizer, dim: usize, cells: u16, columns: u16) -> Self {
        let rule = Rule { optimizer, learning_rate: 0.1, dim };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(dim as u64);
        let mut floats = |count, range: std::ops::Range<f32>| -> Vec<f32> {
            (0..count).map(|_| random.random_range(range.clone())).collect()
        };
        let [rows, of_columns] = [cells, columns].map(|count| {
            let count = usize::from(count);
            (floats(count * dim, -1.0..1.0), floats(count * rule.state_len(), 0.01..2.0))
        });
        let visit =
            |cell| Visit { row: cell, column: cell % columns, value: 0.5 * f32::from(cell) - 1.0 };
        Self {
            rule,
            visits: (0..cells).map(visit).collect(),
            rows: rows.0,
            row_squares: rows.1,
            columns: of_columns.0,
            column_squares: of_columns.1,
        }
    }

    fn cells(&mut self) -> (Rule, Cells<'_>) {
        let cells = Cells {
            visits: &self.visits,
            rows: Vectors {
                factors: &mut self.rows,
                squares: &mut self.row_squares,
                penalties: &[ROW_PENALTY; 9],
            },
            columns: Vectors {
                factors: &mut self.columns,
                squares: &mut self.column_squares,
                penalties: &[COLUMN_PENALTY; 2],
            },
        };
        (self.rule, cells)
    }

    /// Steps on all cells.
    fn train(&mut self) -> f64 {
        let (rule, cells) = self.cells();
        rule.train(cells)
    }

    /// Returns the loss of the first cell for other factors, in f64.
    fn loss(&self, row: &[f64], column: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let error = f64::from(self.visits[0].value) - dot(row, column);
        error * error
            + f64::from(ROW_PENALTY) * dot(row, row)
            + f64::from(COLUMN_PENALTY) * dot(column, column)
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

fn moved(before: &[f32], after: &[f32]) -> Vec<f32> {
    before.iter().zip(after).map(|(before, after)| after - before).collect()
}

#[test]
fn sgd_steps_along_the_gradient_that_finite_differences_give() {
    for dim in [1, 5, 16, 32, 37] {
        let before = Run::new(Optimizer::Sgd, dim, 1, 1);
        let mut after = before.clone();
        let loss = after.train();
        let [row, column] = [&before.rows, &before.columns]
            .map(|v| v.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        assert!(close(loss, before.loss(&row, &column), 1e-5));
        let steps = [moved(&before.rows, &after.rows), moved(&before.columns, &after.columns)];
        for element in 0..dim {
            for (of_row, steps) in [true, false].into_iter().zip(&steps) {
                let at = |by: f64| {
                    let (mut row, mut column) = (row.clone(), column.clone());
                    if of_row {
                        row[element] += by
                    } else {
                        column[element] += by
                    }
                    before.loss(&row, &column)
                };
                let derivative = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(
                    close(f64::from(steps[element]), -0.1 * derivative, 1e-4),
                    "{dim} {element} {of_row}"
                );
            }
        }
    }
}

#[test]
fn adagrad_divides_the_same_gradient_by_the_root_of_its_mean_squares() {
    for dim in [1, 16, 32, 37] {
        let before = Run::new(Optimizer::AdaGrad, dim, 1, 1);
        let rule = Rule { optimizer: Optimizer::Sgd, ..before.rule };
        let (mut after, mut stepped) = (before.clone(), Run { rule, ..before.clone() });
        let losses = [after.train(), stepped.train()];
        assert_eq!(losses[0], losses[1]);
        let squares = [
            (before.row_squares[0], after.row_squares[0]),
            (before.column_squares[0], after.column_squares[0]),
        ];
        let vectors = [
            (&before.rows, &after.rows, &stepped.rows),
            (&before.columns, &after.columns, &stepped.columns),
        ];
        for ((value, now, stepped), (square, square_now)) in vectors.into_iter().zip(squares) {
            let gradient = moved(value, stepped).into_iter().map(|step| f64::from(step) / -0.1);
            let gradient: Vec<f64> = gradient.collect();
            let mean = gradient.iter().map(|g| g * g).sum::<f64>() / dim as f64;
            let sum = f64::from(square) + mean;
            assert!(close(f64::from(square_now), sum, 1e-5), "{square_now} {sum}");
            for (a, g) in moved(value, now).into_iter().zip(&gradient) {
                let step = -0.1 * g / sum.sqrt();
                assert!(close(f64::from(a), step, 1e-5), "{a} {step}");
            }
        }
    }
}

#[test]
fn cells_see_what_those_before_moved() {
    for optimizer in [Optimizer::AdaGrad, Optimizer::Sgd] {
        for dim in [20, 32] {
            let mut whole = Run::new(optimizer, dim, 7, 2);
            let mut cut = whole.clone();
            let visits = whole.visits.clone();
            let mut loss = 0.0;
            for cells in [0..1, 1..4, 4..7] {
                cut.visits = visits[cells].to_vec();
                loss += cut.train();
            }
            let total = whole.train();
            cut.visits = visits;
            assert!(close(loss, total, 1e-6) && cut == whole);
        }
    }
}

#[test]
fn what_is_too_large_or_no_number_shows() {
    let is_finite = |mut run: Run| {
        let loss = run.train();
        let all = [&run.rows, &run.row_squares, &run.columns, &run.column_squares];
        loss.is_finite() && all.into_iter().flatten().all(|value| value.is_finite())
    };
    for optimizer in [Optimizer::AdaGrad, Optimizer::Sgd] {
        let run = Run::new(optimizer, 20, 3, 1);
        assert!(is_finite(run.clone()));
        for bad in [f32::NAN, f32::INFINITY, 3e38] {
            for place in [0, 19] {
                let mut run = run.clone();
                run.rows[run.rule.dim + place] = bad;
                assert!(!is_finite(run), "{bad} {place}");
            }
        }
    }
    // Whose square is too large only: the loss is finite, an accumulator is not.
    let mut run = Run::new(Optimizer::AdaGrad, 20, 3, 1);
    run.visits[1].value = 1e19;
    run.columns[..20].fill(30.0);
    assert!(!is_finite(run));
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
        for dim in [32, 37] {
            let (mut expected, mut plain) =
                (Run::new(optimizer, dim, 9, 2), Run::new(optimizer, dim, 9, 2));
            let (rule, cells) = plain.cells();
            let losses = [train_lanes(rule, cells), expected.train()];
            assert_eq!((losses[0], plain), (losses[1], expected));
        }
    }
}
