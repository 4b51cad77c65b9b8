//! A task of one's own: a factorization machine (Rendle, ICDM 2010) for rows in libsvm's form,
//! `label index:value index:value ...`, judged by the area under the ROC curve.
//!
//! It says what its parameters are, which of them a batch needs, what a step does and how a row is
//! scored. Workers, intent, nodes, processes, selection, files and screens are the run's.
//!
//! ```text
//!   cargo run --release --example own_task -- train --data a9a.svm --nodes 2 --out runs/fm
//!   cargo run --release --example own_task -- eval --load runs/fm/best.adapm --data a9a.svm
//! ```

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use adapm_core::update::{AdaGrad, UpdateRule as _};
use adapm_core::{Clock, Key};
use adapm_runtime::tables::{Table, Tables};
use adapm_tasks::cli::{self, Error, EvalArgs, Files, Labels, Program, Source, TrainArgs};
use adapm_tasks::files;
use adapm_tasks::metric::Auc;
use adapm_tasks::run::{
    ClusterConfig, Config, ConfigError, Course, Cursor, Digest, EvalReport, Evaluation, Form,
    Initial, IntentSignaler, Over, Parameters, Plain, Queue, Run, RunConfig, Saved, Split,
    StepError, Task, TaskError, Tell, Tensor, TrainReport, WorkerSlot, checks, generator,
};
use clap::Args;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

/// Flags that choose data.
#[derive(Args)]
struct Flags {
    /// Rows in libsvm's form; of ten, one is for valid and one for test
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    data: PathBuf,
}

impl Flags {
    fn read(&self) -> Result<(Rows, Source), Error> {
        // Notes what is read, so that no output replaces it.
        let bytes = files::read(&self.data).map_err(|error| {
            Error::of_input(files::unreadable(&self.data, Some("--data"), &error))
        })?;
        let rows = Rows::parse(&String::from_utf8_lossy(&bytes))
            .map_err(|fault| Error::of_input(format!("{}{fault} (--data)", self.data.display())))?;
        Ok((rows, Source::of_file(&self.data)))
    }
}

/// Settings of training: flags, keys of a file for --config, and the head of a saved model.
#[derive(Args, Clone, Serialize, Deserialize)]
struct Settings {
    /// Factors of a feature
    #[arg(long, default_value_t = 8, help_heading = "Model")]
    dim: usize,
    /// Passes over the training rows
    #[arg(long, default_value_t = 10, help_heading = "Training")]
    epochs: u32,
    /// Learning rate of AdaGrad
    #[arg(long, default_value_t = 0.1, help_heading = "Training")]
    learning_rate: f32,
    #[command(flatten)]
    #[serde(flatten)]
    run: RunConfig,
    #[command(flatten)]
    #[serde(flatten)]
    cluster: ClusterConfig,
}

impl Config for Settings {
    fn common(&self) -> (&ClusterConfig, &RunConfig) {
        (&self.cluster, &self.run)
    }

    fn common_mut(&mut self) -> (&mut ClusterConfig, &mut RunConfig) {
        (&mut self.cluster, &mut self.run)
    }

    fn check(&self) -> Result<(), ConfigError> {
        checks::dimension(self.dim)?;
        checks::positive("learning_rate", self.learning_rate)
    }
}

/// Rows of features, each with its label. Feature 0 is 1 in every row.
struct Rows {
    labels: Vec<bool>,
    features: Vec<Vec<(u32, f32)>>,
    /// Features there are.
    count: u64,
    digest: u64,
}

impl Rows {
    /// Reads rows; the text of an error continues the path.
    fn parse(text: &str) -> Result<Self, String> {
        let (mut labels, mut features) = (Vec::new(), Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_whitespace();
            let Some(label) = words.next() else { continue };
            let number = |word: &str| word.parse().ok().filter(|number: &f32| number.is_finite());
            let label = number(label).ok_or(format!(":{line}: '{label}' is no label"))?;
            let feature = |word: &str| {
                let (index, value) = word.split_once(':')?;
                Some((index.parse::<u32>().ok()?.checked_add(1)?, number(value)?))
            };
            let of_row = words
                .map(|word| feature(word).ok_or(format!(":{line}: '{word}' is no index:value")));
            let mut row = of_row.collect::<Result<Vec<_>, _>>()?;
            row.push((0, 1.0));
            labels.push(label > 0.0);
            features.push(row);
        }
        let last = features.iter().flatten().map(|(index, _)| u64::from(*index)).max();
        let count = last.ok_or(": no row is in it")? + 1;
        Ok(Self { labels, features, count, digest: Digest::of(text.as_bytes()) })
    }

    /// Returns the rows to train on, or of another part.
    fn part(&self, wanted: Option<Split>) -> Vec<u32> {
        let part = |row: &u32| match row % 10 {
            8 => Some(Split::Valid),
            9 => Some(Split::Test),
            _ => None,
        };
        (0..self.labels.len() as u32).filter(|row| part(row) == wanted).collect()
    }

    /// Returns the keys that `rows` need, ascending, each once.
    fn keys(&self, rows: &[u32]) -> Vec<Key> {
        let features = rows.iter().flat_map(|row| &self.features[*row as usize]);
        let mut keys: Vec<Key> = features.map(|(index, _)| Key(u64::from(*index))).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// The model on a part of the rows. Key `i` is feature `i`; its value is its weight and factors,
/// in training with an accumulator each.
struct Machine<'a> {
    rows: &'a Rows,
    settings: &'a Settings,
    part: Vec<u32>,
    split: Split,
    value_len: usize,
}

impl<'a> Machine<'a> {
    fn new(rows: &'a Rows, settings: &'a Settings, split: Option<Split>, form: Form) -> Self {
        let halves = if form == Form::Trained { 2 } else { 1 };
        let (part, value_len) = (rows.part(split), halves * (1 + settings.dim));
        Self { rows, settings, part, split: split.unwrap_or_default(), value_len }
    }

    /// Returns the score of a row, and the sums of its factors, which its gradient needs.
    fn score(&self, row: u32, keys: &[Key], values: &[f32]) -> (f32, Vec<f32>) {
        let (mut score, mut sums) = (0.0, vec![0.0; self.settings.dim]);
        for (index, x) in &self.rows.features[row as usize] {
            let value = &values[place(keys, *index) * self.value_len..];
            score += value[0] * x;
            for (sum, factor) in sums.iter_mut().zip(&value[1..]) {
                *sum += factor * x;
                score -= 0.5 * (factor * x).powi(2);
            }
        }
        (score + 0.5 * sums.iter().map(|sum| sum * sum).sum::<f32>(), sums)
    }
}

fn place(keys: &[Key], index: u32) -> usize {
    keys.partition_point(|key| key.0 < u64::from(index))
}

impl<'a> Task for Machine<'a> {
    type Batch<S: Send> = Plain<(Vec<u32>, Vec<Key>)>;
    type Loader = WorkerSlot;
    type WorkerState = ();
    type Evaluation = Machine<'a>;

    fn tables(&self) -> Tables {
        let len = 1 + self.settings.dim;
        let features = Table::new("features", self.rows.count, len).with_state("adagrad", len);
        Tables::new([features]).expect("it has a name")
    }

    fn initial(&self) -> Initial {
        let (seed, parameters) = (self.settings.run.seed, 1 + self.settings.dim);
        Arc::new(move |key, value| {
            value[parameters..].fill(AdaGrad::INITIAL);
            let mut random = generator(seed, [INITIAL, key.0]);
            value[1..parameters].fill_with(|| random.random_range(-0.1..0.1));
        })
    }

    fn name_of(&self, key: Key) -> String {
        key.0.checked_sub(1).map_or("the bias".to_owned(), |index| format!("feature {index}"))
    }

    fn examples(&self) -> u64 {
        self.part.len() as u64
    }

    fn frequencies(&self) -> Option<Vec<f64>> {
        let mut counts = vec![0.0; self.rows.count as usize];
        for row in &self.part {
            let features = &self.rows.features[*row as usize];
            features.iter().for_each(|(index, _)| counts[*index as usize] += 1.0);
        }
        Some(counts)
    }

    fn loader(&self, slot: WorkerSlot, _: &Tell<'_>) -> WorkerSlot {
        slot
    }

    fn load<A: IntentSignaler>(
        &self,
        slot: &mut WorkerSlot,
        Cursor { round, batch, mut clock, .. }: Cursor,
        signaler: &mut A,
        queue: &Queue<Self::Batch<A::Sample>>,
    ) -> Result<Clock, Over> {
        let order = slot.deal(self.part.len(), self.settings.run.seed, round.epoch);
        for places in order.chunks(BATCH).skip(batch) {
            let rows: Vec<u32> = places.iter().map(|place| self.part[*place]).collect();
            let (keys, examples) = (self.rows.keys(&rows), rows.len() as u64);
            signaler.signal_intent(&keys, clock..clock + 1)?;
            queue.send(Plain { clock, examples, content: (rows, keys) })?;
            clock = clock + 1;
        }
        Ok(clock)
    }

    fn worker_state(&self) {}

    fn learning_rate(&self, _: &Course<'_>) -> f32 {
        self.settings.learning_rate
    }

    fn train<P: Parameters>(
        &self,
        (): &mut (),
        batch: &mut Self::Batch<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let ((rows, keys), len) = (&batch.content, 1 + self.settings.dim);
        let mut values = vec![0.0; keys.len() * 2 * len];
        let mut gradients = vec![0.0; keys.len() * len];
        parameters.pull(keys, &mut values)?;
        let mut loss = 0.0;
        for row in rows {
            let (score, sums) = self.score(*row, keys, &values);
            let sign = if self.rows.labels[*row as usize] { 1.0 } else { -1.0 };
            // ln(1 + exp(z)), which overflows for no score.
            let z = -sign * score;
            loss += f64::from(z.max(0.0) + (-z.abs()).exp().ln_1p());
            let slope = -sign / (1.0 + (sign * score).exp());
            for (index, x) in &self.rows.features[*row as usize] {
                let at = place(keys, *index);
                let (value, gradient) = (&values[at * 2 * len..], &mut gradients[at * len..]);
                gradient[0] += slope * x;
                for (k, sum) in (1..).zip(&sums) {
                    gradient[k] += slope * x * (sum - value[k] * x);
                }
            }
        }
        let mut updates = vec![0.0; values.len()];
        let steps = values.chunks(2 * len).zip(gradients.chunks(len));
        for (((value, gradient), update), key) in steps.zip(updates.chunks_mut(2 * len)).zip(keys) {
            if !(AdaGrad { learning_rate }.step(value, gradient, update)) {
                return Err(StepError::NotFinite(*key));
            }
        }
        parameters.push(keys, &updates)?;
        parameters.advance_clock();
        Ok(loss)
    }

    fn evaluation(&self, split: Split, form: Form, _: Option<&Auc>) -> Option<Self> {
        let machine = Self::new(self.rows, self.settings, Some(split), form);
        (!machine.part.is_empty()).then_some(machine)
    }

    fn is_better(&self, figures: &Auc, best: &Auc) -> bool {
        figures.auc > best.auc || best.auc.is_nan()
    }
}

impl Evaluation for Machine<'_> {
    type Answer = f32;
    type Figures = Auc;
    type Evaluator = ();

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.part.len()
    }

    fn evaluator(&self) {}

    fn evaluate<P: Parameters>(
        &self,
        (): &mut (),
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<f32>,
    ) -> Result<(), P::Error> {
        let (rows, keys) = (&self.part[items.clone()], self.rows.keys(&self.part[items]));
        let mut values = vec![0.0; keys.len() * self.value_len];
        parameters.pull(&keys, &mut values)?;
        answers.extend(rows.iter().map(|row| self.score(*row, &keys, &values).0));
        Ok(())
    }

    fn figures(&self, answers: &[f32]) -> Auc {
        let labels = self.part.iter().map(|row| self.rows.labels[*row as usize]);
        Auc::of(answers, labels)
    }
}

enum FactorizationMachine {}

impl Program for FactorizationMachine {
    const NAME: &'static str = "fm";
    const VERSION: Option<&'static str> = Some(env!("CARGO_PKG_VERSION"));
    const LABELS: Labels =
        Labels { examples: "rows", evaluating: "scoring", items: "rows", quality: "AUC" };
    type TrainFlags = Flags;
    type Config = Settings;
    type Data = Rows;
    type Figures = Auc;
    type Model = Saved<Settings>;
    type Extra = ();
    type EvalFlags = Flags;
    type EvalData = (Saved<Settings>, Rows);
    type EvalExtra = ();

    fn read(args: &TrainArgs<Self>) -> Result<(Rows, Source), Error> {
        args.flags.read()
    }

    fn files(flags: &Flags) -> Files<'_> {
        Files { read: vec![("--data", &flags.data)], ..Files::default() }
    }

    fn train(
        rows: &Rows,
        settings: &Settings,
        run: &Run<'_, Auc>,
    ) -> Result<TrainReport<Auc, Saved<Settings>>, TaskError> {
        let task = |_| Machine::new(rows, settings, None, Form::Trained);
        let trained = run.train(Self::NAME, rows.digest, settings, (settings.epochs, 1), task)?;
        let tensors = [Tensor::new("features", rows.count, 1 + settings.dim)];
        Ok(trained.with((), |values| {
            let (head, tensors) = (settings.clone(), tensors.to_vec());
            Saved { task: Self::NAME, head, tensors, values }
        }))
    }

    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Self::EvalData, Source), Error> {
        let model: Saved<Settings> = Saved::open(Self::NAME, &args.load)?;
        args.check(&model.values)?;
        model.head.check().map_err(TaskError::Config)?;
        let (mut rows, source) = args.flags.read()?;
        let (path, known) = (args.flags.data.display(), model.values.len() / (1 + model.head.dim));
        if rows.count > known as u64 {
            let feature = rows.count.saturating_sub(2);
            return Err(Error::of_input(format!("{path}: the model has no feature {feature}")));
        }
        // These rows may lack features that the model has.
        rows.count = known as u64;
        if rows.part(Some(Split::Test)).is_empty() {
            return Err(Error::of_input(format!("{path}: no row is for test; give at least 10")));
        }
        Ok(((model, rows), source))
    }

    fn evaluation_files(flags: &Flags) -> Files<'_> {
        Self::files(flags)
    }

    fn evaluate(
        (model, rows): &Self::EvalData,
        _: &Flags,
        cluster: &ClusterConfig,
        run: &Run<'_, Auc>,
    ) -> Result<EvalReport<Auc>, TaskError> {
        let machine = Machine::new(rows, &model.head, Some(Split::Test), Form::Best);
        let shape = machine.best_shape();
        run.evaluate(Self::NAME, rows.digest, cluster, &machine, shape, &model.values)
    }
}

/// The purpose of the generator of initial values.
const INITIAL: u64 = 1;
/// Rows of a batch.
const BATCH: usize = 64;

fn main() -> ExitCode {
    cli::main_of::<FactorizationMachine>()
}

#[cfg(test)]
#[path = "own_task/tests.rs"]
mod tests;
