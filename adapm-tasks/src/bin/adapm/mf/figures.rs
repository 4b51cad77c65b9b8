//! Errors of predictions, for people and for programs.

use adapm_tasks::mf::{RatingMetrics, Ratings};
use serde::Serialize;

use crate::format;
use crate::table::{Align, Table};

/// How far predictions are off.
#[derive(Serialize)]
pub(super) struct Quality {
    rmse: Option<f64>,
    mae: Option<f64>,
    predicted: Option<u64>,
    unseen: Option<u64>,
    /// The best RMSE on test that is possible, where it is known: on generated data.
    best_rmse: Option<f64>,
}

impl Quality {
    pub(super) fn new(metrics: Option<&RatingMetrics>, ratings: &Ratings) -> Self {
        Self {
            rmse: metrics.map(|metrics| metrics.rmse),
            mae: metrics.map(|metrics| metrics.mae),
            predicted: metrics.map(|metrics| metrics.predicted),
            unseen: metrics.map(|metrics| metrics.unseen),
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
