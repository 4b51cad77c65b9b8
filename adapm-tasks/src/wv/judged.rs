//! A fixed sample of the text, by whose loss an epoch is judged.
//!
//! The losses of training cannot be compared: of negatives that are shared, and of vectors that other nodes have moved meanwhile,
//! they say more about how negatives are drawn than about the vectors. So after each epoch the same pairs with the same negatives are
//! judged, while nothing moves. They follow from text, seed, window, thinning and negatives alone: not from the number of nodes and
//! workers, the system, or which pairs share negatives in training.

use adapm_core::Key;
use adapm_runtime::{AliasTable, Random};

use crate::data::DataError;
use crate::matrix::dot;
use crate::wv::corpus::Corpus;
use crate::wv::sentence::{Keys, Plan, Sentence, Sentences};

/// The sample.
#[derive(Debug)]
pub(crate) struct Judged {
    passages: Vec<Passage>,
    pairs: u64,
}

/// A sentence, or its beginning, with negatives that all its pairs share.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    sentence: Sentence,
    negatives: Vec<u32>,
}

impl Judged {
    /// Draws the sample. Cost: a look at up to [`PASSAGES`] places of the text.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub(crate) fn draw(corpus: &Corpus, plan: &Plan<'_>, negatives: &AliasTable) -> Result<Self, DataError> {
        let places = (corpus.words() / WORDS_PER_PASSAGE).clamp(PASSAGES / 5, PASSAGES) as usize;
        let mut random = Random::new(plan.seed);
        let (mut passages, mut pairs) = (Vec::new(), 0);
        for place in 0..places {
            let share = corpus.text().share(place, places)?;
            let Some(sentence) = Sentences::new(plan.clone(), &share, place, 0).next() else { continue };
            let sentence = sentence?.beginning(WORDS);
            pairs += sentence.pairs() as u64;
            let negatives = (0..NEGATIVES).map(|_| negatives.draw(&mut random) as u32).collect();
            passages.push(Passage { sentence, negatives });
        }
        Ok(Self { passages, pairs })
    }

    /// Pairs of a word and one of its context.
    pub(crate) fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The passages by which worker `number` of `all` judges, with their numbers.
    pub(crate) fn of_worker(&self, number: usize, all: usize) -> impl Iterator<Item = (usize, &Passage)> {
        self.passages.iter().enumerate().skip(number).step_by(all)
    }

    /// The passage of this number.
    pub(crate) fn passage(&self, number: usize) -> &Passage {
        &self.passages[number]
    }
}

impl Passage {
    /// The keys whose values [`Self::loss`] needs, in their order.
    pub(crate) fn keys(&self, keys: Keys) -> Vec<Key> {
        let negatives = self.negatives.iter().map(|word| keys.output(*word));
        self.sentence.keys(keys).into_iter().chain(negatives).collect()
    }

    /// The sum of the losses of all pairs, by values of `value_len` floats of which the first `dim` are the vectors; each pair with
    /// `negatives` negatives, all of the passage by equal shares.
    ///
    /// The loss of a pair is `-ln s(v u) - sum ln s(-v n)`, and 0.69 * (1 + `negatives`) before training.
    pub(crate) fn loss(&self, values: &[f32], (value_len, dim): (usize, usize), negatives: usize) -> f64 {
        let words = self.sentence.distinct.len();
        let vector = |number: usize| &values[number * value_len..][..dim];
        // By the words of the sentence and not by its pairs: each word meets each negative once.
        let against: Vec<Vec<f64>> = (0..words)
            .map(|input| {
                let losses = (0..self.negatives.len())
                    .map(|negative| softplus(dot(vector(input), vector(2 * words + negative))));
                losses.collect()
            })
            .collect();
        let totals: Vec<f64> = against.iter().map(|losses| losses.iter().sum()).collect();
        let share = negatives as f64 / self.negatives.len() as f64;
        let mut sum = 0.0;
        for (position, context) in self.sentence.contexts() {
            let input = self.sentence.places[position] as usize;
            for output in context.map(|position| self.sentence.places[position] as usize) {
                let word = self.sentence.distinct[output];
                let same =
                    self.negatives.iter().zip(&against[input]).filter(|(negative, _)| **negative == word);
                let not_counted: f64 = same.map(|(_, loss)| loss).sum();
                sum += softplus(-dot(vector(input), vector(words + output)));
                sum += share * (totals[input] - not_counted);
            }
        }
        sum
    }
}

/// `ln(1 + exp(x))`, which is `-ln s(-x)`.
fn softplus(x: f32) -> f64 {
    let x = f64::from(x);
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Passages of a long text.
const PASSAGES: u64 = 500;
/// Words of the vocabulary for each passage, so that judging takes a small part of an epoch.
const WORDS_PER_PASSAGE: u64 = 2000;
/// Words of a passage at most.
const WORDS: usize = 40;
/// Negatives of a passage.
const NEGATIVES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wv::sentence::kept;
    use crate::wv::{Text, corpus};

    fn judged(corpus: &Corpus, seed: u64) -> Judged {
        let kept = kept(corpus.vocabulary(), 0.0);
        let plan = Plan { vocabulary: corpus.vocabulary(), kept: &kept, window: 2, seed };
        Judged::draw(corpus, &plan, &corpus::negative_table(corpus.vocabulary().counts())).unwrap()
    }

    #[test]
    fn the_sample_depends_on_the_seed_alone_and_workers_share_it() {
        let corpus = Corpus::count(Text::generated(1, 3000), 1, 1).unwrap();
        let keys = |judged: &Judged| -> Vec<Vec<Key>> {
            let keys = Keys { words: corpus.vocabulary().len() as u64 };
            judged.of_worker(0, 1).map(|(_, passage)| passage.keys(keys)).collect()
        };
        let sample = judged(&corpus, 1);
        assert_eq!(keys(&sample), keys(&judged(&corpus, 1)));
        assert_ne!(keys(&sample), keys(&judged(&corpus, 2)));
        let of_three: usize = (0..3).map(|number| sample.of_worker(number, 3).count()).sum();
        assert_eq!((of_three, sample.passages.len()), (100, 100));
        let pairs: usize = sample.passages.iter().map(|passage| passage.sentence.pairs()).sum();
        assert_eq!(sample.pairs(), pairs as u64);
    }

    #[test]
    fn a_text_of_a_few_words_has_a_sample_too_and_a_long_line_has_its_beginnings() {
        let few = Corpus::count(Text::of_bytes(b"a b"), 1, 1).unwrap();
        assert_eq!(judged(&few, 1).pairs(), 2);
        let line = Corpus::count(Text::of_bytes(&b"a b c d ".repeat(10_000)), 1, 1).unwrap();
        let sample = judged(&line, 1);
        assert!(sample.passages.iter().all(|passage| passage.sentence.places.len() == WORDS));
    }

    #[test]
    fn the_loss_is_that_of_its_definition() {
        let sentence = Sentence { distinct: vec![0, 2], places: vec![0, 1, 0], windows: vec![1; 3], read: 3 };
        let passage = Passage { sentence, negatives: vec![2, 1] };
        // Values of 3 floats with vectors of 2: two inputs, two outputs, two negatives.
        let values: Vec<f32> = (0..18).map(|number| (number % 7) as f32 * 0.2 - 0.5).collect();
        let product = |input: usize, output: usize| -> f64 {
            (0..2).map(|at| f64::from(values[3 * input + at]) * f64::from(values[3 * output + at])).sum()
        };
        let minus_ln_s = |x: f64| (1.0 + (-x).exp()).ln();
        let negatives = 5.0 / 2.0;
        let mut expected = 0.0;
        for (input, output) in [(0, 1), (1, 0), (1, 0), (0, 1)] {
            expected += minus_ln_s(product(input, 2 + output));
            // The first negative is word 2, the second of the sentence.
            expected += negatives * if output == 1 { 0.0 } else { minus_ln_s(-product(input, 4)) };
            expected += negatives * minus_ln_s(-product(input, 5));
        }
        let found = passage.loss(&values, (3, 2), 5);
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }
}
