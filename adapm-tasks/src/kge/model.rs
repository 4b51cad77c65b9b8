//! The score functions behind one interface, which key has which vector, and what a vector is at
//! first: pure functions on slices.
//!
//! Both models score a candidate by the inner product of its vector and a query, made of the
//! relation and the entity that is given. A step and an evaluation need no more than the query and
//! what a query's gradient means for its parts.
//!
//! - ComplEx: `score = Re<s, r, conj o>`, vectors in the complex numbers: `dim` reals are `dim / 2`
//!   complex numbers, real parts first.
//! - RESCAL: `score = s^T R o`, a vector per entity, a row-major `dim x dim` matrix per relation.

use adapm_core::Key;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::config::ModelKind;
use crate::kge::graph::Graph;
use crate::matrix::{add_scaled, dot};
use crate::optim::AdaGrad;
use crate::run;
use crate::run::parameters::SamplingDistribution;

/// The end of a triple that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `(s, r, ?)`: the subject is given.
    Object,
    /// `(?, r, o)`: the object is given.
    Subject,
}

/// A score function for vectors of `dim` reals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) kind: ModelKind,
    pub(crate) dim: usize,
}

impl Model {
    /// Reals of a relation's parameter.
    pub(crate) fn relation_len(self) -> usize {
        match self.kind {
            ModelKind::Complex => self.dim,
            ModelKind::Rescal => self.dim * self.dim,
        }
    }

    /// Writes the query: `score = query . candidate`.
    pub(crate) fn query(self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        match (self.kind, side) {
            (ModelKind::Complex, Side::Object) => complex_object_query(given, relation, query),
            (ModelKind::Complex, Side::Subject) => complex_subject_query(given, relation, query),
            (ModelKind::Rescal, Side::Object) => rescal_object_query(given, relation, query),
            (ModelKind::Rescal, Side::Subject) => rescal_subject_query(given, relation, query),
        }
    }

    /// Adds to the gradients of the query's parts what `query_gradient` means for them.
    pub(crate) fn query_gradient(
        self,
        side: Side,
        (given, relation): (&[f32], &[f32]),
        of_query: &[f32],
        (given_gradient, relation_gradient): (&mut [f32], &mut [f32]),
    ) {
        let gradient = match (self.kind, side) {
            (ModelKind::Complex, Side::Object) => complex_object_query_gradient,
            (ModelKind::Complex, Side::Subject) => complex_subject_query_gradient,
            (ModelKind::Rescal, Side::Object) => rescal_object_query_gradient,
            (ModelKind::Rescal, Side::Subject) => rescal_subject_query_gradient,
        };
        gradient(given, relation, of_query, given_gradient, relation_gradient);
    }

    /// Adds the gradient of `weight * sum |x|^3` of a positive's vector; moduli of complex numbers
    /// under ComplEx.
    pub(crate) fn n3_gradient(self, weight: f32, vector: &[f32], gradient: &mut [f32]) {
        match self.kind {
            ModelKind::Complex => {
                let half = vector.len() / 2;
                let (real, imaginary) = vector.split_at(half);
                let (d_real, d_imaginary) = gradient.split_at_mut(half);
                for i in 0..half {
                    let factor =
                        3.0 * weight * (real[i] * real[i] + imaginary[i] * imaginary[i]).sqrt();
                    d_real[i] += factor * real[i];
                    d_imaginary[i] += factor * imaginary[i];
                }
            }
            ModelKind::Rescal => {
                for (of_query, x) in gradient.iter_mut().zip(vector) {
                    *of_query += 3.0 * weight * x.abs() * x;
                }
            }
        }
    }
}

/// Fills a value `[parameter | accumulator]`: uniform parameters of mean 0 and the given standard
/// deviation, AdaGrad's initial accumulator. Uniform, since it needs no function whose last bit
/// depends on the machine; of seed and key alone, so that any node can compute any of them.
pub(crate) fn initial_value(seed: u64, deviation: f32, key: Key, value: &mut [f32]) {
    // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(
        seed ^ key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    );
    let half = value.len() / 2;
    let (parameter, accumulator) = value.split_at_mut(half);
    let bound = deviation * 3f32.sqrt();
    parameter.fill_with(|| bound * (2.0 * random.random::<f32>() - 1.0));
    accumulator.fill(AdaGrad::INITIAL);
}

/// The lengths of values: of entities, which come first, and of relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) entities: u64,
    pub(crate) relations: u64,
    /// Floats of an entity's value.
    pub(crate) entity_len: usize,
    /// Floats of a relation's value.
    pub(crate) relation_len: usize,
}

impl Shape {
    /// Returns the shape of a graph's parameters; `halves` is 2 with accumulators, else 1.
    pub(crate) fn of(graph: &Graph, model: Model, reciprocal: bool, halves: usize) -> Self {
        let relations = graph.relations.len() as u64;
        Self {
            entities: graph.entities.len() as u64,
            relations: if reciprocal { 2 * relations } else { relations },
            entity_len: halves * model.dim,
            relation_len: halves * model.relation_len(),
        }
    }

    /// Floats of the value of `key`.
    pub(crate) fn len_of(self, key: Key) -> usize {
        if key.0 < self.entities { self.entity_len } else { self.relation_len }
    }

    /// Returns the shape as a run sees it.
    pub(crate) fn groups(self) -> run::parameters::Shape {
        run::parameters::Shape::new(&[
            (self.entities, self.entity_len),
            (self.relations, self.relation_len),
        ])
    }

    /// Negatives are drawn from the entities.
    pub(crate) fn sampling_distribution(self) -> SamplingDistribution {
        SamplingDistribution::Uniform(Key(0)..Key(self.entities))
    }
}

/// Writes the query of the object side, `s * r`.
pub(crate) fn complex_object_query(subject: &[f32], relation: &[f32], query: &mut [f32]) {
    let half = query.len() / 2;
    let (real, imaginary) = query.split_at_mut(half);
    let ((s_re, s_im), (r_re, r_im)) = (subject.split_at(half), relation.split_at(half));
    for i in 0..half {
        real[i] = s_re[i] * r_re[i] - s_im[i] * r_im[i];
        imaginary[i] = s_re[i] * r_im[i] + s_im[i] * r_re[i];
    }
}

/// Writes the query of the subject side, `conj r * o`.
pub(crate) fn complex_subject_query(object: &[f32], relation: &[f32], query: &mut [f32]) {
    let half = query.len() / 2;
    let (real, imaginary) = query.split_at_mut(half);
    let ((o_re, o_im), (r_re, r_im)) = (object.split_at(half), relation.split_at(half));
    for i in 0..half {
        real[i] = r_re[i] * o_re[i] + r_im[i] * o_im[i];
        imaginary[i] = r_re[i] * o_im[i] - r_im[i] * o_re[i];
    }
}

/// Adds to the gradients of subject and relation what the gradient `of_query` of the object-side
/// query means for them.
pub(crate) fn complex_object_query_gradient(
    subject: &[f32],
    relation: &[f32],
    of_query: &[f32],
    subject_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let half = of_query.len() / 2;
    let (g_re, g_im) = of_query.split_at(half);
    let ((s_re, s_im), (r_re, r_im)) = (subject.split_at(half), relation.split_at(half));
    let (ds_re, ds_im) = subject_gradient.split_at_mut(half);
    let (dr_re, dr_im) = relation_gradient.split_at_mut(half);
    for i in 0..half {
        ds_re[i] += g_re[i] * r_re[i] + g_im[i] * r_im[i];
        ds_im[i] += g_im[i] * r_re[i] - g_re[i] * r_im[i];
        dr_re[i] += g_re[i] * s_re[i] + g_im[i] * s_im[i];
        dr_im[i] += g_im[i] * s_re[i] - g_re[i] * s_im[i];
    }
}

/// Adds to the gradients of object and relation what the gradient `of_query` of the subject-side
/// query means for them.
pub(crate) fn complex_subject_query_gradient(
    object: &[f32],
    relation: &[f32],
    of_query: &[f32],
    object_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let half = of_query.len() / 2;
    let (g_re, g_im) = of_query.split_at(half);
    let ((o_re, o_im), (r_re, r_im)) = (object.split_at(half), relation.split_at(half));
    let (do_re, do_im) = object_gradient.split_at_mut(half);
    let (dr_re, dr_im) = relation_gradient.split_at_mut(half);
    for i in 0..half {
        do_re[i] += g_re[i] * r_re[i] - g_im[i] * r_im[i];
        do_im[i] += g_re[i] * r_im[i] + g_im[i] * r_re[i];
        dr_re[i] += g_re[i] * o_re[i] + g_im[i] * o_im[i];
        dr_im[i] += g_re[i] * o_im[i] - g_im[i] * o_re[i];
    }
}

/// Writes the query of the object side, `s^T R`.
pub(crate) fn rescal_object_query(subject: &[f32], relation: &[f32], query: &mut [f32]) {
    query.fill(0.0);
    for (factor, row) in subject.iter().zip(relation.chunks_exact(query.len())) {
        add_scaled(query, *factor, row);
    }
}

/// Writes the query of the subject side, `R o`.
pub(crate) fn rescal_subject_query(object: &[f32], relation: &[f32], query: &mut [f32]) {
    for (cell, row) in query.iter_mut().zip(relation.chunks_exact(object.len())) {
        *cell = dot(row, object);
    }
}

/// Adds to the gradients of subject and relation what the gradient `of_query` of the object-side
/// query means for them.
pub(crate) fn rescal_object_query_gradient(
    subject: &[f32],
    relation: &[f32],
    of_query: &[f32],
    subject_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let rows = relation
        .chunks_exact(of_query.len())
        .zip(relation_gradient.chunks_exact_mut(of_query.len()));
    for ((value, gradient), (row, row_gradient)) in subject.iter().zip(subject_gradient).zip(rows) {
        *gradient += dot(row, of_query);
        add_scaled(row_gradient, *value, of_query);
    }
}

/// Adds to the gradients of object and relation what the gradient `of_query` of the subject-side
/// query means for them.
pub(crate) fn rescal_subject_query_gradient(
    object: &[f32],
    relation: &[f32],
    of_query: &[f32],
    object_gradient: &mut [f32],
    relation_gradient: &mut [f32],
) {
    let rows = relation
        .chunks_exact(of_query.len())
        .zip(relation_gradient.chunks_exact_mut(of_query.len()));
    for (factor, (row, row_gradient)) in of_query.iter().zip(rows) {
        add_scaled(object_gradient, *factor, row);
        add_scaled(row_gradient, *factor, object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::dot;

    const DIM: usize = 6;

    fn vector(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 37 + seed * 101) % 17) as f32 / 8.0 - 1.0).collect()
    }

    fn score(model: Model, side: Side, given: &[f32], relation: &[f32], candidate: &[f32]) -> f32 {
        let mut query = vec![0.0; DIM];
        model.query(side, given, relation, &mut query);
        dot(&query, candidate)
    }

    /// Returns the derivative by central differences; exact for the bilinear scores but for
    /// rounding.
    fn difference(at: &[f32], i: usize, f: impl Fn(&[f32]) -> f32) -> f32 {
        let mut moved = at.to_vec();
        let mut eval = |step: f32| {
            moved[i] = at[i] + step;
            f(&moved)
        };
        (eval(0.5) - eval(-0.5)) / 1.0
    }

    #[test]
    fn gradients_equal_finite_differences() {
        for kind in [ModelKind::Complex, ModelKind::Rescal] {
            let model = Model { kind, dim: DIM };
            let (given, candidate) = (vector(DIM, 1), vector(DIM, 2));
            let relation = vector(model.relation_len(), 3);
            for side in [Side::Object, Side::Subject] {
                // The gradient of the score in the query is the candidate.
                let (mut d_given, mut d_relation) = (vec![0.0; DIM], vec![0.0; relation.len()]);
                let parts = (given.as_slice(), relation.as_slice());
                model.query_gradient(side, parts, &candidate, (&mut d_given, &mut d_relation));
                for (i, gradient) in d_given.iter().enumerate() {
                    let expected =
                        difference(&given, i, |x| score(model, side, x, &relation, &candidate));
                    assert!(
                        (gradient - expected).abs() < 1e-4,
                        "{kind} {side:?} given {i}: {gradient} {expected}"
                    );
                }
                for (i, gradient) in d_relation.iter().enumerate() {
                    let expected =
                        difference(&relation, i, |x| score(model, side, &given, x, &candidate));
                    assert!(
                        (gradient - expected).abs() < 1e-4,
                        "{kind} {side:?} relation {i}: {gradient} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn both_sides_of_a_triple_have_the_same_score() {
        for kind in [ModelKind::Complex, ModelKind::Rescal] {
            let model = Model { kind, dim: DIM };
            let (subject, object) = (vector(DIM, 4), vector(DIM, 5));
            let relation = vector(model.relation_len(), 6);
            let object_side = score(model, Side::Object, &subject, &relation, &object);
            let subject_side = score(model, Side::Subject, &object, &relation, &subject);
            assert!((object_side - subject_side).abs() < 1e-4);
        }
    }

    #[test]
    fn complex_is_asymmetric_through_the_imaginary_part_of_the_relation() {
        let model = Model { kind: ModelKind::Complex, dim: 2 };
        // s = 1, r = i, o = i: Re<s, r, conj o> = Re(i * -i) = 1; swapped: Re(i * i * 1) = -1.
        let (s, r, o) = ([1.0, 0.0], [0.0, 1.0], [0.0, 1.0]);
        let score = |s: &[f32], o: &[f32]| {
            let mut query = [0.0; 2];
            model.query(Side::Object, s, &r, &mut query);
            dot(&query, o)
        };
        assert_eq!((score(&s, &o), score(&o, &s)), (1.0, -1.0));
    }

    #[test]
    fn n3_gradient_equals_finite_differences() {
        for kind in [ModelKind::Complex, ModelKind::Rescal] {
            let model = Model { kind, dim: DIM };
            let x = vector(DIM, 7);
            let penalty = |x: &[f32]| -> f64 {
                let cube = |square: f32| f64::from(square).powf(1.5) * 0.1;
                match kind {
                    ModelKind::Complex => {
                        (0..3).map(|i| cube(x[i] * x[i] + x[i + 3] * x[i + 3])).sum()
                    }
                    ModelKind::Rescal => x.iter().map(|x| cube(x * x)).sum(),
                }
            };
            let mut gradient = vec![0.0; DIM];
            model.n3_gradient(0.1, &x, &mut gradient);
            for i in 0..DIM {
                let mut moved = x.clone();
                moved[i] = x[i] + 1e-3;
                let above = penalty(&moved);
                moved[i] = x[i] - 1e-3;
                let expected = (above - penalty(&moved)) / 2e-3;
                assert!((f64::from(gradient[i]) - expected).abs() < 1e-3, "{kind} {i}");
            }
        }
    }

    #[test]
    fn values_depend_on_seed_and_key_alone_and_have_the_deviation() {
        let of = |seed, key| {
            let mut cells = vec![0.0; 2000];
            initial_value(seed, 0.1, Key(key), &mut cells);
            cells
        };
        assert_eq!(of(1, 2), of(1, 2));
        assert_ne!(of(1, 2), of(1, 3));
        assert_ne!(of(1, 2), of(2, 2));
        let cells = of(1, 2);
        let square = cells[..1000].iter().map(|x| x * x).sum::<f32>() / 1000.0;
        assert!((square.sqrt() - 0.1).abs() < 0.01, "{}", square.sqrt());
        assert!(cells[1000..].iter().all(|x| *x == AdaGrad::INITIAL));
    }
}
