//! Matrix factorization on the command line: what is found in ratings, and figures over predictions, for people and for programs.

use adapm_tasks::mf::{PlantedConfig, RatingMetrics, Ratings, Selection, TrainConfig, TrainReport};
use adapm_tasks::run::TaskError;
use serde::Serialize;

use crate::args::Given;
use crate::args::mf::DataArgs;
use crate::failure::Failure;
use crate::kge::Finding;
use crate::progress::{Figure, Labels};
use crate::table::{Align, Table};
use crate::{format, input};

mod eval;
mod train;

/// The name of the task.
const TASK: &str = "mf";

pub(crate) const LABELS: Labels = Labels { examples: "cells", evaluating: "predicting", quality: "RMSE" };

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
    let mut config = PlantedConfig::default();
    (config.rows, config.columns, config.rank) = (asked.rows, asked.columns, asked.rank);
    (config.cells, config.test_cells) = (asked.cells, asked.test_cells);
    (config.noise, config.seed) = (asked.noise, asked.data_seed);
    Ok(Ratings::planted(config)?)
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

/// How far predictions are off.
#[derive(Serialize)]
pub(super) struct Quality {
    rmse: Option<f64>,
    mae: Option<f64>,
    predicted: Option<u64>,
    unseen: Option<u64>,
    /// Of the means alone, the baseline.
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

/// A row per split that was evaluated; empty if none was.
pub(super) fn table(splits: &[(&str, Option<&RatingMetrics>)], ratings: &Ratings) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    let evaluated: Vec<_> =
        splits.iter().filter_map(|(split, metrics)| metrics.map(|metrics| (split, metrics))).collect();
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

/// What cells that are selected on are called in tables.
pub(super) fn name(selection: Selection) -> &'static str {
    match selection {
        Selection::Valid { .. } => "valid",
        Selection::Generated { .. } => "generated",
        Selection::HeldBack { .. } => "held back",
        Selection::CrossFitted { .. } => "left out",
        _ => "nothing",
    }
}

/// What is planned about epochs, and on what they are selected.
pub(super) fn plan(selection: Selection, config: &TrainConfig) -> (String, String) {
    let is_known = matches!(selection, Selection::Nothing | Selection::CrossFitted { .. });
    let every = if is_known { String::new() } else { format!(", evaluated every {}", config.valid_every) };
    let epochs = match (config.epochs, selection) {
        (Some(epochs), _) => format!("{epochs}{every}"),
        (None, Selection::Nothing) => "20".to_owned(),
        (None, Selection::CrossFitted { .. }) => "as many as help on cells left out, at most 100".to_owned(),
        (None, _) => format!("as many as help, at most 100{every}"),
    };
    let selected = match selection {
        Selection::Valid { cells } => format!("on the {} cells of valid", format::count(cells)),
        Selection::Generated { cells } => format!("on {} more cells, generated", format::count(cells)),
        Selection::HeldBack { cells, of } => {
            format!("on {} of {} train cells, held back", format::count(cells), format::count(of))
        }
        Selection::CrossFitted { .. } => "on each fifth of train, left out in turn, 4 times".to_owned(),
        _ if config.evaluate => "nothing: the last epoch is kept".to_owned(),
        _ => "nothing, not evaluated: the last epoch is kept".to_owned(),
    };
    (epochs, selected)
}

/// What is to be said about the cells that are selected on, and about the products if less than all of them is predicted.
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

/// What was found while the ratings were read.
pub(crate) fn findings(ratings: &Ratings) -> Vec<Finding> {
    let counts = ratings.counts();
    let unseen_valid = "of valid with a row or column unknown to train: the mean of the other is predicted";
    let unseen_test = "of test with a row or column unknown to train: the mean of the other is predicted";
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
        findings.push(Finding::note(format!("{comments} {lines} of comments (# or %) at the top left out")));
    }
    let found = problems.into_iter().filter(|(count, _)| *count > 0);
    findings.extend(found.map(|(count, text)| Finding::problem(format!("{} {text}", format::count(count)))));
    findings
}

const NONE_SPARE: &str = "  the means are predicted: no cell can be spared to select on\n\n";

/// What the baseline is called in tables.
pub(super) const MEANS: &str = "means alone";
