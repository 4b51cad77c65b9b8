//! Sentences as a worker trains on them: words that were kept, their windows, and the keys they
//! access.
//!
//! Words that are not in the vocabulary are left out, frequent ones are thinned, and both happens
//! before windows are laid, so windows reach further over what is missing: word2vec's way. A line
//! is a sentence, one of more than 1000 kept words is several.
//!
//! What a sentence is depends on seed, worker and epoch alone; its negatives are drawn by the
//! sampling of the parameter manager.
//!
//! # Evaluation
//! The loss of an epoch is that of a fixed sample of the text ([`Judged`]).
//!
//! The losses of training cannot be compared: of negatives that are shared, and of vectors that
//! other nodes have moved meanwhile, they say more about how negatives are drawn than about the
//! vectors. So after each epoch the same pairs with the same negatives are evaluated, while nothing
//! moves. They follow from text, seed, window, thinning and negatives alone: not from the number of
//! nodes and workers, the system, or which pairs share negatives in training.

use adapm_core::Key;
use adapm_runtime::{AliasTable, Random};
use rand::RngExt as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::data::DataError;
use crate::matrix::dot;
use crate::run::random;
use crate::wv::corpus::{Corpus, Vocabulary};
use crate::wv::text::{Pieces, Share, Token, Tokens};

/// The keys of `words` words: the input vector of word `w` is key `w`, its output vector is key
/// `words + w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) words: u64,
}

impl Keys {
    pub(crate) fn input(self, word: u32) -> Key {
        Key(u64::from(word))
    }

    pub(crate) fn output(self, word: u32) -> Key {
        Key(self.words + u64::from(word))
    }
}

/// A sentence of two words or more.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sentence {
    /// Its different words, ascending.
    pub(crate) distinct: Vec<u32>,
    /// Its words in order, each as its place in `distinct`.
    pub(crate) places: Vec<u32>,
    /// The reach of each word's context to both sides.
    pub(crate) windows: Vec<u16>,
    /// Words of the vocabulary that were read for it, with those of sentences before that are too
    /// short to be one.
    pub(crate) read: u64,
}

impl Sentence {
    /// Returns the keys that are accessed apart from negatives: input vectors, then output vectors,
    /// of the different words.
    pub(crate) fn keys(&self, keys: Keys) -> Vec<Key> {
        let words = self.distinct.iter();
        words
            .clone()
            .map(|word| keys.input(*word))
            .chain(words.map(|word| keys.output(*word)))
            .collect()
    }

    /// Its first words, as many as `words` at most, as a sentence.
    pub(crate) fn beginning(mut self, words: usize) -> Self {
        self.places.truncate(words);
        self.windows.truncate(words);
        let all = std::mem::take(&mut self.distinct);
        let mut places = self.places.clone();
        places.sort_unstable();
        places.dedup();
        self.distinct = places.iter().map(|place| all[*place as usize]).collect();
        for place in &mut self.places {
            *place = places.binary_search(place).expect("it is one of them") as u32;
        }
        self
    }

    /// Each word's position with those of its context.
    pub(crate) fn contexts(
        &self,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = usize> + Clone)> {
        self.windows.iter().enumerate().map(|(centre, window)| {
            let window = usize::from(*window);
            let context = centre.saturating_sub(window)..self.places.len().min(centre + window + 1);
            (centre, context.filter(move |position| *position != centre))
        })
    }

    /// Returns the number of pairs of a word and one of its context.
    pub(crate) fn pairs(&self) -> usize {
        let (first, last) = (0, self.places.len() - 1);
        let reach = |(centre, window): (usize, &u16)| {
            let window = usize::from(*window);
            window.min(centre - first) + window.min(last - centre)
        };
        self.windows.iter().enumerate().map(reach).sum()
    }
}

/// The plan by which a worker draws sentences.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
    /// Of 2^32 occurrences of each word, how many are kept.
    pub(crate) keep_thresholds: &'a [u32],
    /// The widest window.
    pub(crate) window: u16,
    pub(crate) seed: u64,
}

/// Of 2^32 occurrences of each word, how many are kept if those that are more than the share
/// `sample` of the text are thinned: `sqrt(sample / f) + sample / f` of a word's share `f`
/// (word2vec's formula; Mikolov et al., NIPS 2013, §2.3). All if `sample` is 0.
pub(crate) fn keep_thresholds(vocabulary: &Vocabulary, sample: f64) -> Vec<u32> {
    let expected = sample * vocabulary.total() as f64;
    let chance = |count: &u64| {
        let ratio = expected / *count as f64;
        let chance = if sample > 0.0 { ratio.sqrt() + ratio } else { 1.0 };
        // Saturates, so a chance of 1 and more keeps all but one of 2^32: taken care of by the
        // comparison.
        (chance * TWO_TO_32) as u32
    };
    vocabulary.counts().iter().map(chance).collect()
}

const TWO_TO_32: f64 = 4_294_967_296.0;

/// Reads the sentences of a worker's share of the text, once.
#[derive(Debug)]
pub(crate) struct Sentences<'a> {
    plan: Plan<'a>,
    tokens: Tokens<Pieces<'a>>,
    random: Xoshiro256PlusPlus,
    words: Vec<u32>,
    windows: Vec<u16>,
    read: u64,
}

impl<'a> Sentences<'a> {
    /// Returns the sentences of `share`, on which worker `worker` trains in epoch `epoch`.
    pub(crate) fn new(plan: Plan<'a>, share: &Share<'a>, worker: usize, epoch: u32) -> Self {
        let place = ((worker as u64) << 32) | u64::from(epoch);
        let random = random::generator(plan.seed, [place]);
        let (words, windows) = (Vec::new(), Vec::new());
        Self { plan, tokens: share.tokens(), random, words, windows, read: 0 }
    }

    /// Reads the kept words of the next sentence. Returns false if there is none.
    fn fill(&mut self) -> Result<bool, DataError> {
        self.words.clear();
        self.windows.clear();
        while self.words.len() < WORDS_MAX {
            let word = match self.tokens.next()? {
                None => return Ok(!self.words.is_empty()),
                Some(Token::LineEnd) => return Ok(true),
                Some(Token::Word(word)) => word,
            };
            let Some(number) = self.plan.vocabulary.find(word) else { continue };
            self.read += 1;
            let bits: u64 = self.random.random();
            if (bits >> 32) as u32 > self.plan.keep_thresholds[number as usize] {
                continue;
            }
            self.words.push(number);
            let window = ((bits & 0xffff_ffff) * u64::from(self.plan.window)) >> 32;
            self.windows.push(1 + window as u16);
        }
        Ok(true)
    }
}

impl Iterator for Sentences<'_> {
    type Item = Result<Sentence, DataError>;

    /// Returns the next sentence with a pair of words.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            if self.words.len() > 1 {
                break;
            }
        }
        let mut distinct = self.words.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let place = |word: &u32| distinct.binary_search(word).expect("it is one of them") as u32;
        let places = self.words.iter().map(place).collect();
        let read = std::mem::take(&mut self.read);
        Some(Ok(Sentence { distinct, places, windows: self.windows.clone(), read }))
    }
}

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
    pub(crate) fn draw(
        corpus: &Corpus,
        plan: &Plan<'_>,
        negatives: &AliasTable,
    ) -> Result<Self, DataError> {
        let places = (corpus.words() / WORDS_PER_PASSAGE).clamp(PASSAGES / 5, PASSAGES) as usize;
        let mut random = Random::new(plan.seed);
        let (mut passages, mut pairs) = (Vec::new(), 0);
        for place in 0..places {
            let share = corpus.text().share(place, places)?;
            let Some(sentence) = Sentences::new(plan.clone(), &share, place, 0).next() else {
                continue;
            };
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

    /// Returns the passages that worker `number` of `all` evaluates, with their numbers.
    pub(crate) fn of_worker(
        &self,
        number: usize,
        all: usize,
    ) -> impl Iterator<Item = (usize, &Passage)> {
        self.passages.iter().enumerate().skip(number).step_by(all)
    }

    /// Returns the passage of this number.
    pub(crate) fn passage(&self, number: usize) -> &Passage {
        &self.passages[number]
    }
}

impl Passage {
    /// Returns the keys whose values [`Self::loss`] needs, in their order.
    pub(crate) fn keys(&self, keys: Keys) -> Vec<Key> {
        let negatives = self.negatives.iter().map(|word| keys.output(*word));
        self.sentence.keys(keys).into_iter().chain(negatives).collect()
    }

    /// Returns the sum of the losses of all pairs. A value has `value_len` floats; the first `dim`
    /// are the vector. Each pair counts `negatives` negatives: all negatives of the passage, by
    /// equal shares.
    ///
    /// The loss of a pair is `-ln s(v u) - sum ln s(-v n)`, and 0.69 * (1 + `negatives`) before
    /// training.
    pub(crate) fn loss(
        &self,
        values: &[f32],
        (value_len, dim): (usize, usize),
        negatives: usize,
    ) -> f64 {
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
                let same = self
                    .negatives
                    .iter()
                    .zip(&against[input])
                    .filter(|(negative, _)| **negative == word);
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

/// Words of a sentence, word2vec's.
const WORDS_MAX: usize = 1000;

/// Passages of a long text.
const PASSAGES: u64 = 500;
/// Words of the vocabulary for each passage, so that the evaluation takes a small part of an epoch.
const WORDS_PER_PASSAGE: u64 = 2000;
/// Words of a passage at most.
const WORDS: usize = 40;
/// Negatives of a passage.
const NEGATIVES: usize = 16;

#[cfg(test)]
mod tests;
