//! The jobs of the demo: what is generated, and how each is trained.

use std::sync::atomic::AtomicBool;

use adapm_tasks::System;
use adapm_tasks::kge::{self, Graph, LossKind};
use adapm_tasks::mf::{self, PlantedConfig, Ratings};
use adapm_tasks::run::Epoch;
use adapm_tasks::wv::{self, Analogies, Corpus, Text};

use crate::args::DemoArgs;
use crate::demo::Outcome;
use crate::failure::Failure;
use crate::format;
use crate::progress::{Labels, Screen};

/// A job that each system gets.
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) labels: Labels,
    /// What was generated.
    pub(super) data: String,
    /// What is trained on it.
    pub(super) plan: String,
    /// What is measured in the end.
    pub(super) figure: &'static str,
    /// The best of it that can be expected.
    pub(super) best: f64,
    pub(super) is_higher_better: bool,
    task: Task,
}

enum Task {
    Kge(Graph, kge::TrainConfig),
    Mf(Box<Ratings>, mf::TrainConfig),
    Wv(Corpus, Analogies, wv::TrainConfig),
}

impl Job {
    /// One of each task, generated.
    pub(super) fn all(args: &DemoArgs) -> Result<Vec<Self>, Failure> {
        Ok(vec![kge(args), mf(args)?, wv(args)?])
    }

    /// Trains under `system`.
    pub(super) fn train(
        &self,
        system: System,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Outcome, Failure> {
        let (figure, seconds, stats) = match &self.task {
            Task::Kge(graph, config) => {
                let mut config = config.clone();
                config.system = Some(system);
                let report = kge::train(graph, &config, screen, stop)?;
                (report.test.map(|test| test.mrr), seconds(&report.epochs), report.stats)
            }
            Task::Mf(ratings, config) => {
                let mut config = config.clone();
                config.system = Some(system);
                let report = mf::train(ratings, &config, screen, stop)?;
                (report.test.map(|test| test.rmse), seconds(&report.epochs), report.stats)
            }
            Task::Wv(corpus, questions, config) => {
                let mut config = config.clone();
                config.system = Some(system);
                let report = wv::train(corpus, Some(questions), &config, screen, stop)?;
                let accuracy = report.analogies.map(|answers| answers.total().accuracy_of_all());
                (accuracy, seconds(&report.epochs), report.stats)
            }
        };
        Ok(Outcome { system, figure, seconds, stats })
    }
}

fn seconds<F>(epochs: &[Epoch<F>]) -> f64 {
    epochs.iter().fold(0.0, |sum, epoch| sum + epoch.seconds)
}

fn kge(args: &DemoArgs) -> Job {
    let graph = Graph::family(DATA_SEED);
    let mut config = kge::TrainConfig::default();
    (config.nodes, config.seed) = (args.nodes, args.seed);
    (config.dim, config.epochs) = (args.dim.unwrap_or(64), args.epochs.unwrap_or(8));
    // Few facts and few epochs: at the usual rate, where a run ends depends on luck.
    config.learning_rate = 0.2;
    // The papers' way to draw negatives (AdaPM §5.1): many small accesses, which is what a parameter manager is for.
    config.negatives = kge::Negatives::Independent;
    config.negative_count = Some(16);
    config.loss = LossKind::Logistic;
    config.n3 = 0.0;
    // Quality is compared at the end: selecting an epoch on the way would take longer than the training.
    config.valid_every = Some(config.epochs);
    config.checkpoint = false;
    let plan = format!(
        "{}, {} reals an entity, {} loss, 16 negatives for each side of a triple; {} epochs",
        config.model, config.dim, config.loss, config.epochs
    );
    let triples = format::count(graph.train().len() as u64);
    Job {
        name: "kge",
        labels: crate::kge::LABELS,
        data: format!("{}, {triples} triples to train on", graph.source()),
        plan,
        figure: "test MRR",
        best: crate::kge::BEST_MRR,
        is_higher_better: true,
        task: Task::Kge(graph, config),
    }
}

fn mf(args: &DemoArgs) -> Result<Job, Failure> {
    let mut planted = PlantedConfig::default();
    planted.seed = DATA_SEED;
    let ratings = Ratings::planted(planted)?;
    let mut config = mf::TrainConfig::default();
    (config.nodes, config.seed) = (args.nodes, args.seed);
    (config.dim, config.epochs) = (args.dim.unwrap_or(8), Some(args.epochs.unwrap_or(8)));
    // Noise is small here, and nothing is selected: what is compared is the end.
    (config.l2, config.holds_back) = (Some(0.01), false);
    config.checkpoint = false;
    let cells = format::count(ratings.train_len());
    Ok(Job {
        name: "mf",
        labels: crate::mf::LABELS,
        data: format!("{}, {cells} cells to train on", ratings.source()),
        plan: format!("{} factors, {}, {} epochs", config.dim, config.optimizer, args.epochs.unwrap_or(8)),
        figure: "test RMSE",
        best: ratings.best_rmse().unwrap_or(0.0),
        is_higher_better: false,
        task: Task::Mf(Box::new(ratings), config),
    })
}

fn wv(args: &DemoArgs) -> Result<Job, Failure> {
    let corpus = Corpus::count(Text::generated(DATA_SEED, SENTENCES), 1, 1)?;
    let mut config = wv::TrainConfig::default();
    (config.nodes, config.seed) = (args.nodes, args.seed);
    let epochs = args.epochs.unwrap_or(5);
    (config.dim, config.epochs) = (args.dim.unwrap_or(32), Some(epochs));
    // Few words, each seen often: steps may be long, and none is too frequent. After 3 epochs accuracy depends on luck.
    (config.learning_rate, config.sample) = (0.1, 0.0);
    config.checkpoint = false;
    let words = format::count(corpus.words());
    Ok(Job {
        name: "wv",
        labels: crate::wv::LABELS,
        data: format!("{}, {words} words", corpus.text().source()),
        plan: format!(
            "skip-gram, {} numbers a vector, {} negatives; {epochs} epochs",
            config.dim, config.negatives
        ),
        figure: "accuracy",
        best: crate::wv::BEST_ACCURACY,
        is_higher_better: true,
        task: Task::Wv(corpus, Analogies::planted(), config),
    })
}

/// The data of the demo is also that of `train` without data.
const DATA_SEED: u64 = 1;

const SENTENCES: u64 = 20_000;
