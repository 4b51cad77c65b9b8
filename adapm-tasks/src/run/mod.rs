//! What every task's run has in common: who takes part, what happens when, what is told, how it
//! ends.
//!
//! ```text
//!   processes:  agree on what is run --> epochs ------------------------------------> evaluate test --> gather
//!   workers:                             train a part | examine a share | copy a part    (kept parameters)
//!                                        in the end: examine test where the parameters are, if no copy is wanted
//! ```
//!
//! A task says what is its own (`task`): its parameters' shape and initial values, how units of
//! work are loaded and announced, what a step does, what the learning rate is, how parameters are
//! judged and which figures are better. It begins a run with an opening, in which all that has to
//! be equal on all nodes crosses once (`agreement`), and then trains or evaluates (`training`). It
//! ends with the kept parameters, which go into a file of its own behind a head common to all
//! (`file`).
//!
//! | a task wants | it says |
//! | --- | --- |
//! | barriers within an epoch (blocks of DSGD) | `rounds`: all workers see all updates of the round before |
//! | another learning rate after each epoch (bold driver) | `learning_rate` from the losses so far |
//! | one that falls with the work done (word2vec) | the same, from what all workers have done |
//! | the best epoch | an `examination` of valid and `is_better` |
//! | the last epoch | no examination of valid |
//! | the same figure on any number of nodes | answers per item, put together in the order of items |
//! | barriers, stop, failure, nodes as processes | nothing |
//!
//! Parameters move as the manager moves them, and all workers of a run wait for each other at the
//! same barriers. Beside the parameters, the first workers of processes exchange a note at the end
//! of a phase (`session`), and decide the same from the same notes. Whatever fails in one process
//! fails in all, with its reason (`peers`).
//!
//! Not here: anything that knows what a key means.

pub(crate) mod agreement;
pub(crate) mod board;
#[cfg(test)]
pub(crate) mod circle;
pub(crate) mod config;
pub(crate) mod crew;
pub(crate) mod error;
pub(crate) mod file;
#[cfg(test)]
pub(crate) mod harness;
pub(crate) mod managed;
pub(crate) mod memory;
pub(crate) mod observer;
pub(crate) mod parameters;
pub(crate) mod peers;
pub(crate) mod queue;
pub(crate) mod session;
pub(crate) mod task;
#[cfg(test)]
mod tests;
pub(crate) mod traced;
pub(crate) mod training;

pub use agreement::Disagreement;
pub use config::{ConfigError, Split, UnknownChoice, Wanted};
pub use error::TaskError;
pub use file::CheckpointError;
pub use memory::Shortage;
pub use observer::{Epoch, ManagerStats, NoProgress, Observer, Training, Work};
pub use traced::{KeyChoice, UnknownKey, UnknownKeyChoice};
