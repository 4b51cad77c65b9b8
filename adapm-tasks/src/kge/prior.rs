//! Prior knowledge of a candidate, before the given entity is looked at: its frequency with the
//! relation.
//!
//! In evaluation, a score is what the vectors say plus a weight times the logarithm of how much
//! likelier the candidate is than one that never occurs there, by its count in train. The weight is
//! the one of [`Weight::ALL`] that is best on valid. In a graph where the given entity says little,
//! vectors of many numbers memorize the training data and rank worse than frequency does: with the
//! largest weight frequency decides, and vectors only where it ties; it is also taken if no other
//! is better by a standard error on valid. Where the given entity says all, the weight is 0.
//!
//! Let a relation have `n` facts, and let `n1` entities occur once on one side of them. Good and
//! Turing expect the next fact to have an entity that is new there with probability `n1 / n`. If
//! the others share the rest by their counts, smoothed by as much for each of `e` entities, the
//! candidate with count `c` is
//!
//! ```text
//!   1 + c * e * (n - n1 + 1/2) / (n * (n1 + 1/2))
//! ```
//!
//! times as likely as a new one; the halves keep it finite.
//!
//! I. J. Good: The population frequencies of species and the estimation of population parameters,
//! Biometrika 40 (1953).

use std::sync::{Mutex, PoisonError};

use crate::kge::graph::{Graph, Triple};
use crate::kge::model::Side;

/// The weight of frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight(usize);

impl Weight {
    /// The number of weights.
    pub(crate) const COUNT: usize = 4;
    /// All, ascending: from frequency that does not count to frequency that decides.
    pub(crate) const ALL: [Self; Self::COUNT] = [Self(0), Self(1), Self(2), Self(3)];

    /// Returns the weight at a place of [`ALL`](Self::ALL).
    pub(crate) fn at(place: usize) -> Option<Self> {
        Self::ALL.get(place).copied()
    }

    /// Returns the place among [`ALL`](Self::ALL).
    pub(crate) fn place(self) -> usize {
        self.0
    }

    /// Returns the factor.
    pub(crate) fn factor(self) -> f32 {
        FACTORS[self.0]
    }
}

/// Scores are logarithms of likelihoods, so 1 takes both as equally good estimates. 1000 lets
/// vectors decide only where counts are equal, and leaves them three digits.
const FACTORS: [f32; Weight::COUNT] = [0.0, 0.3, 1.0, 1000.0];

/// The weights to rank by, and what is weighed. Without a prior there is one weight, which does not
/// count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighing<'a> {
    pub(crate) prior: Option<&'a Prior>,
    pub(crate) weights: &'a [Weight],
}

impl Default for Weighing<'_> {
    fn default() -> Self {
        Self { prior: None, weights: &Weight::ALL[..1] }
    }
}

impl<'a> Weighing<'a> {
    /// Ranks by all weights.
    pub(crate) fn all(prior: &'a Prior) -> Self {
        Self { prior: Some(prior), weights: &Weight::ALL }
    }

    /// Ranks by one weight.
    pub(crate) fn by(prior: &'a Prior, weight: Weight) -> Self {
        match weight.place() {
            0 => Self::default(),
            place => Self { prior: Some(prior), weights: &Weight::ALL[place..=place] },
        }
    }
}

/// The weight that was best on valid so far. All processes come to the same, as they have the same
/// figures.
#[derive(Debug, Default)]
pub(crate) struct Chosen(Mutex<(f64, Weight)>);

impl Chosen {
    /// Takes a weight with this mean reciprocal rank over, if it is better than any before.
    pub(crate) fn offer(&self, mrr: f64, weight: Weight) {
        let mut best = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if mrr > best.0 {
            *best = (mrr, weight);
        }
    }

    /// Returns it as text.
    pub(crate) fn kept(&self) -> String {
        let (mrr, weight) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{} {:016x}", weight.place(), mrr.to_bits())
    }

    /// Takes over what [`kept`](Self::kept) has returned. Returns false if it is none of that.
    pub(crate) fn restore(&self, kept: &str) -> bool {
        let read = kept.split_once(' ').and_then(|(place, mrr)| {
            let weight = Weight::at(place.parse().ok()?)?;
            Some((f64::from_bits(u64::from_str_radix(mrr, 16).ok()?), weight))
        });
        let Some(read) = read else { return false };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = read;
        true
    }

    /// Returns the best weight; that of frequency that does not count if there was none.
    pub(crate) fn weight(&self) -> Weight {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

/// The prior of candidates, of both sides.
#[derive(Clone, Debug)]
pub(crate) struct Prior {
    object: Known,
    subject: Known,
}

#[derive(Clone, Debug)]
struct Known {
    counts: Counts,
    /// The factor of a count, for each relation.
    score_gradients: Vec<f32>,
}

impl Prior {
    /// Returns the prior of a graph's training facts.
    pub(crate) fn new(graph: &Graph) -> Self {
        let known = |side| {
            let counts = Counts::new(graph, side);
            let score_gradients = (0..graph.relations.len() as u32)
                .map(|relation| slope(&counts, relation))
                .collect();
            Known { counts, score_gradients }
        };
        Self { object: known(Side::Object), subject: known(Side::Subject) }
    }

    /// Candidates that occur with a relation, ascending, with their counts.
    pub(crate) fn candidates(&self, side: Side, relation: u32) -> &[[u32; 2]] {
        self.known(side).counts.of(relation)
    }

    /// Returns the logarithm of how much likelier a candidate with this count is than one that
    /// never occurs.
    pub(crate) fn of_count(&self, side: Side, relation: u32, count: u32) -> f32 {
        let slope = self.known(side).score_gradients.get(relation as usize).copied().unwrap_or(0.0);
        (count as f32 * slope).ln_1p()
    }

    /// That of a candidate.
    pub(crate) fn of(&self, side: Side, relation: u32, candidate: u32) -> f32 {
        self.of_count(side, relation, self.known(side).counts.count(relation, candidate))
    }

    fn known(&self, side: Side) -> &Known {
        match side {
            Side::Object => &self.object,
            Side::Subject => &self.subject,
        }
    }
}

fn slope(counts: &Counts, relation: u32) -> f32 {
    let entries = counts.of(relation);
    let facts: f64 = entries.iter().map(|[_, count]| f64::from(*count)).sum();
    let once = entries.iter().filter(|[_, count]| *count == 1).count() as f64;
    (f64::from(counts.entities()) * (facts - once + 0.5) / (facts.max(1.0) * (once + 0.5))) as f32
}

/// Counts of one side: 8 bytes for each entity that is there with a relation, and 4 for the order
/// of counts.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    entities: u32,
    /// The end of the entries of each relation.
    ends: Vec<usize>,
    /// Entity and count, one relation after the other, each ascending by entity; entities that are
    /// never there are left out.
    entries: Vec<[u32; 2]>,
    /// The counts of the same entries, ascending within each relation.
    ordered: Vec<u32>,
}

impl Counts {
    /// Counts the answers to queries of this side.
    pub(crate) fn new(graph: &Graph, side: Side) -> Self {
        let answer = |triple: &Triple| match side {
            Side::Object => [triple.relation, triple.object],
            Side::Subject => [triple.relation, triple.subject],
        };
        let mut pairs: Vec<[u32; 2]> = graph.train.iter().map(answer).collect();
        pairs.sort_unstable();
        let relations =
            graph.relations.len().max(pairs.last().map_or(0, |last| last[0] as usize + 1));
        let (mut ends, mut entries) = (Vec::with_capacity(relations), Vec::new());
        for same in pairs.chunk_by(|one, other| one == other) {
            ends.resize(ends.len().max(same[0][0] as usize), entries.len());
            entries.push([same[0][1], same.len() as u32]);
        }
        ends.resize(relations, entries.len());
        let mut counts =
            Self { entities: graph.entities.len() as u32, ends, entries, ordered: Vec::new() };
        counts.ordered = counts.entries.iter().map(|[_, count]| *count).collect();
        for relation in 0..relations as u32 {
            let range = counts.range(relation);
            counts.ordered[range].sort_unstable();
        }
        counts
    }

    /// Entities of the graph.
    pub(crate) fn entities(&self) -> u32 {
        self.entities
    }

    /// Returns the entities that are there with a relation, ascending, each with its count.
    pub(crate) fn of(&self, relation: u32) -> &[[u32; 2]] {
        &self.entries[self.range(relation)]
    }

    /// Counts the facts of a relation that have an entity on this side.
    pub(crate) fn count(&self, relation: u32, entity: u32) -> u32 {
        let entries = self.of(relation);
        let at = entries.binary_search_by_key(&entity, |[entity, _]| *entity);
        at.map_or(0, |at| entries[at][1])
    }

    /// Entities that are there with a relation more often than `count`.
    pub(crate) fn above(&self, relation: u32, count: u32) -> u32 {
        let ordered = &self.ordered[self.range(relation)];
        (ordered.len() - ordered.partition_point(|other| *other <= count)) as u32
    }

    fn range(&self, relation: u32) -> std::ops::Range<usize> {
        let relation = relation as usize;
        let end = |relation: usize| self.ends.get(relation).copied().unwrap_or(self.entries.len());
        let start = if relation == 0 { 0 } else { end(relation - 1) };
        start..end(relation)
    }
}

#[cfg(test)]
mod tests;
