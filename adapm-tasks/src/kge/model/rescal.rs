//! RESCAL: `s^T R o`, a row-major `dim x dim` matrix per relation (Nickel et al., ICML'11).

use crate::kge::model::score::{ScoreFunction, Side};
use crate::matrix::{add_scaled, dot};

/// The score function.
pub(crate) struct Rescal;

impl ScoreFunction for Rescal {
    fn relation_len(&self, dim: usize) -> usize {
        dim.saturating_mul(dim)
    }

    /// Writes `s^T R`, or `R o`.
    fn query(&self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        let rows = relation.chunks_exact(given.len());
        match side {
            Side::Object => {
                query.fill(0.0);
                given.iter().zip(rows).for_each(|(factor, row)| add_scaled(query, *factor, row));
            }
            Side::Subject => {
                query.iter_mut().zip(rows).for_each(|(cell, row)| *cell = dot(row, given));
            }
        }
    }

    fn query_gradient(
        &self,
        side: Side,
        (given, relation): (&[f32], &[f32]),
        of_query: &[f32],
        (of_given, of_relation): (&mut [f32], &mut [f32]),
    ) {
        let dim = given.len();
        let rows = relation.chunks_exact(dim).zip(of_relation.chunks_exact_mut(dim));
        match side {
            Side::Object => {
                for ((value, gradient), (row, of_row)) in given.iter().zip(of_given).zip(rows) {
                    *gradient += dot(row, of_query);
                    add_scaled(of_row, *value, of_query);
                }
            }
            Side::Subject => {
                for (factor, (row, of_row)) in of_query.iter().zip(rows) {
                    add_scaled(of_given, *factor, row);
                    add_scaled(of_row, *factor, given);
                }
            }
        }
    }
}
