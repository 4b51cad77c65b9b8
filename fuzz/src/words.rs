//! Target `words`: any file is a vocabulary, questions or pairs of words, or is refused at one of
//! its lines; a vocabulary survives writing and reading. The shares of any text add up to the text,
//! and none of them ends within a word.
//!
//! The first byte chooses the kind of file, and whether a further byte stands for itself or for a
//! word. Not here: opening, mapping and decompressing files.

use adapm_tasks::testing::{
    pairs_of, questions_of, share_of, text_of, vocabulary_bytes, vocabulary_of,
};
use adapm_tasks::wv::{CorpusError, Vocabulary};

/// Reads `bytes` as a file. Returns true if it is of the chosen kind.
pub fn words(bytes: &[u8]) -> bool {
    let Some((&form, rest)) = bytes.split_first() else { return false };
    let file = if form & 4 == 0 {
        rest.iter().flat_map(|byte| word(*byte)).collect()
    } else {
        rest.to_vec()
    };
    let read = match form & 3 {
        0 => vocabulary_of(&file, u64::from(form >> 3))
            .map(|vocabulary| check_vocabulary(&vocabulary)),
        1 => questions_of(&file).map(|questions| !questions.is_empty()),
        2 => pairs_of(&file).map(|pairs| !pairs.is_empty()),
        _ => return shares(&file, usize::from(form >> 3) + 1),
    };
    read.unwrap_or_else(|error| {
        assert!(!error.to_string().contains(char::is_control), "an error is one line: {error:?}");
        if let CorpusError::Malformed { line, column, .. } = &error {
            let all = file.split(|byte| *byte == b'\n').count() as u64;
            assert!((1..=all).contains(line) && *column >= 1, "{error}: there is no such place");
        }
        false
    })
}

/// Checks that counts fall, that every word is found at its place, and that writing and reading
/// reproduce the vocabulary.
fn check_vocabulary(vocabulary: &Vocabulary) -> bool {
    assert!(
        vocabulary.len() >= 2 && vocabulary.counts().is_sorted_by(|a, b| a >= b),
        "{vocabulary:?}"
    );
    for index in 0..vocabulary.len() {
        let word = vocabulary.words().bytes(index).expect("there are so many");
        assert_eq!(vocabulary.find(word), Some(index as u32), "{word:?}");
    }
    // A file cannot express a byte order mark at its start that belongs to a word.
    if vocabulary.words().bytes(0).is_some_and(|word| word.starts_with(b"\xef\xbb\xbf")) {
        return true;
    }
    let written = vocabulary_bytes(vocabulary);
    let again = vocabulary_of(&written, 0).expect("what was read can be written");
    assert_eq!(vocabulary_bytes(&again), written, "a vocabulary is read as it is written");
    true
}

/// Checks that shares in order add up to the text, and cut it between words.
fn shares(file: &[u8], all: usize) -> bool {
    let text = text_of(file);
    let shares: Vec<Vec<u8>> = (0..all).map(|index| share_of(&text, index, all)).collect();
    assert_eq!(shares.concat(), file, "{all} shares are the text");
    let is_space = u8::is_ascii_whitespace;
    let words = |bytes: &[u8]| bytes.split(is_space).filter(|word| !word.is_empty()).count();
    assert_eq!(
        shares.iter().map(|share| words(share)).sum::<usize>(),
        words(file),
        "no word is cut"
    );
    all > 1 && !file.is_empty()
}

/// Returns a word or the end of a line, mostly a typical one; random bytes rarely are.
fn word(byte: u8) -> Vec<u8> {
    match byte >> 5 {
        0 => b"\n".to_vec(),
        1 => format!(" {}\n", byte & 31).into_bytes(),
        2 => b"\r\n: gram\n".to_vec(),
        3 => format!("\t{}.5\n", byte & 7).into_bytes(),
        4 => vec![b' ', byte, b',', b'b'],
        _ => format!("w{} ", byte & 31).into_bytes(),
    }
}
