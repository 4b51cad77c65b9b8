//! Word vectors: skip-gram with negative sampling (Mikolov et al., NIPS 2013), two vectors per
//! word.
//!
//! ```text
//!   Text (mapped, decompressed, generated) --> Corpus --> train(): loaders -> workers --> Checkpoint --> Vectors (export)
//!                                                                                            |
//!   Analogies ------------------------------------------------------------> evaluate() <-----+
//! ```
//!
//! The task of AdaPM §5.1. The input vector of word `w` is key `w`, its output vector is key
//! `words + w`. Every worker reads its own share of the text; a sentence is a step, and
//! intent for its words is signaled when it is read, long before its turn.
//!
//! ```
//! use adapm_tasks::run::{Run, TaskError};
//! use adapm_tasks::wv::{Analogies, Corpus, EvalConfig, Text, TrainConfig, evaluate, train};
//!
//! let corpus = Corpus::count(Text::generated(1, 500), 2, 1).expect("there are words");
//! let mut config = TrainConfig::default();
//! (config.cluster.nodes, config.dim, config.epochs) = (Some(2), 8, Some(3));
//! config.learning_rate = 0.2;
//! let questions = Analogies::generated();
//! let trained = train(&corpus, Some(&questions), &config, &Run::alone())?;
//! assert!(trained.epochs[2].loss < trained.epochs[0].loss);
//!
//! // The same vectors give the same answers on any number of nodes.
//! let mut config = EvalConfig::default();
//! config.cluster.nodes = Some(3);
//! let checkpoint = trained.checkpoint.expect("is asked for by default");
//! let evaluated = evaluate(&checkpoint.vectors(), &questions, &config, &Run::alone())?;
//! assert_eq!(trained.test, evaluated.figures);
//! # Ok::<(), TaskError>(())
//! ```
//!
#![doc = include_str!("../../docs/wv.md")]

mod analogy;
pub(crate) mod blocks;
mod checkpoint;
mod config;
mod corpus;
mod error;
pub(crate) mod kernel;
mod predict;
#[cfg(feature = "cli")]
pub(crate) mod program;
mod search;
mod sentence;
mod similarity;
mod step;
pub(crate) mod task;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod text;
mod training;
mod vectors;

pub use analogy::{Analogies, AnalogyReport, SectionKind, SectionReport, Tally};
pub use checkpoint::Checkpoint;
pub use config::{EvalConfig, Negatives, Optimizer, TrainConfig};
pub use corpus::{Corpus, Vocabulary};
pub use error::{CorpusError, LineFault, VectorFault};
pub use predict::{Neighbour, Predictor, Query};
#[cfg(feature = "cli")]
pub use program::Wv;
pub use similarity::{Similarities, SimilarityReport};
pub use task::{KEY_KINDS, traced_keys};
pub use text::{Text, TextSource};
pub use training::{EvalReport, TrainReport, evaluate, train};
pub use vectors::{Format, VectorForm, Vectors};
