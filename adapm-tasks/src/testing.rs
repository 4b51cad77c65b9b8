//! Readers of files and messages of others, to be fed by hand: fuzz targets do (feature `testing`).
//!
//! Not here: anything that opens a file or waits for a process.

pub use crate::kge::testing::{
    check_consistency, checkpoint_bytes, checkpoint_of, conclude, gather, graph_of, read_checkpoint,
};
pub use crate::mf::testing::{factors_bytes, factors_of, ratings_of, read_factors};
pub use crate::wv::testing::{
    pairs_of, questions_of, read_word_vectors, share_of, text_of, vectors_bytes, vectors_of,
    vocabulary_bytes, vocabulary_of, word_vectors_bytes, word_vectors_of,
};
