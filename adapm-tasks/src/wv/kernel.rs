//! The inner loops of skip-gram with negative sampling, on rows of one sentence.
//!
//! For a pair of input vector `v` and output vectors `u_0` (of the word that is there) and `u_1 ..`
//! (of words that are not), the loss is `-ln s(v u_0) - sum ln s(-v u_i)` with `s(x) = 1 / (1 +
//! exp(-x))` (Mikolov et al., NIPS 2013, eq. 4). All vectors of a pair move by the gradient at the
//! same point, then the next pair follows: word2vec's order. [`blocks`](crate::wv::blocks) are for
//! pairs that share their negatives more widely.
//!
//! # Departure
//! word2vec looks `s` up in a table of 1000 places that ends at 6. Here it is computed, eight at a
//! time.

use crate::matrix::{exp, total};
use crate::simd::{self, Kernel};

/// Floats that are worked on together; the length of a vector in a row is a multiple of it.
pub(crate) const LANES: usize = 16;

/// The vectors of a sentence. A row is a vector of `len` floats and, with AdaGrad, `len` sums of
/// squares after it.
pub(crate) struct Rows<'a> {
    pub(crate) inputs: &'a mut [f32],
    pub(crate) outputs: &'a mut [f32],
    /// Floats of a vector, a multiple of [`LANES`].
    pub(crate) len: usize,
    /// Memory for the score gradients of a pair.
    pub(crate) score_gradients: &'a mut Vec<f32>,
}

/// Input rows that are trained with the same output rows, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// End of its input rows in [`Work::inputs`]; they start where those of the group before end.
    pub(crate) inputs: usize,
    /// End of its output rows in [`Work::outputs`].
    pub(crate) outputs: usize,
}

/// The work on the rows of a sentence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work<'a> {
    pub(crate) groups: &'a [Group],
    pub(crate) inputs: &'a [u32],
    /// The first of each group is the word that is there.
    pub(crate) outputs: &'a [u32],
    pub(crate) learning_rate: f32,
}

/// Trains on all pairs of `work` in order.
pub(crate) fn descend<const ADAGRAD: bool>(work: &Work<'_>, rows: &mut Rows<'_>) {
    simd::run(Descent::<ADAGRAD> { work, rows });
}

/// The loop of [`descend`].
struct Descent<'a, 'b, const ADAGRAD: bool> {
    work: &'a Work<'a>,
    rows: &'a mut Rows<'b>,
}

impl<const ADAGRAD: bool> Kernel for Descent<'_, '_, ADAGRAD> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        descend_plain::<ADAGRAD>(self.work, self.rows);
    }
}

#[inline(always)]
fn descend_plain<const ADAGRAD: bool>(work: &Work<'_>, rows: &mut Rows<'_>) {
    // The compiler keeps a whole vector of the usual length, 100 numbers, in registers.
    match rows.len / LANES {
        7 => descend_by::<ADAGRAD, 7>(work, rows),
        _ => descend_by::<ADAGRAD, 0>(work, rows),
    }
}

/// For vectors of `CHUNKS` times as many numbers as there are lanes; 0: of any length.
#[inline(always)]
fn descend_by<const ADAGRAD: bool, const CHUNKS: usize>(work: &Work<'_>, rows: &mut Rows<'_>) {
    let mut before = Group::default();
    for group in work.groups {
        let outputs = &work.outputs[before.outputs..group.outputs];
        for input in &work.inputs[before.inputs..group.inputs] {
            let there = outputs.len().min(1);
            train_input::<ADAGRAD, CHUNKS>(*input, (outputs, there), rows, work.learning_rate);
        }
        before = *group;
    }
}

/// Trains an input row with output rows. The first `there` of them belong to words that do occur
/// there, the rest to negatives.
#[inline(always)]
pub(crate) fn train_input<const ADAGRAD: bool, const CHUNKS: usize>(
    input: u32,
    (outputs, there): (&[u32], usize),
    rows: &mut Rows<'_>,
    learning_rate: f32,
) {
    let len = if CHUNKS > 0 { CHUNKS * LANES } else { rows.len };
    let row_len = if ADAGRAD { 2 * len } else { len };
    let input = &mut rows.inputs[input as usize * row_len..][..row_len];
    score(input, rows.outputs, outputs, (len, row_len), rows.score_gradients);
    turn(rows.score_gradients, there, if ADAGRAD { 1.0 } else { learning_rate });
    let score_gradients = &*rows.score_gradients;
    if ADAGRAD {
        move_adaptively(
            input,
            rows.outputs,
            outputs,
            (len, row_len),
            score_gradients,
            learning_rate,
        );
    } else if CHUNKS > 0 {
        move_whole::<CHUNKS>(input, rows.outputs, outputs, score_gradients);
    } else {
        move_plainly(input, rows.outputs, outputs, row_len, score_gradients);
    }
}

/// Fills `score_gradients` with the inner products of the input and output rows, and up to a
/// multiple of [`GRADIENT_LANES`] with anything.
#[inline(always)]
fn score(
    input: &[f32],
    rows: &[f32],
    outputs: &[u32],
    (len, row_len): (usize, usize),
    score_gradients: &mut Vec<f32>,
) {
    score_gradients.clear();
    score_gradients.resize(outputs.len().next_multiple_of(GRADIENT_LANES), 0.0);
    // No closure: one would be compiled for the instructions of any machine.
    for (score_gradient, row) in score_gradients.iter_mut().zip(outputs) {
        *score_gradient = dot(&input[..len], &rows[*row as usize * row_len..][..len]);
    }
}

/// Returns the inner product of vectors of whole lanes.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    total(sums)
}

/// Turns inner products into score gradients times `factor`: `s(-x)` for the first `there`, `-s(x)`
/// for the others.
#[inline(always)]
fn turn(score_gradients: &mut [f32], there: usize, factor: f32) {
    // Whole lanes are written and nothing else: they are read again at once, and a part of them
    // would have to be waited for.
    for (first, lane) in
        (0..).step_by(GRADIENT_LANES).zip(score_gradients.as_chunks_mut::<GRADIENT_LANES>().0)
    {
        for (at, score_gradient) in lane.iter_mut().enumerate() {
            let is_there = first + at < there;
            let above = sigmoid(if is_there { -*score_gradient } else { *score_gradient });
            *score_gradient = if is_there { factor * above } else { -factor * above };
        }
    }
}

/// `1 / (1 + exp(-x))`, relative error below 1e-6; NaN stays.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x > 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// Adds the score gradients times the other side to the input row and the output rows.
#[inline(always)]
fn move_plainly(
    input: &mut [f32],
    rows: &mut [f32],
    outputs: &[u32],
    row_len: usize,
    score_gradients: &[f32],
) {
    for (at, input) in (0..).step_by(LANES).zip(input.as_chunks_mut::<LANES>().0) {
        let (before, mut after) = (*input, *input);
        for (row, score_gradient) in outputs.iter().zip(score_gradients) {
            let place = lanes(rows, *row as usize * row_len + at);
            // A copy in and out: nothing that is read can be what has just been written.
            let mut output = *place;
            for lane in 0..LANES {
                after[lane] += score_gradient * output[lane];
                output[lane] += score_gradient * before[lane];
            }
            *place = output;
        }
        *input = after;
    }
}

/// As [`move_plainly`], output row by output row, for an input row that fits into registers.
#[inline(always)]
fn move_whole<const CHUNKS: usize>(
    input: &mut [f32],
    rows: &mut [f32],
    outputs: &[u32],
    score_gradients: &[f32],
) {
    let input: &mut [[f32; LANES]; CHUNKS] = whole(input, 0);
    let (before, mut after) = (*input, *input);
    for (row, score_gradient) in outputs.iter().zip(score_gradients) {
        let place: &mut [[f32; LANES]; CHUNKS] = whole(rows, *row as usize * CHUNKS * LANES);
        for chunk in 0..CHUNKS {
            let mut output = place[chunk];
            for lane in 0..LANES {
                after[chunk][lane] += score_gradient * output[lane];
                output[lane] += score_gradient * before[chunk][lane];
            }
            place[chunk] = output;
        }
    }
    *input = after;
}

#[inline(always)]
fn whole<const CHUNKS: usize>(rows: &mut [f32], at: usize) -> &mut [[f32; LANES]; CHUNKS] {
    rows[at..].as_chunks_mut().0.first_chunk_mut().expect("rows are whole lanes")
}

/// As [`move_plainly`], by steps of AdaGrad: an output row steps for each pair, an input row by its
/// whole gradient.
#[inline(always)]
fn move_adaptively(
    input: &mut [f32],
    rows: &mut [f32],
    outputs: &[u32],
    (len, row_len): (usize, usize),
    score_gradients: &[f32],
    learning_rate: f32,
) {
    let (values, squares) = input.split_at_mut(len);
    let chunks =
        values.as_chunks_mut::<LANES>().0.iter_mut().zip(squares.as_chunks_mut::<LANES>().0);
    for (at, (value, square)) in (0..).step_by(LANES).zip(chunks) {
        let (before, mut gradient) = (*value, [0.0; LANES]);
        for (row, score_gradient) in outputs.iter().zip(score_gradients) {
            let at = *row as usize * row_len + at;
            let (mut output, mut output_square) = (*lanes(rows, at), *lanes(rows, at + len));
            for lane in 0..LANES {
                gradient[lane] += score_gradient * output[lane];
            }
            let mut output_gradient = before;
            for value in &mut output_gradient {
                *value *= score_gradient;
            }
            step(&mut output, &mut output_square, &output_gradient, learning_rate);
            (*lanes(rows, at), *lanes(rows, at + len)) = (output, output_square);
        }
        step(value, square, &gradient, learning_rate);
    }
}

/// A step of AdaGrad up the gradient; [`AdaGrad`](adapm_core::update::AdaGrad) says what it is.
#[inline(always)]
pub(crate) fn step(
    value: &mut [f32; LANES],
    square: &mut [f32; LANES],
    gradient: &[f32; LANES],
    learning_rate: f32,
) {
    for lane in 0..LANES {
        square[lane] += gradient[lane] * gradient[lane];
        value[lane] += learning_rate * gradient[lane] / square[lane].sqrt();
    }
}

#[inline(always)]
fn lanes(rows: &mut [f32], at: usize) -> &mut [f32; LANES] {
    rows[at..].first_chunk_mut().expect("rows are whole lanes")
}

/// Score gradients that are computed together.
const GRADIENT_LANES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, mut state: u32) -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        };
        (0..n).map(|_| next()).collect()
    }

    /// Returns the loss by its definition, in f64.
    fn loss(input: &[f32], outputs: &[f32]) -> f64 {
        let mut total = 0.0;
        for (number, output) in outputs.chunks_exact(input.len()).enumerate() {
            let dot: f64 =
                input.iter().zip(output).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let x = if number == 0 { dot } else { -dot };
            total += (1.0 + (-x).exp()).ln();
        }
        total
    }

    fn run<const ADAGRAD: bool>(
        inputs: &mut [f32],
        outputs: &mut [f32],
        len: usize,
        work: &Work<'_>,
    ) {
        descend::<ADAGRAD>(
            work,
            &mut Rows { inputs, outputs, len, score_gradients: &mut Vec::new() },
        );
    }

    const ONE_PAIR: Group = Group { inputs: 1, outputs: 3 };

    #[test]
    fn a_pair_moves_down_the_gradient_of_its_loss() {
        const LEN: usize = 2 * LANES;
        let (input, outputs) = (numbers(LEN, 1), numbers(3 * LEN, 2));
        let learning_rate = 1e-2;
        let work = Work { groups: &[ONE_PAIR], inputs: &[0], outputs: &[0, 1, 2], learning_rate };
        let (mut moved_input, mut moved) = (input.clone(), outputs.clone());
        run::<false>(&mut moved_input, &mut moved, LEN, &work);

        let step = 1e-3_f32;
        let check = |before: f32, after: f32, up: f64, down: f64, what: String| {
            let (gradient, score_gradient) =
                ((up - down) / f64::from(2.0 * step), (before - after) / learning_rate);
            assert!(
                (gradient - f64::from(score_gradient)).abs() < 1e-3,
                "{what}: {gradient} and {score_gradient}"
            );
        };
        for at in 0..LEN {
            let (mut up, mut down) = (input.clone(), input.clone());
            (up[at], down[at]) = (up[at] + step, down[at] - step);
            let (up, down) = (loss(&up, &outputs), loss(&down, &outputs));
            check(input[at], moved_input[at], up, down, format!("input {at}"));
        }
        for at in 0..3 * LEN {
            let (mut up, mut down) = (outputs.clone(), outputs.clone());
            (up[at], down[at]) = (up[at] + step, down[at] - step);
            let (up, down) = (loss(&input, &up), loss(&input, &down));
            check(outputs[at], moved[at], up, down, format!("output {at}"));
        }
    }

    #[test]
    fn adagrad_takes_the_steps_of_the_update_rule() {
        use adapm_core::update::{AdaGrad, UpdateRule as _};

        let (input, outputs) = (numbers(LANES, 1), numbers(2 * LANES, 2));
        let plain_work = Work {
            groups: &[Group { inputs: 1, outputs: 2 }],
            inputs: &[0],
            outputs: &[0, 1],
            learning_rate: 1.0,
        };
        let (mut moved_input, mut moved) = (input.clone(), outputs.clone());
        run::<false>(&mut moved_input, &mut moved, LANES, &plain_work);
        let gradient = |before: &[f32], after: &[f32]| -> Vec<f32> {
            before.iter().zip(after).map(|(before, after)| before - after).collect()
        };
        let with_squares = |row: &[f32]| [row, [0.25; LANES].as_slice()].concat();
        let rows: Vec<f32> = outputs.chunks_exact(LANES).flat_map(with_squares).collect();
        let (mut adaptive_input, mut adaptive) = (with_squares(&input), rows.clone());
        let work = Work { learning_rate: 0.1, ..plain_work };
        run::<true>(&mut adaptive_input, &mut adaptive, LANES, &work);

        let before = with_squares(&input);
        let pairs = [(&before[..], gradient(&input, &moved_input), &adaptive_input[..])]
            .into_iter()
            .chain((0..2).map(|row| {
                let (plain, wide) = (row * LANES, 2 * row * LANES);
                let score_gradients =
                    gradient(&outputs[plain..][..LANES], &moved[plain..][..LANES]);
                (&rows[wide..][..2 * LANES], score_gradients, &adaptive[wide..][..2 * LANES])
            }));
        for (before, gradient, after) in pairs {
            let mut update = vec![0.0; 2 * LANES];
            assert!(AdaGrad { learning_rate: 0.1 }.step(before, &gradient, &mut update));
            for ((before, update), after) in before.iter().zip(&update).zip(after) {
                assert!(
                    (before + update - after).abs() < 1e-5,
                    "{before} + {update} is not {after}"
                );
            }
        }
    }

    #[test]
    fn groups_go_one_after_the_other_and_see_what_those_before_moved() {
        let groups = [Group { inputs: 2, outputs: 2 }, Group { inputs: 3, outputs: 4 }];
        let (inputs, outputs) = (numbers(2 * LANES, 3), numbers(3 * LANES, 4));
        let all = Work {
            groups: &groups,
            inputs: &[0, 1, 0],
            outputs: &[0, 1, 2, 0],
            learning_rate: 0.1,
        };
        let (mut at_once, mut at_once_outputs) = (inputs.clone(), outputs.clone());
        run::<false>(&mut at_once, &mut at_once_outputs, LANES, &all);
        let (mut single, mut single_outputs) = (inputs, outputs);
        for (input, outputs) in [(0, [0, 1]), (1, [0, 1]), (0, [2, 0])] {
            let groups = [Group { inputs: 1, outputs: 2 }];
            let one =
                Work { groups: &groups, inputs: &[input], outputs: &outputs, learning_rate: 0.1 };
            run::<false>(&mut single, &mut single_outputs, LANES, &one);
        }
        assert_eq!((at_once, at_once_outputs), (single, single_outputs));
    }

    #[test]
    fn score_gradients_are_those_of_the_logistic_function_also_of_extreme_products_and_nan_stays() {
        for x in [0.0_f32, 0.1, -0.1, 1.0, -5.0, 5.0, 40.0, -40.0, 80.0, -80.0] {
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) / exact - 1.0).abs() < 1e-6, "{x}: {}", sigmoid(x));
            let mut score_gradients = vec![x; 2 * GRADIENT_LANES];
            turn(&mut score_gradients, GRADIENT_LANES + 1, 0.5);
            let there = |score_gradient: &f32| {
                (f64::from(*score_gradient) - 0.5 * (1.0 - exact)).abs() < 1e-6
            };
            let other =
                |score_gradient: &f32| (f64::from(*score_gradient) + 0.5 * exact).abs() < 1e-6;
            assert!(
                score_gradients[..=GRADIENT_LANES].iter().all(there)
                    && score_gradients[GRADIENT_LANES + 1..].iter().all(other),
                "{x}"
            );
        }
        assert!(sigmoid(f32::NAN).is_nan());
    }
}
