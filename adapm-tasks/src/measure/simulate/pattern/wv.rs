//! Word vectors: skip-gram of dimension 1,000 on the One Billion Word Benchmark without stop words (AdaPM App. C).

use adapm_core::{Key, Layout};
use adapm_verify::sim::Who;
use rand::RngExt as _;

use super::{Facts, Pattern, Sampled, Work, distinct};
use crate::measure::simulate::Chance;
use crate::measure::simulate::zipf::Ranks;

/// Words, with two vectors each: the stated 1.9 M keys.
const WORDS: u64 = 950_000;
/// Words of the text (stated: 375 M data points).
const TEXT: u64 = 375_000_000;
/// Words of a sentence: the benchmark has 30.3 M sentences.
const SENTENCE: u64 = 12;
/// Negatives of a word of a sentence: dynamic window 5 (stated) has 6 words on average, 5 negatives each (assumed).
const NEGATIVES: u64 = 30;
/// Bytes of a value with its AdaGrad part: the stated 14.0 GB over the stated 1.9 M keys.
const VALUE_BYTES: u64 = 8_000;
/// Time for a sentence: as many multiplications a nanosecond as in the knowledge graph task (assumed).
const SENTENCE_NANOS: u64 = 2_500_000;

/// Sentences of words by rank, the same on all nodes.
pub(super) struct Wv {
    facts: Facts,
    words: Ranks,
    negatives: Ranks,
}

impl Wv {
    pub(super) fn new() -> Self {
        let facts = Facts {
            layout: Layout::sparse(&[(2 * WORDS, 1)]).expect("there are keys"),
            element_bytes: VALUE_BYTES,
            keys_per_key: 1,
            epoch_points: TEXT,
            points: SENTENCE,
            clocks: 1,
            sample_keys: WORDS,
            ahead: 32,
            warm_up: 10,
            measured: 10,
        };
        // Zipf's law; the first ranks were stop words, which are removed (assumed: ten).
        Self { facts, words: Ranks::new(WORDS, 1.0, 10), negatives: Ranks::new(WORDS, 0.75, 10) }
    }
}

impl Pattern for Wv {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn draw(&mut self, _who: Who, chance: &mut Chance) -> Work {
        let length = chance.random_range(SENTENCE / 2..=SENTENCE + SENTENCE / 2);
        let words = (0..length).map(|_| self.words.draw(chance));
        let keys = words.flat_map(|word| [input(word), output(word)]).collect();
        let negatives = (0..length * NEGATIVES).map(|_| output(self.negatives.draw(chance))).collect();
        let work = Work::of(keys, SENTENCE_NANOS * length / SENTENCE, chance);
        Work { sampled: Sampled::Drawn(distinct(negatives)), ..work }
    }

    fn hot(&self) -> Vec<Key> {
        let hot = self.words.at_least(100.0 / WORDS as f64);
        (0..hot).flat_map(|word| [input(word), output(word)]).collect()
    }
}

fn input(word: u64) -> Key {
    Key(2 * word)
}

fn output(word: u64) -> Key {
    Key(2 * word + 1)
}
