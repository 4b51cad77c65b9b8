//! The run that all tasks share: topology, phases, messages, ending.
//!
//! ```text
//!   processes:  agree on what is run --> epochs ------------------------------------> evaluate test --> gather
//!   workers:                             train a part | evaluate a share | copy a part    (best parameters)
//!                                        in the end: evaluate test where the parameters are, if no copy is wanted
//! ```
//!
//! A task defines its own parts (`task`): its parameters' shape and initial values, how batches of
//! work are loaded and intent is signaled, what a step does, what the learning rate is, how
//! parameters are judged and which figures are better. It begins a run with a fingerprint, in which
//! all that has to be equal on all nodes crosses once (`consistency`), and then trains or evaluates
//! (`training`). It ends with the best parameters, which go into a file of its own after a head
//! common to all (`file`).
//!
//! | a task wants | it defines |
//! | --- | --- |
//! | barriers within an epoch (blocks of DSGD) | `rounds`: all workers see all updates of the round before |
//! | another learning rate after each epoch (bold driver) | `learning_rate` from the losses so far |
//! | one that falls with the work done (word2vec) | the same, from what all workers have done |
//! | the best epoch | an `evaluation` of valid and `is_better` |
//! | the last epoch | no evaluation of valid |
//! | the same figure on any number of nodes | answers per item, put together in the order of items |
//! | barriers, stop, failure, nodes as processes | nothing |
//!
//! Parameters move as the manager moves them, and all workers of a run wait for each other at the
//! same barriers. Beside the parameters, the first workers of processes exchange a message at the
//! end of a phase (`session`), and decide the same from the same messages. Whatever fails in one
//! process fails in all, with its reason (`peers`).
//!
//! Not here: the meaning of keys.

pub(crate) mod checkpoints;
#[cfg(test)]
pub(crate) mod circle;
pub(crate) mod config;
pub(crate) mod consistency;
pub(crate) mod error;
pub(crate) mod file;
pub mod flags;
#[cfg(test)]
pub(crate) mod harness;
pub(crate) mod hot;
mod inter;
#[cfg(test)]
pub(crate) mod loading;
pub(crate) mod managed;
pub(crate) mod memory;
pub(crate) mod observer;
pub(crate) mod parameters;
pub(crate) mod partial;
pub(crate) mod peers;
pub(crate) mod queue;
pub(crate) mod random;
pub(crate) mod report;
pub(crate) mod saved;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod shortage;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod stored;
pub(crate) mod survey;
pub(crate) mod task;
pub(crate) mod tensors;
#[cfg(test)]
mod tests;
pub(crate) mod topology;
pub(crate) mod traced;
pub(crate) mod training;
pub(crate) mod values;

/// Checks of settings, for [`Config::check`].
pub mod checks {
    pub use crate::run::config::{
        dimension, not_negative, positive, share, share_below_all, whole,
    };
}

pub use crate::partition::{PartitionError, PartitionFile};
pub use checkpoints::{CheckpointFolder, ResumeError};
pub use config::{
    ClusterConfig, Config, ConfigError, Keep, RunConfig, Split, UnknownChoice, Wanted,
};
pub use consistency::Digest;
pub use error::{Mismatch, TaskError};
pub use file::CheckpointError;
pub use flags::Manager;
pub use hot::HotKeysError;
pub use observer::{Epoch, ManagerStats, NoProgress, Observer, Resumption, Training, Work};
pub use parameters::{IntentSignaler, Parameters, SamplingDistribution, Shape};
pub use partial::{Inspected, inspect};
pub use queue::{Cursor, Over, Queue, Round};
pub use random::generator;
pub use report::{EvalReport, TrainReport};
pub use saved::Saved;
pub use shortage::Shortage;
pub use start::Run;
pub use task::{Batch, Course, Evaluation, FiguresOf, Form, Initial, Plain, StepError, Task, Tell};
pub use tensors::Tensor;
pub use topology::WorkerSlot;
pub use traced::{KeyChoice, UnknownKey, UnknownKeyChoice, chosen_keys};
pub use values::Values;
