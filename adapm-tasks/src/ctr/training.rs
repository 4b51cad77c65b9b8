//! Training, and how well the clicks of a model are predicted.

use crate::ctr::NAME;
use crate::ctr::clicks::Clicks;
use crate::ctr::config::TrainConfig;
use crate::ctr::head::Head;
use crate::ctr::task::Prediction;
use crate::metric::ClickMetrics;
use crate::run::{self, ClusterConfig, Form, Run, Saved, Split, Task as _, TaskError};

/// Result of a training run.
pub type TrainReport = run::TrainReport<ClickMetrics, Saved<Head>>;

/// Result of an evaluation.
pub type EvalReport = run::EvalReport<ClickMetrics>;

/// Trains a model of `clicks`.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails; in a group
/// also clicks or choices that differ between nodes, and a node that is lost.
pub fn train(
    clicks: &Clicks,
    config: &TrainConfig,
    run: &Run<'_, ClickMetrics>,
) -> Result<TrainReport, TaskError> {
    let epochs = (config.passes(clicks.train_len()), config.valid_every);
    let task = |workers: Vec<usize>| Prediction::new(clicks, config).by_workers(&workers);
    let trained = run.train(NAME, clicks.digest, config, epochs, task)?;
    let head = Head::of(clicks, config);
    Ok(trained.with((), |values| {
        let (head, tensors) = (head.clone(), head.tensors());
        Saved { task: NAME, head, tensors, values }
    }))
}

/// Predicts a part of `clicks`, which were read for this model. The figures do not depend on the
/// number of nodes and workers.
///
/// # Errors
///
/// Clicks of another model, or a cluster that fails; in a group also clicks, parameters or choices
/// that differ between nodes, and a node that is lost.
pub fn evaluate(
    clicks: &Clicks,
    model: &Saved<Head>,
    split: Split,
    cluster: &ClusterConfig,
    run: &Run<'_, ClickMetrics>,
) -> Result<EvalReport, TaskError> {
    let prediction = Prediction::new(clicks, &model.head.config);
    let prediction = prediction.of_rows(clicks.part(split), split, Form::Best);
    let shape = prediction.best_shape();
    run.evaluate(NAME, clicks.digest, cluster, &prediction, shape, &model.values)
}
