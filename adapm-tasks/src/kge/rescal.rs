//! RESCAL: `score = s^T R o`, a vector per entity, a row-major `dim x dim` matrix per relation.
//!
//! Every score is the inner product of a query (made of the relation and the entity that is given) and the candidate's
//! vector.

use crate::matrix::{add_scaled, dot};

/// Writes the query of the object side, `s^T R`.
pub(crate) fn object_query(subject: &[f32], relation: &[f32], query: &mut [f32]) {
    query.fill(0.0);
    for (factor, row) in subject.iter().zip(relation.chunks_exact(query.len())) {
        add_scaled(query, *factor, row);
    }
}

/// Writes the query of the subject side, `R o`.
pub(crate) fn subject_query(object: &[f32], relation: &[f32], query: &mut [f32]) {
    for (cell, row) in query.iter_mut().zip(relation.chunks_exact(object.len())) {
        *cell = dot(row, object);
    }
}

/// Adds to the gradients of subject and relation what the gradient `slope` of the object-side query means for them.
pub(crate) fn object_query_gradient(
    subject: &[f32],
    relation: &[f32],
    slope: &[f32],
    subject_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let rows = relation.chunks_exact(slope.len()).zip(relation_gradient.chunks_exact_mut(slope.len()));
    for ((value, gradient), (row, row_gradient)) in subject.iter().zip(subject_gradient).zip(rows) {
        *gradient += dot(row, slope);
        add_scaled(row_gradient, *value, slope);
    }
}

/// Adds to the gradients of object and relation what the gradient `slope` of the subject-side query means for them.
pub(crate) fn subject_query_gradient(
    object: &[f32],
    relation: &[f32],
    slope: &[f32],
    object_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let rows = relation.chunks_exact(slope.len()).zip(relation_gradient.chunks_exact_mut(slope.len()));
    for (factor, (row, row_gradient)) in slope.iter().zip(rows) {
        add_scaled(object_gradient, *factor, row);
        add_scaled(row_gradient, *factor, object);
    }
}
