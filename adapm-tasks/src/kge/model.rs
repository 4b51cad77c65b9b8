//! The score functions behind one interface, which key has which vector, and what a vector is at
//! first: pure functions on slices.
//!
//! Each model scores a candidate by comparing its vector with a query, made of the relation and the
//! entity that is given. A step and an evaluation need no more than the query, how it is compared,
//! and what a query's gradient means for its parts.
//!
//! A model is a file below `model`, and here a variant of [`ModelKind`] with its name and its arm
//! in `ModelKind::function`.

use adapm_core::Key;
use adapm_core::update::AdaGrad;
use adapm_runtime::tables::{Table, Tables};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::comparison::Comparison;
use crate::kge::graph::Graph;
use crate::optim::ADAGRAD;
use crate::run;
use crate::run::config::named;
use crate::run::parameters::SamplingDistribution;

mod complex;
mod distmult;
mod rescal;
mod rotate;
mod score;
mod transe;

use score::ScoreFunction;
pub(crate) use score::Side;

/// The function that scores a triple.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelKind {
    /// `Re<s, r, conj o>`: a vector per entity and relation, first half real, second half imaginary
    /// parts.
    #[default]
    Complex,
    /// `s^T R o`: a vector per entity, a `dim x dim` matrix (row-major) per relation.
    Rescal,
    /// `-|s + r - o|`, the Euclidean distance: a vector per entity and relation.
    TransE,
    /// `<s, r, o>`: a vector per entity and relation.
    DistMult,
    /// `-sum |s_k u_k - o_k|` over complex numbers: a vector per entity and relation, as ComplEx
    /// has; of a relation's numbers only the directions `u` count.
    RotatE,
}

named!(
    ModelKind,
    ModelKind::Complex => "complex",
    ModelKind::Rescal => "rescal",
    ModelKind::TransE => "transe",
    ModelKind::DistMult => "distmult",
    ModelKind::RotatE => "rotate"
);

impl ModelKind {
    /// Reals of a relation's parameter, where an entity has `dim`.
    #[must_use]
    pub fn relation_len(self, dim: usize) -> usize {
        self.function().relation_len(dim)
    }

    /// Returns true if the length of a vector has to be even.
    pub(crate) fn needs_even(self) -> bool {
        self.function().needs_even()
    }

    /// Returns true if vectors are complex numbers, real parts first.
    pub(crate) fn is_complex(self) -> bool {
        self.function().is_complex()
    }

    /// Returns the comparison of a query with a candidate.
    pub(crate) fn comparison(self) -> Comparison {
        self.function().comparison()
    }

    fn function(self) -> &'static dyn ScoreFunction {
        match self {
            Self::Complex => &complex::Complex,
            Self::Rescal => &rescal::Rescal,
            Self::TransE => &transe::TransE,
            Self::DistMult => &distmult::DistMult,
            Self::RotatE => &rotate::RotatE,
        }
    }
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
        self.kind.relation_len(self.dim)
    }

    /// Returns the comparison of a query with a candidate.
    pub(crate) fn comparison(self) -> Comparison {
        self.kind.comparison()
    }

    /// Writes the query, to be compared with candidates.
    pub(crate) fn query(self, side: Side, given: &[f32], relation: &[f32], query: &mut [f32]) {
        self.kind.function().query(side, given, relation, query);
    }

    /// Adds to the gradients of the query's parts what `query_gradient` means for them.
    pub(crate) fn query_gradient(
        self,
        side: Side,
        parts: (&[f32], &[f32]),
        of_query: &[f32],
        gradients: (&mut [f32], &mut [f32]),
    ) {
        self.kind.function().query_gradient(side, parts, of_query, gradients);
    }

    /// Adds the gradient of `weight * sum |x|^3` of a positive's vector; moduli of complex numbers
    /// where it consists of them.
    pub(crate) fn n3_gradient(self, weight: f32, vector: &[f32], gradient: &mut [f32]) {
        if self.kind.is_complex() {
            let half = vector.len() / 2;
            let (real, imaginary) = vector.split_at(half);
            let (d_real, d_imaginary) = gradient.split_at_mut(half);
            for i in 0..half {
                let factor =
                    3.0 * weight * (real[i] * real[i] + imaginary[i] * imaginary[i]).sqrt();
                d_real[i] += factor * real[i];
                d_imaginary[i] += factor * imaginary[i];
            }
        } else {
            for (of_x, x) in gradient.iter_mut().zip(vector) {
                *of_x += 3.0 * weight * x.abs() * x;
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

    /// Returns the tables of parameters of this shape, with an accumulator for each.
    pub(crate) fn tables(self) -> Tables {
        let table = |name, rows, len| Table::new(name, rows, len).with_state(ADAGRAD, len);
        let entities = table("entities", self.entities, self.entity_len);
        Tables::new([entities, table("relations", self.relations, self.relation_len)])
            .expect("names are there once")
    }

    /// Negatives are drawn from the entities.
    pub(crate) fn sampling_distribution(self) -> SamplingDistribution {
        SamplingDistribution::Uniform(Key(0)..Key(self.entities))
    }
}

#[cfg(test)]
mod tests;
