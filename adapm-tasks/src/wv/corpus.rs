//! A corpus: a text and the words of it that have vectors.
//!
//! Vectors have words that occur often enough, the most frequent first. Words that are equally
//! frequent are in the order of their bytes, so the same text gives the same vocabulary however
//! many threads count it.
//!
//! Negatives are drawn in proportion to their frequency to the power 3/4 (Mikolov et al., NIPS
//! 2013, §2.2).
//!
//! # Departure
//! word2vec draws from a list of 10^8 places, in which a rare word may have none; here every word
//! has its chance.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher as _;
use std::io::{self, Write};
use std::path::Path;

use adapm_runtime::AliasTable;
use adapm_transport::threads;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::data::bytes;
use crate::data::lines::lines;
use crate::kge::Names;
use crate::run::consistency::Digest;
use crate::run::file::{self, CheckpointError};
use crate::wv::error::{CorpusError, LineFault};
use crate::wv::text::{Text, Token, words};

/// A text with its vocabulary.
#[derive(Debug)]
pub struct Corpus {
    text: Text,
    vocabulary: Vocabulary,
    /// Times that words of the vocabulary occur in the text.
    words: u64,
}

impl Corpus {
    /// Returns the words of `text` that occur `min_count` times or more, counted with `threads`
    /// threads. Cost: a pass over the text.
    ///
    /// # Errors
    ///
    /// Fewer than two such words, or no line with two of them.
    pub fn count(text: Text, min_count: u64, threads: usize) -> Result<Self, CorpusError> {
        let vocabulary = Vocabulary::count(&text, min_count, threads)?;
        let words = vocabulary.total();
        Self { text, vocabulary, words }.with_context(min_count)
    }

    /// Returns a text with the words of a vocabulary that was counted elsewhere: its counts decide
    /// what is thinned and how often a word is a negative. Cost: a pass over the text, with
    /// `threads` threads.
    ///
    /// # Errors
    ///
    /// Fewer than two words of the text are in the vocabulary, or no line has two of them.
    pub fn with(text: Text, vocabulary: Vocabulary, threads: usize) -> Result<Self, CorpusError> {
        let count = threads.max(1);
        let counted = |index| {
            let mut known = 0;
            text.share(index, count)?
                .words(|word| known += u64::from(vocabulary.find(word).is_some()))?;
            Ok::<u64, CorpusError>(known)
        };
        let counted = threads::map("adapm count", 0..count, counted).into_iter();
        let found = counted.sum::<Result<u64, CorpusError>>()?;
        if found < 2 {
            let source = text.source().to_string();
            return Err(CorpusError::TooFewWords { source, words: found as usize, min_count: 1 });
        }
        Self { text, vocabulary, words: found }.with_context(1)
    }

    /// Checks that some word has another one beside it, in its line. Cost: the lines before the
    /// first such one.
    fn with_context(self, min_count: u64) -> Result<Self, CorpusError> {
        let mut tokens = self.text.share(0, 1)?.tokens();
        let mut known = 0;
        while let Some(token) = tokens.next().map_err(CorpusError::from)? {
            known = match token {
                Token::LineEnd => 0,
                Token::Word(word) => known + u32::from(self.vocabulary.find(word).is_some()),
            };
            if known == 2 {
                return Ok(self);
            }
        }
        Err(CorpusError::NoContext { source: self.text.source().to_string(), min_count })
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Returns the words.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Times that words of the vocabulary occur in the text: training examples of an epoch.
    #[must_use]
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Describes the corpus so that other ones differ, for processes that have to have the same.
    /// Texts of the same words in another order are not told apart: that would be a pass over all
    /// of it.
    pub(crate) fn describe(&self) -> String {
        let mut digest = Digest::new();
        for (number, count) in self.vocabulary.counts().iter().enumerate() {
            digest.bytes(self.vocabulary.words().bytes(number).unwrap_or_default());
            digest.word(*count);
        }
        let (bytes, different, words) = (self.text.len(), self.vocabulary.len(), self.words);
        format!("{bytes} bytes with {words} of {different} words ({:016x})", digest.sum())
    }
}

/// Words by number, from 0, with how often they occur.
#[derive(Clone)]
pub struct Vocabulary {
    words: Names,
    counts: Vec<u64>,
    total: u64,
    index: HashTable<u32>,
    /// Texts choose the words, so not they decide where words collide.
    hasher: RandomState,
}

impl fmt::Debug for Vocabulary {
    /// Sizes instead of all words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocabulary of {} words, which occur {} times", self.len(), self.total)
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.counts == other.counts
    }
}

impl Vocabulary {
    /// Counts the words of `text` with `threads` threads and keeps those that occur `min_count`
    /// times or more.
    ///
    /// # Errors
    ///
    /// Fewer than two words are left; a text that cannot be read.
    pub fn count(text: &Text, min_count: u64, threads: usize) -> Result<Self, CorpusError> {
        let count = threads.max(1);
        let counted = |index: usize| {
            let mut counts: HashMap<Box<[u8]>, u64, RandomState> = HashMap::default();
            text.share(index, count)?.words(|word| match counts.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(counts.insert(word.into(), 1)),
            })?;
            Ok::<_, CorpusError>(counts)
        };
        let mut parts = threads::map("adapm count", 0..count, counted).into_iter();
        let mut counts = parts.next().transpose()?.unwrap_or_default();
        for part in parts {
            part?.into_iter().for_each(|(word, n)| *counts.entry(word).or_default() += n);
        }
        counts.retain(|_, count| *count >= min_count);
        let counts = counts.iter().map(|(word, count)| (&**word, *count)).collect();
        Self::of(counts, &text.source().to_string(), min_count)
    }

    /// Reads lines `word count` in any order, as [`save`](Self::save) and word2vec write them, and
    /// keeps words of `min_count` or more. word2vec's `</s>`, which counts lines, is no word and
    /// left out.
    ///
    /// # Errors
    ///
    /// A file that is missing or unreadable, a malformed line or a word listed twice (with file,
    /// line, column), fewer than two words.
    pub fn load(path: &Path, min_count: u64) -> Result<Self, CorpusError> {
        Self::of_bytes(&bytes::read(path)?, path, min_count)
    }

    /// Parses the bytes of the file at `path`.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path, min_count: u64) -> Result<Self, CorpusError> {
        let mut counts: HashMap<&[u8], u64, RandomState> = HashMap::default();
        for (line, text) in lines(bytes) {
            let malformed = |at: &[u8], reason| {
                let column = (at.as_ptr() as usize - text.as_ptr() as usize) as u64 + 1;
                CorpusError::Malformed { path: path.to_path_buf(), line, column, reason }
            };
            let mut fields = words(text);
            let (Some(word), Some(count), None) = (fields.next(), fields.next(), fields.next())
            else {
                return Err(malformed(text, LineFault::NotAWordAndCount));
            };
            let number = str::from_utf8(count).ok().and_then(|count| count.parse().ok());
            let Some(number) = number.filter(|number| *number > 0) else {
                return Err(malformed(count, LineFault::NotACount));
            };
            if counts.insert(word, number).is_some() {
                return Err(malformed(word, LineFault::DuplicateWord));
            }
        }
        counts.remove(LINE_END);
        counts.retain(|_, count| *count >= min_count);
        Self::of(counts.into_iter().collect(), &path.display().to_string(), min_count)
    }

    /// Writes a line `word count` for each word, in order.
    ///
    /// # Errors
    ///
    /// What the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        file::save(path, |file| self.write_to(file))
    }

    /// Writes what [`save`](Self::save) does.
    ///
    /// # Errors
    ///
    /// What `writer` refuses.
    pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        for (word, count) in self.iter() {
            writer.write_all(word)?;
            writeln!(writer, " {count}")?;
        }
        writer.flush()
    }

    fn of(
        mut counts: Vec<(&[u8], u64)>,
        source: &str,
        min_count: u64,
    ) -> Result<Self, CorpusError> {
        if counts.len() < 2 {
            let words = counts.len();
            return Err(CorpusError::TooFewWords { source: source.into(), words, min_count });
        }
        // Each has two keys, and evaluation marks places by numbers of words.
        if counts.len() > i32::MAX as usize {
            return Err(CorpusError::TooManyWords { source: source.into() });
        }
        counts.sort_unstable_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then(a.cmp(b)));
        let (mut words, hasher) = (Names::default(), RandomState::default());
        let mut index = HashTable::with_capacity(counts.len());
        for (number, (word, _)) in (0..).zip(&counts) {
            words.push(word);
            let hash =
                |number: &u32| hasher.hash_one(words.bytes(*number as usize).unwrap_or_default());
            index.insert_unique(hasher.hash_one(word), number, hash);
        }
        let counts: Vec<u64> = counts.into_iter().map(|(_, count)| count).collect();
        let total = counts.iter().fold(0_u64, |total, count| total.saturating_add(*count));
        Ok(Self { words, counts, total, index, hasher })
    }

    /// Returns the number of a word.
    #[must_use]
    #[inline]
    pub fn find(&self, word: &[u8]) -> Option<u32> {
        let is_it = |number: &u32| self.words.bytes(*number as usize) == Some(word);
        self.index.find(self.hasher.hash_one(word), is_it).copied()
    }

    /// Returns the number of words, at least two.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there are always words")]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the words by number.
    #[must_use]
    pub fn words(&self) -> &Names {
        &self.words
    }

    /// Returns the number of occurrences of each word, in descending order.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of occurrences of all words.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns all words with their counts, in order.
    fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let word = |number| self.words.bytes(number).expect("there is a word for each count");
        self.counts.iter().enumerate().map(move |(number, count)| (word(number), *count))
    }
}

/// Returns a table that draws words by these counts, which must not be empty or contain 0.
pub(crate) fn negative_table(counts: &[u64]) -> AliasTable {
    AliasTable::new(&negative_weights(counts))
        .expect("a vocabulary has words, and each of them occurs")
}

/// Returns the weight by which each word is drawn as a negative.
pub(crate) fn negative_weights(counts: &[u64]) -> Vec<f64> {
    counts.iter().map(|count| (*count as f64).powf(0.75)).collect()
}

/// The word that word2vec counts at the end of a line.
const LINE_END: &[u8] = b"</s>";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use adapm_runtime::Random;

    use super::*;

    #[test]
    fn a_vocabulary_from_elsewhere_counts_the_words_of_this_text() {
        let vocabulary = || Vocabulary::of_bytes(b"a 10\nb 5\n", Path::new("list"), 1).unwrap();
        for threads in [1, 3] {
            let corpus =
                Corpus::with(Text::of_bytes(b"a c b\na d"), vocabulary(), threads).unwrap();
            assert_eq!((corpus.words(), corpus.vocabulary().total()), (3, 15));
        }
        let error = Corpus::with(Text::of_bytes(b"c d a"), vocabulary(), 1).unwrap_err();
        assert!(matches!(error, CorpusError::TooFewWords { words: 1, .. }));
    }

    #[test]
    fn a_text_in_which_no_word_has_another_beside_it_is_nothing_to_train_on() {
        let count = |text: &[u8], min_count| Corpus::count(Text::of_bytes(text), min_count, 2);
        for (text, min_count) in [(b"a\nb\r\n\nb\na\n".as_slice(), 1), (b"a x\ny b\nb\na\n", 2)] {
            let error = count(text, min_count).unwrap_err();
            assert!(matches!(error, CorpusError::NoContext { .. }), "{error}");
            let expected = format!(
                "nothing to train on: no line of generated sentences (seed 0) has two words that occur {min_count}"
            );
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
        assert!(count(b"a x\ny b\nb\na\nb a", 2).is_ok());
        let vocabulary = Vocabulary::of_bytes(b"a 10\nb 5\n", Path::new("list"), 1).unwrap();
        assert!(matches!(
            Corpus::with(Text::of_bytes(b"a c\nb"), vocabulary, 1),
            Err(CorpusError::NoContext { .. })
        ));
    }

    #[test]
    fn descriptions_differ_where_words_or_counts_do() {
        let describe = |text: &[u8]| Corpus::count(Text::of_bytes(text), 1, 1).unwrap().describe();
        assert_eq!(describe(b"a a b"), describe(b"a b a"));
        assert_ne!(describe(b"a a b"), describe(b"b b a"));
        assert_ne!(describe(b"a a b"), describe(b"a a c"));
        assert_ne!(describe(b"a a b"), describe(b"a a b "));
    }

    fn text(bytes: &[u8]) -> Text {
        Text::of_bytes(bytes)
    }

    fn listed(vocabulary: &Vocabulary) -> Vec<(&[u8], u64)> {
        vocabulary.iter().collect()
    }

    #[test]
    fn words_are_sorted_by_count_then_bytes_whoever_counts() {
        let bytes = b"b a c b\r\n\xff b c d\tc \xff\n a\n".repeat(50);
        let expected: [(&[u8], u64); 5] =
            [(b"b", 150), (b"c", 150), (b"a", 100), (b"\xff", 100), (b"d", 50)];
        for threads in [1, 2, 3, 8, 1000] {
            let vocabulary = Vocabulary::count(&text(&bytes), 1, threads).unwrap();
            assert_eq!(listed(&vocabulary), expected, "{threads}");
            assert_eq!(vocabulary.total(), 550);
        }
        let vocabulary = Vocabulary::count(&text(&bytes), 100, 2).unwrap();
        assert_eq!(listed(&vocabulary), expected[..4]);
        assert_eq!(vocabulary.find(b"\xff"), Some(3));
        assert_eq!((vocabulary.find(b"d"), vocabulary.find(b"")), (None, None));
    }

    #[test]
    fn fewer_than_two_words_are_an_error_that_says_how_many() {
        for (bytes, words) in
            [(b"".as_slice(), 0), (b" \r\n\n", 0), (b"word", 1), (b"one one one", 1)]
        {
            let error = Vocabulary::count(&text(bytes), 1, 2).unwrap_err();
            assert!(
                matches!(&error, CorpusError::TooFewWords { words: found, .. } if *found == words)
            );
            assert_eq!(error.to_string().lines().count(), 1);
        }
        assert!(Vocabulary::count(&text(b"a b a b c"), 2, 1).is_ok());
        assert!(Vocabulary::count(&text(b"a b a c"), 2, 1).is_err());
    }

    #[test]
    fn what_is_saved_is_read_back() {
        let path = std::env::temp_dir().join(format!("adapm-vocabulary-{}", std::process::id()));
        let vocabulary = Vocabulary::count(&text(b"to be or not to be \xfe"), 1, 1).unwrap();
        vocabulary.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"be 2\nto 2\nnot 1\nor 1\n\xfe 1\n");
        assert_eq!(Vocabulary::load(&path, 1).unwrap(), vocabulary);
        assert_eq!(Vocabulary::load(&path, 2).unwrap().len(), 2);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn lists_may_be_in_any_order_and_the_line_end_of_word2vec_is_no_word() {
        let path = Path::new("list");
        let vocabulary = Vocabulary::of_bytes(b"</s> 99\r\nrare 1\r\nthe\t7\n", path, 1).unwrap();
        assert_eq!(listed(&vocabulary), [(b"the".as_slice(), 7), (b"rare", 1)]);
    }

    #[test]
    fn malformed_lines_are_located() {
        let fault = |bytes: &[u8]| match Vocabulary::of_bytes(bytes, Path::new("list"), 1) {
            Err(CorpusError::Malformed { line, column, reason, .. }) => (line, column, reason),
            other => panic!("{other:?}"),
        };
        assert_eq!(fault(b"a 1\nb"), (2, 1, LineFault::NotAWordAndCount));
        assert_eq!(fault(b"a b 1"), (1, 1, LineFault::NotAWordAndCount));
        for count in ["0", "-1", "x", "1.5", "nan", "18446744073709551616"] {
            assert_eq!(
                fault(format!("a 1\n\nbc {count}").as_bytes()),
                (3, 4, LineFault::NotACount)
            );
        }
        assert_eq!(fault(b"a 1\na 2"), (2, 1, LineFault::DuplicateWord));
        let huge = format!("a {}\nb {}", u64::MAX, u64::MAX);
        assert_eq!(
            Vocabulary::of_bytes(huge.as_bytes(), Path::new("list"), 1).unwrap().total(),
            u64::MAX
        );
    }

    /// Chi-square of a million draws of words of these counts against a law.
    fn chi_square(counts: &[u64], law: impl Fn(u64) -> f64) -> f64 {
        let (table, mut random) = (negative_table(counts), Random::new(1));
        let mut seen = vec![0.0_f64; counts.len()];
        (0..DRAWS).for_each(|_| seen[table.draw(&mut random)] += 1.0);
        let total: f64 = counts.iter().map(|count| law(*count)).sum();
        let term = |(seen, count): (&f64, &u64)| {
            let expected = law(*count) / total * DRAWS as f64;
            (seen - expected).powi(2) / expected
        };
        seen.iter().zip(counts).map(term).sum()
    }

    #[test]
    fn words_are_drawn_by_their_frequency_to_the_power_three_quarters() {
        let counts: Vec<u64> = (1..=100).map(|rank| 1_000_000 / rank).collect();
        // With 99 degrees of freedom, 161 is exceeded once in 10^4.
        let found = chi_square(&counts, |count| (count as f64).powf(0.75));
        assert!(found < 161.0, "{found}");
        assert!(chi_square(&counts, |count| count as f64) > 1e4, "another distribution shows");
    }

    const DRAWS: usize = 1_000_000;
}
