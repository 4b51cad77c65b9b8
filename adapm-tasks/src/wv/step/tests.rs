//! A step beside the loops of word2vec, its gradients, its accesses.

use std::convert::Infallible;

use adapm_core::update::AdaGrad;
use adapm_runtime::{AliasTable, Random};

use super::*;
use crate::wv::{corpus, task};

/// All values in one vector, negatives by an alias table; records which keys are accessed.
struct Plain {
    len: usize,
    values: Vec<f32>,
    negatives: AliasTable,
    random: Random,
    sampled: Vec<Key>,
    pushed: Vec<Key>,
    clock: u64,
}

impl Plain {
    fn new(recipe: Recipe, counts: &[u64]) -> Self {
        let len = recipe.value_len();
        let mut values = vec![0.0; 2 * counts.len() * len];
        for (key, value) in (0..).map(Key).zip(values.chunks_exact_mut(len)) {
            task::initial_value(1, recipe.keys, recipe.dim, key, value);
        }
        let (negatives, random) = (corpus::negative_table(counts), Random::new(2));
        Self { len, values, negatives, random, sampled: Vec::new(), pushed: Vec::new(), clock: 0 }
    }

    fn value(&self, key: Key) -> &[f32] {
        &self.values[key.0 as usize * self.len..][..self.len]
    }
}

impl Parameters for Plain {
    type Error = Infallible;
    /// Keys that are drawn, the next one last; if there is none any more, the alias table draws.
    type Sample = Vec<Key>;

    fn pull(&mut self, keys: &[Key], values: &mut [f32]) -> Result<(), Infallible> {
        for (key, value) in keys.iter().zip(values.chunks_exact_mut(self.len)) {
            value.copy_from_slice(self.value(*key));
        }
        Ok(())
    }

    fn push(&mut self, keys: &[Key], updates: &[f32]) -> Result<(), Infallible> {
        assert_eq!(keys.len() * self.len, updates.len());
        self.pushed = keys.to_vec();
        for (key, update) in keys.iter().zip(updates.chunks_exact(self.len)) {
            let value = &mut self.values[key.0 as usize * self.len..][..self.len];
            value.iter_mut().zip(update).for_each(|(value, update)| *value += update);
        }
        Ok(())
    }

    fn pull_sample(
        &mut self,
        sample: &mut Vec<Key>,
        keys: &mut [Key],
        values: &mut [f32],
    ) -> Result<(), Infallible> {
        let words = self.values.len() as u64 / self.len as u64 / 2;
        let mut draw = || Key(words + self.negatives.draw(&mut self.random) as u64);
        keys.fill_with(|| sample.pop().unwrap_or_else(&mut draw));
        self.sampled = keys.to_vec();
        self.pull(keys, values)
    }

    fn advance_clock(&mut self) {
        self.clock += 1;
    }

    fn quiesce(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

const LEARNING_RATE: f32 = 0.2;

fn recipe(words: u64, drawn: Negatives, optimizer: Optimizer) -> Recipe {
    Recipe { keys: Keys { words }, dim: 5, negatives: 2, drawn, window: 1, optimizer }
}

/// `a b a c` by numbers 3, 1, 3, 0, each with its neighbours.
fn sentence() -> Sentence {
    let (distinct, places) = (vec![0, 1, 3], vec![2, 1, 2, 0]);
    Sentence { distinct, places, windows: vec![1; 4], read: 4 }
}

/// word2vec's loops on single floats: what a sentence does with the negatives that were drawn, by
/// whatever shares them.
fn word2vec(recipe: Recipe, sentence: &Sentence, before: &Plain, sampled: &[Key]) -> Vec<f32> {
    let (dim, len, mut values) = (recipe.dim, before.len, before.values.clone());
    let word = |position: usize| sentence.distinct[sentence.places[position] as usize];
    let mut negatives = sampled.chunks(recipe.negatives);
    for (centre, context) in sentence.contexts() {
        let mut shared = None;
        for position in context {
            let drawn = match recipe.drawn {
                Negatives::Window => *shared.get_or_insert_with(|| negatives.next().unwrap()),
                Negatives::Sentence | Negatives::Pair => negatives.next().unwrap(),
            };
            let positive = recipe.keys.output(word(centre));
            let input = recipe.keys.input(word(position)).0 as usize * len;
            let mut gradient = vec![0.0_f32; dim];
            let outputs = drawn.iter().filter(|key| **key != positive).map(|key| (*key, 0.0));
            let outputs = std::iter::once((positive, 1.0)).chain(outputs);
            // Slopes are those before anything moves, also if a negative was drawn twice.
            let score_gradient = |(key, label): (Key, f32)| {
                let output = key.0 as usize * len;
                let x: f32 = (0..dim).map(|at| values[input + at] * values[output + at]).sum();
                (output, label - 1.0 / (1.0 + (-x).exp()))
            };
            let score_gradients: Vec<(usize, f32)> = outputs.map(score_gradient).collect();
            let before = values[input..input + dim].to_vec();
            for (output, score_gradient) in score_gradients {
                for at in 0..dim {
                    gradient[at] += score_gradient * values[output + at];
                    add(recipe, &mut values, output + at, score_gradient * before[at]);
                }
            }
            for (at, gradient) in gradient.into_iter().enumerate() {
                add(recipe, &mut values, input + at, gradient);
            }
        }
    }
    values
}

/// Returns a sentence of one block by the definition: first all words against all negatives, from
/// where they were, then each word with its context, then what the negatives move the words by.
fn shared(recipe: Recipe, sentence: &Sentence, before: &Plain, sampled: &[Key]) -> Vec<f32> {
    let (dim, len, mut values) = (recipe.dim, before.len, before.values.clone());
    let product = |values: &[f32], a: usize, b: usize| -> f32 {
        (0..dim).map(|at| values[a + at] * values[b + at]).sum()
    };
    let word = |position: usize| sentence.distinct[sentence.places[position] as usize];
    let input = |position: usize| recipe.keys.input(word(position)).0 as usize * len;
    let output = |position: usize| recipe.keys.output(word(position)).0 as usize * len;
    let contexts: Vec<Vec<usize>> =
        sentence.contexts().map(|(_, context)| context.collect()).collect();
    let share = recipe.negatives as f32 / sampled.len() as f32;
    let negatives: Vec<usize> = sampled.iter().map(|key| key.0 as usize * len).collect();
    let score_gradient = |position: usize, negative: usize| {
        let pairs = contexts[position].iter().filter(|other| output(**other) != negative).count();
        -share * pairs as f32 / (1.0 + (-product(&before.values, input(position), negative)).exp())
    };
    for negative in &negatives {
        for at in 0..dim {
            let step = |position| {
                score_gradient(position, *negative) * before.values[input(position) + at]
            };
            add(recipe, &mut values, negative + at, (0..sentence.places.len()).map(step).sum());
        }
    }
    for (position, context) in contexts.iter().enumerate() {
        let input = input(position);
        let score_gradients: Vec<(usize, f32)> = context
            .iter()
            .map(|other| {
                (output(*other), 1.0 / (1.0 + product(&values, input, output(*other)).exp()))
            })
            .collect();
        let before = values[input..input + dim].to_vec();
        let mut gradient = vec![0.0; dim];
        for (output, score_gradient) in score_gradients {
            for at in 0..dim {
                gradient[at] += score_gradient * values[output + at];
                add(recipe, &mut values, output + at, score_gradient * before[at]);
            }
        }
        (0..dim).for_each(|at| add(recipe, &mut values, input + at, gradient[at]));
    }
    for position in 0..sentence.places.len() {
        for at in 0..dim {
            let step = |negative: &usize| {
                score_gradient(position, *negative) * before.values[negative + at]
            };
            add(recipe, &mut values, input(position) + at, negatives.iter().map(step).sum());
        }
    }
    values
}

fn add(recipe: Recipe, values: &mut [f32], at: usize, gradient: f32) {
    let scale = match recipe.optimizer {
        Optimizer::Sgd => 1.0,
        Optimizer::AdaGrad => {
            values[at + recipe.dim] += gradient * gradient;
            1.0 / values[at + recipe.dim].sqrt()
        }
    };
    values[at] += LEARNING_RATE * gradient * scale;
}

#[test]
fn a_sentence_does_what_its_definition_says_and_without_sharing_what_the_loops_of_word2vec_do() {
    for drawn in [Negatives::Sentence, Negatives::Window, Negatives::Pair] {
        for optimizer in [Optimizer::Sgd, Optimizer::AdaGrad] {
            let recipe = recipe(6, drawn, optimizer);
            let (mut plain, mut step) =
                (Plain::new(recipe, &[9, 8, 7, 6, 5, 4]), Step::new(recipe));
            // Outputs begin at 0; some sentences let all vectors matter.
            for round in 0..30 {
                let (sentence, before) = (sentence(), plain.values.clone());
                let keys = sentence.keys(recipe.keys);
                let copy = Plain { values: before, ..Plain::new(recipe, &[9, 8, 7, 6, 5, 4]) };
                step.train(&sentence, &keys, LEARNING_RATE, &mut Vec::new(), &mut plain).unwrap();
                assert_eq!(plain.sampled.len(), recipe.sampled(&sentence));
                let expected = match drawn {
                    Negatives::Sentence => shared(recipe, &sentence, &copy, &plain.sampled),
                    _ => word2vec(recipe, &sentence, &copy, &plain.sampled),
                };
                for (at, (found, expected)) in plain.values.iter().zip(&expected).enumerate() {
                    let off = (found - expected).abs();
                    assert!(off < 1e-4, "{drawn} {optimizer} {round}, {at}: {found}, {expected}");
                }
            }
            assert_eq!(plain.clock, 30);
        }
    }
}

#[test]
fn every_key_is_pushed_once_and_negatives_that_are_the_word_itself_do_nothing() {
    let recipe = recipe(6, Negatives::Window, Optimizer::Sgd);
    let (mut plain, mut step) = (Plain::new(recipe, &[1; 6]), Step::new(recipe));
    let sentence = sentence();
    let (keys, outputs) = (sentence.keys(recipe.keys), |words: &[u32]| -> Vec<Key> {
        words.iter().rev().map(|word| recipe.keys.output(*word)).collect()
    });
    // Words 3 1 3 0, so: itself twice; a word of the sentence, and a new one; the new one again,
    // twice; another.
    let mut sample = outputs(&[3, 3, 3, 5, 5, 5, 4, 0]);
    step.train(&sentence, &keys, LEARNING_RATE, &mut sample, &mut plain).unwrap();
    let expected: Vec<u64> = vec![0, 1, 3, 6, 7, 9, 11, 10];
    assert_eq!(plain.pushed.iter().map(|key| key.0).collect::<Vec<_>>(), expected);
    assert_eq!(step.different_keys(), 8);
    // Word 2 is nowhere in it.
    let fresh = Plain::new(recipe, &[1; 6]);
    for word in [2] {
        for key in [recipe.keys.input(word), recipe.keys.output(word)] {
            assert_eq!(plain.value(key), fresh.value(key));
        }
    }
}

#[test]
fn a_number_that_is_none_is_blamed_on_a_key_and_nothing_is_pushed() {
    for optimizer in [Optimizer::Sgd, Optimizer::AdaGrad] {
        let recipe = recipe(6, Negatives::Window, optimizer);
        for bad in [f32::NAN, f32::INFINITY] {
            let (mut plain, mut step) = (Plain::new(recipe, &[1; 6]), Step::new(recipe));
            let key = recipe.keys.output(1);
            plain.values[key.0 as usize * plain.len] = bad;
            let sentence = sentence();
            let keys = sentence.keys(recipe.keys);
            let failure = step
                .train(&sentence, &keys, LEARNING_RATE, &mut Vec::new(), &mut plain)
                .unwrap_err();
            assert!(
                matches!(failure, StepError::NotFinite(key) if keys.contains(&key) || plain.sampled.contains(&key))
            );
            assert!(plain.pushed.is_empty() && plain.clock == 0);
        }
    }
}

#[test]
fn a_recipe_counts_floats_and_negatives() {
    let sentence = sentence();
    assert_eq!(recipe(6, Negatives::Window, Optimizer::Sgd).value_len(), 5);
    assert_eq!(recipe(6, Negatives::Window, Optimizer::AdaGrad).value_len(), 10);
    assert_eq!(recipe(6, Negatives::Window, Optimizer::Sgd).sampled(&sentence), 2 * 4);
    assert_eq!(recipe(6, Negatives::Pair, Optimizer::Sgd).sampled(&sentence), 2 * 6);
    let shared = recipe(6, Negatives::Sentence, Optimizer::Sgd);
    assert_eq!(
        shared.sampled(&sentence),
        2 * 2,
        "as many as word2vec draws for a word of two pairs"
    );
    let of = |words: usize| {
        let sentence =
            Sentence { places: vec![0; words], windows: vec![1; words], ..sentence.clone() };
        shared.sampled(&sentence)
    };
    assert_eq!([2, 32, 33, 64, 1000].map(of), [4, 4, 8, 8, 32 * 4]);
    let mut value = [0.0; 10];
    task::initial_value(1, Keys { words: 6 }, 5, Key(7), &mut value);
    assert_eq!(value[5..], [AdaGrad::INITIAL; 5]);
}

#[test]
fn a_long_sentence_is_trained_block_by_block_of_equal_parts_with_negatives_of_their_own() {
    let recipe = recipe(6, Negatives::Sentence, Optimizer::Sgd);
    let words = 40_usize;
    let places: Vec<u32> = (0..words as u32).map(|position| position % 3).collect();
    let whole = Sentence { places, windows: vec![1; words], ..sentence() };
    let (mut plain, mut step) = (Plain::new(recipe, &[1; 6]), Step::new(recipe));
    let copy = Plain::new(recipe, &[1; 6]);
    step.train(&whole, &whole.keys(recipe.keys), LEARNING_RATE, &mut Vec::new(), &mut plain)
        .unwrap();
    // Contexts reach over the cut: the parts are given a word more, which has no pairs of its own.
    let mut expected = copy;
    for (part, sampled) in plain.sampled.chunks(4).enumerate() {
        let (first, end) = (part * 20, (part + 1) * 20);
        let with = first.saturating_sub(1)..(end + 1).min(words);
        let windows =
            with.clone().map(|position| u16::from((first..end).contains(&position))).collect();
        let sentence = Sentence { places: whole.places[with].to_vec(), windows, ..sentence() };
        expected.values = shared(recipe, &sentence, &expected, sampled);
    }
    for (found, expected) in plain.values.iter().zip(&expected.values) {
        assert!((found - expected).abs() < 1e-4, "{found}, {expected}");
    }
}
