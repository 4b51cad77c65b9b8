//! [`crate::testing`] of words.

use std::path::Path;

use crate::run::file::CheckpointError;
use crate::wv::analogy::Analogies;
use crate::wv::checkpoint::Checkpoint;
use crate::wv::corpus::Vocabulary;
use crate::wv::error::CorpusError;
use crate::wv::similarity::Similarities;
use crate::wv::text::Text;
use crate::wv::vectors::{Format, Vectors};

/// Returns a text of these bytes.
#[must_use]
pub fn text_of(bytes: &[u8]) -> Text {
    Text::of_bytes(bytes)
}

/// Returns the share `index` of `all` equal ones of a text.
///
/// # Panics
///
/// If memory cannot be read.
#[must_use]
pub fn share_of(text: &Text, index: usize, all: usize) -> Vec<u8> {
    text.share(index, all).and_then(|share| share.bytes()).expect("memory can be read")
}

/// Returns the vocabulary in a file of these bytes.
///
/// # Errors
///
/// As [`Vocabulary::load`].
pub fn vocabulary_of(bytes: &[u8], min_count: u64) -> Result<Vocabulary, CorpusError> {
    Vocabulary::of_bytes(bytes, Path::new("file"), min_count)
}

/// Returns the bytes of a file of `vocabulary`.
///
/// # Panics
///
/// If it cannot be written to memory.
#[must_use]
pub fn vocabulary_bytes(vocabulary: &Vocabulary) -> Vec<u8> {
    let mut bytes = Vec::new();
    vocabulary.write_to(&mut bytes).expect("memory takes all bytes");
    bytes
}

/// Returns the questions in a file of these bytes.
///
/// # Errors
///
/// As [`Analogies::load`].
pub fn questions_of(bytes: &[u8]) -> Result<Analogies, CorpusError> {
    Analogies::of_bytes(bytes, Path::new("file"))
}

/// Returns the pairs of words in a file of these bytes.
///
/// # Errors
///
/// As [`Similarities::load`].
pub fn pairs_of(bytes: &[u8]) -> Result<Similarities, CorpusError> {
    Similarities::of_bytes(bytes, Path::new("file"))
}

/// Returns the vectors in a file of these bytes.
///
/// # Errors
///
/// As [`Vectors::load`].
pub fn vectors_of(bytes: &[u8], format: Format) -> Result<Vectors, CorpusError> {
    Vectors::of_bytes(bytes, Path::new("file"), format)
}

/// Returns the bytes of a file of `vectors`.
///
/// # Panics
///
/// If it cannot be written to memory.
#[must_use]
pub fn vectors_bytes(vectors: &Vectors, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    vectors.write_to(&mut bytes, format).expect("memory takes all bytes");
    bytes
}

/// Returns the trained vectors in a file of these bytes.
///
/// # Errors
///
/// As [`Checkpoint::load`].
pub fn read_word_vectors(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::of_bytes(bytes, Path::new("file"))
}

/// Returns the bytes of a file of trained vectors.
///
/// # Panics
///
/// If it cannot be written to memory.
#[must_use]
pub fn word_vectors_bytes(checkpoint: &Checkpoint) -> Vec<u8> {
    checkpoint.write_to(Vec::new()).expect("memory takes all bytes")
}

/// Returns trained vectors of the words of `vocabulary`, all numbers `value`.
#[must_use]
pub fn word_vectors_of(vocabulary: &Vocabulary, dim: usize, value: f32) -> Checkpoint {
    Checkpoint::new(vocabulary, dim, vec![value; 2 * vocabulary.len() * dim].into())
}
