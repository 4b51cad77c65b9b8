//! Classes of nodes, and vectors of nodes, by a saved model without a parameter manager.
//!
//! Of a model in a file the layers are read, and of features that were learned those of the nodes
//! around, block by block.

use std::borrow::Cow;

use adapm_core::Key;

use crate::export::Table;
use crate::gnn::evaluation::{Classification, Evaluator, MIDDLE_NODES, most};
use crate::gnn::graph::{Features, Graph};
use crate::gnn::model::{Architecture, Inputs, cross_entropy};
use crate::gnn::training::{self, Model};
use crate::run::stored::Stored;
use crate::run::values::{Ahead, Values};
use crate::run::{CheckpointError, Form, Split, TaskError};

/// A model that is asked for the classes of the nodes of a graph, which may have none.
///
/// Classes follow from all neighbours, by the same computation as in
/// [`evaluate`](crate::gnn::evaluate).
///
/// ```
/// use adapm_tasks::gnn::{Graph, Predictor, SyntheticConfig, TrainConfig, train};
/// use adapm_tasks::run::Run;
///
/// let mut synthetic = SyntheticConfig::default();
/// synthetic.nodes = 500;
/// let graph = Graph::synthetic(synthetic)?;
/// let mut config = TrainConfig::default();
/// config.epochs = Some(2);
/// let model = train(&graph, &config, &Run::alone())?.checkpoint.expect("is asked for");
/// let mut predictor = Predictor::new(&graph, model)?;
/// let [of_7, of_3] = predictor.predict(&[7, 3])?[..] else { unreachable!() };
/// assert!((of_7.class as usize) < graph.classes() && of_3.probability <= 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Predictor<'g> {
    graph: &'g Graph,
    features: Cow<'g, Features>,
    model: Architecture,
    parameters: Stored,
    evaluator: Evaluator,
}

/// The most probable class of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The class.
    pub class: u32,
    /// Its probability.
    pub probability: f32,
}

impl<'g> Predictor<'g> {
    /// Takes a model of this graph, or of one whose nodes have the same features.
    ///
    /// # Errors
    ///
    /// A model of another graph.
    pub fn new(graph: &'g Graph, model: Model) -> Result<Self, TaskError> {
        training::check(graph, &model.head).map_err(TaskError::Own)?;
        if !model.head.has(model.values.len()) {
            let text = "the model has not as many parameters as it says; train it again";
            return Err(TaskError::Own(text.to_owned()));
        }
        let features = training::features_of(graph, &model.head);
        let parameters = Stored::new(model.head.best_shape(), model.values);
        let evaluator = Evaluator::default();
        Ok(Self { graph, features, model: model.head, parameters, evaluator })
    }

    /// Returns the most probable class of each of these nodes. They are best asked for at once:
    /// what several of them need is computed once, as far as 64 MB of memory hold the first layer's
    /// means of them.
    ///
    /// # Errors
    ///
    /// A node that the graph does not have, and one whose scores are no numbers; a model that
    /// cannot be read.
    pub fn predict(&mut self, nodes: &[u32]) -> Result<Vec<Prediction>, TaskError> {
        let count = self.graph.nodes();
        if let Some(node) = nodes.iter().find(|node| **node as usize >= count) {
            let last = count.saturating_sub(1);
            let text = format!("there is no node {node}; give one of 0 to {last}");
            return Err(TaskError::Own(text));
        }
        let mut predictions = Vec::with_capacity(nodes.len());
        let numbers = self.model.hidden + self.model.classes;
        for nodes in nodes.chunks((NUMBERS_AT_ONCE / numbers).max(NODES_AT_ONCE_MIN)) {
            let Self { graph, features, model, parameters, evaluator } = self;
            let on = on(graph, features, model);
            let scores = on.scores(nodes, evaluator, &mut pull(parameters))?;
            for (node, scores) in nodes.iter().zip(scores.chunks(model.classes)) {
                let prediction = prediction(scores).ok_or_else(|| {
                    TaskError::Own(format!(
                        "the scores of node {node} are no finite numbers; scale its features, and those of its neighbours"
                    ))
                })?;
                predictions.push(prediction);
            }
        }
        Ok(predictions)
    }

    /// Returns the first layer's units of each node, which its class and those of its neighbours
    /// follow from: `hidden` numbers that are at least 0. Memory holds those of all nodes.
    ///
    /// # Errors
    ///
    /// A model that cannot be read.
    pub fn hidden(&mut self) -> Result<NodeVectors, TaskError> {
        let Self { graph, features, model, parameters, evaluator } = self;
        let nodes: Vec<u32> = (0..graph.nodes() as u32).collect();
        let mut values = Vec::with_capacity(nodes.len() * model.hidden);
        for block in nodes.chunks(MIDDLE_NODES) {
            let on = on(graph, features, model);
            let hidden = on.hidden(block, evaluator, &mut pull(parameters))?;
            values.extend_from_slice(hidden);
        }
        let (nodes, width) = (nodes.len(), model.hidden);
        Ok(NodeVectors { nodes, width, values: values.into() })
    }
}

fn pull(
    parameters: &Stored,
) -> impl FnMut(&[Key], &mut [f32]) -> Result<(), CheckpointError> + use<'_> {
    |keys, values| parameters.pull(keys, values)
}

/// Returns the most probable class; `None` if its probability is no number.
fn prediction(scores: &[f32]) -> Option<Prediction> {
    let class = most(scores);
    scores.get(class as usize)?;
    let probability = (-cross_entropy(scores, class as usize)).exp();
    probability.is_finite().then_some(Prediction { class, probability })
}

fn on<'a>(graph: &'a Graph, features: &'a Features, model: &'a Architecture) -> Classification<'a> {
    // Neither part nor items matter to scores.
    Classification { graph, features, model, nodes: &[], split: Split::Test, form: Form::Best }
}

/// A vector of each node: [learned](Self::learned), or [computed](Predictor::hidden) from features
/// and neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeVectors {
    nodes: usize,
    width: usize,
    /// Those of nodes first.
    values: Values,
}

impl NodeVectors {
    /// Returns the features that a model has learned; `None` if it takes those of the data.
    #[must_use]
    pub fn learned(Model { head, values, .. }: &Model) -> Option<Self> {
        let (nodes, width) = (usize::try_from(head.nodes).ok()?, head.width);
        let is_learned =
            head.inputs == Inputs::Learned && nodes.checked_mul(width)? <= values.len();
        is_learned.then(|| Self { nodes, width, values: values.clone() })
    }

    /// Returns the vectors of `nodes`, which are named by their numbers.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'_>> {
        let name = |node: usize| node.to_string().into_bytes().into();
        let row = |values: &mut Ahead, node: usize| {
            values.get(node * self.width..(node + 1) * self.width).map(<[f32]>::to_vec)
        };
        vec![Table::of_values("nodes", [self.nodes, self.width], name, &self.values, row)]
    }
}

/// Numbers of nodes that are classified at once, 64 MB.
const NUMBERS_AT_ONCE: usize = 1 << 24;
/// Nodes that are classified at once, however many numbers each has.
const NODES_AT_ONCE_MIN: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::PerceptronPass;
    use crate::gnn::{FeatureSource, SyntheticConfig, TrainConfig, evaluate, train};
    use crate::run::{ClusterConfig, Run};

    fn trained(features: FeatureSource) -> (Graph, Model) {
        let config = SyntheticConfig { nodes: 600, classes: 4, ..SyntheticConfig::default() };
        let graph = Graph::synthetic(config).expect("there is such a graph");
        let mut config =
            TrainConfig { hidden: 8, dim: 8, epochs: Some(3), ..TrainConfig::default() };
        (config.features, config.cluster.nodes) = (Some(features), Some(1));
        let report = train(&graph, &config, &Run::alone()).expect("trains");
        (graph, report.checkpoint.expect("is asked for by default"))
    }

    #[test]
    fn classes_are_those_of_an_evaluation_and_depend_on_no_other_node() {
        for features in [FeatureSource::Given, FeatureSource::Learned] {
            let (graph, model) = trained(features);
            let mut predictor = Predictor::new(&graph, model.clone()).expect("it is of this graph");
            let nodes = graph.held_out(Split::Test);
            let predictions = predictor.predict(nodes).expect("there are such nodes");
            let is_right = |(node, of): &(&u32, &Prediction)| graph.label(**node) == Some(of.class);
            let right = nodes.iter().zip(&predictions).filter(is_right).count();
            let cluster = ClusterConfig::default();
            let judged = evaluate(&graph, &model, Split::Test, &cluster, &Run::alone());
            let judged = judged.expect("can be evaluated").figures.expect("there are nodes");
            assert_eq!(right as f64 / nodes.len() as f64, judged.accuracy);
            for (node, expected) in nodes.iter().zip(&predictions).take(9) {
                assert_eq!(predictor.predict(&[*node]).as_deref().ok(), Some(&[*expected][..]));
                assert!((0.25..=1.0).contains(&expected.probability), "{expected:?}");
            }
            let error = predictor.predict(&[600]).expect_err("there is no such node").to_string();
            assert!(error.contains("no node 600; give one of 0 to 599"), "{error}");
        }
    }

    #[test]
    fn scores_follow_from_the_means_of_the_exported_first_layer() {
        let (graph, model) = trained(FeatureSource::Given);
        assert_eq!(NodeVectors::learned(&model), None);
        let mut predictor = Predictor::new(&graph, model.clone()).expect("it is of this graph");
        let hidden = predictor.hidden().expect("it is in memory");
        let units = hidden.values.in_memory().expect("they were computed");
        assert_eq!((hidden.nodes, hidden.width, units.len()), (600, 8, 8 * 600));
        let expected = predictor.predict(&[5]).expect("there is such a node")[0];
        let around = graph.around(5);
        let mean = |unit: usize| {
            let units = around.iter().map(|near| units[*near as usize * 8 + unit]);
            units.sum::<f32>() / around.len() as f32
        };
        let means: Vec<f32> = (0..8).map(mean).collect();
        let (mut dense, mut pass) = (Vec::new(), PerceptronPass::default());
        let values = model.values.in_memory().expect("they were trained");
        predictor.model.chunks().unpack(values, 1, &mut dense);
        let scores = predictor.model.second_layer(&dense, &means, &mut pass);
        assert_eq!(most(scores), expected.class);
    }

    #[test]
    fn scores_that_are_no_numbers_have_no_class() {
        let half = prediction(&[f32::MIN, 2.0, 2.0]).expect("they are numbers");
        assert!(half.class == 1 && (half.probability - 0.5).abs() < 1e-6, "{half:?}");
        for scores in [[f32::NAN, f32::NAN], [f32::INFINITY, 0.0], [1.0, f32::NAN]] {
            assert_eq!(prediction(&scores), None, "{scores:?}");
        }
        let (graph, mut model) = trained(FeatureSource::Given);
        model.values = model.values.first(model.values.len() - 1);
        assert!(Predictor::new(&graph, model).is_err(), "a parameter is missing");
    }

    #[test]
    fn learned_vectors_are_the_values_of_nodes() {
        let (graph, model) = trained(FeatureSource::Learned);
        let vectors = NodeVectors::learned(&model).expect("features are learned");
        let [table] = &vectors.tables()[..] else { panic!("one table") };
        assert_eq!((table.kind(), table.rows(), table.width()), ("nodes", graph.nodes(), 8));
        let mut lines = Vec::new();
        table.write_lines("", &mut lines).expect("memory takes all bytes");
        let lines = String::from_utf8(lines).expect("text");
        let line = lines.lines().nth(17).expect("there is such a node");
        let values = model.values.in_memory().expect("they were trained");
        let numbers: Vec<String> = values[17 * 8..18 * 8].iter().map(f32::to_string).collect();
        assert_eq!(line, format!("17\t{}", numbers.join("\t")));
    }
}
