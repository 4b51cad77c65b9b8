//! A graph convolutional network of two layers (Kipf & Welling, ICLR 2017; means over samples of
//! neighbours as in Hamilton et al., NeurIPS 2017), its loss, and its gradient.
//!
//! ```text
//!   features --mean over S(u), u--> W1, b1 --ReLU--> first(u) --mean over S(v), v--> W2, b2 --softmax--> class of v
//! ```
//!
//! The mean is over the nodes that were drawn, not over all neighbours. Sparse features are
//! multiplied by `W1` before the mean, which gives the same for fewer products.

use std::path::Path;

use adapm_runtime::tables::{Table, Tables};
use serde::{Deserialize, Serialize};

use crate::dense::{Chunks, Dropout, Perceptron, PerceptronPass, add_scaled};
use crate::gnn::NAME;
use crate::gnn::graph::{Features, SparseRows};
use crate::gnn::sampling::Block;
use crate::optim::ADAGRAD;
use crate::run::{CheckpointError, Saved, Shape, Tensor};

/// The form of a model, which is saved with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Architecture {
    /// The origin of features.
    pub inputs: Inputs,
    /// Nodes that have a key; 0 if features are given.
    pub nodes: u64,
    /// Features of a node.
    pub width: usize,
    /// Features are scaled to add up to 1 for each node.
    pub scaled: bool,
    /// Units of the first layer.
    pub hidden: usize,
    /// Classes.
    pub classes: usize,
}

/// The origin and form of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inputs {
    /// Given, most of them 0.
    Sparse,
    /// Given.
    Dense,
    /// Parameters of each node.
    Learned,
}

/// Buffers of a pass, used again by the next.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Features of the outer nodes if they are sparse.
    sparse: SparseRows,
    /// Features of the outer nodes, or products of sparse ones with the weights.
    pub(crate) rows: Vec<f32>,
    means: Vec<f32>,
    first: PerceptronPass,
    hidden: Vec<f32>,
    hidden_means: Vec<f32>,
    second: PerceptronPass,
    slopes: Vec<f32>,
    mean_slopes: Vec<f32>,
    hidden_slopes: Vec<f32>,
    below_slopes: Vec<f32>,
    /// The gradient of features that are learned.
    pub(crate) row_slopes: Vec<f32>,
    /// The gradient of the layers' parameters.
    pub(crate) gradients: Vec<f32>,
}

impl Architecture {
    /// Opens a model: its values stay in the file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another task, or damaged; values that are not as they were
    /// written are not seen.
    pub fn open(path: &Path) -> Result<Saved<Self>, CheckpointError> {
        let model: Saved<Self> = Saved::open(NAME, path)?;
        let corrupt = || CheckpointError::Corrupt { path: path.to_path_buf() };
        let is_sound = model.head.has(model.values.len());
        let tensors = is_sound.then(|| model.head.tensors()).ok_or_else(corrupt)?;
        model.with(tensors).ok_or_else(corrupt)
    }

    /// Returns true if a model of this form has so many parameters: a file may claim any form.
    pub(crate) fn has(&self, parameters: usize) -> bool {
        let Self { inputs, nodes, width, hidden, classes, .. } = *self;
        let count = || {
            let of_nodes = usize::try_from(nodes).ok()?.checked_mul(width)?;
            let of_first = width.checked_add(1)?.checked_mul(hidden)?;
            let of_second = hidden.checked_add(1)?.checked_mul(classes)?;
            of_nodes.checked_add(of_first)?.checked_add(of_second)
        };
        let has_units = width > 0 && hidden > 0 && classes > 0;
        let has_keys = (inputs == Inputs::Learned) == (nodes > 0);
        has_units && has_keys && count() == Some(parameters)
    }

    /// Returns the shape of the parameters: `halves` is 2 with accumulators, 1 without.
    pub(crate) fn tables(&self) -> Tables {
        let nodes = Table::new("nodes", self.nodes, self.width).with_state(ADAGRAD, self.width);
        Tables::new([nodes].into_iter().chain(self.chunks().tables()))
            .expect("names are there once")
    }

    /// Returns the shape of parameters without accumulators.
    pub(crate) fn best_shape(&self) -> Shape {
        Shape::of(&self.tables().parameters())
    }

    /// Returns the tensors of the parameters: learned features of nodes, and the layers.
    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        let nodes = (self.nodes > 0).then(|| Tensor::new("nodes", self.nodes, self.width));
        let layers = [(self.first(), "first"), (self.second(), "second")];
        let layers = layers.iter().flat_map(|(layer, name)| layer.tensors(name));
        nodes.into_iter().chain(layers).collect()
    }

    /// Returns the keys of the layers, behind those of nodes.
    pub(crate) fn chunks(&self) -> Chunks {
        Chunks {
            first: self.nodes,
            parameters: self.first().parameters() + self.second().parameters(),
        }
    }

    /// Returns the bound of the initial value of a parameter of the layers.
    pub(crate) fn bound(&self, parameter: usize) -> f32 {
        let (first, second) = (self.first(), self.second());
        match parameter.checked_sub(first.parameters()) {
            None => first.bound(parameter),
            Some(parameter) => second.bound(parameter),
        }
    }

    /// Returns the numbers of a node that the first mean is taken of.
    pub(crate) fn row_width(&self) -> usize {
        if self.inputs == Inputs::Sparse { self.hidden } else { self.width }
    }

    /// Returns the first layer's weights and biases, and the parameters of the second.
    pub(crate) fn split<'p>(&self, parameters: &'p [f32]) -> (&'p [f32], &'p [f32], &'p [f32]) {
        let (first, second) = parameters.split_at(self.first().parameters());
        let (weights, biases) = first.split_at(self.width * self.hidden);
        (weights, biases, second)
    }

    fn first(&self) -> Perceptron {
        Perceptron::new(self.width, &[], self.hidden)
    }

    fn second(&self) -> Perceptron {
        Perceptron::new(self.hidden, &[], self.classes)
    }

    /// Writes the features of given nodes to `pass.rows`, or their products with the weights if
    /// they are sparse. Of learned features, `pass.rows` has them.
    pub(crate) fn prepare(
        &self,
        features: &Features,
        nodes: &[u32],
        parameters: &[f32],
        dropout: Option<Dropout>,
        pass: &mut Pass,
    ) {
        match features {
            Features::Sparse(rows) if self.inputs == Inputs::Sparse => {
                pass.sparse.take(rows, nodes);
                if let Some(dropout) = dropout {
                    dropout.apply(OF_INPUTS, dropout.scale(), &mut pass.sparse.values);
                }
                let (weights, ..) = self.split(parameters);
                pass.rows.clear();
                pass.rows.resize(nodes.len() * self.hidden, 0.0);
                for (at, product) in pass.rows.chunks_mut(self.hidden).enumerate() {
                    let (indices, values) = pass.sparse.row(at);
                    for (index, value) in indices.iter().zip(values) {
                        let at = *index as usize * self.hidden;
                        add_scaled(product, *value, &weights[at..at + self.hidden]);
                    }
                }
                return;
            }
            Features::Dense { width, values } if self.inputs == Inputs::Dense => {
                pass.rows.clear();
                for node in nodes {
                    let at = *node as usize * width;
                    pass.rows.extend_from_slice(&values[at..at + width]);
                }
            }
            _ => {}
        }
        if let Some(dropout) = dropout {
            dropout.apply(OF_INPUTS, dropout.scale(), &mut pass.rows);
        }
    }

    /// Computes the first layer for the means of rows: `[means x hidden]`, rectified.
    pub(crate) fn first_layer(
        &self,
        parameters: &[f32],
        means: &[f32],
        pass: &mut PerceptronPass,
        hidden: &mut Vec<f32>,
    ) {
        hidden.clear();
        let (_, biases, _) = self.split(parameters);
        if self.inputs == Inputs::Sparse {
            for mean in means.chunks(self.hidden) {
                hidden.extend(mean.iter().zip(biases).map(|(mean, bias)| mean + bias));
            }
        } else {
            let first = self.first();
            let rows = means.len() / self.width;
            let of = &parameters[..first.parameters()];
            hidden.extend_from_slice(first.forward(of, means, rows, None, pass));
        }
        hidden.iter_mut().for_each(|unit| *unit = unit.max(0.0));
    }

    /// Computes the scores of classes for the means of the first layer: `[means x classes]`.
    pub(crate) fn second_layer<'p>(
        &self,
        parameters: &[f32],
        means: &[f32],
        pass: &'p mut PerceptronPass,
    ) -> &'p [f32] {
        let (_, _, second) = self.split(parameters);
        self.second().forward(second, means, means.len() / self.hidden, None, pass)
    }

    /// Returns the sum of the losses of a batch whose rows were prepared; writes the gradients of
    /// their mean.
    pub(crate) fn loss_and_gradients(
        &self,
        parameters: &[f32],
        block: &Block,
        labels: &[u32],
        dropout: Option<Dropout>,
        pass: &mut Pass,
    ) -> f64 {
        let (hidden, row_width) = (self.hidden, self.row_width());
        block.lists.forward(&pass.rows, row_width, &mut pass.means);
        self.first_layer(parameters, &pass.means, &mut pass.first, &mut pass.hidden);
        let scale = dropout.map_or(1.0, Dropout::scale);
        if let Some(dropout) = dropout {
            dropout.apply(OF_HIDDEN, scale, &mut pass.hidden);
        }
        block.inner.forward(&pass.hidden, hidden, &mut pass.hidden_means);
        let scores = self.second_layer(parameters, &pass.hidden_means, &mut pass.second);
        pass.slopes.clear();
        pass.slopes.extend_from_slice(scores);
        let mut loss = 0.0;
        for (scores, label) in pass.slopes.chunks_mut(self.classes).zip(labels) {
            loss += f64::from(cross_entropy(scores, *label as usize));
            softmax(scores);
            scores[*label as usize] -= 1.0;
            scores.iter_mut().for_each(|slope| *slope /= labels.len() as f32);
        }
        self.backward(parameters, block, dropout, scale, pass);
        loss
    }

    fn backward(
        &self,
        parameters: &[f32],
        block: &Block,
        dropout: Option<Dropout>,
        scale: f32,
        pass: &mut Pass,
    ) {
        let hidden = self.hidden;
        zeros(&mut pass.gradients, parameters.len());
        let (of_first, of_second) = pass.gradients.split_at_mut(self.first().parameters());
        let (_, _, second) = self.split(parameters);
        zeros(&mut pass.mean_slopes, pass.hidden_means.len());
        let (means, to) = (&pass.hidden_means, &mut pass.mean_slopes);
        self.second().backward(second, means, &pass.slopes, &mut pass.second, of_second, to);
        zeros(&mut pass.hidden_slopes, pass.hidden.len());
        block.inner.backward(&pass.mean_slopes, hidden, &mut pass.hidden_slopes);
        // A unit of 0 was below 0 or dropped: either way it has no slope.
        for (slope, unit) in pass.hidden_slopes.iter_mut().zip(&pass.hidden) {
            *slope *= if *unit > 0.0 { scale } else { 0.0 };
        }
        if self.inputs == Inputs::Sparse {
            zeros(&mut pass.row_slopes, pass.rows.len());
            block.lists.backward(&pass.hidden_slopes, hidden, &mut pass.row_slopes);
            let (of_weights, of_biases) = of_first.split_at_mut(self.width * hidden);
            pass.hidden_slopes.chunks(hidden).for_each(|row| add_scaled(of_biases, 1.0, row));
            for (at, slope) in pass.row_slopes.chunks(hidden).enumerate() {
                let (indices, values) = pass.sparse.row(at);
                for (index, value) in indices.iter().zip(values) {
                    let at = *index as usize * hidden;
                    add_scaled(&mut of_weights[at..at + hidden], *value, slope);
                }
            }
            return;
        }
        let first = &parameters[..self.first().parameters()];
        zeros(&mut pass.below_slopes, pass.means.len());
        let (slopes, to) = (&pass.hidden_slopes, &mut pass.below_slopes);
        self.first().backward(first, &pass.means, slopes, &mut pass.first, of_first, to);
        if self.inputs == Inputs::Learned {
            zeros(&mut pass.row_slopes, pass.rows.len());
            block.lists.backward(&pass.below_slopes, self.width, &mut pass.row_slopes);
            if let Some(dropout) = dropout {
                dropout.apply(OF_INPUTS, scale, &mut pass.row_slopes);
            }
        }
    }
}

impl SparseRows {
    /// Becomes the rows of these nodes.
    fn take(&mut self, rows: &Self, nodes: &[u32]) {
        self.width = rows.width;
        self.ends.clear();
        self.indices.clear();
        self.values.clear();
        for node in nodes {
            let (indices, values) = rows.row(*node as usize);
            self.indices.extend_from_slice(indices);
            self.values.extend_from_slice(values);
            self.end_row();
        }
    }
}

/// Returns the loss of scores of which one is right: the negative logarithm of its probability.
pub(crate) fn cross_entropy(scores: &[f32], right: usize) -> f32 {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = scores.iter().map(|score| (score - most).exp()).sum();
    sum.ln() + most - scores[right]
}

fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

fn zeros(numbers: &mut Vec<f32>, count: usize) {
    numbers.clear();
    numbers.resize(count, 0.0);
}

/// Places of dropout.
const OF_INPUTS: usize = 0;
const OF_HIDDEN: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::checking::{assert_gradient, random};
    use crate::gnn::graph::{Graph, Part};

    const NODES: usize = 12;
    const WIDTH: usize = 5;

    fn graph(inputs: Inputs) -> Graph {
        let edges: Vec<(u32, u32)> = (0..NODES as u32 - 1)
            .flat_map(|node| [(node, (node * 5 + 3) % 11), (node, node / 2)])
            .collect();
        let values = random(NODES * WIDTH, 4);
        let features = match inputs {
            Inputs::Dense => Features::Dense { width: WIDTH, values },
            Inputs::Learned => Features::Missing,
            Inputs::Sparse => {
                let mut rows = SparseRows { width: WIDTH, ..SparseRows::default() };
                for node in 0..NODES {
                    for index in (0..WIDTH).filter(|index| (node + index) % 3 > 0 && node != 4) {
                        rows.indices.push(index as u32);
                        rows.values.push(values[node * WIDTH + index]);
                    }
                    rows.end_row();
                }
                Features::Sparse(rows)
            }
        };
        Graph::new(&edges, features, vec![Some(0); NODES], vec![Some(Part::Train); NODES])
    }

    /// Returns parameters for which no unit is so near 0 that a small step changes whether it is
    /// above: there is no slope in between.
    fn smooth(count: usize, units: &mut impl FnMut(&[f32]) -> Vec<f32>) -> Vec<f32> {
        let mut is_smooth = |parameters: &Vec<f32>| {
            let negated: Vec<f32> = parameters.iter().map(|parameter| -parameter).collect();
            let (above, below) = (units(parameters), units(&negated));
            above.iter().zip(&below).all(|(above, below)| above + below > 0.02)
        };
        let found = (0..1000).map(|seed| random(count, seed)).find(&mut is_smooth);
        found.expect("a third of all are")
    }

    #[test]
    fn gradients_are_those_of_finite_differences_through_the_whole_model() {
        for inputs in [Inputs::Sparse, Inputs::Dense, Inputs::Learned] {
            let (nodes, scaled) = (if inputs == Inputs::Learned { NODES as u64 } else { 0 }, false);
            let model = Architecture { inputs, nodes, width: WIDTH, scaled, hidden: 4, classes: 3 };
            let graph = graph(inputs);
            let block = Block::sample(&graph, (1, 1), vec![0, 3, 4, 9, 11], [2, 3]);
            let (labels, outer) = ([0, 2, 1, 1, 0], &block.outer);
            let rows = random(outer.len() * WIDTH, 6);
            for dropout in [None, Some(Dropout { share: 0.3, step: 8 })] {
                let loss = |parameters: &[f32], rows: &[f32], pass: &mut Pass| {
                    pass.rows.clear();
                    pass.rows.extend_from_slice(rows);
                    model.prepare(&graph.features, outer, parameters, dropout, pass);
                    let sum = model.loss_and_gradients(parameters, &block, &labels, dropout, pass);
                    sum / labels.len() as f64
                };
                let mut units = |parameters: &[f32]| {
                    let mut pass = Pass::default();
                    pass.rows.extend_from_slice(&rows);
                    model.prepare(&graph.features, outer, parameters, dropout, &mut pass);
                    let (mut means, mut units) = (Vec::new(), Vec::new());
                    block.lists.forward(&pass.rows, model.row_width(), &mut means);
                    model.first_layer(parameters, &means, &mut pass.first, &mut units);
                    units
                };
                let parameters = smooth(model.chunks().parameters, &mut units);
                let mut pass = Pass::default();
                loss(&parameters, &rows, &mut pass);
                let mut other = Pass::default();
                assert_gradient(&parameters, &pass.gradients, |parameters| {
                    loss(parameters, &rows, &mut other)
                });
                if inputs == Inputs::Learned {
                    assert_gradient(&rows, &pass.row_slopes, |rows| {
                        loss(&parameters, rows, &mut other)
                    });
                }
            }
        }
    }

    #[test]
    fn a_form_that_has_not_as_many_parameters_as_there_are_is_found() {
        let model = Architecture {
            inputs: Inputs::Learned,
            nodes: 5,
            width: 3,
            scaled: false,
            hidden: 4,
            classes: 2,
        };
        let parameters = model.best_shape().total();
        let has = |change: fn(&mut Architecture)| {
            let mut model = model.clone();
            change(&mut model);
            model.has(parameters)
        };
        assert!(has(|_| {}) && !model.has(parameters + 1));
        assert!(!has(|model| model.inputs = Inputs::Dense));
        assert!(!has(|model| model.hidden = 0));
        assert!(!has(|model| model.nodes = u64::MAX));
        assert!(!has(|model| (model.width, model.hidden) = (usize::MAX, usize::MAX)));
    }

    #[test]
    fn sparse_and_dense_features_give_the_same_loss() {
        let loss = |inputs, graph: &Graph| {
            let model = Architecture {
                inputs,
                nodes: 0,
                width: WIDTH,
                scaled: false,
                hidden: 4,
                classes: 3,
            };
            let block = Block::sample(graph, (1, 1), vec![2, 5, 7], [9, 9]);
            let (parameters, mut pass) = (random(model.chunks().parameters, 5), Pass::default());
            model.prepare(&graph.features, &block.outer, &parameters, None, &mut pass);
            model.loss_and_gradients(&parameters, &block, &[0, 1, 2], None, &mut pass)
        };
        let sparse = graph(Inputs::Sparse);
        let Features::Sparse(rows) = &sparse.features else { panic!("sparse") };
        let mut values = vec![0.0; NODES * WIDTH];
        for node in 0..NODES {
            let (indices, of_row) = rows.row(node);
            for (index, value) in indices.iter().zip(of_row) {
                values[node * WIDTH + *index as usize] = *value;
            }
        }
        let mut dense = sparse.clone();
        dense.features = Features::Dense { width: WIDTH, values };
        let difference = loss(Inputs::Sparse, &sparse) - loss(Inputs::Dense, &dense);
        assert!(difference.abs() < 1e-4, "{difference}");
    }
}
