//! TransE: `-|s + r - o|`, the Euclidean distance (Bordes et al., NIPS'13).

use crate::kge::comparison::Comparison;
use crate::kge::model::score::{ScoreFunction, Side};
use crate::matrix::add_scaled;

/// The score function.
pub(crate) struct TransE;

impl ScoreFunction for TransE {
    fn comparison(&self) -> Comparison {
        Comparison::Euclidean
    }

    /// Writes `s + r`, or `o - r`.
    fn query(&self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        query.copy_from_slice(given);
        add_scaled(query, sign(side), relation);
    }

    fn query_gradient(
        &self,
        side: Side,
        _: (&[f32], &[f32]),
        of_query: &[f32],
        (of_given, of_relation): (&mut [f32], &mut [f32]),
    ) {
        add_scaled(of_given, 1.0, of_query);
        add_scaled(of_relation, sign(side), of_query);
    }
}

/// Returns the sign of the translation from the given entity to the other.
fn sign(side: Side) -> f32 {
    match side {
        Side::Object => 1.0,
        Side::Subject => -1.0,
    }
}
