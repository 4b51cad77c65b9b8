//! Matrix factorization on the command line: how it is trained and evaluated, what is found in
//! ratings, and figures over predictions, for people and for programs.

use std::sync::atomic::AtomicBool;

use crate::mf::{
    self, Checkpoint, EvalConfig, EvalReport, RatingMetrics, Ratings, Selection, SyntheticConfig,
    TrainConfig, TrainReport,
};
use crate::run::{ConfigError, KeyChoice, Split, TaskError, UnknownKey};
use adapm_core::Key;
use serde::Serialize;

use crate::cli::args::Given;
use crate::cli::args::mf::{DataArgs, EvalArgs, TrainArgs};
use crate::cli::epoch::{Figure, Labels};
use crate::cli::eval::{self, Evaluating};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::kge::Finding;
use crate::cli::processes::Processes;
use crate::cli::progress::Screen;
use crate::cli::report::{self, Summary};
use crate::cli::table::{Align, Table};
use crate::cli::train::{Common, Plan, Shared, Training};
use crate::cli::{format, input};

/// The name of the task.
const TASK: &str = "mf";

pub(crate) const LABELS: Labels =
    Labels { examples: "cells", evaluating: "predicting", quality: "RMSE" };

/// Flags that choose data.
const DATA_FLAGS: [&str; 8] =
    ["data", "data-seed", "rows", "columns", "cells", "test-cells", "rank", "noise"];

impl Figure for RatingMetrics {
    fn figure(&self) -> f64 {
        self.rmse
    }
}

/// Reads the ratings that are asked for, or generates a matrix.
fn ratings(args: &DataArgs) -> Result<Ratings, Failure> {
    if let Some(name) = &args.data {
        let path = input::locate(TASK, name)?;
        return Ratings::load(&path).map_err(|error| TaskError::Data(error).into());
    }
    let asked = &args.generated;
    let mut config = SyntheticConfig::default();
    (config.rows, config.columns, config.rank) = (asked.rows, asked.columns, asked.rank);
    (config.cells, config.test_cells) = (asked.cells, asked.test_cells);
    (config.noise, config.seed) = (asked.noise, asked.data_seed);
    Ok(Ratings::synthetic(config)?)
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(table: &mut Table, ratings: &Ratings, args: &DataArgs, given: &Given) {
    let origin = input::origin(args.data.as_deref(), &DATA_FLAGS, given);
    table.row(["data".to_owned(), ratings.source().to_string(), origin]);
    let sizes = format!(
        "{} train, {} valid, {} test cells; {} rows, {} columns",
        format::count(ratings.train_len()),
        format::count(ratings.valid_len() as u64),
        format::count(ratings.test_len() as u64),
        format::count(ratings.rows() as u64),
        format::count(ratings.columns() as u64),
    );
    table.row(["", &sizes]);
    findings(ratings).iter().for_each(|finding| table.row(["", finding.text.as_str()]));
}

/// The errors of predictions.
#[derive(Serialize)]
pub(super) struct Quality {
    rmse: Option<f64>,
    mae: Option<f64>,
    predicted: Option<u64>,
    unseen: Option<u64>,
    /// RMSE of predictions by the means alone, the baseline.
    means_rmse: Option<f64>,
    means_mae: Option<f64>,
    /// The best RMSE on test that is possible, where it is known: on generated data.
    best_rmse: Option<f64>,
}

impl Quality {
    pub(super) fn new(
        metrics: Option<&RatingMetrics>,
        means: Option<&RatingMetrics>,
        ratings: &Ratings,
    ) -> Self {
        Self {
            rmse: metrics.map(|metrics| metrics.rmse),
            mae: metrics.map(|metrics| metrics.mae),
            predicted: metrics.map(|metrics| metrics.predicted),
            unseen: metrics.map(|metrics| metrics.unseen),
            means_rmse: means.map(|means| means.rmse),
            means_mae: means.map(|means| means.mae),
            best_rmse: ratings.best_rmse(),
        }
    }
}

/// Returns a row per split that was evaluated; empty if none was.
pub(super) fn table(splits: &[(&str, Option<&RatingMetrics>)], ratings: &Ratings) -> String {
    let mut table =
        Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    let evaluated: Vec<_> = splits
        .iter()
        .filter_map(|(split, metrics)| metrics.map(|metrics| (split, metrics)))
        .collect();
    if evaluated.is_empty() {
        return String::new();
    }
    table.row(["", "RMSE", "MAE", "predicted", "unseen"]);
    for (split, metrics) in evaluated {
        let errors = [metrics.rmse, metrics.mae].map(format::figure);
        let counts = [metrics.predicted, metrics.unseen].map(format::count);
        table.row([(*split).to_owned()].into_iter().chain(errors).chain(counts));
    }
    if let Some(best) = ratings.best_rmse() {
        table.row(["best possible".to_owned(), format::figure(best)]);
    }
    table.render() + "\n"
}

/// Names the cells that are selected on, for tables.
pub(super) fn name(selection: Selection) -> &'static str {
    match selection {
        Selection::Valid { .. } => "valid",
        Selection::Generated { .. } => "generated",
        Selection::HeldBack { .. } => "held back",
        Selection::CrossFitted { .. } => "left out",
        _ => "nothing",
    }
}

/// Describes the plan for epochs, and the cells they are selected on.
pub(super) fn planned(selection: Selection, config: &TrainConfig) -> (String, String) {
    let is_known = matches!(selection, Selection::Nothing | Selection::CrossFitted { .. });
    let every =
        if is_known { String::new() } else { format!(", evaluated every {}", config.valid_every) };
    let epochs = match (config.epochs, selection) {
        (Some(epochs), _) => format!("{epochs}{every}"),
        (None, Selection::Nothing) => "20".to_owned(),
        (None, Selection::CrossFitted { .. }) => {
            "as many as help on cells left out, at most 100".to_owned()
        }
        (None, _) => format!("as many as help, at most 100{every}"),
    };
    let selected = match selection {
        Selection::Valid { cells } => format!("on the {} cells of valid", format::count(cells)),
        Selection::Generated { cells } => {
            format!("on {} more cells, generated", format::count(cells))
        }
        Selection::HeldBack { cells, of } => {
            format!("on {} of {} train cells, held back", format::count(cells), format::count(of))
        }
        Selection::CrossFitted { .. } => {
            "on each fifth of train, left out in turn, 4 times".to_owned()
        }
        _ if config.evaluate => "nothing: the last epoch is kept".to_owned(),
        _ => "nothing, not evaluated: the last epoch is kept".to_owned(),
    };
    (epochs, selected)
}

/// Remarks on the cells that are selected on, and on the products if less than all of them is
/// predicted.
pub(super) fn remark(report: &TrainReport) -> String {
    let mut remark = String::new();
    let on = match report.selection {
        Selection::HeldBack { cells: 0, .. } => return NONE_SPARE.to_owned(),
        Selection::CrossFitted { .. } if report.selected.is_none() && !report.stopped => {
            return NONE_SPARE.to_owned();
        }
        Selection::HeldBack { cells, of } => {
            let (cells, of) = (format::count(cells), format::count(of));
            remark = format!("  held back {cells} of {of} train cells to select on\n");
            "the cells held back"
        }
        Selection::CrossFitted { .. } => "the cells left out",
        Selection::Valid { .. } => "valid",
        Selection::Generated { .. } => "the generated cells",
        _ => return remark,
    };
    if report.selected.is_some_and(|_| report.gain == 0.0) {
        remark += &format!("  the means are predicted: factors did not help on {on}\n");
    } else if report.gain < 1.0 {
        let share = format::share(report.gain);
        remark += &format!("  {share} of each product is added, by its gain on {on}\n");
    }
    if remark.is_empty() { remark } else { remark + "\n" }
}

/// Lists the findings of reading ratings.
pub(crate) fn findings(ratings: &Ratings) -> Vec<Finding> {
    let counts = ratings.counts();
    let unseen_valid =
        "of valid with a row or column unknown to train: the mean of the other is predicted";
    let unseen_test =
        "of test with a row or column unknown to train: the mean of the other is predicted";
    let problems = [
        (counts.repeated, "repeated in train, trained on each time"),
        (counts.trained_valid, "of valid are in train, too"),
        (counts.trained_test, "of test are in train, too: figures are too good"),
        (counts.unseen_valid, unseen_valid),
        (counts.unseen_test, unseen_test),
    ];
    let mut findings = Vec::new();
    if counts.comments > 0 {
        let lines = if counts.comments == 1 { "line" } else { "lines" };
        let comments = format::count(counts.comments);
        findings.push(Finding::note(format!(
            "{comments} {lines} of comments (# or %) at the top left out"
        )));
    }
    let found = problems.into_iter().filter(|(count, _)| *count > 0);
    findings.extend(
        found.map(|(count, text)| Finding::problem(format!("{} {text}", format::count(count)))),
    );
    findings
}

impl Training for TrainArgs {
    const TASK: &'static str = TASK;
    const LABELS: Labels = LABELS;
    const KEY_KINDS: &'static [&'static str] = mf::KEY_KINDS;
    type Data = Ratings;
    type Config = TrainConfig;
    type Report = TrainReport;

    fn shared(&self) -> Shared<'_> {
        let Self { settings, cluster, output, traced, processes, .. } = self;
        Shared { settings, cluster, output, traced, processes }
    }

    fn files(&self) -> Files<'_> {
        Files { read: Files::given([("--data", &self.data.data)]), ..Files::default() }
    }

    fn data(&self) -> Result<Ratings, Failure> {
        ratings(&self.data)
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
        (config.system, config.nodes, config.workers) =
            (common.system, common.nodes, common.workers);
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
        describe(plan.table, ratings, &self.data, plan.given);
        let clip = if config.clip { ", predictions clipped" } else { "" };
        let model = format!("{} factors{clip}", config.dim);
        plan.row("model", &model, &["dim", "initial-deviation", "clip"]);
        let driver = if config.bold_driver { ", bold driver" } else { "" };
        let selection = Selection::planned(ratings, config);
        let falls =
            if config.l2.is_none() && selection != Selection::Nothing { ", falling" } else { "" };
        let training = format!(
            "{} with learning rate {}{driver}, L2 {} by {}{falls}",
            config.optimizer,
            config.rate(),
            config.penalty_first(selection),
            config.penalty
        );
        plan.row(
            "training",
            &training,
            &["optimizer", "learning-rate", "bold-driver", "l2", "penalty"],
        );
        plan.row("order", config.order(selection).name(), &["order"]);
        let (epochs, selected) = planned(selection, config);
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
            (name(report.selection), report.selected.as_ref()),
            ("test", report.test.as_ref()),
            (MEANS, report.means.as_ref()),
        ];
        table(&splits, ratings) + &remark(report)
    }

    fn is_judged(&self, _: &Ratings, report: &TrainReport) -> bool {
        match report.selection {
            Selection::Nothing
            | Selection::CrossFitted { .. }
            | Selection::HeldBack { cells: 0, .. } => true,
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
        OfRun {
            seed: config.seed,
            dim: config.dim,
            order: config.order(report.selection).name(),
            optimizer: config.optimizer.name(),
            learning_rate: config.rate(),
            l2: config.penalty_first(report.selection),
            cells: ratings.train_len(),
            selection: name(report.selection),
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

/// The task's own fields in the object of a run.
#[derive(Serialize)]
struct OfRun {
    seed: u64,
    dim: usize,
    order: &'static str,
    optimizer: &'static str,
    learning_rate: f32,
    /// In the first epoch.
    l2: f32,
    cells: u64,
    /// The cells that were selected on.
    selection: &'static str,
    /// Cells of train that were not trained on.
    held_back: u64,
    valid_rmse: Option<f64>,
    /// The share of the products that is predicted.
    gain: f64,
    #[serde(flatten)]
    test: Quality,
}

impl Evaluating for EvalArgs {
    const TASK: &'static str = TASK;
    const LABELS: Labels = LABELS;
    type Input = (Checkpoint, Ratings);
    type Report = EvalReport;

    fn shared(&self) -> eval::Shared<'_> {
        eval::Shared { cluster: &self.cluster, processes: &self.processes, json: self.output.json }
    }

    fn files(&self) -> Files<'_> {
        let mut read = Files::given([("--data", &self.data.data)]);
        read.push(("--load", &self.load));
        Files { read, ..Files::default() }
    }

    fn input(&self) -> Result<Self::Input, Failure> {
        let checkpoint = Checkpoint::load(&self.load).map_err(TaskError::Checkpoint)?;
        let ratings = self.data.data.as_ref().map_or_else(
            || ratings(&self.data),
            |name| {
                let path = input::locate(TASK, name)?;
                let ratings = Ratings::load_for(&path, &checkpoint, self.split);
                Ok(ratings.map_err(TaskError::Data)?)
            },
        )?;
        if self.cells(&ratings) == 0 {
            return Err(Failure::NoPart(self.split));
        }
        Ok((checkpoint, ratings))
    }

    fn source((_, ratings): &Self::Input) -> String {
        ratings.source().to_string()
    }

    fn is_generated((_, ratings): &Self::Input) -> bool {
        ratings.is_generated()
    }

    fn plan(&self, plan: &mut Plan<'_>, (checkpoint, ratings): &Self::Input) {
        describe(plan.table, ratings, &self.data, plan.given);
        let clip = if self.clip { ", predictions clipped" } else { "" };
        let means = if checkpoint.scale() == 0.0 { ", the means are predicted" } else { "" };
        let model = format!("{} factors{clip}{means}", checkpoint.dim());
        let origin = format!("--load {} {}", self.load.display(), plan.given.among(&["clip"]));
        plan.table.row(["model", &model, origin.trim_end()]);
        plan.row(
            "cells",
            &format!("{} of {}", format::count(self.cells(ratings)), self.split),
            &["split"],
        );
    }

    fn evaluate(
        &self,
        (checkpoint, ratings): &Self::Input,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<EvalReport, Failure> {
        let mut config = EvalConfig::default();
        (config.system, config.nodes, config.workers) =
            (common.system, common.nodes, common.workers);
        (config.split, config.clip) = (self.split, self.clip);
        Ok(match processes.company() {
            None => mf::evaluate(ratings, checkpoint, &config, screen, stop),
            Some(company) => {
                mf::evaluate_in_group(ratings, checkpoint, &config, &company.group, screen, stop)
            }
        }?)
    }

    fn summary(report: &EvalReport) -> eval::Summary {
        eval::Summary {
            items: ("cells", report.metrics.map_or(0, |metrics| metrics.predicted)),
            seconds: report.seconds,
            stats: report.stats,
            stopped: report.stopped,
            nodes: report.nodes,
            workers: report.workers,
        }
    }

    fn quality(&self, (_, ratings): &Self::Input, report: &EvalReport) -> String {
        let splits = [(self.split.name(), report.metrics.as_ref()), (MEANS, report.means.as_ref())];
        table(&splits, ratings)
    }

    fn object(&self, (checkpoint, ratings): &Self::Input, report: &EvalReport) -> impl Serialize {
        OfEvaluation {
            split: self.split.name(),
            dim: checkpoint.dim(),
            quality: Quality::new(report.metrics.as_ref(), report.means.as_ref(), ratings),
        }
    }
}

impl EvalArgs {
    /// Cells of the part to predict.
    fn cells(&self, ratings: &Ratings) -> u64 {
        let cells = match self.split {
            Split::Valid => ratings.valid_len(),
            _ => ratings.test_len(),
        };
        cells as u64
    }
}

/// The task's own fields in the object of an evaluation.
#[derive(Serialize)]
struct OfEvaluation {
    split: &'static str,
    dim: usize,
    #[serde(flatten)]
    quality: Quality,
}

const NONE_SPARE: &str = "  the means are predicted: no cell can be spared to select on\n\n";

/// The name of the baseline in tables.
pub(super) const MEANS: &str = "means alone";
