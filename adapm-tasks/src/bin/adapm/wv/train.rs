//! `train wv`.

use std::sync::atomic::AtomicBool;

use adapm_core::Key;
use adapm_tasks::Scheme;
use adapm_tasks::run::{ConfigError, KeyChoice, UnknownKey};
use adapm_tasks::wv::{self, Corpus, Optimizer, SimilarityReport, TrainConfig, TrainReport};
use serde::Serialize;

use crate::args::wv::TrainArgs;
use crate::failure::Failure;
use crate::files::{Files, Outputs};
use crate::processes::Processes;
use crate::progress::{Labels, Screen};
use crate::report::{self, Summary};
use crate::train::{Common, Plan, Shared, Training};
use crate::wv::{Asked, Quality};

/// What is trained on, and what is asked in the end.
pub(crate) struct Data {
    corpus: Corpus,
    asked: Asked,
}

/// What came out.
pub(crate) struct Report {
    trained: TrainReport,
    /// On the first node, if it was asked for.
    similarity: Option<SimilarityReport>,
    /// Epochs that were to be trained.
    epochs: u32,
}

impl Training for TrainArgs {
    const TASK: &'static str = super::TASK;
    const LABELS: Labels = super::LABELS;
    const KEY_KINDS: &'static [&'static str] = wv::KEY_KINDS;
    type Data = Data;
    type Config = TrainConfig;
    type Report = Report;

    fn shared(&self) -> Shared<'_> {
        let Self { recipe, cluster, output, traced, processes, .. } = self;
        Shared { recipe, cluster, output, traced, processes }
    }

    fn files(&self) -> Files<'_> {
        let (data, asked) = (&self.data, &self.asked);
        Files {
            read: Files::given([
                ("--data", &data.data),
                ("--read-vocab", &data.read_vocab),
                ("--questions", &asked.questions),
                ("--similarity", &asked.similarity),
            ]),
            written: Files::given([("--output", &self.vectors), ("--save-vocab", &self.save_vocab)]),
        }
    }

    fn data(&self) -> Result<Data, Failure> {
        // What is wrong with a short file is told before a long one is read.
        let asked = Asked::new(&self.asked, self.data.data.is_none() && !self.training.no_eval)?;
        Ok(Data { corpus: super::corpus(&self.data)?, asked })
    }

    fn source(data: &Data) -> String {
        data.corpus.text().source().to_string()
    }

    fn is_generated(data: &Data) -> bool {
        data.corpus.text().is_generated()
    }

    fn traced_keys(&self, data: &Data, choices: &[KeyChoice]) -> Result<Vec<(Key, String)>, UnknownKey> {
        wv::traced_keys(data.corpus.vocabulary(), choices)
    }

    fn config(&self, common: Common) -> TrainConfig {
        let mut config = TrainConfig::default();
        (config.system, config.nodes, config.workers) = (common.system, common.nodes, common.workers);
        config.trace = common.trace;
        (config.ahead, config.localize_ahead) = (self.ahead, self.localize_ahead);
        config.seed = self.training.seed;
        config.dim = self.training.dim;
        config.epochs = self.training.epochs;
        config.window = self.training.window;
        config.negatives = self.training.negatives;
        (config.drawn, config.scheme) = (self.training.drawn, self.training.sampling);
        config.sample = self.training.sample;
        config.optimizer = self.training.optimizer;
        config.learning_rate = self.training.learning_rate;
        let wanted = [&self.output.save, &self.vectors, &self.asked.similarity];
        config.checkpoint = wanted.into_iter().any(Option::is_some);
        config
    }

    fn check(config: &TrainConfig) -> Result<(), ConfigError> {
        config.check_values()
    }

    fn plan(&self, plan: &mut Plan<'_>, data: &Data, config: &TrainConfig) {
        super::describe(plan.table, &data.corpus, &self.data, plan.given);
        let model = format!("skip-gram, {} numbers a vector, window {}", config.dim, config.window);
        plan.row("model", &model, &["dim", "window"]);
        let falling = if config.optimizer == Optimizer::Sgd { ", falling" } else { "" };
        let thinned = if config.sample > 0.0 {
            format!(", words thinned from {} of the text on", config.sample)
        } else {
            String::new()
        };
        let training =
            format!("{} with learning rate {}{falling}{thinned}", config.optimizer, config.learning_rate);
        plan.row("training", &training, &["optimizer", "learning-rate", "sample"]);
        let negatives = format!("{} a pair, drawn for each {}", config.negatives, config.drawn);
        let sampling = config.sampling().map_or(String::new(), |scheme| format!("; sampling {scheme}"));
        plan.row("negatives", &(negatives + &sampling), &["negatives", "drawn", "sampling"]);
        plan.warn_of_sampling(config.sampling(), config.system, config.nodes);
        let epochs = config.epochs_for(data.corpus.words(), data.corpus.vocabulary().len());
        plan.row("epochs", &epochs.to_string(), &["epochs"]);
        data.asked.plan(plan);
        plan.row("seed", &config.seed.to_string(), &["seed"]);
    }

    fn train(
        &self,
        data: &Data,
        config: &TrainConfig,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Report, Failure> {
        let Data { corpus, asked } = data;
        let questions = asked.questions.as_ref();
        let trained = match processes.company() {
            None => wv::train(corpus, questions, config, screen, stop),
            Some(company) => wv::train_in_group(corpus, questions, config, &company.group, screen, stop),
        }?;
        let checkpoint = trained.checkpoint.as_ref().zip(asked.similarities.as_ref());
        let similarity =
            checkpoint.map(|(checkpoint, pairs)| pairs.evaluate(&checkpoint.vectors(), usize::MAX));
        Ok(Report {
            trained,
            similarity,
            epochs: config.epochs_for(corpus.words(), corpus.vocabulary().len()),
        })
    }

    fn summary(&self, Report { trained, epochs, .. }: &Report) -> Summary {
        let (seconds, valid_seconds) = report::seconds_of(&trained.epochs);
        Summary {
            epochs: *epochs,
            chosen: trained.epochs.last().map_or(0, |epoch| epoch.epoch),
            seconds,
            loss: trained.epochs.last().map(|epoch| epoch.loss),
            valid_seconds,
            test_seconds: trained.analogies.as_ref().map(|_| trained.analogies_seconds),
            is_selected: false,
            stats: trained.stats,
            stopped: trained.stopped,
            nodes: trained.nodes,
            workers: trained.workers,
        }
    }

    fn quality(data: &Data, report: &Report) -> String {
        let Report { trained, similarity, .. } = report;
        super::table(trained.analogies.as_ref(), similarity.as_ref(), data.asked.are_planted)
    }

    fn is_judged(&self, _: &Data, _: &Report) -> bool {
        // No epoch is chosen by what it can answer.
        true
    }

    fn sizes(data: &Data, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let words = data.corpus.vocabulary().len() as u64;
        let bytes = words.saturating_mul(config.dim as u64).saturating_mul(4);
        vec![("--save", bytes.saturating_mul(2)), ("--output", bytes)]
    }

    fn keep(&self, data: &Data, report: &Report, state: &str, outputs: &mut Outputs) {
        if let Some(checkpoint) = &report.trained.checkpoint {
            let what = format!("both vectors of each word of {state}");
            outputs.save("--save", &what, |file| checkpoint.write_to(file).map(drop));
            if outputs.has("--output") {
                let (vectors, format) = (checkpoint.vectors(), self.format);
                let what = format!("vectors of {state} in word2vec's {format} form");
                outputs.save("--output", &what, |file| vectors.write_to(file, format));
            }
        }
        let vocabulary = data.corpus.vocabulary();
        outputs.save("--save-vocab", "words and counts", |file| vocabulary.write_to(file));
    }

    fn object(data: &Data, config: &TrainConfig, report: &Report) -> impl Serialize {
        let Report { trained, similarity, .. } = report;
        Own {
            seed: config.seed,
            dim: config.dim,
            window: config.window,
            negatives: config.negatives,
            drawn: config.drawn.name(),
            sampling: config.sampling().map(Scheme::name),
            optimizer: config.optimizer.name(),
            learning_rate: config.learning_rate,
            words: data.corpus.words(),
            vocabulary: data.corpus.vocabulary().len(),
            test: Quality::new(trained.analogies.as_ref(), similarity.as_ref(), data.asked.are_planted),
        }
    }
}

/// What is the task's in the object of a run.
#[derive(Serialize)]
struct Own {
    seed: u64,
    dim: usize,
    window: u16,
    negatives: usize,
    drawn: &'static str,
    sampling: Option<&'static str>,
    optimizer: &'static str,
    learning_rate: f32,
    words: u64,
    vocabulary: usize,
    #[serde(flatten)]
    test: Quality,
}
