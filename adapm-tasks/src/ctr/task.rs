//! The task as a run sees it: what workers load and signal intent for, how they step, how clicks
//! are predicted.
//!
//! The features are the first keys, then come the chunks of the dense layers. Intent for the
//! features of a batch is signaled for its clock, for the dense layers once by the first worker of
//! each node, for the whole run. The clock counts batches.

use std::ops::Range;
use std::sync::Arc;

use adapm_core::update::AdaGrad;
use adapm_core::{Clock, Key};
use adapm_runtime::tables::{Table, Tables};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

use crate::ctr::clicks::Clicks;
use crate::ctr::config::TrainConfig;
use crate::ctr::network::{Network, Pass, Placed, Rows};
use crate::dense::{Chunks, Dropout, WholeRunIntent, add_scaled};
use crate::metric::ClickMetrics;
use crate::optim::{self, ADAGRAD};
use crate::partition::PartitionFile;
use crate::run::config::batches_ahead;
use crate::run::hot::batches_with;
use crate::run::{
    Course, Cursor, Evaluation, Form, Initial, IntentSignaler, Over, Parameters, Plain, Queue,
    Split, StepError, Task, TaskError, Tell, WorkerSlot, generator,
};

/// A model of clicks that is trained, or judged.
#[derive(Debug)]
pub(crate) struct Prediction<'a> {
    clicks: &'a Clicks,
    config: &'a TrainConfig,
    network: Network,
    chunks: Chunks,
    /// The examples that are judged.
    rows: Range<usize>,
    split: Split,
    /// Values have accumulators.
    is_trained: bool,
    /// Steps on the dense layers that are taken on the same values.
    steps: f32,
    /// The nodes of examples, if a partition says them.
    partition: Option<Arc<PartitionFile>>,
}

/// Examples of a step, and the keys it needs: those of features, then those of dense layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Examples {
    /// The epoch and the number of the batch in it: what dropout draws by.
    step: u64,
    keys: Vec<Key>,
    /// Keys of features.
    features: usize,
    starts: Vec<u32>,
    placed: Vec<Placed>,
    numbers: Vec<f32>,
    labels: Vec<bool>,
}

/// The state of a worker's loader thread.
#[derive(Debug)]
pub(crate) struct Loader {
    slot: WorkerSlot,
    layers: WholeRunIntent,
}

/// The state of a worker from step to step: room that is used again.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    values: Vec<f32>,
    updates: Vec<f32>,
    parameters: Vec<f32>,
    gradients: Vec<f32>,
    of_features: Vec<f32>,
    slopes: Vec<f32>,
    pass: Pass,
}

/// The state of a worker that evaluates: the dense layers, which are pulled once.
#[derive(Debug, Default)]
pub(crate) struct Evaluator {
    parameters: Vec<f32>,
    values: Vec<f32>,
    pass: Pass,
}

impl<'a> Prediction<'a> {
    /// Returns a model that is trained.
    pub(crate) fn new(clicks: &'a Clicks, config: &'a TrainConfig) -> Self {
        let encoder = &clicks.encoder;
        let network = Network::new(config, encoder.fields.len(), encoder.numbers.len());
        let chunks = Chunks { first: encoder.keys(), parameters: network.parameters() };
        let (rows, split, is_trained, partition) = (0..0, Split::default(), true, None);
        Self { clicks, config, network, chunks, rows, split, is_trained, steps: 1.0, partition }
    }

    /// Returns the same model trained by so many workers of each node.
    pub(crate) fn by_workers(self, workers: &[usize]) -> Self {
        Self { steps: STEPS_OF_WORKER * workers.iter().sum::<usize>() as f32, ..self }
    }

    /// Returns the same model judged by these examples.
    pub(crate) fn of_rows(self, rows: Range<usize>, split: Split, form: Form) -> Self {
        Self { rows, split, is_trained: form == Form::Trained, ..self }
    }

    /// Lays out examples: the keys of their features, ascending, each once.
    fn examples_of(&self, rows: impl Iterator<Item = usize>) -> Examples {
        let all = &self.clicks.examples;
        let mut of = Examples { starts: vec![0], ..Examples::default() };
        let mut keyed: Vec<(u32, u32)> = Vec::new();
        for row in rows {
            for feature in all.features(row) {
                keyed.push((feature.key, of.placed.len() as u32));
                let (field, value) = (feature.field, feature.value);
                of.placed.push(Placed { place: 0, field, value });
            }
            of.starts.push(of.placed.len() as u32);
            of.numbers.extend_from_slice(all.numbers(row));
            of.labels.push(all.label(row));
        }
        keyed.sort_unstable();
        for (key, at) in keyed {
            let key = Key(key.into());
            if of.keys.last() != Some(&key) {
                of.keys.push(key);
            }
            of.placed[at as usize].place = of.keys.len() as u32 - 1;
        }
        of.features = of.keys.len();
        of
    }

    /// Returns the rows that a worker trains on in an epoch, in order.
    fn dealt(&self, slot: WorkerSlot, epoch: u32) -> Vec<u32> {
        let (seed, first) = (self.config.run.seed, self.clicks.train.start as u32);
        match &self.partition {
            None => self.clicks.dealt(slot, seed, epoch),
            Some(partition) => {
                let samples = slot.listed(partition.nodes_of_samples(), seed, epoch);
                samples.into_iter().map(|sample| first + sample).collect()
            }
        }
    }

    fn rows<'v>(&self, of: &'v Examples, values: &'v [f32], halves: usize) -> Rows<'v> {
        let value_len = halves * self.network.feature_len();
        let Examples { starts, placed, numbers, .. } = of;
        Rows { starts, features: placed, numbers, values, value_len }
    }

    /// Computes the slopes of the logits, and returns the sum of the losses: `-ln p` of a click,
    /// `-ln(1 - p)` of another.
    fn judge(&self, logits: &[f32], labels: &[bool], slopes: &mut Vec<f32>) -> f64 {
        slopes.clear();
        let mut losses = 0.0;
        for (logit, is_click) in logits.iter().zip(labels) {
            let (sign, weight) =
                if *is_click { (1.0, self.config.positive_weight) } else { (-1.0, 1.0) };
            // ln(1 + exp(z)), which overflows for no logit.
            let z = -sign * logit;
            losses += f64::from(weight * (z.max(0.0) + (-z.abs()).exp().ln_1p()));
            slopes.push(-sign * weight / (1.0 + (-z).exp()));
        }
        losses
    }

    /// Writes the updates of features. Returns the first key that would get one that is no finite
    /// number.
    fn update(&self, keys: &[Key], state: &mut WorkerState, rule: AdaGrad) -> Result<(), Key> {
        let len = self.network.feature_len();
        let values = state.values.chunks(2 * len).zip(state.updates.chunks_mut(2 * len));
        let gradients = state.of_features.chunks_mut(len);
        for ((key, gradient), (value, update)) in keys.iter().zip(gradients).zip(values) {
            add_scaled(gradient, self.config.l2, &value[..len]);
            if !optim::step_among(rule, 1.0, value, gradient, update) {
                return Err(*key);
            }
        }
        Ok(())
    }
}

impl<'a> Task for Prediction<'a> {
    type Batch<S: Send> = Plain<Examples>;
    type Loader = Loader;
    type WorkerState = WorkerState;
    type Evaluation = Prediction<'a>;

    fn tables(&self) -> Tables {
        let len = self.network.feature_len();
        let features = Table::new("features", self.clicks.encoder.keys(), len);
        let features = features.with_state(ADAGRAD, len);
        Tables::new([features].into_iter().chain(self.chunks.tables()))
            .expect("names are there once")
    }

    fn initial(&self) -> Initial {
        let (seed, deviation) = (self.config.run.seed, self.config.initial_deviation);
        let (network, chunks) = (self.network.clone(), self.chunks);
        Arc::new(move |key, value| {
            let (parameters, accumulators) = value.split_at_mut(value.len() / 2);
            let mut random = generator(seed, [INITIAL, key.0]);
            let of_layers = chunks.parameters_of(key);
            let is_feature = of_layers.is_empty();
            accumulators.fill(if is_feature { OF_FEATURES } else { OF_LAYERS });
            if is_feature {
                // The weight begins at 0.
                for element in &mut parameters[1..] {
                    let normal: f32 = StandardNormal.sample(&mut random);
                    *element = deviation * normal;
                }
            }
            for (parameter, at) in parameters.iter_mut().zip(of_layers) {
                let bound = network.bound(at);
                *parameter = if bound > 0.0 { random.random_range(-bound..bound) } else { 0.0 };
            }
        })
    }

    fn name_of(&self, key: Key) -> String {
        name_of(self.clicks, key)
    }

    /// Features by the batches that have them; the dense layers in every batch.
    fn frequencies(&self) -> Option<Vec<f64>> {
        let Clicks { examples, train, encoder, .. } = self.clicks;
        let mut counts = vec![0_u64; encoder.keys() as usize];
        for row in train.clone() {
            examples.features(row).iter().for_each(|feature| counts[feature.key as usize] += 1);
        }
        let batches = (train.len() as f64 / self.config.batch as f64).ceil();
        let features = counts.into_iter().map(|count| batches_with(count as f64, batches));
        Some(features.chain(self.chunks.keys().map(|_| batches)).collect())
    }

    /// Examples, with their features.
    fn samples(&self, each: &mut dyn FnMut(&[Key])) -> Result<bool, TaskError> {
        let mut keys = Vec::new();
        for row in self.clicks.train.clone() {
            keys.clear();
            let features = self.clicks.examples.features(row);
            keys.extend(features.iter().map(|feature| Key(feature.key.into())));
            each(&keys);
        }
        Ok(true)
    }

    fn deal_by(&mut self, partition: &Arc<PartitionFile>) {
        self.partition = Some(Arc::clone(partition));
    }

    fn dense_keys(&self) -> Range<Key> {
        self.chunks.key_range()
    }

    fn examples(&self) -> u64 {
        self.clicks.train.len() as u64
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
        let layers: Vec<Key> = self.chunks.keys().collect();
        loader.layers.signal(self.chunks, clock, signaler)?;
        let rows = self.dealt(loader.slot, round.epoch);
        for (place, rows) in (0..).zip(rows.chunks(self.config.batch)).skip(batch) {
            let mut content = self.examples_of(rows.iter().map(|row| *row as usize));
            content.step = u64::from(round.epoch) << 32 | place;
            signaler.signal_intent(&content.keys, clock..clock + 1)?;
            content.keys.extend_from_slice(&layers);
            queue.send(Plain { clock, examples: rows.len() as u64, content })?;
            clock = clock + 1;
        }
        Ok(clock)
    }

    fn worker_state(&self) -> WorkerState {
        WorkerState::default()
    }

    /// Falls linearly, by batches.
    fn learning_rate(&self, course: &Course<'_>) -> f32 {
        let Course { epoch, epochs, done, examples, .. } = *course;
        let of_epoch = done as f64 / examples.max(1) as f64;
        let progress = (f64::from(epoch - 1) + of_epoch) / f64::from(epochs.max(1));
        self.config.learning_rate * (1.0 - FALL * progress.min(1.0) as f32)
    }

    fn train<P: Parameters>(
        &self,
        state: &mut WorkerState,
        batch: &mut Self::Batch<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let (of, len) = (&batch.content, self.network.feature_len());
        let behind = 2 * len * of.features;
        state.values.resize(behind + 2 * self.chunks.parameters, 0.0);
        parameters.pull(&of.keys, &mut state.values)?;
        let (values, layers) = state.values.split_at(behind);
        self.chunks.unpack(layers, 2, &mut state.parameters);
        let rows = self.rows(of, values, 2);
        let share = self.config.dropout;
        let step = self.config.run.seed ^ (of.step << 8);
        let dropout = (share > 0.0).then_some(Dropout { share, step });
        let logits = self.network.forward(&state.parameters, rows, dropout, &mut state.pass);
        let loss = self.judge(logits, &of.labels, &mut state.slopes);

        state.gradients.clear();
        state.gradients.resize(self.chunks.parameters, 0.0);
        state.of_features.clear();
        state.of_features.resize(of.features * len, 0.0);
        let (gradients, of_features) = (&mut state.gradients, &mut state.of_features);
        let (slopes, pass) = (&state.slopes, &mut state.pass);
        self.network.backward(&state.parameters, rows, slopes, pass, gradients, of_features);

        let rule = AdaGrad { learning_rate };
        state.updates.resize(state.values.len(), 0.0);
        self.update(&of.keys[..of.features], state, rule).map_err(StepError::NotFinite)?;
        let (layers, updates) = (&state.values[behind..], &mut state.updates[behind..]);
        let updated = self.chunks.update(rule, self.steps, layers, &state.gradients, updates);
        updated.map_err(StepError::NotFinite)?;
        parameters.push(&of.keys, &state.updates)?;
        parameters.advance_clock();
        Ok(loss)
    }

    fn evaluation(&self, split: Split, form: Form, _: Option<&ClickMetrics>) -> Option<Self> {
        let rows = self.clicks.part(split);
        let judged = || Self::new(self.clicks, self.config).of_rows(rows.clone(), split, form);
        (!rows.is_empty()).then(judged)
    }

    fn is_better(&self, figures: &ClickMetrics, best: &ClickMetrics) -> bool {
        // Without clicks, or with nothing else, there is no area.
        let is_nearer = figures.log_loss < best.log_loss || best.log_loss.is_nan();
        figures.auc > best.auc || (best.auc.is_nan() && (!figures.auc.is_nan() || is_nearer))
    }
}

impl Evaluation for Prediction<'_> {
    type Answer = f32;
    type Figures = ClickMetrics;
    type Evaluator = Evaluator;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.rows.len()
    }

    fn evaluator(&self) -> Evaluator {
        Evaluator::default()
    }

    /// Answers with logits, corrected by what clicks weighed in training.
    fn evaluate<P: Parameters>(
        &self,
        Evaluator { parameters: layers, values, pass }: &mut Evaluator,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<f32>,
    ) -> Result<(), P::Error> {
        let halves = if self.is_trained { 2 } else { 1 };
        let pull = |keys: &[Key], values: &mut [f32]| parameters.pull(keys, values);
        self.chunks.pull_once(halves, layers, values, pull)?;
        let rows = items.map(|item| self.rows.start + item);
        let of = self.examples_of(rows);
        values.resize(halves * self.network.feature_len() * of.features, 0.0);
        parameters.pull(&of.keys, values)?;
        let logits = self.network.forward(layers, self.rows(&of, values, halves), None, pass);
        let correction = self.config.positive_weight.ln();
        answers.extend(logits.iter().map(|logit| logit - correction));
        Ok(())
    }

    fn figures(&self, answers: &[f32]) -> ClickMetrics {
        let labels: Vec<bool> =
            self.rows.clone().map(|row| self.clicks.examples.label(row)).collect();
        ClickMetrics::of(answers, &labels)
    }
}

/// Names a key: a feature by its field, or dense layers.
pub(crate) fn name_of(clicks: &Clicks, key: Key) -> String {
    match key.0.checked_sub(clicks.encoder.keys()) {
        None => clicks.encoder.name_of(key.0),
        Some(chunk) => format!("chunk {chunk} of the dense layers"),
    }
}

/// Initial accumulators of features. A feature that occurs a few times moves a little: its label is
/// noise rather than news. One that occurs often has larger sums of squares soon.
const OF_FEATURES: f32 = 100.0;
/// Initial accumulators of dense layers.
const OF_LAYERS: f32 = 10.0;
/// Steps that each worker takes before the others see the first of them: all step on the same
/// values of dense layers, and a change is on its way for some batches. Where these were taken as
/// single steps, they added up to a leap: test AUC 0.763 on four nodes and 0.787 on one, after two
/// epochs of 200,000 generated examples; 0.784 and 0.787 with this many.
const STEPS_OF_WORKER: f32 = 10.0;
/// The share of the learning rate that is gone at the end of the run.
const FALL: f32 = 0.95;
/// Batches that a loader is ahead (as AdaPM's tasks of this kind).
const BATCHES_AHEAD: usize = 100;
/// The purpose of the generator of initial values.
const INITIAL: u64 = 3;

#[cfg(test)]
mod tests {
    use adapm_runtime::System;

    use super::*;
    use crate::ctr::config::{Hidden, Model};
    use crate::ctr::synthetic::SyntheticConfig;
    use crate::run::loading::assert_begins_anywhere;
    use crate::run::{Config as _, Run};

    fn clicks() -> Clicks {
        let mut config = SyntheticConfig::default();
        (config.examples, config.test_examples, config.features) = (4_000, 1_000, 1_000);
        Clicks::synthetic(config).expect("makes sense")
    }

    fn config(nodes: usize, workers: usize) -> TrainConfig {
        let mut config = TrainConfig { dim: 4, epochs: Some(2), ..TrainConfig::default() };
        (config.hidden, config.batch) = (Hidden(vec![16]), 64);
        (config.cluster.nodes, config.cluster.workers) = (Some(nodes), Some(workers.into()));
        config
    }

    type Trained = crate::run::TrainReport<ClickMetrics, crate::run::Values>;

    fn train(clicks: &Clicks, config: &TrainConfig) -> Trained {
        config.check().expect("makes sense");
        let run = Run::alone();
        let epochs = (config.passes(clicks.train_len()), 1);
        run.train("ctr", clicks.digest, config, epochs, |_| Prediction::new(clicks, config))
            .expect("trains")
    }

    #[test]
    fn every_system_reaches_the_same_quality() {
        let clicks = clicks();
        let mut reached = Vec::new();
        for system in System::ALL.into_iter().map(Some).chain([None]) {
            let (nodes, workers) = if system.is_some() { (2, 2) } else { (1, 1) };
            let mut config = config(nodes, workers);
            config.cluster.system = system;
            let trained = train(&clicks, &config);
            let auc = trained.test.expect("is evaluated").auc;
            reached.push((system, auc));
        }
        assert!(reached.iter().all(|(_, auc)| (0.66..0.80).contains(auc)), "{reached:?}");
    }

    #[test]
    fn every_model_learns_and_dropout_and_weights_of_clicks_do_no_harm() {
        let clicks = clicks();
        for model in [Model::WideDeep, Model::DeepCross, Model::DeepFm] {
            let mut config = TrainConfig { model, epochs: Some(3), ..config(1, 2) };
            (config.dropout, config.positive_weight) = (0.1, 2.0);
            let trained = train(&clicks, &config);
            let test = trained.test.expect("is evaluated");
            assert!(trained.epochs[2].loss < 0.95 * trained.epochs[0].loss, "{model}");
            assert!(test.auc > 0.66 && (0.8..1.25).contains(&test.calibration), "{model} {test:?}");
        }
    }

    #[test]
    fn a_model_is_judged_the_same_on_any_number_of_nodes() {
        let clicks = clicks();
        let trained_by = config(1, 1);
        let values = train(&clicks, &trained_by).checkpoint.expect("is kept by default");
        let judged = |nodes, workers| {
            let config = config(nodes, workers);
            let prediction = Prediction::new(&clicks, &config);
            let rows = clicks.part(Split::Test);
            let prediction = prediction.of_rows(rows, Split::Test, Form::Best);
            let shape = prediction.best_shape();
            let run = Run::alone();
            run.evaluate("ctr", 0, &config.cluster, &prediction, shape, &values)
                .expect("evaluates")
                .figures
        };
        let once = judged(1, 1);
        assert!(once.is_some() && [(1, 3), (2, 1), (4, 1)].map(|(n, w)| judged(n, w)) == [once; 3]);
    }

    #[test]
    fn the_same_seed_gives_the_same_model() {
        let (clicks, config) = (clicks(), config(1, 1));
        let values = || train(&clicks, &config).checkpoint.expect("is kept by default");
        assert!(values() == values());
    }

    #[test]
    fn a_loader_can_begin_at_any_batch() {
        let (clicks, config) = (clicks(), config(2, 2));
        let task = Prediction::new(&clicks, &config);
        for slot in WorkerSlot::all_of(&[2, 2], true) {
            assert!(assert_begins_anywhere(&task, slot, 2) > 20);
        }
    }

    #[test]
    fn batches_have_each_key_once_and_know_where_it_is() {
        let (clicks, config) = (clicks(), config(1, 1));
        let task = Prediction::new(&clicks, &config);
        let of = task.examples_of([5, 9, 5].into_iter());
        assert!(of.keys.is_sorted() && of.keys.windows(2).all(|two| two[0] < two[1]));
        let features = [5, 9, 5].into_iter().flat_map(|row| clicks.examples.features(row));
        for (placed, feature) in of.placed.iter().zip(features) {
            assert_eq!(of.keys[placed.place as usize], Key(feature.key.into()));
        }
    }

    #[test]
    fn what_is_no_number_is_blamed_on_its_key() {
        let clicks = clicks();
        let config = TrainConfig { learning_rate: 1e38, ..config(1, 1) };
        let run = Run::alone();
        let error = run
            .train("ctr", 0, &config, (1, 1), |_| Prediction::new(&clicks, &config))
            .expect_err("diverges")
            .to_string();
        assert!(error.contains("training diverged"), "{error}");
    }
}
