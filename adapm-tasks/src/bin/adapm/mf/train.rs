//! `train mf`.

use std::sync::atomic::AtomicBool;

use adapm_core::Key;
use adapm_tasks::mf::{self, Ratings, Selection, TrainConfig, TrainReport};
use adapm_tasks::run::{ConfigError, KeyChoice, UnknownKey};
use serde::Serialize;

use crate::args::mf::TrainArgs;
use crate::failure::Failure;
use crate::files::{Files, Outputs};
use crate::mf::Quality;
use crate::processes::Processes;
use crate::progress::{Labels, Screen};
use crate::report::{self, Summary};
use crate::train::{Common, Plan, Shared, Training};

impl Training for TrainArgs {
    const TASK: &'static str = super::TASK;
    const LABELS: Labels = super::LABELS;
    const KEY_KINDS: &'static [&'static str] = mf::KEY_KINDS;
    type Data = Ratings;
    type Config = TrainConfig;
    type Report = TrainReport;

    fn shared(&self) -> Shared<'_> {
        let Self { recipe, cluster, output, traced, processes, .. } = self;
        Shared { recipe, cluster, output, traced, processes }
    }

    fn files(&self) -> Files<'_> {
        Files { read: Files::given([("--data", &self.data.data)]), ..Files::default() }
    }

    fn data(&self) -> Result<Ratings, Failure> {
        super::ratings(&self.data)
    }

    fn source(ratings: &Ratings) -> String {
        ratings.source().to_string()
    }

    fn is_generated(ratings: &Ratings) -> bool {
        ratings.is_generated()
    }

    fn traced_keys(
        &self,
        ratings: &Ratings,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        mf::traced_keys(ratings, choices)
    }

    fn config(&self, common: Common) -> TrainConfig {
        let mut config = TrainConfig::default();
        (config.system, config.nodes, config.workers) = (common.system, common.nodes, common.workers);
        config.trace = common.trace;
        config.localize_ahead = self.localize_ahead;
        config.seed = self.model.seed;
        config.dim = self.model.dim;
        config.initial_deviation = self.model.initial_deviation;
        config.clip = self.model.clip;
        config.epochs = self.training.epochs;
        config.order = self.training.order;
        config.optimizer = self.training.optimizer;
        config.learning_rate = self.training.learning_rate;
        config.bold_driver = self.training.bold_driver;
        config.l2 = self.training.l2;
        config.penalty = self.training.penalty;
        config.evaluate = !self.training.no_eval;
        config.holds_back = !self.training.no_hold_back;
        config.valid_every = self.training.valid_every;
        config.checkpoint = self.output.save.is_some();
        config
    }

    fn check(config: &TrainConfig) -> Result<(), ConfigError> {
        config.check_values()
    }

    fn plan(&self, plan: &mut Plan<'_>, ratings: &Ratings, config: &TrainConfig) {
        super::describe(plan.table, ratings, &self.data, plan.given);
        let clip = if config.clip { ", predictions clipped" } else { "" };
        let model = format!("{} factors{clip}", config.dim);
        plan.row("model", &model, &["dim", "initial-deviation", "clip"]);
        let driver = if config.bold_driver { ", bold driver" } else { "" };
        let selection = Selection::planned(ratings, config);
        let falls = if config.l2.is_none() && selection != Selection::Nothing { ", falling" } else { "" };
        let training = format!(
            "{} with learning rate {}{driver}, L2 {} by {}{falls}",
            config.optimizer,
            config.rate(),
            config.penalty_first(selection),
            config.penalty
        );
        plan.row("training", &training, &["optimizer", "learning-rate", "bold-driver", "l2", "penalty"]);
        plan.row("order", config.order(selection).name(), &["order"]);
        let (epochs, selected) = super::plan(selection, config);
        plan.row("epochs", &epochs, &["epochs", "valid-every", "no-eval"]);
        plan.row("selected", &selected, &["no-hold-back", "no-eval"]);
        plan.row("seed", &config.seed.to_string(), &["seed"]);
    }

    fn train(
        &self,
        ratings: &Ratings,
        config: &TrainConfig,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<TrainReport, Failure> {
        Ok(match processes.company() {
            None => mf::train(ratings, config, screen, stop),
            Some(company) => mf::train_in_group(ratings, config, &company.group, screen, stop),
        }?)
    }

    fn summary(&self, report: &TrainReport) -> Summary {
        let (seconds, valid_seconds) = report::seconds_of(&report.epochs);
        Summary {
            epochs: if report.stopped { report.epochs_max } else { report.epochs.len() as u32 },
            seconds,
            loss: report.epochs.last().map(|epoch| epoch.loss),
            valid_seconds,
            test_seconds: report.test.map(|_| report.test_seconds),
            chosen: report.chosen_epoch,
            is_selected: report.epochs.iter().any(|epoch| epoch.valid.is_some()),
            stats: report.stats,
            stopped: report.stopped,
            nodes: report.nodes,
            workers: report.workers,
        }
    }

    fn quality(ratings: &Ratings, report: &TrainReport) -> String {
        let splits = [
            (super::name(report.selection), report.selected.as_ref()),
            ("test", report.test.as_ref()),
            (super::MEANS, report.means.as_ref()),
        ];
        super::table(&splits, ratings) + &super::remark(report)
    }

    fn is_judged(&self, _: &Ratings, report: &TrainReport) -> bool {
        match report.selection {
            Selection::Nothing | Selection::CrossFitted { .. } | Selection::HeldBack { cells: 0, .. } => true,
            _ => report.selected.is_some(),
        }
    }

    fn sizes(ratings: &Ratings, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let vectors = ratings.rows() as u64 + ratings.columns() as u64;
        vec![("--save", vectors.saturating_mul(config.dim as u64).saturating_mul(4))]
    }

    fn keep(&self, _: &Ratings, report: &TrainReport, state: &str, outputs: &mut Outputs) {
        if let Some(checkpoint) = &report.checkpoint {
            let what = format!("factors of {state}");
            outputs.save("--save", &what, |file| checkpoint.write_to(file).map(drop));
        }
    }

    fn object(ratings: &Ratings, config: &TrainConfig, report: &TrainReport) -> impl Serialize {
        Own {
            seed: config.seed,
            dim: config.dim,
            order: config.order(report.selection).name(),
            optimizer: config.optimizer.name(),
            learning_rate: config.rate(),
            l2: config.penalty_first(report.selection),
            cells: ratings.train_len(),
            selection: super::name(report.selection),
            held_back: match report.selection {
                Selection::HeldBack { cells, .. } => cells,
                _ => 0,
            },
            valid_rmse: report.selected.map(|metrics| metrics.rmse),
            gain: report.gain,
            test: Quality::new(report.test.as_ref(), report.means.as_ref(), ratings),
        }
    }
}

/// What is the task's in the object of a run.
#[derive(Serialize)]
struct Own {
    seed: u64,
    dim: usize,
    order: &'static str,
    optimizer: &'static str,
    learning_rate: f32,
    /// In the first epoch.
    l2: f32,
    cells: u64,
    /// What was selected on.
    selection: &'static str,
    /// Cells of train that were not trained on.
    held_back: u64,
    valid_rmse: Option<f64>,
    /// The share of the products that is predicted.
    gain: f64,
    #[serde(flatten)]
    test: Quality,
}
