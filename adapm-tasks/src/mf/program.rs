//! Matrix factorization on the command line: how it is trained and evaluated, what is found in
//! ratings, and figures over predictions, for people and for programs.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use adapm_core::Key;
use clap::Args;
use serde::Serialize;

use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::files::Files;
use crate::cli::program::{
    Error, EvalArgs, EvalReportOf, Finding, Model, Plan, Program, ReportOf, Source, TrainArgs,
};
use crate::cli::table::{Align, Table};
use crate::cli::{format, input};
use crate::data::DataError;
use crate::mf::checkpoint::Checkpoint;
use crate::mf::config::{EvalConfig, Selection, TrainConfig};
use crate::mf::prediction::RatingMetrics;
use crate::mf::ratings::Ratings;
use crate::mf::synthetic::SyntheticConfig;
use crate::mf::task::{KEY_KINDS, traced_keys};
use crate::mf::training::{self, EvalReport, Found, NAME, Predicted, TrainReport};
use crate::run::flags::one_of;
use crate::run::{ClusterConfig, KeyChoice, Run, Split, TaskError, UnknownKey};

pub(crate) const LABELS: Labels =
    Labels { examples: "cells", evaluating: "predicting", items: "cells", quality: "RMSE" };

/// Flags that choose data.
const DATA_FLAGS: [&str; 8] =
    ["data", "data-seed", "rows", "columns", "cells", "test-cells", "rank", "noise"];

impl Figures for RatingMetrics {
    fn figure(&self) -> f64 {
        self.rmse
    }

    fn items(&self) -> u64 {
        self.predicted
    }
}

impl Model for Checkpoint {
    fn write_to(&self, file: &mut dyn Write) -> io::Result<()> {
        Checkpoint::write_to(self, file).map(drop)
    }
}

/// Flags that choose ratings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Ratings: a file (`u i r` lines, CSV, TSV, MovieLens, MatrixMarket; .gz too) whose first line
    /// may name the columns user, item and rating; a folder with train and test of these; or its
    /// name in $ADAPM_DATA/mf; none: a generated matrix
    #[arg(long, value_name = "PATH|NAME", conflicts_with_all = ["data_seed", "rows", "columns", "cells", "test_cells", "rank", "noise"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    generated: GeneratedArgs,
}

#[derive(Debug, Args)]
struct GeneratedArgs {
    /// Seed of the generated matrix
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().seed)]
    data_seed: u64,
    /// Rows of the generated matrix
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().rows)]
    rows: u32,
    /// Columns of the generated matrix
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().columns)]
    columns: u32,
    /// Cells of the generated matrix to train on, at most a quarter of all
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().cells)]
    cells: u64,
    /// Cells of the generated matrix to predict
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().test_cells)]
    test_cells: u32,
    /// Rank of the generated matrix without noise
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().rank)]
    rank: usize,
    /// Standard deviation of the noise of the generated matrix; that of the matrix without is 1
    #[arg(long, value_name = "X", default_value_t = SyntheticConfig::default().noise, allow_negative_numbers = true)]
    noise: f32,
}

/// Flags of an evaluation.
#[derive(Debug, Args)]
pub struct EvalFlags {
    #[command(flatten)]
    data: DataArgs,
    /// Part of the data to predict
    #[arg(long, value_name = "PART", default_value_t, value_parser = one_of::<Split>(Split::NAMES), help_heading = "Data")]
    split: Split,
    /// Clip predictions to the range of the training data
    #[arg(long, help_heading = "Model")]
    clip: bool,
}

impl DataArgs {
    /// Reads the ratings that are asked for by `load`, or generates a matrix.
    fn read(
        &self,
        load: impl FnOnce(&Path) -> Result<Ratings, DataError>,
    ) -> Result<(Ratings, Source), Failure> {
        let ratings = match &self.data {
            Some(name) => load(&input::locate(NAME, name)?).map_err(TaskError::Data)?,
            None => Ratings::synthetic(self.generated.config())?,
        };
        let (text, is_generated) = (ratings.source().to_string(), ratings.is_generated());
        Ok((ratings, Source { text, is_generated }))
    }

    fn files(&self) -> Files<'_> {
        Files { read: Files::given([("--data", &self.data)]), ..Files::default() }
    }
}

impl GeneratedArgs {
    fn config(&self) -> SyntheticConfig {
        let mut config = SyntheticConfig::default();
        (config.rows, config.columns, config.rank) = (self.rows, self.columns, self.rank);
        (config.cells, config.test_cells) = (self.cells, self.test_cells);
        (config.noise, config.seed) = (self.noise, self.data_seed);
        config
    }
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(plan: &mut Plan<'_>, ratings: &Ratings, args: &DataArgs) {
    plan.data(args.data.as_deref(), &DATA_FLAGS);
    let sizes = format!(
        "{} train, {} valid, {} test cells; {} rows, {} columns",
        format::count(ratings.train_len()),
        format::count(ratings.valid_len() as u64),
        format::count(ratings.test_len() as u64),
        format::count(ratings.rows() as u64),
        format::count(ratings.columns() as u64),
    );
    plan.note("", &sizes);
    if let Some(bytes) = ratings.spilled_bytes() {
        let folder = env::temp_dir();
        let spilled = format!("train: {} in a file of {}", format::bytes(bytes), folder.display());
        plan.note("", &spilled);
    }
    findings(ratings).iter().for_each(|finding| plan.note("", &finding.text));
}

/// The errors of predictions.
#[derive(Serialize)]
pub(crate) struct Quality {
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
    pub(crate) fn new(
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
pub(crate) fn table(splits: &[(&str, Option<&RatingMetrics>)], ratings: &Ratings) -> String {
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
pub(crate) fn name(selection: Selection) -> &'static str {
    match selection {
        Selection::Valid { .. } => "valid",
        Selection::Generated { .. } => "generated",
        Selection::HeldBack { .. } => "held back",
        Selection::CrossFitted { .. } => "left out",
        _ => "nothing",
    }
}

/// Describes the plan for epochs, and the cells they are selected on.
pub(crate) fn planned(selection: Selection, config: &TrainConfig) -> (String, String) {
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
        _ if !config.run.no_eval => "nothing: the last epoch is kept".to_owned(),
        _ => "nothing, not evaluated: the last epoch is kept".to_owned(),
    };
    (epochs, selected)
}

/// Remarks on the cells that are selected on, and on the products if less than all of them is
/// predicted.
pub(crate) fn remark(report: &TrainReport) -> String {
    let mut remark = String::new();
    let on = match report.own.selection {
        Selection::HeldBack { cells: 0, .. } => return NONE_SPARE.to_owned(),
        Selection::CrossFitted { .. } if report.own.selected.is_none() && !report.stopped => {
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
    if report.own.selected.is_some_and(|_| report.own.gain == 0.0) {
        remark += &format!("  the means are predicted: factors did not help on {on}\n");
    } else if report.own.gain < 1.0 {
        let share = format::share(report.own.gain);
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

/// Matrix factorization as a program.
#[derive(Debug)]
pub enum Mf {}

impl Program for Mf {
    const DEALS_BY_PARTITION: bool = true;
    const NAME: &'static str = NAME;
    const LABELS: Labels = LABELS;
    const KEY_KINDS: &'static [&'static str] = KEY_KINDS;
    type TrainFlags = DataArgs;
    type Config = TrainConfig;
    type Data = Ratings;
    type Figures = RatingMetrics;
    type Model = Checkpoint;
    type Extra = Found;
    type EvalFlags = EvalFlags;
    type EvalData = (Checkpoint, Ratings);
    type EvalExtra = Predicted;

    fn read(args: &TrainArgs<Self>) -> Result<(Ratings, Source), Error> {
        Ok(args.flags.read(Ratings::load)?)
    }

    fn plan(args: &TrainArgs<Self>, config: &TrainConfig, ratings: &Ratings, plan: &mut Plan<'_>) {
        describe(plan, ratings, &args.flags);
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
        let flags = ["optimizer", "learning-rate", "bold-driver", "l2", "penalty"];
        plan.row("training", &training, &flags);
        plan.row("order", config.order(selection).name(), &["order"]);
        let (epochs, selected) = planned(selection, config);
        plan.row("epochs", &epochs, &["epochs", "valid-every", "no-eval"]);
        plan.row("selected", &selected, &["no-hold-back", "no-eval"]);
    }

    fn train(
        ratings: &Ratings,
        config: &TrainConfig,
        run: &Run<'_, RatingMetrics>,
    ) -> Result<TrainReport, TaskError> {
        training::train(ratings, config, run)
    }

    fn quality(ratings: &Ratings, report: &ReportOf<Self>) -> String {
        let Found { selection, selected, means, .. } = &report.own;
        let splits = [
            (name(*selection), selected.as_ref()),
            ("test", report.test.as_ref()),
            (MEANS, means.as_ref()),
        ];
        table(&splits, ratings) + &remark(report)
    }

    fn object(ratings: &Ratings, config: &TrainConfig, report: &TrainReport) -> impl Serialize {
        let Found { selection, selected, gain, means } = &report.own;
        OfRun {
            seed: config.run.seed,
            dim: config.dim,
            order: config.order(*selection).name(),
            optimizer: config.optimizer.name(),
            learning_rate: config.rate(),
            l2: config.penalty_first(*selection),
            cells: ratings.train_len(),
            selection: name(*selection),
            held_back: match selection {
                Selection::HeldBack { cells, .. } => *cells,
                _ => 0,
            },
            valid_rmse: selected.map(|metrics| metrics.rmse),
            gain: *gain,
            test: Quality::new(report.test.as_ref(), means.as_ref(), ratings),
        }
    }

    fn model_in_words() -> &'static str {
        "factors"
    }

    fn sizes(ratings: &Ratings, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let vectors = ratings.rows() as u64 + ratings.columns() as u64;
        vec![("--save", vectors.saturating_mul(config.dim as u64).saturating_mul(4))]
    }

    fn files(flags: &DataArgs) -> Files<'_> {
        flags.files()
    }

    fn traced_keys(
        ratings: &Ratings,
        _: &TrainConfig,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        traced_keys(ratings, choices)
    }

    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Self::EvalData, Source), Error> {
        let (checkpoint, split) = (Checkpoint::open(&args.load)?, args.flags.split);
        args.check(&checkpoint.values)?;
        let load = |path: &Path| Ratings::load_for(path, &checkpoint, split);
        let (ratings, source) = args.flags.data.read(load)?;
        if cells(&ratings, split) == 0 {
            return Err(Failure::NoPart(split).into());
        }
        Ok(((checkpoint, ratings), source))
    }

    fn plan_evaluation(
        args: &EvalArgs<Self>,
        (checkpoint, ratings): &Self::EvalData,
        plan: &mut Plan<'_>,
    ) {
        let EvalFlags { split, clip, .. } = args.flags;
        describe(plan, ratings, &args.flags.data);
        let clip = if clip { ", predictions clipped" } else { "" };
        let means = if checkpoint.scale() == 0.0 { ", the means are predicted" } else { "" };
        let model = format!("{} factors{clip}{means}", checkpoint.dim());
        plan.model(&model, &args.load, &["clip"]);
        let count = format::count(cells(ratings, split));
        plan.row("cells", &format!("{count} of {split}"), &["split"]);
    }

    fn evaluate(
        (checkpoint, ratings): &Self::EvalData,
        flags: &EvalFlags,
        cluster: &ClusterConfig,
        run: &Run<'_, RatingMetrics>,
    ) -> Result<EvalReport, TaskError> {
        let EvalFlags { split, clip, .. } = *flags;
        let config = EvalConfig { split, clip, cluster: cluster.clone() };
        training::evaluate(ratings, checkpoint, &config, run)
    }

    fn evaluation_quality(
        flags: &EvalFlags,
        (_, ratings): &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> String {
        let (split, means) = (flags.split.name(), report.own.means.as_ref());
        table(&[(split, report.figures.as_ref()), (MEANS, means)], ratings)
    }

    fn evaluation_object(
        flags: &EvalFlags,
        (checkpoint, ratings): &Self::EvalData,
        report: &EvalReport,
    ) -> impl Serialize {
        OfEvaluation {
            split: flags.split.name(),
            dim: checkpoint.dim(),
            quality: Quality::new(report.figures.as_ref(), report.own.means.as_ref(), ratings),
        }
    }

    fn evaluation_files(flags: &EvalFlags) -> Files<'_> {
        flags.data.files()
    }
}

/// Cells of the part to predict.
fn cells(ratings: &Ratings, split: Split) -> u64 {
    let cells = match split {
        Split::Valid => ratings.valid_len(),
        Split::Test => ratings.test_len(),
    };
    cells as u64
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
pub(crate) const MEANS: &str = "means alone";

pub(crate) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train mf --nodes 4
  adapm train mf --nodes 4 --order dsgd --system lapse --localize-ahead 1
  adapm train mf --data ml-1m/ratings.dat --save ml.adapm
  adapm train mf --rows 100000 --columns 10000 --cells 10000000 --no-eval";

pub(crate) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval mf --load ml.adapm --data ml-1m/ratings.dat --clip
  adapm eval mf --load ml.adapm --data ml-1m/ratings.dat --nodes 4 --json
  adapm eval mf --load ml.adapm --data new.csv    a file that was not trained on";
