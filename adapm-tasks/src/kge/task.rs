//! Training embeddings as a run does it: what a loader prepares, what a step does, which epoch is
//! better.
//!
//! Keys that are worth tracing are those asked for by name, or a few between the most frequent and
//! a typical one (as AdaPM Figure 15 chooses).

use std::sync::Arc;

use adapm_core::{Clock, Key};
use adapm_runtime::tables::Tables;
use adapm_runtime::{Scheme, System};

use crate::data::names::Names;
use crate::kge::config::{Negatives, Sizes, TrainConfig};
use crate::kge::graph::Graph;
use crate::kge::loader::{Chunk, Loader, Planner, pace};
use crate::kge::model::{self, Model, Shape};
use crate::kge::order::{Order, Parts};
use crate::kge::prior::{Chosen, Prior, Weighing};
use crate::kge::ranking::Ranking;
use crate::kge::step::{IndependentStep, Recipe, SharedStep};
use crate::metric::RankMetrics;
use crate::partition::PartitionFile;
use crate::run::config::Split;
use crate::run::error::TaskError;
use crate::run::hot::batches_with;
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution};
use crate::run::queue::{Cursor, Over, Queue};
use crate::run::task::{Batch, Course, FiguresOf, Form, Initial, StepError, Task, Tell};
use crate::run::topology::WorkerSlot;
use crate::run::traced::{KeyChoice, UnknownKey, chosen_keys};

/// Embeddings of a graph that are trained.
#[derive(Clone)]
pub(crate) struct Embeddings<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) config: &'a TrainConfig,
    /// Empty until facts are dealt by them.
    pub(crate) parts: &'a Parts,
    pub(crate) sizes: Sizes,
    /// Of each node.
    pub(crate) workers: &'a [usize],
    /// The priors, if frequency counts: of the facts that are trained on, for valid, and of all
    /// training triples, for test.
    pub(crate) priors: Option<&'a [Prior; 2]>,
    /// The chosen weight of the prior.
    pub(crate) chosen: &'a Chosen,
    /// The nodes of facts, if a partition says them.
    pub(crate) partition: Option<Arc<PartitionFile>>,
}

/// A worker's memory for the steps of a configuration.
pub(crate) enum Step {
    Shared(SharedStep),
    Independent(IndependentStep),
}

impl Embeddings<'_> {
    pub(crate) fn model(&self) -> Model {
        Model { kind: self.config.model, dim: self.config.dim }
    }

    /// Returns the shape of the parameters; `halves` is 2 with accumulators, else 1.
    fn shape_of(&self, halves: usize) -> Shape {
        Shape::of(self.graph, self.model(), self.config.reciprocal, halves)
    }

    fn planner(&self) -> Planner {
        let Self { graph, config, .. } = self;
        let inverse_offset = config.reciprocal.then_some(graph.relations.len() as u64);
        Planner { shape: self.shape_of(2), negatives: config.negatives, inverse_offset }
    }

    /// Positives of a chunk, and the prefetch depth in chunks.
    fn pace(&self) -> (usize, usize) {
        pace(
            self.config,
            self.sizes.chunk,
            self.config.cluster.system.is_some_and(System::localizes),
        )
    }
}

impl<'a> Task for Embeddings<'a> {
    type Batch<S: Send> = Chunk<S>;
    type Loader = Loader<'a>;
    type WorkerState = Step;
    type Evaluation = Ranking<'a>;

    fn tables(&self) -> Tables {
        self.shape_of(1).tables()
    }

    fn initial(&self) -> Initial {
        let (seed, deviation) = (self.config.run.seed, self.config.initial_deviation);
        Arc::new(move |key, value| model::initial_value(seed, deviation, key, value))
    }

    fn name_of(&self, key: Key) -> String {
        name_of(self.graph, key.0 as usize)
    }

    /// Entities by facts and as negatives, relations by facts; with shared negatives a chunk
    /// accesses each key once.
    fn frequencies(&self) -> Option<Vec<f64>> {
        let Self { graph, config, sizes, .. } = *self;
        let (facts, entities) = (graph.train.len() as f64, graph.entities.len());
        let counts =
            Keys::of(graph, config.reciprocal).counts.into_iter().map(|count| count as f64);
        let (counts, negatives): (Vec<f64>, _) = match config.negatives {
            Negatives::Shared => {
                let chunks = (facts / sizes.chunk as f64).ceil();
                let of_chunks = counts.map(|count| batches_with(count, chunks));
                (of_chunks.collect(), chunks * sizes.negatives as f64)
            }
            Negatives::Independent => (counts.collect(), 2.0 * facts * sizes.negatives as f64),
        };
        let of_entity = negatives / entities.max(1) as f64;
        let sampled = |(key, count)| if key < entities { count + of_entity } else { count };
        Some(counts.into_iter().enumerate().map(sampled).collect())
    }

    fn sampling_distribution(&self) -> Option<SamplingDistribution> {
        Some(self.shape_of(2).sampling_distribution())
    }

    fn scheme(&self) -> Option<Scheme> {
        self.config.scheme
    }

    /// Facts, with their subject, object and relations.
    fn samples(&self, each: &mut dyn FnMut(&[Key])) -> Result<bool, TaskError> {
        let planner = self.planner();
        let keys = planner.keys_of_positive();
        self.graph.train.iter().for_each(|triple| each(&planner.keys_of(triple)[..keys]));
        Ok(true)
    }

    fn deal_by(&mut self, partition: &Arc<PartitionFile>) {
        self.partition = Some(Arc::clone(partition));
    }

    fn examples(&self) -> u64 {
        self.graph.train.len() as u64
    }

    fn prefetch_depth(&self) -> usize {
        let (_, ahead) = self.pace();
        ahead
    }

    fn loader(&self, slot: WorkerSlot, _: &Tell<'_>) -> Loader<'a> {
        let Self { graph, config, parts, sizes, .. } = *self;
        let planner = self.planner();
        let (seed, slot) = (config.run.seed, (slot, self.workers));
        let order = match &self.partition {
            None => Order::new(seed, &graph.train, sizes.chunk, slot, parts),
            Some(partition) => Order::listed(seed, &graph.train, slot, partition),
        };
        let sides = if config.negatives == Negatives::Independent { 2 } else { 1 };
        let sampled = sides * sizes.negatives;
        let (chunk, _) = self.pace();
        Loader { train: &graph.train, order, planner, chunk, sampled }
    }

    fn load<A: IntentSignaler>(
        &self,
        loader: &mut Loader<'a>,
        start: Cursor,
        signaler: &mut A,
        queue: &Queue<Chunk<A::Sample>>,
    ) -> Result<Clock, Over> {
        loader.epoch(start, signaler, queue)
    }

    fn worker_state(&self) -> Step {
        let recipe = Recipe::new(self.config, self.shape_of(2), self.sizes);
        match self.config.negatives {
            Negatives::Shared => Step::Shared(SharedStep::new(recipe)),
            Negatives::Independent => Step::Independent(IndependentStep::new(recipe)),
        }
    }

    fn learning_rate(&self, _: &Course<'_>) -> f32 {
        self.config.learning_rate
    }

    fn train<P: Parameters>(
        &self,
        step: &mut Step,
        chunk: &mut Chunk<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        match step {
            Step::Shared(step) => {
                step.recipe.optimizer.learning_rate = learning_rate;
                step.train(chunk, parameters)
            }
            Step::Independent(step) => {
                step.recipe.optimizer.learning_rate = learning_rate;
                step.train(chunk, parameters)
            }
        }
    }

    fn evaluation(
        &self,
        split: Split,
        form: Form,
        _: Option<&FiguresOf<Self>>,
    ) -> Option<Ranking<'a>> {
        let halves = if form == Form::Trained { 2 } else { 1 };
        let (shape, reciprocal) = (self.shape_of(halves), self.config.reciprocal);
        let ranking = || {
            let ranking = Ranking::new(self.graph, split, self.model(), shape, reciprocal);
            match (self.priors, split) {
                (None, _) => ranking,
                (Some([prior, _]), Split::Valid) => {
                    ranking.weighing(Weighing::all(prior)).choosing(self.chosen)
                }
                // Test is evaluated when the epoch is chosen, and the weight with it.
                (Some([_, prior]), Split::Test) => {
                    ranking.weighing(Weighing::by(prior, self.chosen.weight()))
                }
            }
        };
        (!self.graph.part(split).is_empty()).then(ranking)
    }

    fn kept(&self) -> String {
        self.chosen.kept()
    }

    fn restore(&self, kept: &str) -> bool {
        self.chosen.restore(kept)
    }

    fn is_better(&self, figures: &RankMetrics, best: &RankMetrics) -> bool {
        figures.mrr > best.mrr
    }
}

impl<S> Batch<S> for Chunk<S> {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn examples(&self) -> u64 {
        self.positives.len() as u64
    }

    fn sample(&mut self) -> Option<&mut S> {
        // Keys chosen now for a chunk of many steps would have to stay here for too long.
        (self.steps == 1).then_some(&mut self.sample)
    }
}

/// The kinds of keys that can be asked for by name; a relation is with its inverse if it has one.
pub const KEY_KINDS: &[&str] = &["entity", "relation"];

/// Returns the keys that `choices` name, each with what it is; without choices five between the
/// most frequent and a typical one.
///
/// Frequency is that in the training triples: negatives come on top, the same for all entities.
///
/// # Errors
///
/// The first choice that the graph does not have.
pub fn traced_keys(
    graph: &Graph,
    reciprocal: bool,
    choices: &[KeyChoice],
) -> Result<Vec<(Key, String)>, UnknownKey> {
    let keys = Keys::of(graph, reciprocal);
    let named = |kind: &'static str, name: &str| match kind {
        "entity" => index_of(&graph.entities, name).map(|entity| vec![entity]),
        _ => index_of(&graph.relations, name).map(|at| {
            let relation = keys.entities + at;
            if reciprocal { vec![relation, relation + keys.relations] } else { vec![relation] }
        }),
    };
    chosen_keys(choices, keys.counts.len(), &keys.counts, named, |key| keys.title(key))
}

/// All keys of a graph's parameters with the number of training triples they are in.
struct Keys<'a> {
    graph: &'a Graph,
    entities: usize,
    relations: usize,
    counts: Vec<u64>,
}

impl<'a> Keys<'a> {
    fn of(graph: &'a Graph, reciprocal: bool) -> Self {
        let (entities, relations) = (graph.entities.len(), graph.relations.len());
        let mut counts = vec![0; entities + if reciprocal { 2 * relations } else { relations }];
        for triple in &graph.train {
            let relation = entities + triple.relation as usize;
            counts[triple.subject as usize] += 1;
            if triple.subject != triple.object {
                counts[triple.object as usize] += 1;
            }
            counts[relation] += 1;
            if reciprocal {
                counts[relation + relations] += 1;
            }
        }
        Self { graph, entities, relations, counts }
    }

    fn title(&self, key: usize) -> String {
        let (name, count, all) =
            (name_of(self.graph, key), self.counts[key], self.graph.train.len());
        format!("{name}, in {count} of {all} triples")
    }
}

/// Names a key: `entity Q42`, `relation part_of`, `inverse of relation part_of`.
pub(crate) fn name_of(graph: &Graph, key: usize) -> String {
    let relations = graph.relations.len();
    let (kind, name) = match key.checked_sub(graph.entities.len()) {
        None => ("entity", graph.entities.text(key)),
        Some(relation) if relation < relations => ("relation", graph.relations.text(relation)),
        Some(relation) => {
            ("inverse of relation", graph.relations.text(relation % relations.max(1)))
        }
    };
    format!("{kind} {}", name.unwrap_or_default())
}

fn index_of(names: &Names, name: &str) -> Option<usize> {
    (0..names.len()).find(|index| names.bytes(*index) == Some(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunConfig;
    use crate::run::loading::assert_begins_anywhere;

    fn choices(text: &str) -> Vec<KeyChoice> {
        KeyChoice::list(text, KEY_KINDS).expect("choices")
    }

    /// Steps of one fact are dealt by part of the graph, of some by entity, of many by chance.
    #[test]
    fn a_loader_begins_at_any_chunk_of_any_epoch_however_facts_are_dealt() {
        let graph = Graph::families(1, 4);
        for (seed, step) in [(1, 1), (2, 1), (1, 3), (2, 3), (1, 60), (2, 60)] {
            for negatives in [Negatives::Shared, Negatives::Independent] {
                let run = RunConfig { seed, ..RunConfig::default() };
                let config = TrainConfig { run, negatives, ..TrainConfig::default() };
                for workers in [&[1][..], &[2], &[1, 1], &[2, 2], &[2, 1]] {
                    let all = workers.iter().sum();
                    let sizes = Sizes { chunk: step, ..Sizes::new(&graph, &config, all) };
                    let (parts, chosen) = (&Parts::new(), &Chosen::default());
                    let (graph, config) = (&graph, &config);
                    let priors = None;
                    let partition = None;
                    let task = Embeddings {
                        graph,
                        config,
                        parts,
                        sizes,
                        workers,
                        priors,
                        chosen,
                        partition,
                    };
                    let slots: Vec<_> = WorkerSlot::all_of(workers, true).collect();
                    for slot in [slots[0], slots[slots.len() - 1]] {
                        let batches = assert_begins_anywhere(&task, slot, 3);
                        assert!(batches > 8, "{step} {batches}");
                    }
                }
            }
        }
    }

    #[test]
    fn names_and_numbers_lead_to_keys() {
        let graph = Graph::families(1, 2);
        let entity = graph.entities.text(3).expect("has people").into_owned();
        let relation = graph.relations.text(1).expect("has relations").into_owned();
        let entities = graph.entities.len() as u64;
        let relations = graph.relations.len() as u64;
        let choices = choices(&format!("entity:{entity},relation:{relation},key:0"));
        let keys = |reciprocal| -> Vec<u64> {
            let keys = traced_keys(&graph, reciprocal, &choices).expect("the graph has them");
            keys.iter().map(|(key, _)| key.0).collect()
        };
        assert_eq!(keys(false), [3, entities + 1, 0]);
        assert_eq!(keys(true), [3, entities + 1, entities + 1 + relations, 0]);
        let titles = traced_keys(&graph, true, &choices).expect("the graph has them");
        assert!(titles[0].1.starts_with(&format!("entity {entity}, in ")), "{titles:?}");
        assert!(
            titles[2].1.starts_with(&format!("inverse of relation {relation}, in ")),
            "{titles:?}"
        );
    }

    #[test]
    fn the_default_goes_from_the_most_frequent_to_a_typical_key() {
        let graph = Graph::families(1, 30);
        let counts = Keys::of(&graph, false).counts;
        let chosen = traced_keys(&graph, false, &[]).expect("needs no names");
        let first = chosen.first().expect("there are keys");
        assert_eq!(Some(&counts[first.0.0 as usize]), counts.iter().max());
        assert!(first.1.ends_with("(the most frequent)") && chosen.len() >= 4, "{chosen:?}");
    }

    #[test]
    fn what_the_graph_does_not_have_is_told() {
        let graph = Graph::families(1, 1);
        let refused = |text: &str| {
            traced_keys(&graph, false, &choices(text)).expect_err("the graph lacks it").to_string()
        };
        assert!(refused("entity:nobody").starts_with("no entity nobody in the data"));
        assert!(refused("relation:none").starts_with("no relation none in the data"));
        assert!(refused("key:9999999").starts_with("no key 9999999; keys are 0 to "));
    }
}
