//! Training on a block of words that share their negatives, as products of small matrices.
//!
//! ```text
//!   inner products [words x negatives]:  X = V N^T        V: input vectors of the words, N: output vectors of the negatives
//!   score gradients:                              S = -rate * weight * s(X)
//!   steps:                               V += S N         N += S^T V, both from what was there before
//! ```
//!
//! The pair of a word and one of its context has the same loss as in [`kernel`](crate::wv::kernel),
//! but for its negatives: instead of a few of its own, all those of the block count, each by such a
//! share that they weigh as much together. So `weight` is negatives a pair * pairs of the word /
//! negatives of the block, and the same pair of rows is multiplied once instead of for each pair of
//! words. A negative that is the other word of a pair does not count for that pair.
//!
//! After that each word is trained with its context, word by word, as in
//! [`kernel`](crate::wv::kernel).

use crate::simd::{self, Kernel};
use crate::wv::kernel::{LANES, Rows, sigmoid, step, train_input};

/// The work on the rows of a sentence, block by block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'a> {
    /// Input row of each word of the sentence.
    pub(crate) inputs: &'a [u32],
    /// For each word the end of its context in `outputs`, which starts where that of the word
    /// before ends.
    pub(crate) ends: &'a [usize],
    /// Output rows of the contexts.
    pub(crate) outputs: &'a [u32],
    /// Output rows of the negatives, equally many for each block.
    pub(crate) negatives: &'a [u32],
    /// Words of a block; the last one may have fewer.
    pub(crate) words: usize,
    /// Negatives that a pair counts for.
    pub(crate) weight: f32,
    pub(crate) learning_rate: f32,
}

/// Memory for a block, kept from sentence to sentence.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Negatives, [`LANES`] to a panel, number by number: `[panel][number][lane]`.
    panels: Vec<f32>,
    /// `[words x negatives]`, both padded.
    score_gradients: Vec<f32>,
    /// The same by negatives.
    transposed: Vec<f32>,
    /// The moves of the input rows, `[words x len]`.
    moves: Vec<f32>,
    weights: Vec<f32>,
    /// Starts of the rows of the words and of the negatives.
    words: Vec<usize>,
    negatives: Vec<usize>,
}

/// Trains on all pairs of `blocks`.
pub(crate) fn descend<const ADAGRAD: bool>(
    blocks: &Blocks<'_>,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch,
) {
    simd::run(Descent::<ADAGRAD> { blocks, rows, scratch });
}

/// The loop of [`descend`].
struct Descent<'a, 'b, const ADAGRAD: bool> {
    blocks: &'a Blocks<'a>,
    rows: &'a mut Rows<'b>,
    scratch: &'a mut Scratch,
}

impl<const ADAGRAD: bool> Kernel for Descent<'_, '_, ADAGRAD> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        descend_plain::<ADAGRAD>(self.blocks, self.rows, self.scratch);
    }
}

#[inline(always)]
fn descend_plain<const ADAGRAD: bool>(
    blocks: &Blocks<'_>,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch,
) {
    match rows.len / LANES {
        7 => descend_by::<ADAGRAD, 7>(blocks, rows, scratch),
        _ => descend_by::<ADAGRAD, 0>(blocks, rows, scratch),
    }
}

#[inline(always)]
fn descend_by<const ADAGRAD: bool, const CHUNKS: usize>(
    blocks: &Blocks<'_>,
    rows: &mut Rows<'_>,
    scratch: &mut Scratch,
) {
    let len = if CHUNKS > 0 { CHUNKS * LANES } else { rows.len };
    let row_len = if ADAGRAD { 2 * len } else { len };
    let drawn = blocks.negatives.len() / blocks.inputs.len().div_ceil(blocks.words);
    let mut first = 0;
    for (number, inputs) in blocks.inputs.chunks(blocks.words).enumerate() {
        let negatives = &blocks.negatives[number * drawn..][..drawn];
        let start = if first == 0 { 0 } else { blocks.ends[first - 1] };
        let ends = &blocks.ends[first..][..inputs.len()];
        if !negatives.is_empty() {
            scratch.begin(inputs, negatives, row_len);
            scratch.multiply(rows, len);
            scratch.weigh(blocks, (start, ends), negatives, ADAGRAD);
            scratch.transpose();
            scratch.gather_moves(rows, len);
            scratch.move_negatives::<ADAGRAD>(rows, len, blocks.learning_rate);
        }
        let mut start = start;
        for (input, end) in inputs.iter().zip(ends) {
            let context = &blocks.outputs[start..*end];
            train_input::<ADAGRAD, CHUNKS>(
                *input,
                (context, context.len()),
                rows,
                blocks.learning_rate,
            );
            start = *end;
        }
        if !negatives.is_empty() {
            scratch.move_words::<ADAGRAD>(rows, len, blocks.learning_rate);
        }
        first += inputs.len();
    }
}

impl Scratch {
    #[inline(always)]
    fn begin(&mut self, words: &[u32], negatives: &[u32], row_len: usize) {
        self.words.clear();
        self.words.extend(words.iter().map(|row| *row as usize * row_len));
        self.negatives.clear();
        self.negatives.extend(negatives.iter().map(|row| *row as usize * row_len));
    }

    /// Returns the width of [`Self::score_gradients`].
    #[inline(always)]
    fn width(&self) -> usize {
        self.negatives.len().next_multiple_of(LANES)
    }

    /// Words, padded to whole tiles.
    #[inline(always)]
    fn height(&self) -> usize {
        self.words.len().next_multiple_of(TILE)
    }

    /// Fills the score gradients with the inner products.
    #[inline(always)]
    fn multiply(&mut self, rows: &Rows<'_>, len: usize) {
        let (width, height) = (self.width(), self.height());
        self.panels.resize(width * len, 0.0);
        for (panel, negatives) in
            self.panels.chunks_exact_mut(LANES * len).zip(self.negatives.chunks(LANES))
        {
            // What is missing of the last panel is its first row, again.
            let start = |at: usize| *negatives.get(at).unwrap_or(&negatives[0]);
            let starts: [usize; LANES] = std::array::from_fn(start);
            fill_panel(panel, rows.outputs, &starts);
        }
        self.score_gradients.resize(width * height, 0.0);
        for (panel, negatives) in self.panels.chunks_exact(LANES * len).enumerate() {
            for (tile, words) in self.words.chunks(TILE).enumerate() {
                // What is missing of the last tile is its first row, again.
                let row = |at: usize| &rows.inputs[*words.get(at).unwrap_or(&words[0])..][..len];
                let sums = inner([row(0), row(1), row(2), row(3)], negatives);
                for (at, sums) in sums.iter().enumerate() {
                    let at = (tile * TILE + at) * width + panel * LANES;
                    self.score_gradients[at..at + LANES].copy_from_slice(sums);
                }
            }
        }
    }

    /// Turns inner products into score gradients.
    #[inline(always)]
    fn weigh(
        &mut self,
        blocks: &Blocks<'_>,
        (mut start, ends): (usize, &[usize]),
        negatives: &[u32],
        is_gradient: bool,
    ) {
        let width = self.width();
        let share = blocks.weight / negatives.len() as f32;
        let rate = if is_gradient { 1.0 } else { blocks.learning_rate };
        for (score_gradients, end) in self.score_gradients.chunks_exact_mut(width).zip(ends) {
            let context = &blocks.outputs[start..*end];
            start = *end;
            self.weights.clear();
            self.weights.resize(width, context.len() as f32);
            for output in context {
                for (weight, negative) in self.weights.iter_mut().zip(negatives) {
                    *weight -= if output == negative { 1.0 } else { 0.0 };
                }
            }
            for (score_gradient, weight) in score_gradients.iter_mut().zip(&self.weights) {
                *score_gradient = -(rate * share) * weight * sigmoid(*score_gradient);
            }
        }
        // The rows that pad the last tile.
        self.score_gradients[ends.len() * width..].fill(0.0);
    }

    #[inline(always)]
    fn transpose(&mut self) {
        let (width, height) = (self.width(), self.height());
        self.transposed.resize(width * height, 0.0);
        for (word, score_gradients) in self.score_gradients.chunks_exact(width).enumerate() {
            for (cell, score_gradient) in
                self.transposed[word..].iter_mut().step_by(height).zip(score_gradients)
            {
                *cell = *score_gradient;
            }
        }
    }

    /// Sums up the moves of the words by the negatives.
    #[inline(always)]
    fn gather_moves(&mut self, rows: &Rows<'_>, len: usize) {
        let height = self.height();
        self.moves.resize(height * len, 0.0);
        for at in (0..len).step_by(LANES) {
            for first in (0..height).step_by(TILE) {
                let sums =
                    combine(&self.transposed[first..], height, rows.outputs, &self.negatives, at);
                for (word, sums) in (first..).zip(&sums) {
                    *lanes(&mut self.moves, word * len + at) = *sums;
                }
            }
        }
    }

    /// Moves the negatives by what the words are.
    #[inline(always)]
    fn move_negatives<const ADAGRAD: bool>(
        &self,
        rows: &mut Rows<'_>,
        len: usize,
        learning_rate: f32,
    ) {
        let width = self.width();
        for at in (0..len).step_by(LANES) {
            for (tile, negatives) in self.negatives.chunks(TILE).enumerate() {
                let sums = combine(
                    &self.score_gradients[tile * TILE..],
                    width,
                    rows.inputs,
                    &self.words,
                    at,
                );
                for (start, sums) in negatives.iter().zip(&sums) {
                    advance::<ADAGRAD>(rows.outputs, start + at, len, sums, learning_rate);
                }
            }
        }
    }

    #[inline(always)]
    fn move_words<const ADAGRAD: bool>(&self, rows: &mut Rows<'_>, len: usize, learning_rate: f32) {
        for (start, moves) in self.words.iter().zip(self.moves.chunks_exact(len)) {
            for (at, moves) in (0..).step_by(LANES).zip(moves.as_chunks::<LANES>().0) {
                advance::<ADAGRAD>(rows.inputs, start + at, len, moves, learning_rate);
            }
        }
    }
}

/// Puts rows next to each other, `[number][lane]`.
///
/// Not inlined: with the widest instructions the compiler would scatter each row, number by number,
/// which takes longer.
#[inline(never)]
fn fill_panel(panel: &mut [f32], rows: &[f32], starts: &[usize; LANES]) {
    let len = panel.len() / LANES;
    for (quarter, starts) in starts.as_chunks::<4>().0.iter().enumerate() {
        let [a, b, c, d] = starts.map(|start| rows[start..start + len].as_chunks::<4>().0);
        let cells = panel.as_chunks_mut::<{ 4 * LANES }>().0.iter_mut();
        for ((((cells, a), b), c), d) in cells.zip(a).zip(b).zip(c).zip(d) {
            for number in 0..4 {
                let lanes = [a[number], b[number], c[number], d[number]];
                cells[number * LANES + 4 * quarter..][..4].copy_from_slice(&lanes);
            }
        }
    }
}

/// Returns the inner products of four rows with the columns of a panel.
#[inline(always)]
fn inner([a, b, c, d]: [&[f32]; TILE], panel: &[f32]) -> [[f32; LANES]; TILE] {
    let mut sums = [[0.0; LANES]; TILE];
    let numbers = a.iter().zip(b).zip(c).zip(d);
    for ((((a, b), c), d), panel) in numbers.zip(panel.as_chunks::<LANES>().0) {
        add_tile(&mut sums, [*a, *b, *c, *d], panel);
    }
    sums
}

/// Returns four sums of lanes `at` of the rows that begin at `starts`, row `k` times factors
/// `k * stride ..`.
#[inline(always)]
fn combine(
    factors: &[f32],
    stride: usize,
    rows: &[f32],
    starts: &[usize],
    at: usize,
) -> [[f32; LANES]; TILE] {
    let mut sums = [[0.0; LANES]; TILE];
    for (factors, start) in factors.chunks(stride).zip(starts) {
        let row: &[f32; LANES] = rows[start + at..].first_chunk().expect("rows are whole lanes");
        let factors: &[f32; TILE] = factors.first_chunk().expect("factors are whole tiles");
        add_tile(&mut sums, *factors, row);
    }
    sums
}

/// Adds each factor times `row` to its sum.
#[inline(always)]
fn add_tile(sums: &mut [[f32; LANES]; TILE], factors: [f32; TILE], row: &[f32; LANES]) {
    for (number, factor) in factors.into_iter().enumerate() {
        // A copy in and out lets the compiler keep all sums in registers.
        let mut sum = sums[number];
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += factor * value;
        }
        sums[number] = sum;
    }
}

/// Moves lanes `at` of a value by a step, or by one of AdaGrad if that is a gradient.
#[inline(always)]
fn advance<const ADAGRAD: bool>(
    rows: &mut [f32],
    at: usize,
    len: usize,
    moves: &[f32; LANES],
    learning_rate: f32,
) {
    let mut value = *lanes(rows, at);
    if ADAGRAD {
        let mut square = *lanes(rows, at + len);
        step(&mut value, &mut square, moves, learning_rate);
        *lanes(rows, at + len) = square;
    } else {
        for lane in 0..LANES {
            value[lane] += moves[lane];
        }
    }
    *lanes(rows, at) = value;
}

#[inline(always)]
fn lanes(rows: &mut [f32], at: usize) -> &mut [f32; LANES] {
    rows[at..].first_chunk_mut().expect("rows are whole lanes")
}

/// Rows that are computed together.
const TILE: usize = 4;
