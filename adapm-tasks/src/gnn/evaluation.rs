//! The classes of nodes by all of their neighbours and those of these, and how many are right.
//!
//! Memory is bounded by blocks: the first layer of so many nodes at a time, from the features of so
//! many at a time. Each sum runs over nodes in ascending order, so that a node's class depends on
//! no other node of its batch.

use serde::{Deserialize, Serialize};
use std::ops::Range;

use adapm_core::Key;

use crate::dense::{PerceptronPass, add_scaled};
use crate::gnn::graph::{Features, Graph};
use crate::gnn::model::{Architecture, Inputs, Pass, cross_entropy};
use crate::run::parameters::Parameters;
use crate::run::{Evaluation, Form, Split};

/// Figures of classified nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Accuracy {
    /// Nodes.
    pub items: u64,
    /// The share whose most probable class is the right one.
    pub accuracy: f64,
    /// The mean negative logarithm of the probability of the right class.
    pub loss: f64,
}

impl Accuracy {
    /// Returns true if these figures are to be preferred to the `best` so far, which may be NaN: by
    /// accuracy, then by loss.
    #[must_use]
    pub fn is_better(&self, best: &Self) -> bool {
        let of_loss = || self.loss < best.loss || best.loss.is_nan() && !self.loss.is_nan();
        match self.accuracy.total_cmp(&best.accuracy) {
            std::cmp::Ordering::Equal => of_loss(),
            order => order.is_gt() && !self.accuracy.is_nan(),
        }
    }
}

/// Reads the values of keys, as [`Parameters::pull`] does.
pub(crate) type Pull<'a, E> = &'a mut dyn FnMut(&[Key], &mut [f32]) -> Result<(), E>;

/// The model on some nodes.
pub(crate) struct Classification<'a> {
    pub(crate) graph: &'a Graph,
    /// Scaled, if the model wants them so.
    pub(crate) features: &'a Features,
    pub(crate) model: &'a Architecture,
    pub(crate) nodes: &'a [u32],
    pub(crate) split: Split,
    pub(crate) form: Form,
}

/// The buffers of an evaluating worker.
#[derive(Debug, Default)]
pub(crate) struct Evaluator {
    values: Vec<f32>,
    /// Those of the layers, which are pulled once.
    parameters: Vec<f32>,
    pass: Pass,
    sums: Vec<f32>,
    hidden: Vec<f32>,
    hidden_sums: Vec<f32>,
    layers: PerceptronPass,
}

impl Classification<'_> {
    /// Returns the scores of the classes of nodes: `[targets x classes]`.
    pub(crate) fn scores<'e, E>(
        &self,
        targets: &[u32],
        evaluator: &'e mut Evaluator,
        pull: Pull<'_, E>,
    ) -> Result<&'e [f32], E> {
        self.pull_layers(evaluator, pull)?;
        self.hidden_means(targets, evaluator, pull)?;
        let Evaluator { parameters: dense, hidden_sums, layers, .. } = evaluator;
        Ok(self.model.second_layer(dense, hidden_sums, layers))
    }

    /// Returns the first layer of nodes: `[nodes x hidden]`.
    pub(crate) fn hidden<'e, E>(
        &self,
        nodes: &[u32],
        evaluator: &'e mut Evaluator,
        pull: Pull<'_, E>,
    ) -> Result<&'e [f32], E> {
        self.pull_layers(evaluator, pull)?;
        self.first_layer(nodes, evaluator, pull)?;
        Ok(&evaluator.hidden)
    }

    fn halves(&self) -> usize {
        if self.form == Form::Trained { 2 } else { 1 }
    }

    /// Reads the parameters of both layers.
    fn pull_layers<E>(&self, evaluator: &mut Evaluator, pull: Pull<'_, E>) -> Result<(), E> {
        let Evaluator { parameters: layers, values, .. } = evaluator;
        self.model.chunks().pull_once(self.halves(), layers, values, pull)
    }

    /// Writes the mean of the first layer around each target to `hidden_sums`.
    fn hidden_means<E>(
        &self,
        targets: &[u32],
        evaluator: &mut Evaluator,
        pull: Pull<'_, E>,
    ) -> Result<(), E> {
        let hidden = self.model.hidden;
        clear(&mut evaluator.hidden_sums, targets.len() * hidden);
        for block in self.around(targets).chunks(MIDDLE_NODES) {
            self.first_layer(block, evaluator, pull)?;
            let sums = evaluator.hidden_sums.chunks_mut(hidden);
            self.add_rows(targets, block, &evaluator.hidden, hidden, sums);
        }
        self.divide(targets, hidden, &mut evaluator.hidden_sums);
        Ok(())
    }

    /// Writes the first layer of the nodes of a block to `hidden`.
    fn first_layer<E>(
        &self,
        block: &[u32],
        evaluator: &mut Evaluator,
        pull: Pull<'_, E>,
    ) -> Result<(), E> {
        let width = self.model.row_width();
        clear(&mut evaluator.sums, block.len() * width);
        for outer in self.around(block).chunks(OUTER_NODES) {
            if self.model.inputs == Inputs::Learned {
                self.pull_rows(outer, evaluator, pull)?;
            }
            let Evaluator { parameters: dense, pass, .. } = evaluator;
            self.model.prepare(self.features, outer, dense, None, pass);
            let sums = evaluator.sums.chunks_mut(width);
            self.add_rows(block, outer, &evaluator.pass.rows, width, sums);
        }
        self.divide(block, width, &mut evaluator.sums);
        let Evaluator { parameters: dense, sums, layers, hidden, .. } = evaluator;
        self.model.first_layer(dense, sums, layers, hidden);
        Ok(())
    }

    /// Reads the learned features of these nodes.
    fn pull_rows<E>(
        &self,
        nodes: &[u32],
        evaluator: &mut Evaluator,
        pull: Pull<'_, E>,
    ) -> Result<(), E> {
        let keys: Vec<Key> = nodes.iter().map(|node| Key(u64::from(*node))).collect();
        let (width, len) = (self.model.width, self.halves() * self.model.width);
        evaluator.values.resize(keys.len() * len, 0.0);
        pull(&keys, &mut evaluator.values)?;
        let rows = &mut evaluator.pass.rows;
        rows.clear();
        evaluator.values.chunks(len).for_each(|value| rows.extend_from_slice(&value[..width]));
        Ok(())
    }

    /// Adds the rows of those of a node's neighbours that are in `block`, for each of `nodes`.
    fn add_rows<'s>(
        &self,
        nodes: &[u32],
        block: &[u32],
        rows: &[f32],
        width: usize,
        sums: impl Iterator<Item = &'s mut [f32]>,
    ) {
        let (Some(first), Some(last)) = (block.first(), block.last()) else { return };
        for (node, sum) in nodes.iter().zip(sums) {
            let around = self.graph.around(*node);
            let from = around.partition_point(|near| near < first);
            for near in around[from..].iter().take_while(|near| *near <= last) {
                let at = block.partition_point(|other| other < near) * width;
                add_scaled(sum, 1.0, &rows[at..at + width]);
            }
        }
    }

    fn divide(&self, nodes: &[u32], width: usize, sums: &mut [f32]) {
        for (node, sum) in nodes.iter().zip(sums.chunks_mut(width)) {
            let count = self.graph.around(*node).len() as f32;
            sum.iter_mut().for_each(|sum| *sum /= count);
        }
    }

    /// Returns all neighbours of these nodes and themselves, ascending.
    fn around(&self, nodes: &[u32]) -> Vec<u32> {
        let mut around: Vec<u32> =
            nodes.iter().flat_map(|node| self.graph.around(*node)).copied().collect();
        around.sort_unstable();
        around.dedup();
        around
    }
}

impl Evaluation for Classification<'_> {
    /// The most probable class, and the loss; an unlabelled node has none.
    type Answer = (u32, f32);
    type Figures = Accuracy;
    type Evaluator = Evaluator;

    fn split(&self) -> Split {
        self.split
    }

    fn items(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes share neighbours, whose first layers a batch computes once; and there are to be
    /// batches for many workers.
    fn batch(&self) -> usize {
        (self.nodes.len() / 16).clamp(256, 4_096)
    }

    fn evaluator(&self) -> Evaluator {
        Evaluator::default()
    }

    fn evaluate<P: Parameters>(
        &self,
        evaluator: &mut Evaluator,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<(u32, f32)>,
    ) -> Result<(), P::Error> {
        let targets = &self.nodes[items];
        let pull: Pull<'_, P::Error> = &mut |keys, values| parameters.pull(keys, values);
        let scores = self.scores(targets, evaluator, pull)?;
        answers.extend(targets.iter().zip(scores.chunks(self.model.classes)).map(
            |(node, scores)| {
                let right = self.graph.label(*node).map(|label| label as usize);
                let right = right.filter(|right| *right < scores.len());
                (most(scores), right.map_or(0.0, |right| cross_entropy(scores, right)))
            },
        ));
        Ok(())
    }

    fn figures(&self, answers: &[(u32, f32)]) -> Accuracy {
        let items = answers.len().max(1) as f64;
        let is_right =
            |(node, (class, _)): &(&u32, &(u32, f32))| self.graph.label(**node) == Some(*class);
        let right = self.nodes.iter().zip(answers).filter(is_right).count();
        let loss: f64 = answers.iter().map(|(_, loss)| f64::from(*loss)).sum();
        Accuracy { items: answers.len() as u64, accuracy: right as f64 / items, loss: loss / items }
    }
}

/// Returns the class with the highest score, the first if there are several; one that there is not
/// if none is a number.
pub(crate) fn most(scores: &[f32]) -> u32 {
    let mut best = (u32::MAX, f32::NEG_INFINITY);
    for (class, score) in (0..).zip(scores) {
        if *score > best.1 {
            best = (class, *score);
        }
    }
    best.0
}

fn clear(numbers: &mut Vec<f32>, count: usize) {
    numbers.clear();
    numbers.resize(count, 0.0);
}

/// Nodes whose first layer is in memory at once.
pub(crate) const MIDDLE_NODES: usize = if cfg!(test) { 64 } else { 2_048 };
/// Nodes whose features are in memory at once.
const OUTER_NODES: usize = if cfg!(test) { 96 } else { 4_096 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_highest_scores_counts_and_nan_never() {
        assert_eq!(most(&[0.0, 2.0, 2.0, f32::NAN]), 1);
        assert_eq!(most(&[f32::NAN; 3]), u32::MAX);
    }

    #[test]
    fn accuracy_decides_then_loss_and_any_number_is_better_than_none() {
        let of = |accuracy, loss| Accuracy { items: 1, accuracy, loss };
        assert!(of(0.5, 9.0).is_better(&of(0.4, 1.0)) && !of(0.4, 1.0).is_better(&of(0.5, 9.0)));
        assert!(of(0.5, 1.0).is_better(&of(0.5, 2.0)) && !of(0.5, 2.0).is_better(&of(0.5, 2.0)));
        assert!(of(0.5, 1.0).is_better(&of(0.5, f64::NAN)));
        assert!(!of(0.5, f64::NAN).is_better(&of(0.5, f64::NAN)));
    }
}
