//! Answers of a trained model: the entities that complete a fact, the score and the ranks of a
//! triple.
//!
//! Scores and ranks are those of an evaluation ([`evaluate`](crate::kge::evaluate)), bit for bit: a
//! score is that of the vectors plus the weighed frequency of the candidate with the relation, and
//! known facts are left out. Frequencies and known facts are those of a graph, since a file of
//! parameters has names alone. Without a graph, scores are those of the vectors, and known facts
//! are among the answers, mostly at their top: they are what the model was trained on.
//!
//! From a file the head is read, the vectors of the entities block by block, and of the relations
//! those that are asked for. The first answer compares the checksum before.

use std::ops::Range;
use std::path::Path;

use crate::kge::Names;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::comparison::{Comparer, Rows};
use crate::kge::graph::{Graph, Triple};
use crate::kge::model::{Model, Side};
use crate::kge::prior::Prior;
use crate::kge::ranking::{Filter, count};
use crate::metric::Rank;
use crate::run::config::{ConfigError, whole};
use crate::run::error::TaskError;
use crate::run::file::CheckpointError;
use crate::top::{Scored, Top};

/// A query: a fact with one end left open, or a triple to judge. Indices are those of the model's
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// Which objects have this subject and relation?
    Objects {
        /// Index of the entity that is given.
        subject: u32,
        /// Index of the relation.
        relation: u32,
    },
    /// Which subjects have this relation and object?
    Subjects {
        /// Index of the relation.
        relation: u32,
        /// Index of the entity that is given.
        object: u32,
    },
    /// How likely is this triple?
    Triple(Triple),
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// The best entities for the open end, the best one first.
    Entities(Vec<Candidate>),
    /// The score and rank of a triple among those with another object, and another subject.
    Triple {
        /// Among all objects.
        object: Standing,
        /// Among all subjects.
        subject: Standing,
        /// The triple is one of the known facts; false if none are given.
        is_known: bool,
    },
}

/// An entity that may complete a fact.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// Its index among the names.
    pub entity: u32,
    /// Its score, the higher the likelier. Scores of one query can be compared, those of different
    /// relations or models cannot.
    pub score: f32,
    /// It makes a known fact; false if none are given.
    pub is_known: bool,
}

/// The place of an entity among those that may stand in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Standing {
    /// Its score. That of the object and that of the subject differ if relations have inverses of
    /// their own, or if frequency counts.
    pub score: f32,
    /// Its rank among all entities but those of other known facts.
    pub rank: Rank,
}

/// A trained model that answers queries.
///
/// ```
/// use adapm_tasks::kge::{Answer, Graph, Predictor, Query, TaskError, TrainConfig, train};
/// use adapm_tasks::run::Run;
///
/// let graph = Graph::families(1, 2);
/// let mut config = TrainConfig::default();
/// (config.dim, config.epochs) = (8, 3);
/// let trained = train(&graph, &config, &Run::alone())?;
///
/// // From a file it is `Predictor::open(path)?`.
/// let mut predictor = Predictor::new(&trained.checkpoint.expect("is asked for by default"));
/// predictor = predictor.with_facts(&graph)?;
/// let relation = predictor.relations().position(b"parent_of").expect("families have parents");
/// let query = Query::Objects { subject: 0, relation: relation as u32 };
/// let answers = predictor.answer(&[query], 3)?;
/// let Answer::Entities(entities) = &answers[0] else { unreachable!("an end is open") };
/// assert!(entities.len() == 3 && entities[0].score >= entities[1].score);
/// # Ok::<(), TaskError>(())
/// ```
#[derive(Debug)]
pub struct Predictor<'a> {
    model: Checkpoint,
    facts: Option<(&'a Graph, Prior)>,
    keeps_known: bool,
}

impl<'a> Predictor<'a> {
    /// Opens a file written by [`Checkpoint::save`]. Reads its head: the names, and what tells how
    /// long the file has to be.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::load`]; damage of the values is seen when queries are answered.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        Ok(Self::of(Checkpoint::open(path)?))
    }

    /// Returns one for parameters in memory.
    #[must_use]
    pub fn new(checkpoint: &Checkpoint) -> Self {
        Self::of(checkpoint.clone())
    }

    fn of(model: Checkpoint) -> Self {
        Self { model, facts: None, keeps_known: false }
    }

    /// Returns the same with the graph that it was trained on: its facts, of all parts, are left
    /// out of answers, and the frequencies of its train part count as they do in an evaluation.
    ///
    /// # Errors
    ///
    /// Another graph than the one that it was trained on.
    pub fn with_facts(self, graph: &'a Graph) -> Result<Self, CheckpointError> {
        self.check_facts(graph)?;
        Ok(Self { facts: Some((graph, Prior::new(graph))), ..self })
    }

    /// Checks that a graph is the one that it was trained on.
    ///
    /// # Errors
    ///
    /// Another graph.
    pub fn check_facts(&self, graph: &Graph) -> Result<(), CheckpointError> {
        self.model.check_data(graph)
    }

    /// Returns the same, with known facts among the answers if `keeps_known` is true. Ranks are
    /// then among all entities.
    #[must_use]
    pub fn with_known(self, keeps_known: bool) -> Self {
        Self { keeps_known, ..self }
    }

    /// Returns the names of the entities.
    #[must_use]
    pub fn entities(&self) -> &Names {
        &self.model.entities
    }

    /// Returns the names of the relations.
    #[must_use]
    pub fn relations(&self) -> &Names {
        &self.model.relations
    }

    /// Returns the graph whose facts are known, if any.
    #[must_use]
    pub fn facts(&self) -> Option<&'a Graph> {
        self.facts.as_ref().map(|(graph, _)| *graph)
    }

    /// Returns the weight of frequency that the model was chosen with. It counts if facts are
    /// known.
    #[must_use]
    pub fn frequency_weight(&self) -> f32 {
        self.model.frequency_weight()
    }

    /// Reads the whole file, if there is one, and compares its checksum. Answers do the same.
    ///
    /// # Errors
    ///
    /// A file that is damaged or cannot be read.
    pub fn check(&mut self) -> Result<(), CheckpointError> {
        self.model.values.check()
    }

    /// Answers queries in their order, each with at most `top` entities, or with the standing of
    /// its triple.
    ///
    /// Cost: two operations for each query, entity and dimension, and a pass over the vectors of
    /// the entities for each 256 queries. Memory: those of 1024 entities, whatever their number.
    ///
    /// # Errors
    ///
    /// An index of a name that there is not; a file that is damaged or cannot be read.
    pub fn answer(&mut self, queries: &[Query], top: usize) -> Result<Vec<Answer>, TaskError> {
        queries.iter().try_for_each(|query| self.check_indices(query))?;
        let mut answers = Vec::with_capacity(queries.len());
        for queries in queries.chunks(BATCH) {
            answers.append(&mut self.answer_batch(queries, top)?);
        }
        Ok(answers)
    }

    fn check_indices(&self, query: &Query) -> Result<(), ConfigError> {
        let is_below = |field, index: u32, len: usize| {
            whole(field, index.into(), 0, (len as u64).saturating_sub(1))
        };
        let (relations, entities) = (self.model.relations.len(), self.model.entities.len());
        let Triple { subject, relation, object } = query.triple();
        is_below("relation", relation, relations)?;
        is_below("subject", subject, entities)?;
        is_below("object", object, entities)
    }

    fn answer_batch(
        &mut self,
        queries: &[Query],
        top: usize,
    ) -> Result<Vec<Answer>, CheckpointError> {
        // An answer needs nearly all of the file.
        self.check()?;
        let asked: Vec<Triple> = queries.iter().map(Query::triple).collect();
        let known = match self.facts {
            Some((graph, _)) => Filter::new(graph, &asked),
            None => Filter::default(),
        };
        let (mut vectors, mut open) = (Vec::new(), Vec::new());
        for query in queries {
            for (side, triple, is_judged) in query.sides() {
                let (vector, score) = self.build(side, &triple, is_judged)?;
                vectors.extend(vector);
                let found = match score {
                    Some(score) => Found::Standing(Standing { score, rank: Rank::default() }),
                    None => Found::Top(Top::new(top)),
                };
                open.push(Row { side, triple, found });
            }
        }
        self.pass(&vectors, &known, &mut open)?;
        Ok(answers(queries, open, &known))
    }

    /// Returns the vector that candidates are compared with, and the score of the triple if it is
    /// judged.
    fn build(
        &self,
        side: Side,
        triple: &Triple,
        is_judged: bool,
    ) -> Result<(Vec<f32>, Option<f32>), CheckpointError> {
        let model = self.form();
        let (dim, entities) = (model.dim, self.model.entities.len());
        let (given, answer) = ends(side, triple);
        let is_inverse = self.model.reciprocal && side == Side::Subject;
        let offset = if is_inverse { self.model.relations.len() } else { 0 };
        let place = offset + triple.relation as usize;
        let mut vector = vec![0.0; dim];
        let (mut entity, mut relation) = (vec![0.0; dim], vec![0.0; model.relation_len()]);
        self.model.values.read(given as usize * dim, &mut entity)?;
        self.model.values.read(entities * dim + place * relation.len(), &mut relation)?;
        let asked = if self.model.reciprocal { Side::Object } else { side };
        model.query(asked, &entity, &relation, &mut vector);
        if !is_judged {
            return Ok((vector, None));
        }
        self.model.values.read(answer as usize * dim, &mut entity)?;
        let mut score = model.comparison().ordered_score(&vector, &entity);
        if let Some((prior, factor)) = self.prior() {
            score += factor * prior.of(side, triple.relation, answer);
        }
        Ok((vector, Some(score)))
    }

    /// Compares all entities with the vectors of the rows.
    fn pass(
        &self,
        vectors: &[f32],
        known: &Filter,
        rows: &mut [Row],
    ) -> Result<(), CheckpointError> {
        let (model, entities) = (self.form(), self.model.entities.len());
        let mut comparer = Comparer::new(model.comparison(), model.dim);
        let (mut values, mut scores) = (Vec::new(), Vec::new());
        for first in (0..entities).step_by(BLOCK) {
            let count = BLOCK.min(entities - first);
            values.resize(count * model.dim, 0.0);
            self.model.values.read(first * model.dim, &mut values)?;
            scores.resize(rows.len() * count, 0.0);
            let candidates = Rows { data: &values, stride: model.dim, count };
            comparer.score(vectors, candidates, &mut scores);
            for (row, scores) in rows.iter_mut().zip(scores.chunks_exact_mut(count)) {
                let block = first as u32..(first + count) as u32;
                if let Some((prior, factor)) = self.prior() {
                    add_prior(prior, factor, row, &block, scores);
                }
                let known = if self.keeps_known { &[] } else { row.known(known) };
                row.see(known, scores, block);
            }
        }
        Ok(())
    }

    fn form(&self) -> Model {
        Model { kind: self.model.model, dim: self.model.dim }
    }

    /// Returns the frequencies and their weight, if they count.
    fn prior(&self) -> Option<(&Prior, f32)> {
        let factor = self.frequency_weight();
        self.facts.as_ref().filter(|_| factor != 0.0).map(|(_, prior)| (prior, factor))
    }
}

impl Query {
    /// Returns the triple; at an open end it has the given entity.
    fn triple(&self) -> Triple {
        match *self {
            Self::Objects { subject, relation } => Triple { subject, relation, object: subject },
            Self::Subjects { relation, object } => Triple { subject: object, relation, object },
            Self::Triple(triple) => triple,
        }
    }

    /// Returns the sides on which candidates are looked for, and whether that of the triple is
    /// judged.
    fn sides(&self) -> Vec<(Side, Triple, bool)> {
        let triple = self.triple();
        match self {
            Self::Objects { .. } => vec![(Side::Object, triple, false)],
            Self::Subjects { .. } => vec![(Side::Subject, triple, false)],
            Self::Triple(_) => vec![(Side::Object, triple, true), (Side::Subject, triple, true)],
        }
    }
}

/// One side of a query, and what was found for it so far.
struct Row {
    side: Side,
    triple: Triple,
    found: Found,
}

enum Found {
    Top(Top),
    Standing(Standing),
}

impl Row {
    /// Returns the known answers, ascending, as the last elements.
    fn known<'f>(&self, filter: &'f Filter) -> &'f [[u32; 3]] {
        filter.answers(self.side, ends(self.side, &self.triple).0, self.triple.relation)
    }

    /// Takes a block of candidates into account, but those of `known`.
    fn see(&mut self, known: &[[u32; 3]], scores: &[f32], block: Range<u32>) {
        match &mut self.found {
            Found::Standing(Standing { score, rank }) => {
                let (_, answer) = ends(self.side, &self.triple);
                count(answer, known, scores, *score, block, rank);
            }
            Found::Top(top) => {
                let mut known = known.iter().map(|entry| entry[2]).peekable();
                for (candidate, score) in block.zip(scores) {
                    while known.next_if(|known| *known < candidate).is_some() {}
                    if known.peek() != Some(&candidate) {
                        top.offer(f64::from(*score), candidate);
                    }
                }
            }
        }
    }
}

/// Adds to the scores of a block of candidates what the prior says of them.
fn add_prior(prior: &Prior, factor: f32, row: &Row, block: &Range<u32>, scores: &mut [f32]) {
    let (side, relation) = (row.side, row.triple.relation);
    let candidates = prior.candidates(side, relation);
    let first = candidates.partition_point(|[candidate, _]| *candidate < block.start);
    for [candidate, count] in &candidates[first..] {
        if !block.contains(candidate) {
            break;
        }
        let said = prior.of_count(side, relation, *count);
        scores[(candidate - block.start) as usize] += factor * said;
    }
}

/// Returns the entity of a triple that is given on the other side, and the one on this side.
fn ends(side: Side, triple: &Triple) -> (u32, u32) {
    match side {
        Side::Object => (triple.subject, triple.object),
        Side::Subject => (triple.object, triple.subject),
    }
}

/// Puts the rows of queries together.
fn answers(queries: &[Query], rows: Vec<Row>, known: &Filter) -> Vec<Answer> {
    let mut rows = rows.into_iter().map(|row| {
        let facts = row.known(known);
        (row.found, facts)
    });
    let is_fact = |facts: &[[u32; 3]], entity: u32| {
        facts.binary_search_by_key(&entity, |entry| entry[2]).is_ok()
    };
    let mut next = || rows.next().expect("each query has its rows");
    let answer = |query: &Query| match (next(), query) {
        ((Found::Top(top), facts), _) => {
            let candidate = |scored: Scored| Candidate {
                entity: scored.index,
                score: scored.score as f32,
                is_known: is_fact(facts, scored.index),
            };
            Answer::Entities(top.into_vec().into_iter().map(candidate).collect())
        }
        ((Found::Standing(object), facts), query) => {
            let (Found::Standing(subject), _) = next() else {
                unreachable!("both sides of a triple are judged")
            };
            Answer::Triple { object, subject, is_known: is_fact(facts, query.triple().object) }
        }
    };
    queries.iter().map(answer).collect()
}

/// Queries that are answered by one pass over the entities.
const BATCH: usize = 256;
/// Entities that are compared at once.
const BLOCK: usize = 1024;

#[cfg(test)]
mod tests;
