//! The interface of a score function: a query is made of the relation and the entity that is given,
//! and compared with a candidate.

use crate::kge::comparison::Comparison;

/// The end of a triple that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `(s, r, ?)`: the subject is given.
    Object,
    /// `(?, r, o)`: the object is given.
    Subject,
}

/// A score function. A triple has the same score from both sides.
pub(crate) trait ScoreFunction: Sync {
    /// Returns the comparison of a query with a candidate.
    fn comparison(&self) -> Comparison {
        Comparison::InnerProduct
    }

    /// Returns true if vectors are complex numbers, real parts first: they have an even length, and
    /// their absolute values are moduli.
    fn is_complex(&self) -> bool {
        false
    }

    /// Returns true if the length of a vector has to be even.
    fn needs_even(&self) -> bool {
        self.is_complex()
    }

    /// Reals of a relation's parameter, where an entity has `dim`.
    fn relation_len(&self, dim: usize) -> usize {
        dim
    }

    /// Writes the query.
    fn query(&self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]);

    /// Adds to the gradients of the query's parts what the gradient `of_query` means for them.
    fn query_gradient(
        &self,
        side: Side,
        parts: (&[f32], &[f32]),
        of_query: &[f32],
        gradients: (&mut [f32], &mut [f32]),
    );
}
