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
//! use std::sync::atomic::AtomicBool;
//!
//! use adapm_tasks::run::{NoProgress, TaskError};
//! use adapm_tasks::wv::{Analogies, Corpus, EvalConfig, Text, TrainConfig, evaluate, train};
//!
//! let corpus = Corpus::count(Text::generated(1, 500), 2, 1).expect("there are words");
//! let mut config = TrainConfig::default();
//! (config.nodes, config.dim, config.epochs, config.learning_rate) = (2, 8, Some(3), 0.2);
//! let (questions, stop) = (Analogies::generated(), AtomicBool::new(false));
//! let trained = train(&corpus, Some(&questions), &config, &NoProgress, &stop)?;
//! assert!(trained.epochs[2].loss < trained.epochs[0].loss);
//!
//! // The same vectors give the same answers on any number of nodes.
//! let mut config = EvalConfig::default();
//! config.nodes = 3;
//! let checkpoint = trained.checkpoint.expect("is asked for by default");
//! let evaluated = evaluate(&checkpoint.vectors(), &questions, &config, &NoProgress, &stop)?;
//! assert_eq!(trained.analogies, evaluated.analogies);
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
pub use similarity::{Similarities, SimilarityReport};
pub use task::{KEY_KINDS, traced_keys};
pub use text::{Text, TextSource};
pub use training::{EvalReport, TrainReport, evaluate, evaluate_in_group, train, train_in_group};
pub use vectors::{Format, VectorForm, Vectors};
