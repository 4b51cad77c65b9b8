//! Analogy questions as an evaluation of parameters that stand still: a worker answers its share of the questions, and pulls
//! the vectors of all words for it, a block at a time.

use std::collections::BTreeMap;
use std::ops::Range;

use adapm_core::Key;

use crate::kge::Names;
use crate::run::config::Split;
use crate::run::parameters::Parameters;
use crate::run::task::Examination;
use crate::wv::analogy::{Analogies, AnalogyReport};
use crate::wv::search::{Answer, Search, normalize};

/// Questions about words whose input vectors are the first keys.
pub(crate) struct Answering<'a> {
    analogies: &'a Analogies,
    /// For each question the numbers of its words, if all are known.
    seen: Vec<Option<[u32; 4]>>,
    /// Those of the seen questions: the items.
    questions: Vec<[u32; 4]>,
    dim: usize,
    /// Floats of a value: the vector comes first.
    value_len: usize,
    /// Words that can be answers, the first ones.
    words: u64,
}

impl<'a> Answering<'a> {
    /// Questions about the first `limit` of `words`, which have vectors of `dim`.
    pub(crate) fn new(analogies: &'a Analogies, words: &Names, dim: usize, limit: usize) -> Self {
        let seen = analogies.seen(words, limit);
        let questions = seen.iter().flatten().copied().collect();
        let words = words.len().min(limit) as u64;
        Self { analogies, seen, questions, dim, value_len: dim, words }
    }

    /// The vectors are the first floats of values of `value_len`.
    pub(crate) fn in_values_of(self, value_len: usize) -> Self {
        Self { value_len, ..self }
    }

    /// Pulls the vectors of `keys`, `[keys.len() x dim]`.
    fn pull<P: Parameters>(
        &self,
        parameters: &mut P,
        keys: &[Key],
        vectors: &mut Vec<f32>,
    ) -> Result<(), P::Error> {
        let Self { dim, value_len, .. } = *self;
        vectors.resize(keys.len() * value_len, 0.0);
        parameters.pull(keys, vectors)?;
        if value_len > dim {
            (1..keys.len())
                .for_each(|at| vectors.copy_within(at * value_len..at * value_len + dim, at * dim));
            vectors.truncate(keys.len() * dim);
        }
        Ok(())
    }
}

impl Examination for Answering<'_> {
    type Answer = Answer;
    type Figures = AnalogyReport;
    /// Values that were pulled last.
    type Examiner = Vec<f32>;

    fn split(&self) -> Split {
        Split::Test
    }

    fn items(&self) -> usize {
        self.questions.len()
    }

    fn batch(&self) -> usize {
        QUESTIONS
    }

    fn examiner(&self) -> Vec<f32> {
        Vec::new()
    }

    fn examine<P: Parameters>(
        &self,
        values: &mut Vec<f32>,
        items: Range<usize>,
        parameters: &mut P,
        answers: &mut Vec<Answer>,
    ) -> Result<(), P::Error> {
        let (questions, dim) = (&self.questions[items], self.dim);
        let asked = questions.iter().flat_map(|question| &question[..3]);
        let mut vectors: BTreeMap<u32, Vec<f32>> = asked.map(|word| (*word, Vec::new())).collect();
        for (word, vector) in &mut vectors {
            self.pull(parameters, &[Key(u64::from(*word))], vector)?;
            normalize(vector);
        }
        let mut search = Search::new(questions, dim, |word| vectors[&word].as_slice());
        let mut first = 0;
        while first < self.words {
            let end = self.words.min(first + BLOCK);
            let keys: Vec<Key> = (first..end).map(Key).collect();
            self.pull(parameters, &keys, values)?;
            search.see(first as u32, values);
            first = end;
        }
        answers.extend(search.found());
        Ok(())
    }

    fn figures(&self, answers: &[Answer]) -> AnalogyReport {
        self.analogies.report(&self.seen, answers)
    }
}

/// Questions that are answered together: their share of the work is far more than pulling all words once.
const QUESTIONS: usize = 4096;
/// Words that are pulled together.
const BLOCK: u64 = 4096;
