//! The task as a run sees it: which nodes a worker trains on, what it signals intent for, how it
//! steps, how nodes are judged.
//!
//! Key `i` is node `i` if features are learned; behind are the keys of the two layers. Intent for
//! the layers is signaled once by the first worker of each node, for the whole run; for the nodes
//! of a batch 100 batches ahead. The clock counts batches.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use adapm_core::update::AdaGrad;
use adapm_core::{Clock, Key};
use adapm_runtime::tables::Tables;
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use crate::dense::{Dropout, WholeRunIntent};
use crate::gnn::config::{Partition, TrainConfig};
use crate::gnn::evaluation::{Accuracy, Classification};
use crate::gnn::graph::{Features, Graph};
use crate::gnn::model::{Architecture, Inputs, Pass};
use crate::gnn::sampling::{self, Block};
use crate::optim;
use crate::partition::{self, PartitionFile};
use crate::run::config::batches_ahead;
use crate::run::hot::batches_with;
use crate::run::parameters::{IntentSignaler, Parameters};
use crate::run::{
    Course, Cursor, Form, Initial, KeyChoice, Over, Plain, Queue, Split, StepError, Task,
    TaskError, Tell, UnknownKey, WorkerSlot, chosen_keys, generator,
};

/// A graph network that is to be trained.
pub(crate) struct Network<'a> {
    graph: &'a Graph,
    /// Scaled, if the model wants them so.
    features: &'a Features,
    model: &'a Architecture,
    config: &'a TrainConfig,
    /// Of each node of the run: all of them step on the layers at once.
    workers: Vec<usize>,
    /// The node of the run that each node of the graph is trained on by.
    parts: OnceLock<Vec<u32>>,
    /// The nodes of the run of those trained on, if a partition says them.
    listed: Option<Arc<PartitionFile>>,
}

/// The state of a worker's loader thread.
pub(crate) struct Loader {
    slot: WorkerSlot,
    layers: WholeRunIntent,
}

/// A batch: its nodes and those that they need, and the number of its dropout.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    block: Block,
    step: u64,
}

/// The buffers of a worker.
#[derive(Default)]
pub(crate) struct WorkerState {
    pass: Pass,
    keys: Vec<Key>,
    values: Vec<f32>,
    parameters: Vec<f32>,
    updates: Vec<f32>,
    labels: Vec<u32>,
}

impl<'a> Network<'a> {
    /// Trains a model of this form on a graph, whose features are `features`, scaled or not, with
    /// so many workers of each node of the run.
    pub(crate) fn new(
        graph: &'a Graph,
        features: &'a Features,
        model: &'a Architecture,
        config: &'a TrainConfig,
        workers: &[usize],
    ) -> Self {
        let (workers, parts, listed) = (workers.to_vec(), OnceLock::new(), None);
        Self { graph, features, model, config, workers, parts, listed }
    }

    fn learns_features(&self) -> bool {
        self.model.inputs == Inputs::Learned
    }

    /// Returns the node of the run that each node of the graph is trained on by.
    fn parts(&self) -> &[u32] {
        self.parts.get_or_init(|| {
            let (graph, seed, workers) = (self.graph, self.config.run.seed, &*self.workers);
            let nodes = workers.len();
            let listed = self.listed.as_ref();
            match (&graph.dealt, self.config.partition(self.model)) {
                _ if nodes == 1 => vec![0; graph.nodes()],
                _ if listed.is_some() => {
                    let listed = listed.map_or(&[][..], |listed| listed.nodes_of_samples());
                    let mut parts = vec![0; graph.nodes()];
                    graph.train().iter().zip(listed).for_each(|(node, part)| {
                        parts[*node as usize] = u32::from(*part);
                    });
                    parts
                }
                (Some(parts), _) => parts.iter().map(|part| part % nodes as u32).collect(),
                (None, Partition::Random) => {
                    let dealt = partition::random(graph.train().len(), workers, seed);
                    let mut parts = vec![0; graph.nodes()];
                    graph.train().iter().zip(dealt).for_each(|(node, part)| {
                        parts[*node as usize] = part;
                    });
                    parts
                }
                (None, Partition::Grown) => {
                    let mut chosen = vec![false; graph.nodes()];
                    graph.train().iter().for_each(|node| chosen[*node as usize] = true);
                    partition::grown(graph.adjacency(), &chosen, workers, seed)
                }
            }
        })
    }

    /// Returns the nodes that a worker trains on in an epoch, in order: those of its node, shuffled
    /// anew and dealt to its workers.
    fn dealt(&self, slot: WorkerSlot, epoch: u32) -> Vec<u32> {
        let (parts, node) = (self.parts(), slot.node);
        let is_here = |train: &&u32| parts[**train as usize] as usize == node;
        let mut nodes: Vec<u32> = self.graph.train().iter().filter(is_here).copied().collect();
        nodes.shuffle(&mut generator(self.config.run.seed, [ORDER, epoch.into(), node as u64]));
        nodes.into_iter().skip(slot.id).step_by(slot.of_node).collect()
    }

    fn content(&self, epoch: u32, targets: &[u32]) -> Content {
        let seed = self.config.run.seed;
        let first = targets.first().copied().unwrap_or(0);
        let step = generator(seed, [DROPOUT, epoch.into(), first.into()]).random();
        let counts = self.config.fanout.0;
        Content { block: Block::sample(self.graph, (seed, epoch), targets.to_vec(), counts), step }
    }

    fn node_keys<'b>(&self, block: &'b Block) -> impl Iterator<Item = Key> + 'b {
        let nodes = if self.learns_features() { &block.outer[..] } else { &[] };
        nodes.iter().map(|node| Key(u64::from(*node)))
    }

    /// Writes the updates of all keys of a batch, for the gradients of the pass.
    fn update(
        &self,
        rule: AdaGrad,
        WorkerState { pass, keys, values, parameters, updates, .. }: &mut WorkerState,
    ) -> Result<(), Key> {
        let width = self.model.width;
        let weights = width * self.model.hidden;
        let l2 = self.config.l2(self.graph.train().len());
        for (gradient, weight) in pass.gradients[..weights].iter_mut().zip(&parameters[..weights]) {
            *gradient += l2 * weight;
        }
        updates.resize(values.len(), 0.0);
        let of_layers = values.len() - 2 * parameters.len();
        if self.learns_features() {
            let of_nodes = values[..of_layers].chunks(2 * width);
            let steps = of_nodes.zip(updates.chunks_mut(2 * width)).zip(keys.iter());
            for (((value, update), key), gradient) in steps.zip(pass.row_slopes.chunks(width)) {
                if !optim::step_among(rule, 1.0, value, gradient, update) {
                    return Err(*key);
                }
            }
        }
        let (values, updates) = (&values[of_layers..], &mut updates[of_layers..]);
        let steps = self.workers.iter().sum::<usize>() as f32;
        self.model.chunks().update(rule, steps, values, &pass.gradients, updates)
    }
}

impl<'a> Task for Network<'a> {
    type Batch<S: Send> = Plain<Content>;
    type Loader = Loader;
    type WorkerState = WorkerState;
    type Evaluation = Classification<'a>;

    fn tables(&self) -> Tables {
        self.model.tables()
    }

    fn initial(&self) -> Initial {
        let (seed, model) = (self.config.run.seed, self.model.clone());
        Arc::new(move |key, value| {
            let (parameters, accumulators) = value.split_at_mut(value.len() / 2);
            accumulators.fill(AdaGrad::INITIAL);
            let mut random = generator(seed, [INITIAL, key.0]);
            let first = model.chunks().parameters_of(key).start;
            let is_node = key.0 < model.nodes;
            for (at, parameter) in parameters.iter_mut().enumerate() {
                let bound = if is_node { NODE_BOUND } else { model.bound(first + at) };
                *parameter = bound * random.random_range(-1.0..1.0);
            }
        })
    }

    fn name_of(&self, key: Key) -> String {
        name_of(self.model, key)
    }

    /// Nodes whose features are learned by the batches that need them, as far as neighbours are
    /// expected to be drawn; the layers in every batch.
    fn frequencies(&self) -> Option<Vec<f64>> {
        let batches = (self.graph.train().len() as f64 / self.config.batch as f64).ceil();
        let layers = self.model.chunks().keys().map(|_| batches);
        let nodes = if self.learns_features() {
            let drawn = sampling::expected(self.graph, self.config.fanout.0);
            drawn.into_iter().map(|count| batches_with(count, batches)).collect()
        } else {
            Vec::new()
        };
        Some(nodes.into_iter().chain(layers).collect())
    }

    /// Nodes to train on, with the learned features of those that they need in the first epoch.
    fn samples(&self, each: &mut dyn FnMut(&[Key])) -> Result<bool, TaskError> {
        if !self.learns_features() {
            return Ok(false);
        }
        for node in self.graph.train() {
            let content = self.content(1, &[*node]);
            let keys: Vec<Key> = self.node_keys(&content.block).collect();
            each(&keys);
        }
        Ok(true)
    }

    fn deal_by(&mut self, partition: &Arc<PartitionFile>) {
        self.listed = Some(Arc::clone(partition));
    }

    fn dense_keys(&self) -> Range<Key> {
        self.model.chunks().key_range()
    }

    fn examples(&self) -> u64 {
        self.graph.train().len() as u64
    }

    fn prefetch_depth(&self) -> usize {
        batches_ahead(self.config, BATCHES_AHEAD)
    }

    fn loader(&self, slot: WorkerSlot, _: &Tell<'_>) -> Loader {
        Loader { slot, layers: WholeRunIntent::of(slot) }
    }

    fn load<A: IntentSignaler>(
        &self,
        loader: &mut Loader,
        Cursor { round, batch, mut clock, .. }: Cursor,
        signaler: &mut A,
        queue: &Queue<Self::Batch<A::Sample>>,
    ) -> Result<Clock, Over> {
        loader.layers.signal(self.model.chunks(), clock, signaler)?;
        let nodes = self.dealt(loader.slot, round.epoch);
        for targets in nodes.chunks(self.config.batch).skip(batch) {
            let content = self.content(round.epoch, targets);
            let keys: Vec<Key> = self.node_keys(&content.block).collect();
            if !keys.is_empty() {
                signaler.signal_intent(&keys, clock..clock + 1)?;
            }
            queue.send(Plain { clock, examples: targets.len() as u64, content })?;
            clock = clock + 1;
        }
        Ok(clock)
    }

    fn worker_state(&self) -> WorkerState {
        WorkerState::default()
    }

    fn learning_rate(&self, _: &Course<'_>) -> f32 {
        self.config.learning_rate
    }

    fn train<P: Parameters>(
        &self,
        state: &mut WorkerState,
        batch: &mut Self::Batch<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let (Content { block, step }, chunks) = (&batch.content, self.model.chunks());
        let (width, share) = (self.model.width, self.config.dropout);
        state.keys.clear();
        state.keys.extend(self.node_keys(block));
        let of_layers = 2 * width * state.keys.len();
        state.keys.extend(chunks.keys());
        state.values.resize(of_layers + 2 * chunks.parameters, 0.0);
        parameters.pull(&state.keys, &mut state.values)?;
        let (of_nodes, values) = state.values.split_at(of_layers);
        chunks.unpack(values, 2, &mut state.parameters);
        if self.learns_features() {
            state.pass.rows.clear();
            let rows = of_nodes.chunks(2 * width).flat_map(|value| &value[..width]);
            state.pass.rows.extend(rows);
        }
        state.labels.clear();
        // Reading refuses nodes of a part without a class.
        state.labels.extend(block.targets.iter().map(|node| self.graph.label(*node).unwrap_or(0)));
        let dropout = (share > 0.0).then_some(Dropout { share, step: *step });
        let WorkerState { pass, parameters: dense, labels, .. } = state;
        self.model.prepare(self.features, &block.outer, dense, dropout, pass);
        let loss = self.model.loss_and_gradients(dense, block, labels, dropout, pass);
        if !loss.is_finite() {
            return Err(StepError::NotFinite(Key(chunks.first)));
        }
        self.update(AdaGrad { learning_rate }, state).map_err(StepError::NotFinite)?;
        parameters.push(&state.keys, &state.updates)?;
        parameters.advance_clock();
        Ok(loss)
    }

    fn evaluation(
        &self,
        split: Split,
        form: Form,
        _: Option<&Accuracy>,
    ) -> Option<Classification<'a>> {
        let Self { graph, features, model, .. } = *self;
        let nodes = graph.held_out(split);
        let of = Classification { graph, features, model, nodes, split, form };
        (!nodes.is_empty()).then_some(of)
    }

    fn is_better(&self, figures: &Accuracy, best: &Accuracy) -> bool {
        figures.is_better(best)
    }
}

/// The kinds of keys that can be asked for by name: a node by its number.
pub const KEY_KINDS: &[&str] = &["node"];

/// Returns the keys that `choices` name, each with what it is; without choices some from the node
/// with the most neighbours to a typical one, if nodes have keys.
///
/// # Errors
///
/// The first choice that the model does not have.
pub(crate) fn traced_keys(
    graph: &Graph,
    model: &Architecture,
    choices: &[KeyChoice],
) -> Result<Vec<(Key, String)>, UnknownKey> {
    let keys = model.best_shape().keys() as usize;
    let counts: Vec<u64> =
        (0..model.nodes).map(|node| graph.around(node as u32).len() as u64).collect();
    let named = |_: &'static str, name: &str| {
        let node: u64 = name.parse().ok()?;
        (node < model.nodes).then_some(vec![node as usize])
    };
    let title = |key: usize| name_of(model, Key(key as u64));
    chosen_keys(choices, keys, &counts, named, title)
}

fn name_of(model: &Architecture, key: Key) -> String {
    match key.0.checked_sub(model.nodes) {
        None => format!("node {}", key.0),
        Some(chunk) => format!("part {chunk} of the layers"),
    }
}

/// Batches between the announcement of a node and its use.
const BATCHES_AHEAD: usize = 100;
/// The bound of the initial values of a node's features.
const NODE_BOUND: f32 = 0.1;
/// Purposes of generators; 1 is that of samples.
const INITIAL: u64 = 2;
const ORDER: u64 = 3;
const DROPOUT: u64 = 4;

#[cfg(test)]
mod tests;
