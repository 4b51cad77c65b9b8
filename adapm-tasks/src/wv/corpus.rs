//! What is trained on: a text and the words of it that have vectors.

use adapm_transport::threads;

use crate::run::agreement::Digest;
use crate::wv::error::CorpusError;
use crate::wv::text::{Text, Token};
use crate::wv::vocabulary::Vocabulary;

/// A text with its vocabulary.
#[derive(Debug)]
pub struct Corpus {
    text: Text,
    vocabulary: Vocabulary,
    /// Times that words of the vocabulary occur in the text.
    words: u64,
}

impl Corpus {
    /// The words of `text` that occur `min_count` times or more, counted with `threads` threads. Cost: a pass over the text.
    ///
    /// # Errors
    ///
    /// Fewer than two such words, or no line with two of them.
    pub fn count(text: Text, min_count: u64, threads: usize) -> Result<Self, CorpusError> {
        let vocabulary = Vocabulary::count(&text, min_count, threads)?;
        let words = vocabulary.total();
        Self { text, vocabulary, words }.with_context(min_count)
    }

    /// A text with the words of a vocabulary that was counted elsewhere: its counts decide what is thinned and how often a
    /// word is a negative. Cost: a pass over the text, with `threads` threads.
    ///
    /// # Errors
    ///
    /// Fewer than two words of the text are in the vocabulary, or no line has two of them.
    pub fn with(text: Text, vocabulary: Vocabulary, threads: usize) -> Result<Self, CorpusError> {
        let count = threads.max(1);
        let counted = |index| {
            let mut known = 0;
            text.share(index, count)?.words(|word| known += u64::from(vocabulary.find(word).is_some()))?;
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

    /// Checks that some word has another one beside it, in its line. Cost: the lines before the first such one.
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

    /// The text.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The words.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Times that words of the vocabulary occur in the text: training examples of an epoch.
    #[must_use]
    pub fn words(&self) -> u64 {
        self.words
    }

    /// What tells the corpus apart from others, for processes that have to have the same. Texts of the same words in another
    /// order are not told apart: that would be a pass over all of it.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_vocabulary_from_elsewhere_counts_the_words_of_this_text() {
        let vocabulary = || Vocabulary::of_bytes(b"a 10\nb 5\n", Path::new("list"), 1).unwrap();
        for threads in [1, 3] {
            let corpus = Corpus::with(Text::of_bytes(b"a c b\na d"), vocabulary(), threads).unwrap();
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
}
