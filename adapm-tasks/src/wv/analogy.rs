//! Analogy questions: `a` is to `b` as `c` is to which word? Files of questions, and the figures
//! over their answers.
//!
//! A line `: name` begins a section, any other line has four words `a b c d`. Sections whose names
//! begin with `gram` are syntactic, all others semantic (Mikolov et al., ICLR workshop 2013, §4.1).
//! Words are compared without regard to the case of ASCII letters; if several words differ in
//! nothing else, the most frequent is meant.
//!
//! In an evaluation a worker answers its share of the questions ([`Answering`]), and pulls the
//! vectors of all words for it, a block at a time.
//!
//! Not here: the search for the nearest word ([`crate::wv::search`]).

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use adapm_core::Key;

use crate::data::lines::lines;
use crate::data::{bytes, grammar};
use crate::kge::Names;
use crate::run::config::Split;
use crate::run::consistency::Digest;
use crate::run::parameters::Parameters;
use crate::run::task::Evaluation;
use crate::wv::error::{CorpusError, LineFault};
use crate::wv::search::{self, Answer, Search, normalize};
use crate::wv::text::words;
use crate::wv::vectors::Vectors;

/// Questions in sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analogies {
    sections: Vec<Section>,
    questions: Vec<Question>,
    /// All different words, in lower case.
    words: Names,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    name: String,
    kind: SectionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    section: usize,
    /// Numbers of its words in [`Analogies::words`].
    words: [usize; 4],
}

/// The kind of a section's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SectionKind {
    /// Meaning of words.
    Semantic,
    /// Forms of words.
    Syntactic,
}

/// Answers that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Questions.
    pub asked: u64,
    /// Questions whose four words all have vectors.
    pub seen: u64,
    /// Questions answered with the right word.
    pub correct: u64,
    /// Questions to which the word nearest to `c` alone is the right answer: what needs no analogy
    /// ("only-b"; Linzen, RepEval 2016).
    pub baseline: u64,
}

impl Tally {
    /// Returns the share of the seen questions with the right answer; 0 if none is seen.
    #[must_use]
    pub fn accuracy(self) -> f64 {
        self.correct as f64 / self.seen.max(1) as f64
    }

    /// Returns the share of the seen questions to which the word nearest to `c` is the right
    /// answer; 0 if none is seen.
    #[must_use]
    pub fn baseline_accuracy(self) -> f64 {
        self.baseline as f64 / self.seen.max(1) as f64
    }

    /// Returns the share of all questions that are seen; 0 if there is none.
    #[must_use]
    pub fn coverage(self) -> f64 {
        self.seen as f64 / self.asked.max(1) as f64
    }

    /// Returns the share of all questions with the right answer: what is not seen is wrong.
    #[must_use]
    pub fn accuracy_of_all(self) -> f64 {
        self.correct as f64 / self.asked.max(1) as f64
    }

    fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.seen += other.seen;
        self.correct += other.correct;
        self.baseline += other.baseline;
    }
}

/// The answers to a section's questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SectionReport {
    /// The heading.
    pub name: String,
    /// The kind of its questions.
    pub kind: SectionKind,
    /// The tally of its answers.
    pub tally: Tally,
}

/// The answers to all questions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnalogyReport {
    /// By section, in the order of the file.
    pub sections: Vec<SectionReport>,
}

impl AnalogyReport {
    /// Returns all sections together.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.over(|_| true)
    }

    /// Returns the sections of one kind together.
    #[must_use]
    pub fn of_kind(&self, kind: SectionKind) -> Tally {
        self.over(|section| section.kind == kind)
    }

    fn over(&self, counts: impl Fn(&SectionReport) -> bool) -> Tally {
        let mut total = Tally::default();
        self.sections
            .iter()
            .filter(|section| counts(section))
            .for_each(|section| total.add(section.tally));
        total
    }
}

impl Analogies {
    /// Reads a file of questions.
    ///
    /// # Errors
    ///
    /// A file that is missing or unreadable, or a line that is neither heading nor question (with
    /// file, line, column).
    pub fn load(path: &Path) -> Result<Self, CorpusError> {
        Self::of_bytes(&bytes::read(path)?, path)
    }

    /// No questions.
    #[must_use]
    pub fn none() -> Self {
        Self { sections: Vec::new(), questions: Vec::new(), words: Names::default() }
    }

    /// Returns the questions that [`Text::generated`](crate::wv::Text::generated) has answers to,
    /// the same for every seed.
    #[must_use]
    pub fn generated() -> Self {
        let questions = grammar::questions();
        Self::of_bytes(questions.as_bytes(), Path::new("generated")).expect("they are of the form")
    }

    /// Parses the bytes of the file at `path`.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Self, CorpusError> {
        let (mut sections, mut questions) = (Vec::<Section>::new(), Vec::new());
        let (mut all, mut known) = (Names::default(), HashMap::<Vec<u8>, usize>::new());
        for (line, text) in lines(bytes) {
            let text = text.trim_ascii_start();
            if let Some(name) = text.strip_prefix(b":") {
                let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
                let is_syntactic = name.starts_with("gram");
                let kind =
                    if is_syntactic { SectionKind::Syntactic } else { SectionKind::Semantic };
                sections.push(Section { name, kind });
                continue;
            }
            let mut fields = words(text).map(|word| {
                *known.entry(word.to_ascii_lowercase()).or_insert_with_key(|word| {
                    all.push(word);
                    all.len() - 1
                })
            });
            let four = [fields.next(), fields.next(), fields.next(), fields.next()];
            let ([Some(a), Some(b), Some(c), Some(d)], None) = (four, fields.next()) else {
                let (path, reason) = (path.to_path_buf(), LineFault::NotFourWords);
                return Err(CorpusError::Malformed { path, line, column: 1, reason });
            };
            if sections.is_empty() {
                sections.push(Section { name: "questions".into(), kind: SectionKind::Semantic });
            }
            questions.push(Question { section: sections.len() - 1, words: [a, b, c, d] });
        }
        Ok(Self { sections, questions, words: all })
    }

    /// Returns the number of questions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Returns true if there is no question.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Answers all questions with the first `limit` of the vectors, by `threads` threads: with the
    /// word whose vector has the largest cosine with `b - a + c`, of all but `a`, `b` and `c`
    /// (3CosAdd; Mikolov, Yih and Zweig, NAACL 2013).
    ///
    /// Cost: two operations for each seen question, vector and dimension.
    #[must_use]
    pub fn evaluate(&self, vectors: &Vectors, limit: usize, threads: usize) -> AnalogyReport {
        let seen = self.seen(vectors.words(), limit);
        let questions: Vec<[u32; 4]> = seen.iter().flatten().copied().collect();
        let answers = search::answers(vectors, limit, &questions, threads);
        self.report(&seen, &answers)
    }

    /// Describes the questions so that other ones differ, for processes that have to have the same.
    pub(crate) fn describe(&self) -> String {
        let mut digest = Digest::new();
        for question in &self.questions {
            digest.word(question.section as u64);
            question
                .words
                .iter()
                .for_each(|n| digest.bytes(self.words.bytes(*n).unwrap_or_default()));
        }
        format!("{} questions ({:016x})", self.len(), digest.sum())
    }

    /// For each question the numbers of its four words among the first `limit` of `vocabulary`, if
    /// all are there.
    pub(crate) fn seen(&self, vocabulary: &Names, limit: usize) -> Vec<Option<[u32; 4]>> {
        let mut numbers = vec![None; self.words.len()];
        let asked = |number| self.words.bytes(number).expect("below their number");
        let index: HashMap<&[u8], usize> =
            (0..self.words.len()).map(|number| (asked(number), number)).collect();
        let mut lower = Vec::new();
        for (number, word) in
            (0..limit.min(vocabulary.len())).filter_map(|n| Some((n, vocabulary.bytes(n)?)))
        {
            lower.clear();
            lower.extend(word.iter().map(u8::to_ascii_lowercase));
            if let Some(place) = index.get(lower.as_slice()) {
                numbers[*place].get_or_insert(number as u32);
            }
        }
        let four = |question: &Question| {
            let [a, b, c, d] = question.words.map(|word| numbers[word]);
            Some([a?, b?, c?, d?])
        };
        self.questions.iter().map(four).collect()
    }

    /// Returns the figures, if `answers` are the words that answer the questions that are
    /// [`seen`](Self::seen), in their order.
    pub(crate) fn report(&self, seen: &[Option<[u32; 4]>], answers: &[Answer]) -> AnalogyReport {
        let mut tallies = vec![Tally::default(); self.sections.len()];
        let mut answers = answers.iter();
        for (question, seen) in self.questions.iter().zip(seen) {
            let Some([_, _, _, expected]) = seen else {
                tallies[question.section].add(Tally { asked: 1, ..Tally::default() });
                continue;
            };
            let Answer { word, baseline } = answers.next().copied().unwrap_or_default();
            let is_right = |word: Option<u32>| u64::from(word == Some(*expected));
            let (correct, baseline) = (is_right(word), is_right(baseline));
            tallies[question.section].add(Tally { asked: 1, seen: 1, correct, baseline });
        }
        let section = |(Section { name, kind }, tally): (&Section, Tally)| SectionReport {
            name: name.clone(),
            kind: *kind,
            tally,
        };
        AnalogyReport { sections: self.sections.iter().zip(tallies).map(section).collect() }
    }
}

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

impl Evaluation for Answering<'_> {
    type Answer = Answer;
    type Figures = AnalogyReport;
    /// Values that were pulled last.
    type Evaluator = Vec<f32>;

    fn split(&self) -> Split {
        Split::Test
    }

    fn items(&self) -> usize {
        self.questions.len()
    }

    fn batch(&self) -> usize {
        QUESTIONS
    }

    fn evaluator(&self) -> Vec<f32> {
        Vec::new()
    }

    fn evaluate<P: Parameters>(
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

/// Questions that are answered together: their share of the work is far more than pulling all words
/// once.
const QUESTIONS: usize = 4096;
/// Words that are pulled together.
const BLOCK: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Analogies, CorpusError> {
        Analogies::of_bytes(text.as_bytes(), Path::new("questions"))
    }

    fn names(words: &[&str]) -> Names {
        let mut names = Names::default();
        words.iter().for_each(|word| names.push(word.as_bytes()));
        names
    }

    #[test]
    fn headings_begin_sections_and_gram_ones_are_syntactic() {
        let text =
            ": capital-common \r\nAthens Greece  Oslo Norway\n\n:gram1-adverb\na b c d\ne f g h\n";
        let analogies = parsed(text).unwrap();
        assert_eq!(analogies.len(), 3);
        let report = analogies.report(&[None; 3], &[]);
        let sections: Vec<_> = report
            .sections
            .iter()
            .map(|section| (section.name.as_str(), section.kind, section.tally.asked))
            .collect();
        assert_eq!(
            sections,
            [
                ("capital-common", SectionKind::Semantic, 1),
                ("gram1-adverb", SectionKind::Syntactic, 2)
            ]
        );
        assert_eq!(parsed("a b c d").unwrap().sections[0].name, "questions");
        assert!(parsed("").unwrap().is_empty());
    }

    #[test]
    fn lines_without_four_words_are_located() {
        for (text, line) in [("a b c", 1), (": s\na b c d\n\na b c d e", 4), (": s\nx", 2)] {
            let error = parsed(text).unwrap_err();
            let (path, reason) = ("questions".into(), LineFault::NotFourWords);
            assert_eq!(error, CorpusError::Malformed { path, line, column: 1, reason });
        }
    }

    #[test]
    fn case_is_ignored_the_most_frequent_word_is_meant_and_the_rest_is_unseen() {
        let analogies = parsed("A b c d\nd C b a\na b c x\na b c e").unwrap();
        let vocabulary = names(&["c", "D", "a", "d", "B", "e"]);
        let seen = analogies.seen(&vocabulary, 5);
        assert_eq!(seen, [Some([2, 4, 0, 1]), Some([1, 0, 4, 2]), None, None]);
        assert_eq!(analogies.seen(&vocabulary, 6)[3], Some([2, 4, 0, 5]));
    }

    #[test]
    fn accuracy_is_of_seen_questions_and_unseen_ones_count_as_wrong_in_that_of_all() {
        let analogies = parsed(": one\na b c d\na b c e\n: gram two\nd c b a\na b c x").unwrap();
        let seen = analogies.seen(&names(&["a", "b", "c", "d", "e"]), 5);
        let answer = |word, baseline| Answer { word: Some(word), baseline: Some(baseline) };
        let report = analogies.report(&seen, &[answer(3, 4), answer(3, 4), answer(0, 1)]);
        assert_eq!(report.sections[0].tally, Tally { asked: 2, seen: 2, correct: 1, baseline: 1 });
        assert_eq!(
            report.of_kind(SectionKind::Syntactic),
            Tally { asked: 2, seen: 1, correct: 1, baseline: 0 }
        );
        let total = report.total();
        assert_eq!(
            (total.accuracy(), total.coverage(), total.accuracy_of_all()),
            (2.0 / 3.0, 0.75, 0.5)
        );
        assert_eq!(total.baseline_accuracy(), 1.0 / 3.0);
        assert_eq!(Tally::default().accuracy(), 0.0);
    }
}
