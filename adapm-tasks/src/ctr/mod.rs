//! Click prediction: the probability of a click from features of an example, by an embedding per
//! feature and dense layers on top of them.
//!
//! ```text
//!   Clicks (files or generated) --> train(): loaders -> workers -> per-epoch selection on valid --> model, AUC on test
//! ```
//!
//! The task of AdaPM App. C and HET-GMP §6. A feature is a key, `[weight | embedding]`; the dense
//! layers are keys of up to 2,048 parameters each, which all nodes need all the time.
//!
//! ```
//! use adapm_tasks::ctr::{Clicks, Hidden, SyntheticConfig, TrainConfig, evaluate, train};
//! use adapm_tasks::run::{ClusterConfig, Run, Split};
//!
//! let mut synthetic = SyntheticConfig::default();
//! (synthetic.examples, synthetic.test_examples, synthetic.features) = (4_000, 500, 1_000);
//! let clicks = Clicks::synthetic(synthetic)?;
//! let mut config = TrainConfig::default();
//! (config.cluster.nodes, config.hidden, config.epochs) = (Some(2), Hidden(vec![16]), Some(2));
//! let trained = train(&clicks, &config, &Run::alone())?;
//!
//! // The same parameters give the same figures on any number of nodes.
//! let model = trained.checkpoint.expect("is asked for by default");
//! let cluster = ClusterConfig::default();
//! let evaluated = evaluate(&clicks, &model, Split::Test, &cluster, &Run::alone())?;
//! assert_eq!(trained.test, evaluated.figures);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
#![doc = include_str!("../../docs/ctr.md")]

mod clicks;
mod config;
mod encoder;
mod examples;
mod form;
mod head;
mod network;
mod predict;
#[cfg(feature = "cli")]
pub(crate) mod program;
mod reader;
mod synthetic;
pub(crate) mod task;
mod training;

pub use clicks::Clicks;
pub use config::{Hidden, Model, TrainConfig};
pub use encoder::Encoder;
pub use form::{Numeric, Schema, SchemaError};
pub use head::Head;
pub use predict::Predictor;
#[cfg(feature = "cli")]
pub use program::Ctr;
pub use reader::{Encoding, Files};
pub use synthetic::SyntheticConfig;
pub use training::{EvalReport, TrainReport, evaluate, train};

/// The name of the task.
pub(crate) const NAME: &str = "ctr";
