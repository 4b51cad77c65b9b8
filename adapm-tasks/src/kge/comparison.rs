//! Scores of candidates for queries, and what the gradient of a score means for both: one pair at a
//! time ([`Comparison`]), or many queries with many candidates ([`Comparer`]).
//!
//! The score of a pair has two sums: in lanes, for training, and in order, the same bits as from
//! many with many, for ranking.
//!
//! The Euclidean distance costs little more than the inner product: `q - c` over the distance,
//! summed over candidates, is a product of matrices too.

use crate::kge::comparison::moduli::{DISTANCE_MIN, Moduli};
use crate::matrix::{self, Left, Modulus, Panels, Product, SquaredDifference};
use crate::matrix::{add_scaled, dot, multiply, ordered_sum};

mod moduli;
mod rows;

pub(crate) use rows::Rows;

/// The comparison of a query `q` with a candidate `c`: the score, the higher the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// `q . c`.
    InnerProduct,
    /// `-|q - c|`.
    Euclidean,
    /// `-sum |q_k - c_k|` over complex numbers, real parts first.
    Moduli,
}

impl Comparison {
    /// Returns the score of a pair, summed in lanes.
    pub(crate) fn score(self, query: &[f32], candidate: &[f32]) -> f32 {
        match self {
            Self::InnerProduct => dot(query, candidate),
            Self::Euclidean => -matrix::sum::<SquaredDifference>(query, candidate).sqrt(),
            Self::Moduli => -matrix::sum::<Modulus>(query, candidate),
        }
    }

    /// Returns the score of a pair, summed in order.
    pub(crate) fn ordered_score(self, query: &[f32], candidate: &[f32]) -> f32 {
        match self {
            Self::InnerProduct => ordered_sum::<Product>(query, candidate),
            Self::Euclidean => -ordered_sum::<SquaredDifference>(query, candidate).sqrt(),
            Self::Moduli => -ordered_sum::<Modulus>(query, candidate),
        }
    }

    /// Adds to the gradients of a pair what the gradient of its score means for them.
    pub(crate) fn add_gradients(
        self,
        score_gradient: f32,
        (query, candidate): (&[f32], &[f32]),
        (of_query, of_candidate): (&mut [f32], &mut [f32]),
    ) {
        match self {
            Self::InnerProduct => {
                add_scaled(of_query, score_gradient, candidate);
                add_scaled(of_candidate, score_gradient, query);
            }
            Self::Euclidean => {
                let factor = over(score_gradient, -self.score(query, candidate));
                for (i, (q, c)) in query.iter().zip(candidate).enumerate() {
                    of_query[i] += factor * (c - q);
                    of_candidate[i] += factor * (q - c);
                }
            }
            Self::Moduli => {
                add_moduli(score_gradient, (query, candidate), (of_query, of_candidate));
            }
        }
    }
}

/// A worker's memory for comparing many queries with many candidates.
#[derive(Debug)]
pub(crate) struct Comparer {
    comparison: Comparison,
    dim: usize,
    panels: Panels,
    scratch: Vec<f32>,
    /// What the scores were, of which the gradients of Euclidean distances are made.
    scores: Vec<f32>,
    /// Empty unless moduli are summed.
    moduli: Box<Moduli>,
}

impl Comparer {
    /// Returns the memory for vectors of this length.
    pub(crate) fn new(comparison: Comparison, dim: usize) -> Self {
        let (panels, moduli) = (Panels::default(), Box::default());
        Self { comparison, dim, panels, scratch: Vec::new(), scores: Vec::new(), moduli }
    }

    /// Writes the scores, `[queries x candidates]`; those of a pair are
    /// [`Comparison::ordered_score`], bit for bit. Queries stand `dim` apart.
    pub(crate) fn score(&mut self, queries: &[f32], candidates: Rows<'_>, scores: &mut [f32]) {
        let Self { comparison, dim, panels, scratch, .. } = self;
        let rows = queries.len() / *dim;
        panels.fill_transposed(candidates.data, candidates.stride, *dim, candidates.count);
        let queries = Left { data: queries, rows, row_stride: *dim, inner_stride: 1 };
        match comparison {
            Comparison::InnerProduct => multiply(queries, panels, scores, scratch),
            Comparison::Euclidean => {
                matrix::sums::<SquaredDifference>(queries, panels, scores, scratch);
                scores.iter_mut().for_each(|score| *score = -score.sqrt());
                self.scores.clear();
                self.scores.extend_from_slice(scores);
            }
            Comparison::Moduli => {
                matrix::sums::<Modulus>(queries, panels, scores, scratch);
                scores.iter_mut().for_each(|score| *score = -*score);
            }
        }
    }

    /// Writes the gradients of the queries and candidates that were last scored, from those of
    /// their scores, which it overwrites.
    pub(crate) fn backward(
        &mut self,
        queries: &[f32],
        candidates: Rows<'_>,
        score_gradients: &mut [f32],
        (of_queries, of_candidates): (&mut [f32], &mut [f32]),
    ) {
        let dim = self.dim;
        let queries = Rows { data: queries, stride: dim, count: queries.len() / dim };
        match self.comparison {
            Comparison::InnerProduct => {
                self.products(queries, candidates, score_gradients, of_queries, of_candidates);
            }
            Comparison::Euclidean => {
                for (gradient, score) in score_gradients.iter_mut().zip(&self.scores) {
                    *gradient = over(*gradient, -score);
                }
                self.products(queries, candidates, score_gradients, of_queries, of_candidates);
                // Summed in lanes, as inner products with ones.
                let (mut totals, ones) = (vec![0.0; candidates.count], vec![1.0; candidates.count]);
                let rows = score_gradients.chunks_exact(candidates.count);
                for ((row, query), of_query) in
                    rows.zip(queries.vectors(dim)).zip(of_queries.chunks_exact_mut(dim))
                {
                    add_scaled(of_query, -dot(row, &ones), query);
                    add_scaled(&mut totals, 1.0, row);
                }
                for ((total, candidate), of_candidate) in totals
                    .iter()
                    .zip(candidates.vectors(dim))
                    .zip(of_candidates.chunks_exact_mut(dim))
                {
                    add_scaled(of_candidate, -total, candidate);
                }
            }
            Comparison::Moduli => {
                let (pair, of_pair) = ((queries, candidates), (of_queries, of_candidates));
                self.moduli.backward(dim, pair, score_gradients, of_pair);
            }
        }
    }

    /// Writes the products of the score gradients with the candidates, and with the queries.
    fn products(
        &mut self,
        queries: Rows<'_>,
        candidates: Rows<'_>,
        score_gradients: &[f32],
        with_candidates: &mut [f32],
        with_queries: &mut [f32],
    ) {
        let Self { dim, panels, scratch, .. } = self;
        let left = |rows, row_stride, inner_stride| Left {
            data: score_gradients,
            rows,
            row_stride,
            inner_stride,
        };
        panels.fill(candidates.data, candidates.stride, candidates.count, *dim);
        multiply(left(queries.count, candidates.count, 1), panels, with_candidates, scratch);
        panels.fill(queries.data, queries.stride, queries.count, *dim);
        multiply(left(candidates.count, 1, candidates.count), panels, with_queries, scratch);
    }
}

/// Adds the gradients of a pair that is compared by the sum of moduli.
fn add_moduli(
    score_gradient: f32,
    (query, candidate): (&[f32], &[f32]),
    (of_query, of_candidate): (&mut [f32], &mut [f32]),
) {
    let half = query.len() / 2;
    let ((q_re, q_im), (c_re, c_im)) = (query.split_at(half), candidate.split_at(half));
    let ((dq_re, dq_im), (dc_re, dc_im)) =
        (of_query.split_at_mut(half), of_candidate.split_at_mut(half));
    let (q_im, c_im) = (&q_im[..half], &c_im[..half]);
    let (dq_im, dc_im) = (&mut dq_im[..half], &mut dc_im[..half]);
    for k in 0..half {
        let (re, im) = (c_re[k] - q_re[k], c_im[k] - q_im[k]);
        let factor = over(score_gradient, (re * re + im * im).sqrt());
        dq_re[k] += factor * re;
        dq_im[k] += factor * im;
        dc_re[k] -= factor * re;
        dc_im[k] -= factor * im;
    }
}

/// Returns the factor of a difference in the gradient: over its length. Where there is no
/// difference there is no direction; NaN stays.
#[inline(always)]
fn over(score_gradient: f32, distance: f32) -> f32 {
    if distance <= DISTANCE_MIN { 0.0 } else { score_gradient / distance }
}

#[cfg(test)]
mod tests;
