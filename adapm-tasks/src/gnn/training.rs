//! Training, and the accuracy of a model.

use std::borrow::Cow;

use crate::gnn::NAME;
use crate::gnn::config::TrainConfig;
use crate::gnn::evaluation::{Accuracy, Classification};
use crate::gnn::graph::{Features, Graph};
use crate::gnn::model::{Architecture, Inputs};
use crate::gnn::task::Network;
use crate::run::{
    ClusterConfig, Config as _, EvalReport, Form, Run, Saved, Split, TaskError, TrainReport,
};

/// A trained model: its form, and the parameters.
pub type Model = Saved<Architecture>;

/// Trains a model of `graph`.
///
/// # Errors
///
/// A configuration that makes no sense, training that diverges, or a cluster that fails; in a group
/// also graphs or choices that differ between nodes, and a node that is lost.
pub fn train(
    graph: &Graph,
    config: &TrainConfig,
    run: &Run<'_, Accuracy>,
) -> Result<TrainReport<Accuracy, Model>, TaskError> {
    config.check()?;
    if graph.train().is_empty() {
        return Err(TaskError::Own("no node of the graph is for train; give one".to_owned()));
    }
    let model = &config.architecture(graph)?;
    let features = &*features_of(graph, model);
    let task = |workers: Vec<usize>| Network::new(graph, features, model, config, &workers);
    let epochs = (config.passes(graph.train().len()), config.valid_every);
    let trained = run.train(NAME, graph.digest(), config, epochs, task)?;
    Ok(trained.with((), |values| {
        let (head, tensors) = (model.clone(), model.tensors());
        Saved { task: NAME, head, tensors, values }
    }))
}

/// Classifies the nodes of a part by `model`. The figures do not depend on the number of nodes and
/// workers.
///
/// # Errors
///
/// A model of another graph, or a cluster that fails; in a group also graphs, parameters or choices
/// that differ between nodes, and a node that is lost.
pub fn evaluate(
    graph: &Graph,
    model: &Model,
    split: Split,
    cluster: &ClusterConfig,
    run: &Run<'_, Accuracy>,
) -> Result<EvalReport<Accuracy>, TaskError> {
    check(graph, &model.head).map_err(TaskError::Own)?;
    let features = &*features_of(graph, &model.head);
    let (nodes, form) = (graph.held_out(split), Form::Best);
    let of = Classification { graph, features, model: &model.head, nodes, split, form };
    run.evaluate(NAME, graph.digest(), cluster, &of, model.head.best_shape(), &model.values)
}

/// Checks that a model is one of this graph.
///
/// # Errors
///
/// What does not fit, in one line.
pub(crate) fn check(graph: &Graph, model: &Architecture) -> Result<(), String> {
    let other = |what: &str, of_graph: usize, of_model: usize| {
        Err(format!(
            "the data has {of_graph} {what} where the model has {of_model}; give the data it is of"
        ))
    };
    match (model.inputs, &graph.features) {
        (Inputs::Learned, _) if model.nodes != graph.nodes() as u64 => {
            other("nodes", graph.nodes(), model.nodes as usize)
        }
        (Inputs::Sparse, Features::Sparse(rows)) if rows.width > model.width => {
            other("features", rows.width, model.width)
        }
        (Inputs::Dense, Features::Dense { width, .. }) if *width != model.width => {
            other("features", *width, model.width)
        }
        (Inputs::Sparse, Features::Missing | Features::Dense { .. })
        | (Inputs::Dense, Features::Missing | Features::Sparse(_)) => {
            Err("the model takes features of another form; give the data it is of".to_owned())
        }
        _ if graph.classes() > model.classes => other("classes", graph.classes(), model.classes),
        _ if model.hidden == 0 || model.width == 0 || model.classes == 0 => {
            Err("the model is damaged: it has no units; train it again".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the features of a graph as the model wants them.
pub(crate) fn features_of<'g>(graph: &'g Graph, model: &Architecture) -> Cow<'g, Features> {
    if model.scaled { Cow::Owned(graph.features.scaled()) } else { Cow::Borrowed(&graph.features) }
}
