//! Training word vectors as a run does it: what a loader prepares, what a step does, how the
//! learning rate falls.

use std::sync::Arc;

use adapm_core::update::AdaGrad;
use adapm_core::{Clock, Key};
use adapm_runtime::tables::{Table, Tables};
use adapm_runtime::{AliasTable, Random, Scheme};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::optim::ADAGRAD;
use crate::run::config::{Split, batches_ahead};
use crate::run::error::TaskError;
use crate::run::parameters::{IntentSignaler, Parameters, SamplingDistribution};
use crate::run::queue::{Cursor, Over, Queue};
use crate::run::task::{Batch, Course, FiguresOf, Form, Initial, StepError, Task, Tell};
use crate::run::topology::WorkerSlot;
use crate::run::traced::{KeyChoice, UnknownKey, chosen_keys};
use crate::wv::analogy::{Analogies, Answering};
use crate::wv::config::{Optimizer, TrainConfig};
use crate::wv::corpus::{self, Corpus, Vocabulary};
use crate::wv::sentence::{Judged, Keys, Plan, Sentence, Sentences, keep_thresholds};
use crate::wv::step::{Recipe, Step};
use crate::wv::text::Text;

/// Vectors of a corpus that are trained.
pub(crate) struct WordVectors<'a> {
    corpus: &'a Corpus,
    questions: Option<&'a Analogies>,
    config: &'a TrainConfig,
    /// Of 2^32 occurrences of each word, how many are kept.
    keep_thresholds: Vec<u32>,
    negatives: Arc<AliasTable>,
    judged: Judged,
}

/// The state of a worker's loader thread.
pub(crate) struct Loader<'a> {
    text: &'a Text,
    slot: WorkerSlot,
}

/// The work of a step, with the keys that intent was signaled for.
#[derive(Debug)]
pub(crate) struct SentenceBatch<S> {
    what: What<S>,
    keys: Vec<Key>,
    clock: Clock,
}

#[derive(Debug)]
enum What<S> {
    /// Trains on a sentence, with negatives of a sample.
    Train(Sentence, S),
    /// Evaluates the vectors on the passage of this number.
    Judge(usize),
}

impl<S> Batch<S> for SentenceBatch<S> {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn examples(&self) -> u64 {
        match &self.what {
            What::Train(sentence, _) => sentence.read,
            What::Judge(_) => 0,
        }
    }

    fn sample(&mut self) -> Option<&mut S> {
        match &mut self.what {
            What::Train(_, sample) => Some(sample),
            What::Judge(_) => None,
        }
    }
}

impl<'a> WordVectors<'a> {
    /// Vectors of the words of `corpus`, about which `questions` are asked.
    ///
    /// # Errors
    ///
    /// A text that cannot be read.
    pub(crate) fn new(
        corpus: &'a Corpus,
        questions: Option<&'a Analogies>,
        config: &'a TrainConfig,
    ) -> Result<Self, TaskError> {
        let vocabulary = corpus.vocabulary();
        let keep_thresholds = keep_thresholds(vocabulary, config.sample);
        let negatives = Arc::new(corpus::negative_table(vocabulary.counts()));
        let judged = Judged::draw(corpus, &plan(corpus, config, &keep_thresholds), &negatives)?;
        Ok(Self { corpus, questions, config, keep_thresholds, negatives, judged })
    }

    fn recipe(&self) -> Recipe {
        let TrainConfig { dim, negatives, drawn, window, optimizer, .. } = *self.config;
        Recipe { keys: self.keys(), dim, negatives, drawn, window, optimizer }
    }

    /// Returns the keys that are sampled for a word, on average over the first sentences: how many
    /// share negatives depends on how long these are.
    fn sampled_for_word(&self) -> f64 {
        let (recipe, plan) = (self.recipe(), plan(self.corpus, self.config, &self.keep_thresholds));
        // A text that cannot be read ends the run where it is trained on.
        let Ok(share) = self.corpus.text().share(0, 1) else { return 0.0 };
        let sentences = Sentences::new(plan, &share, 0, 1).take(SENTENCES_COUNTED);
        let (sampled, words) =
            sentences.filter_map(Result::ok).fold((0, 0), |(all, words), one| {
                (all + recipe.sampled(&one), words + one.places.len())
            });
        sampled as f64 / words.max(1) as f64
    }

    fn keys(&self) -> Keys {
        Keys { words: self.corpus.vocabulary().len() as u64 }
    }
}

/// Returns the plan of drawing sentences.
fn plan<'p>(corpus: &'p Corpus, config: &TrainConfig, keep_thresholds: &'p [u32]) -> Plan<'p> {
    Plan {
        vocabulary: corpus.vocabulary(),
        keep_thresholds,
        window: config.window,
        seed: config.run.seed,
    }
}

impl<'a> Task for WordVectors<'a> {
    type Batch<S: Send> = SentenceBatch<S>;
    type Loader = Loader<'a>;
    type WorkerState = Step;
    type Evaluation = Answering<'a>;

    fn tables(&self) -> Tables {
        let (words, dim) = (self.keys().words, self.config.dim);
        let state = self.recipe().value_len() - dim;
        let table = |name| Table::new(name, words, dim).with_state(ADAGRAD, state);
        Tables::new(["inputs", "outputs"].map(table)).expect("names are there once")
    }

    fn initial(&self) -> Initial {
        let (seed, dim, keys) = (self.config.run.seed, self.config.dim, self.keys());
        Arc::new(move |key, value| initial_value(seed, keys, dim, key, value))
    }

    fn name_of(&self, key: Key) -> String {
        name_of(self.corpus.vocabulary(), key.0 as usize)
    }

    /// Words as often as they are kept, with both their vectors; output vectors as negatives, too.
    fn frequencies(&self) -> Option<Vec<f64>> {
        let counts = self.corpus.vocabulary().counts();
        let kept = |(count, threshold): (&u64, &u32)| {
            // A threshold that is all but one of 2^32 keeps all.
            *count as f64 * (f64::from(*threshold) + 1.0) / 2.0_f64.powi(32)
        };
        let kept: Vec<f64> = counts.iter().zip(&self.keep_thresholds).map(kept).collect();
        let weights = corpus::negative_weights(counts);
        let negatives = self.sampled_for_word() * kept.iter().sum::<f64>();
        let of_weight = negatives / weights.iter().sum::<f64>();
        let drawn = kept.iter().zip(&weights).map(|(kept, weight)| kept + weight * of_weight);
        let outputs: Vec<f64> = drawn.collect();
        Some([kept, outputs].concat())
    }

    fn sampling_distribution(&self) -> Option<SamplingDistribution> {
        let (negatives, keys) = (Arc::clone(&self.negatives), self.keys());
        let range = Key(keys.words)..Key(2 * keys.words);
        let draw = move |random: &mut Random| keys.output(negatives.draw(random) as u32);
        Some(SamplingDistribution::By(range, Arc::new(draw)))
    }

    fn scheme(&self) -> Option<Scheme> {
        self.config.sampling()
    }

    /// Sentences, with both vectors of their words, as one worker has them in its first epoch.
    fn samples(&self, each: &mut dyn FnMut(&[Key])) -> Result<bool, TaskError> {
        let plan = plan(self.corpus, self.config, &self.keep_thresholds);
        let share = self.corpus.text().share(0, 1)?;
        for sentence in Sentences::new(plan, &share, 0, 1) {
            each(&sentence?.keys(self.keys()));
        }
        Ok(true)
    }

    fn examples(&self) -> u64 {
        self.corpus.words()
    }

    fn judged(&self) -> Option<u64> {
        Some(self.judged.pairs())
    }

    /// The second round evaluates what the first has trained.
    fn rounds(&self) -> u32 {
        2
    }

    fn prefetch_depth(&self) -> usize {
        batches_ahead(self.config, self.config.ahead)
    }

    fn loader(&self, slot: WorkerSlot, _: &Tell<'_>) -> Loader<'a> {
        Loader { text: self.corpus.text(), slot }
    }

    fn load<A: IntentSignaler>(
        &self,
        loader: &mut Loader<'a>,
        Cursor { round, batch, mut clock }: Cursor,
        signaler: &mut A,
        queue: &Queue<SentenceBatch<A::Sample>>,
    ) -> Result<Clock, Over> {
        let WorkerSlot { number, all, .. } = loader.slot;
        let keys = self.keys();
        if round.index == 1 {
            for (passage, judged) in self.judged.of_worker(number, all).skip(batch) {
                let keys = judged.keys(keys);
                signaler.signal_intent(&keys, clock..clock + 1)?;
                queue.send(SentenceBatch { what: What::Judge(passage), keys, clock })?;
                clock = clock + 1;
            }
            return Ok(clock);
        }
        let (recipe, plan) = (self.recipe(), plan(self.corpus, self.config, &self.keep_thresholds));
        let share = loader.text.share(number, all).map_err(TaskError::from)?;
        let mut sentences = Sentences::new(plan, &share, number, round.epoch);
        // Those before the start are read, too: where they end depends on which words were kept.
        for sentence in sentences.by_ref().take(batch) {
            sentence.map_err(TaskError::from)?;
        }
        for sentence in sentences {
            let sentence = sentence.map_err(TaskError::from)?;
            let (window, keys) = (clock..clock + 1, sentence.keys(keys));
            let sample = signaler.prepare_sample(recipe.sampled(&sentence), window.clone())?;
            signaler.signal_intent(&keys, window)?;
            queue.send(SentenceBatch { what: What::Train(sentence, sample), keys, clock })?;
            clock = clock + 1;
        }
        Ok(clock)
    }

    fn worker_state(&self) -> Step {
        Step::new(self.recipe())
    }

    /// With `sgd` a line from the start to [`RATE_LEFT_MIN`] of it, by the words that all workers
    /// have done.
    fn learning_rate(&self, course: &Course<'_>) -> f32 {
        let start = self.config.learning_rate;
        match self.config.optimizer {
            Optimizer::AdaGrad => start,
            Optimizer::Sgd => {
                let all = course.examples.max(1) as f64;
                let epochs = f64::from(course.epoch - 1) + course.done as f64 / all;
                let left = 1.0 - epochs / f64::from(course.epochs);
                start * (left as f32).max(RATE_LEFT_MIN)
            }
        }
    }

    fn train<P: Parameters>(
        &self,
        step: &mut Step,
        batch: &mut SentenceBatch<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        match &mut batch.what {
            What::Train(sentence, sample) => {
                step.train(sentence, &batch.keys, learning_rate, sample, parameters)?;
                Ok(0.0)
            }
            What::Judge(passage) => {
                step.judge(self.judged.passage(*passage), &batch.keys, parameters)
            }
        }
    }

    fn evaluation(
        &self,
        split: Split,
        form: Form,
        _: Option<&FiguresOf<Self>>,
    ) -> Option<Answering<'a>> {
        // No part of a text is held out, so no epoch is better than the last.
        let questions = self.questions.filter(|_| split == Split::Test)?;
        let (words, dim) = (self.corpus.vocabulary().words(), self.config.dim);
        let value_len = match form {
            Form::Trained => self.recipe().value_len(),
            Form::Best => dim,
        };
        Some(Answering::new(questions, words, dim, usize::MAX).in_values_of(value_len))
    }

    fn is_better(&self, figures: &FiguresOf<Self>, best: &FiguresOf<Self>) -> bool {
        figures.total().accuracy() > best.total().accuracy()
    }
}

/// The kinds of keys that can be asked for by name: the input vector of a word, and its output
/// vector.
pub const KEY_KINDS: &[&str] = &["word", "output"];

/// Returns the keys that `choices` name, each with what it is; without choices the input vectors of
/// five words between the most frequent and a typical one.
///
/// # Errors
///
/// The first choice that the vocabulary does not have.
pub fn traced_keys(
    vocabulary: &Vocabulary,
    choices: &[KeyChoice],
) -> Result<Vec<(Key, String)>, UnknownKey> {
    let (words, counts) = (vocabulary.len(), vocabulary.counts());
    let named = |kind: &'static str, name: &str| {
        let behind = if kind == "output" { words } else { 0 };
        vocabulary.find(name.as_bytes()).map(|word| vec![word as usize + behind])
    };
    let title = |key: usize| {
        format!(
            "{}, {} of {} words",
            name_of(vocabulary, key),
            counts[key % words],
            vocabulary.total()
        )
    };
    chosen_keys(choices, 2 * words, counts, named, title)
}

/// Names a key: `word sun`, `output vector of word sun`.
pub(crate) fn name_of(vocabulary: &Vocabulary, key: usize) -> String {
    let words = vocabulary.len();
    let kind = if key < words { "word" } else { "output vector of word" };
    format!("{kind} {}", vocabulary.words().text(key % words.max(1)).unwrap_or_default())
}

/// Fills a value: an input vector uniform in -0.5 / dim to 0.5 / dim, an output vector 0, AdaGrad's
/// accumulator after it if the value is twice as long as a vector. Depends on seed and key alone,
/// so that any node can compute any of them.
pub(crate) fn initial_value(seed: u64, keys: Keys, dim: usize, key: Key, value: &mut [f32]) {
    let (vector, accumulator) = value.split_at_mut(dim);
    accumulator.fill(AdaGrad::INITIAL);
    vector.fill(0.0);
    if key.0 < keys.words {
        // Keys are spread over the seeds by a multiplication; the generator mixes its seed itself.
        let place = key.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ place);
        vector.fill_with(|| (random.random::<f32>() - 0.5) / dim as f32);
    }
}

/// Sentences in which samples are counted.
const SENTENCES_COUNTED: usize = 1_000;

/// The share of the learning rate that is left in the end, word2vec's.
const RATE_LEFT_MIN: f32 = 1e-4;

#[cfg(test)]
mod tests {
    use adapm_runtime::System;

    use super::*;
    use crate::run::loading::assert_begins_anywhere;
    use crate::run::{ClusterConfig, RunConfig};
    use crate::wv::Text;

    #[test]
    fn the_learning_rate_falls_in_a_line_over_all_epochs_to_its_floor_and_adagrads_does_not() {
        let corpus = Corpus::count(Text::of_bytes(&b"a b ".repeat(50)), 1, 1).unwrap();
        let rate = |optimizer, epoch, done| {
            let config = TrainConfig { optimizer, learning_rate: 0.5, ..TrainConfig::default() };
            let task = WordVectors::new(&corpus, None, &config).unwrap();
            let course = Course { epoch, epochs: 4, done, examples: task.examples(), losses: &[] };
            task.learning_rate(&course)
        };
        let sgd = |epoch, done| rate(Optimizer::Sgd, epoch, done);
        assert_eq!([sgd(1, 0), sgd(1, 100), sgd(3, 0), sgd(4, 50)], [0.5, 0.375, 0.25, 0.0625]);
        assert_eq!([sgd(4, 100), sgd(4, 200)], [0.5e-4; 2], "never nothing");
        assert_eq!(rate(Optimizer::AdaGrad, 4, 100), 0.5);
    }

    #[test]
    fn a_loader_begins_at_any_sentence_of_any_epoch() {
        let corpus = Corpus::count(Text::generated(1, 120), 1, 1).unwrap();
        for (seed, system) in [(1, System::Adapm), (2, System::Lapse)] {
            let system = Some(system);
            let run = RunConfig { seed, ..RunConfig::default() };
            let cluster = ClusterConfig { system, ..ClusterConfig::default() };
            let config = TrainConfig { run, cluster, sample: 0.01, ..TrainConfig::default() };
            let task = WordVectors::new(&corpus, None, &config).unwrap();
            for workers in [&[1][..], &[2, 2], &[2, 1]] {
                for slot in WorkerSlot::all_of(workers, true) {
                    let batches = assert_begins_anywhere(&task, slot, 2);
                    assert!(batches > 20, "{batches}");
                }
            }
        }
    }

    #[test]
    fn negatives_are_output_vectors() {
        let corpus = Corpus::count(Text::of_bytes(b"a b c a b a"), 1, 1).unwrap();
        let config = TrainConfig::default();
        let distribution =
            WordVectors::new(&corpus, None, &config).unwrap().sampling_distribution().unwrap();
        let mut random = Random::new(1);
        let mut seen = [0; 3];
        (0..1000).for_each(|_| seen[distribution.draw(&mut random).0 as usize - 3] += 1);
        assert!(seen[0] > seen[1] && seen[1] > seen[2] && seen[2] > 0, "{seen:?}");
    }

    #[test]
    fn a_word_has_a_key_for_each_of_its_vectors() {
        let vocabulary = Vocabulary::count(&Text::of_bytes(b"b a a a b c"), 1, 1).unwrap();
        let keys = |text: &str| {
            let choices = KeyChoice::list(text, KEY_KINDS).expect("choices");
            traced_keys(&vocabulary, &choices)
        };
        let found = keys("word:b,output:a,key:5").unwrap();
        let expected = ["word b, 2 of 6 words", "output vector of word a, 3 of 6 words"];
        assert_eq!(found.iter().map(|(key, _)| key.0).collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!([&found[0].1, &found[1].1], expected);
        let refused = ["word:d", "key:6"].map(|text| keys(text).unwrap_err().to_string());
        assert_eq!(
            refused,
            ["no word d in the data; give a name as in its files", "no key 6; keys are 0 to 5"]
        );
        assert_eq!(
            traced_keys(&vocabulary, &[]).unwrap()[0].1,
            "word a, 3 of 6 words (the most frequent)"
        );
    }

    #[test]
    fn inputs_are_small_and_different_and_outputs_are_zero() {
        let of = |seed, key| {
            let mut cells = vec![9.0; 200];
            initial_value(seed, Keys { words: 10 }, 100, Key(key), &mut cells);
            cells
        };
        assert_eq!(of(1, 3), of(1, 3));
        assert_ne!(of(1, 3), of(1, 4));
        assert_ne!(of(1, 3), of(2, 3));
        assert!(of(1, 9)[..100].iter().all(|x| x.abs() <= 0.005));
        assert!(of(1, 9)[..100].iter().any(|x| x.abs() > 0.004));
        assert_eq!(of(1, 10)[..100], [0.0; 100]);
        assert_eq!(of(1, 10)[100..], [AdaGrad::INITIAL; 100]);
    }
}
