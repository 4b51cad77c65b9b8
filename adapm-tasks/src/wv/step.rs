//! One training step: a sentence.
//!
//! ```text
//!   pull(vectors of its words)   pull_sample(output vectors of negatives)
//!                 \                 /
//!          rows, one per different key: all pairs, one after the other
//!                          |
//!              push(what each row has moved by)
//! ```
//!
//! Within a sentence every pair sees what the pairs before it did, as in word2vec with one thread;
//! what other workers do meanwhile is seen from the next sentence on. What a row has moved by is
//! added to the value that its key has by then.
//!
//! # Negatives that are shared
//!
//! word2vec draws negatives for each pair. Here, unless asked otherwise, up to 32 words of a
//! sentence share as many as word2vec draws for one ([`blocks`]): the same words are drawn with the
//! same chances, so a sentence accesses a few keys per word and not dozens, and products of small
//! matrices replace those of single vectors (Ji et al., "Parallelizing Word2Vec in Shared and
//! Distributed Memory", 2016, §3, who share those of a window).

use adapm_core::Key;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::run::parameters::Parameters;
use crate::run::task::StepError;
use crate::wv::blocks::{self, Blocks, Scratch};
use crate::wv::config::{Negatives, Optimizer};
use crate::wv::kernel::{Group, LANES, Rows, Work, descend};
use crate::wv::sentence::{Keys, Passage, Sentence};

/// The recipe of training on sentences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) keys: Keys,
    pub(crate) dim: usize,
    /// Negatives of a pair.
    pub(crate) negatives: usize,
    pub(crate) drawn: Negatives,
    /// The widest window.
    pub(crate) window: u16,
    pub(crate) optimizer: Optimizer,
}

impl Recipe {
    /// Floats of the value of a key.
    pub(crate) fn value_len(&self) -> usize {
        match self.optimizer {
            Optimizer::Sgd => self.dim,
            Optimizer::AdaGrad => 2 * self.dim,
        }
    }

    /// Keys that are sampled for a sentence.
    pub(crate) fn sampled(&self, sentence: &Sentence) -> usize {
        let (words, pairs) = (sentence.places.len(), sentence.pairs());
        match self.drawn {
            Negatives::Sentence => {
                let blocks = words.div_ceil(words_of_block(words));
                blocks * self.drawn_for_block().min(self.negatives * pairs)
            }
            Negatives::Window => self.negatives * words,
            Negatives::Pair => self.negatives * pairs,
        }
    }

    /// As many as word2vec draws for one word, which has `window + 1` pairs on average: so each of
    /// the negatives counts about once for each word of the block.
    fn drawn_for_block(&self) -> usize {
        self.negatives * (usize::from(self.window) + 1)
    }
}

/// Words of a block of a sentence of `words`: equal parts of at most [`BLOCK`].
fn words_of_block(words: usize) -> usize {
    words.div_ceil(words.div_ceil(BLOCK))
}

/// Words that share their negatives. Twice as many would hardly save time, as all of a block move
/// from where they were before.
const BLOCK: usize = 32;

/// A worker's memory for steps, kept from sentence to sentence.
#[derive(Debug)]
pub(crate) struct Step {
    recipe: Recipe,
    /// Keys that are pulled: input vectors, output vectors, negatives.
    keys: Vec<Key>,
    values: Vec<f32>,
    /// For each row, where its value begins in `values`.
    origins: Vec<usize>,
    /// The rows: `inputs` of input vectors, then those of output vectors.
    rows: Vec<f32>,
    /// Row of the output vector of each word, counted from the first such row.
    found: HashMap<Key, u32, FixedState>,
    /// Row of the output vector of each negative.
    negatives: Vec<u32>,
    groups: Vec<Group>,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    score_gradients: Vec<f32>,
    /// For each word the end of its context in `outputs`.
    ends: Vec<usize>,
    scratch: Scratch,
}

impl Step {
    /// Returns a step that has seen no sentence.
    pub(crate) fn new(recipe: Recipe) -> Self {
        Self {
            recipe,
            keys: Vec::new(),
            values: Vec::new(),
            origins: Vec::new(),
            rows: Vec::new(),
            found: HashMap::default(),
            negatives: Vec::new(),
            groups: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            score_gradients: Vec::new(),
            ends: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Trains on one sentence. `keys` are its [`Sentence::keys`]; `sample` holds
    /// [`Recipe::sampled`] keys. Ends the step.
    pub(crate) fn train<P: Parameters>(
        &mut self,
        sentence: &Sentence,
        keys: &[Key],
        learning_rate: f32,
        sample: &mut P::Sample,
        parameters: &mut P,
    ) -> Result<(), StepError<P::Error>> {
        self.pull(sentence, keys, sample, parameters)?;
        if self.recipe.drawn == Negatives::Sentence {
            self.arrange_blocks(sentence);
        } else {
            self.arrange(sentence);
        }
        self.descend(sentence, learning_rate);
        let blamed = self.differ();
        if let Some(key) = blamed {
            return Err(StepError::NotFinite(key));
        }
        let rows = self.origins.len();
        parameters.push(&self.keys[..rows], &self.values[..rows * self.recipe.value_len()])?;
        parameters.advance_clock();
        Ok(())
    }

    /// Returns the sum of the losses of the pairs of `passage`; `keys` are its [`Passage::keys`].
    /// Ends the step.
    pub(crate) fn judge<P: Parameters>(
        &mut self,
        passage: &Passage,
        keys: &[Key],
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        let Recipe { dim, negatives, .. } = self.recipe;
        let len = self.recipe.value_len();
        self.values.resize(keys.len() * len, 0.0);
        parameters.pull(keys, &mut self.values)?;
        let loss = passage.loss(&self.values, (len, dim), negatives);
        parameters.advance_clock();
        if loss.is_finite() { Ok(loss) } else { Err(StepError::NotFinite(keys[0])) }
    }

    /// Returns different keys of the last sentence.
    #[cfg(test)]
    pub(crate) fn different_keys(&self) -> usize {
        self.origins.len()
    }

    /// Pulls all values and copies those of different keys into rows.
    fn pull<P: Parameters>(
        &mut self,
        sentence: &Sentence,
        keys: &[Key],
        sample: &mut P::Sample,
        parameters: &mut P,
    ) -> Result<(), P::Error> {
        let (len, sampled) = (self.recipe.value_len(), self.recipe.sampled(sentence));
        self.keys.clear();
        self.keys.extend_from_slice(keys);
        self.keys.resize(keys.len() + sampled, Key(0));
        self.values.resize(self.keys.len() * len, 0.0);
        let (own, drawn) = self.values.split_at_mut(keys.len() * len);
        parameters.pull(keys, own)?;
        if sampled > 0 {
            parameters.pull_sample(sample, &mut self.keys[keys.len()..], drawn)?;
        }
        let inputs = sentence.distinct.len();
        self.found.clear();
        self.found.extend(keys[inputs..].iter().copied().zip(0..));
        self.origins.clear();
        self.origins.extend((0..keys.len()).map(|place| place * len));
        self.negatives.clear();
        for place in keys.len()..self.keys.len() {
            let key = self.keys[place];
            let next = (self.origins.len() - inputs) as u32;
            let row = *self.found.entry(key).or_insert(next);
            self.negatives.push(row);
            if row == next {
                self.keys[self.origins.len()] = key;
                self.origins.push(place * len);
            }
        }
        self.fill_rows();
        Ok(())
    }

    fn fill_rows(&mut self) {
        let (dim, padded, len) = (self.recipe.dim, self.padded(), self.recipe.value_len());
        // What pads a vector stays 0; what pads the squares must not divide 0 by 0.
        self.rows.resize(self.origins.len() * len / dim * padded, 0.0);
        let halves = len / dim;
        let rows = self.rows.chunks_exact_mut(padded);
        let vectors =
            self.origins.iter().flat_map(|origin| (0..halves).map(move |half| origin + half * dim));
        for (number, (row, origin)) in rows.zip(vectors).enumerate() {
            let padding = if number % halves == 1 { 1.0 } else { 0.0 };
            row[..dim].copy_from_slice(&self.values[origin..origin + dim]);
            row[dim..].fill(padding);
        }
    }

    /// Lists the pairs by rows.
    fn arrange(&mut self, sentence: &Sentence) {
        self.groups.clear();
        self.inputs.clear();
        self.outputs.clear();
        let mut negatives = self.negatives.chunks_exact(self.recipe.negatives.max(1));
        let mut begin = |outputs: &mut Vec<u32>, centre: u32| {
            outputs.push(centre);
            let drawn = negatives.next().unwrap_or_default();
            outputs.extend(drawn.iter().filter(|row| **row != centre));
        };
        for (position, context) in sentence.contexts() {
            let centre = sentence.places[position];
            let context = context.map(|position| sentence.places[position]);
            match self.recipe.drawn {
                Negatives::Window => {
                    begin(&mut self.outputs, centre);
                    self.inputs.extend(context);
                    self.groups
                        .push(Group { inputs: self.inputs.len(), outputs: self.outputs.len() });
                }
                Negatives::Sentence => {}
                Negatives::Pair => {
                    for input in context {
                        begin(&mut self.outputs, centre);
                        self.inputs.push(input);
                        self.groups
                            .push(Group { inputs: self.inputs.len(), outputs: self.outputs.len() });
                    }
                }
            }
        }
    }

    /// Lists contexts by rows.
    fn arrange_blocks(&mut self, sentence: &Sentence) {
        self.ends.clear();
        self.outputs.clear();
        for (_, context) in sentence.contexts() {
            self.outputs.extend(context.map(|position| sentence.places[position]));
            self.ends.push(self.outputs.len());
        }
    }

    /// Trains on the pairs.
    fn descend(&mut self, sentence: &Sentence, learning_rate: f32) {
        let len = self.padded();
        let split = sentence.distinct.len() * self.recipe.value_len() / self.recipe.dim * len;
        let (inputs, outputs) = self.rows.split_at_mut(split);
        let mut rows = Rows { inputs, outputs, len, score_gradients: &mut self.score_gradients };
        if self.recipe.drawn == Negatives::Sentence {
            let blocks = Blocks {
                inputs: &sentence.places,
                ends: &self.ends,
                outputs: &self.outputs,
                negatives: &self.negatives,
                words: words_of_block(sentence.places.len()),
                weight: self.recipe.negatives as f32,
                learning_rate,
            };
            return match self.recipe.optimizer {
                Optimizer::Sgd => blocks::descend::<false>(&blocks, &mut rows, &mut self.scratch),
                Optimizer::AdaGrad => {
                    blocks::descend::<true>(&blocks, &mut rows, &mut self.scratch)
                }
            };
        }
        let (groups, inputs, outputs) = (&self.groups, &self.inputs, &self.outputs);
        let work = Work { groups, inputs, outputs, learning_rate };
        match self.recipe.optimizer {
            Optimizer::Sgd => descend::<false>(&work, &mut rows),
            Optimizer::AdaGrad => descend::<true>(&work, &mut rows),
        }
    }

    /// Replaces the first values by what the rows have moved by, in the order of the rows. Returns
    /// the first key with a difference that is no number.
    fn differ(&mut self) -> Option<Key> {
        let (dim, len) = (self.recipe.dim, self.recipe.value_len());
        let halves = len / dim;
        let padded = self.padded();
        let mut blamed = None;
        for (place, origin) in self.origins.iter().enumerate() {
            // A row's origin is never before the row: what is overwritten has been read.
            self.values.copy_within(*origin..origin + len, place * len);
            let mut is_finite = true;
            let row = &self.rows[place * halves * padded..][..halves * padded];
            let values = &mut self.values[place * len..][..len];
            for (value, row) in values.chunks_exact_mut(dim).zip(row.chunks_exact(padded)) {
                for (value, moved) in value.iter_mut().zip(row) {
                    *value = moved - *value;
                    is_finite &= value.is_finite();
                }
            }
            if !is_finite && blamed.is_none() {
                blamed = Some(self.keys[place]);
            }
        }
        blamed
    }

    /// Floats of a vector in a row.
    fn padded(&self) -> usize {
        self.recipe.dim.next_multiple_of(LANES)
    }
}

#[cfg(test)]
mod tests;
