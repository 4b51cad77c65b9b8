//! DistMult: `<s, r, o>`, which is symmetric in `s` and `o` (Yang et al., ICLR'15).

use crate::kge::model::score::{ScoreFunction, Side};

/// The score function.
pub(crate) struct DistMult;

impl ScoreFunction for DistMult {
    /// Writes `e * r`, element by element, from either side.
    fn query(&self, _: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        for ((cell, e), r) in query.iter_mut().zip(given).zip(relation) {
            *cell = e * r;
        }
    }

    fn query_gradient(
        &self,
        _: Side,
        (given, relation): (&[f32], &[f32]),
        of_query: &[f32],
        (of_given, of_relation): (&mut [f32], &mut [f32]),
    ) {
        for (i, g) in of_query.iter().enumerate() {
            of_given[i] += g * relation[i];
            of_relation[i] += g * given[i];
        }
    }
}
