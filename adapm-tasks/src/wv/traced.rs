//! Keys of words that are worth tracing.

use adapm_core::Key;

use crate::run::traced::{self, KeyChoice, UnknownKey};
use crate::wv::vocabulary::Vocabulary;

/// What keys can be asked for by name: the input vector of a word, and its output vector.
pub const KEY_KINDS: &[&str] = &["word", "output"];

/// The keys that `choices` name, each with what it is; without choices the input vectors of five words between the most
/// frequent and a typical one.
///
/// # Errors
///
/// The first choice that the vocabulary does not have.
pub fn traced_keys(vocabulary: &Vocabulary, choices: &[KeyChoice]) -> Result<Vec<(Key, String)>, UnknownKey> {
    let (words, counts) = (vocabulary.len(), vocabulary.counts());
    let named = |kind: &'static str, name: &str| {
        let behind = if kind == "output" { words } else { 0 };
        vocabulary.find(name.as_bytes()).map(|word| vec![word as usize + behind])
    };
    let title = |key: usize| {
        format!("{}, {} of {} words", name_of(vocabulary, key), counts[key % words], vocabulary.total())
    };
    traced::chosen(choices, 2 * words, counts, named, title)
}

/// What a key is of: `word sun`, `output vector of word sun`.
pub(crate) fn name_of(vocabulary: &Vocabulary, key: usize) -> String {
    let words = vocabulary.len();
    let kind = if key < words { "word" } else { "output vector of word" };
    format!("{kind} {}", vocabulary.words().text(key % words.max(1)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wv::Text;

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
        assert_eq!(traced_keys(&vocabulary, &[]).unwrap()[0].1, "word a, 3 of 6 words (the most frequent)");
    }
}
