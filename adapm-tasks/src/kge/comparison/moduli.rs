//! Gradients of sums of moduli, of many queries with many candidates.
//!
//! A pair takes a reciprocal square root an element, which dominates. It comes from the bits of the
//! number and a parabola instead of a square root and a division, which take longer than all the
//! rest; multiplications and subtractions have the same bits on every machine.
//!
//! Vectors are copied into groups of [`LANES`] complex numbers, so that a query's group and its
//! gradient stay in registers while the candidates' pass by.

use crate::kge::comparison::rows::Rows;
use crate::simd::{self, Kernel};

/// A worker's memory for the gradients.
#[derive(Debug, Default)]
pub(super) struct Moduli {
    queries: Vec<Group>,
    of_queries: Vec<Group>,
    candidates: Vec<Group>,
    of_candidates: Vec<Group>,
}

impl Moduli {
    /// Writes the gradients of the queries and of the candidates, from those of their scores,
    /// `[queries x candidates]`.
    pub(super) fn backward(
        &mut self,
        dim: usize,
        (queries, candidates): (Rows<'_>, Rows<'_>),
        score_gradients: &[f32],
        (of_queries, of_candidates): (&mut [f32], &mut [f32]),
    ) {
        gather(dim, queries, &mut self.queries);
        gather(dim, candidates, &mut self.candidates);
        for (of, len) in [
            (&mut self.of_queries, self.queries.len()),
            (&mut self.of_candidates, self.candidates.len()),
        ] {
            of.clear();
            of.resize(len, Group::default());
        }
        let counts = (queries.count, candidates.count);
        simd::run(Gradients { counts, score_gradients, memory: self });
        scatter(dim, &self.of_queries, of_queries);
        scatter(dim, &self.of_candidates, of_candidates);
    }
}

/// Some complex numbers of a vector, zeros beyond its end: real parts, imaginary parts.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    re: [f32; LANES],
    im: [f32; LANES],
}

/// Copies vectors into groups: the first of each vector, then the second of each.
fn gather(dim: usize, rows: Rows<'_>, groups: &mut Vec<Group>) {
    let half = dim / 2;
    groups.clear();
    for start in (0..half).step_by(LANES) {
        let width = LANES.min(half - start);
        groups.extend(rows.vectors(dim).map(|vector| {
            let mut group = Group::default();
            group.re[..width].copy_from_slice(&vector[start..start + width]);
            group.im[..width].copy_from_slice(&vector[half + start..half + start + width]);
            group
        }));
    }
}

/// Copies groups back into vectors, `dim` apart.
fn scatter(dim: usize, groups: &[Group], vectors: &mut [f32]) {
    let (half, count) = (dim / 2, vectors.len() / dim);
    for (start, groups) in (0..half).step_by(LANES).zip(groups.chunks(count.max(1))) {
        let width = LANES.min(half - start);
        for (group, vector) in groups.iter().zip(vectors.chunks_exact_mut(dim)) {
            vector[start..start + width].copy_from_slice(&group.re[..width]);
            vector[half + start..half + start + width].copy_from_slice(&group.im[..width]);
        }
    }
}

/// The loop of [`Moduli::backward`].
struct Gradients<'a> {
    /// Of the queries, of the candidates.
    counts: (usize, usize),
    score_gradients: &'a [f32],
    memory: &'a mut Moduli,
}

impl Kernel for Gradients<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (query_count, candidate_count) = self.counts;
        let (query_count, candidate_count) = (query_count.max(1), candidate_count.max(1));
        let Moduli { queries, of_queries, candidates, of_candidates } = self.memory;
        let queries = queries.chunks(query_count).zip(of_queries.chunks_mut(query_count));
        let candidates =
            candidates.chunks(candidate_count).zip(of_candidates.chunks_mut(candidate_count));
        for ((queries, of_queries), (candidates, of_candidates)) in queries.zip(candidates) {
            // A block of candidates and their gradients stays in the L1 cache while the queries
            // stream by.
            let blocks = candidates.chunks(BLOCK).zip(of_candidates.chunks_mut(BLOCK));
            for (block, (candidates, of_candidates)) in blocks.enumerate() {
                let rows = self.score_gradients.chunks_exact(candidate_count);
                for ((row, query), of_query) in rows.zip(queries).zip(of_queries.iter_mut()) {
                    let row = &row[block * BLOCK..][..candidates.len()];
                    *of_query = add_row(row, query, *of_query, (candidates, of_candidates));
                }
            }
        }
    }
}

/// Adds the gradients of a query's group with a block of candidates, whose scores have the
/// gradients `row`. Returns the query's.
#[inline(always)]
fn add_row(
    row: &[f32],
    query: &Group,
    mut of_query: Group,
    (candidates, of_candidates): (&[Group], &mut [Group]),
) -> Group {
    let query = *query;
    for ((score_gradient, candidate), of_candidate) in row.iter().zip(candidates).zip(of_candidates)
    {
        let (mut of, score_gradient) = (*of_candidate, UNIT * score_gradient);
        for lane in 0..LANES {
            let re = candidate.re[lane] - query.re[lane];
            let im = candidate.im[lane] - query.im[lane];
            let factor = score_gradient * direction(re * re + im * im);
            of_query.re[lane] += factor * re;
            of_query.im[lane] += factor * im;
            of.re[lane] -= factor * re;
            of.im[lane] -= factor * im;
        }
        *of_candidate = of;
    }
    of_query
}

/// Returns `1 / sqrt(square)` in units of [`UNIT`], relative error below 3e-5; 0 where there is no
/// distance, hence no direction. NaN stays.
#[inline(always)]
fn direction(square: f32) -> f32 {
    let guess = f32::from_bits(GUESS.wrapping_sub(square.to_bits() >> 1));
    // A parabola in place of `1 / sqrt(error)`.
    let error = square * guess * guess;
    let root = guess * (PARABOLA[0] - error * (PARABOLA[1] - error));
    if square <= SQUARE_MIN { 0.0 } else { root }
}

/// Distances that count as none, at most.
pub(super) const DISTANCE_MIN: f32 = 1e-6;
/// Complex numbers of a group.
const LANES: usize = 16;
/// Candidates that are compared with all queries at once.
const BLOCK: usize = 64;
/// Squares of distances that count as none, at most.
const SQUARE_MIN: f32 = DISTANCE_MIN * DISTANCE_MIN;
/// The bits from which half the bits of a number are subtracted to guess its reciprocal square
/// root, within 3.5 %.
const GUESS: u32 = 0x5f37_59df;
/// `UNIT (p0 - x (p1 - x))` equals `1 / sqrt(x)` at three points of 0.932 to 1.070, the range of
/// the guess's squared error, which keeps the difference small between them.
const PARABOLA: [f32; 2] = [5.000_231, 3.335_355];
/// See [`PARABOLA`]; a factor of the score gradient, which saves one for each element.
const UNIT: f32 = 0.375_252_3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_reciprocal_square_roots() {
        for exponent in -39..60 {
            for mantissa in [1.0, 1.1, 1.5, 1.9, 2.0, 2.7, 3.3, 3.99] {
                let square = mantissa * 2f32.powi(exponent);
                let expected = 1.0 / f64::from(square).sqrt();
                let error = (f64::from(UNIT * direction(square)) / expected - 1.0).abs();
                assert!(error < 3e-5, "{square}: {error}");
            }
        }
        assert_eq!([0.0, 1e-30, SQUARE_MIN].map(direction), [0.0; 3]);
        assert!(direction(f32::NAN).is_nan());
    }
}
