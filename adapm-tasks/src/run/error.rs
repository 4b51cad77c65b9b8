//! Why a training or an evaluation failed: who is to blame, where, what to do.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;

use adapm_core::NodeId;
use adapm_core::error::{OneLine, OpError};
use adapm_runtime::{BuildError, RunError};
use adapm_transport::group::GroupError;
use adapm_transport::threads::Refusal;

use crate::data::DataError;
use crate::run::agreement::Disagreement;
use crate::run::config::ConfigError;
use crate::run::file::CheckpointError;
use crate::run::memory::Shortage;

/// Why a run failed. Its text is one line: what, where, what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The caller asked for something impossible.
    Config(ConfigError),
    /// The data cannot be used.
    Data(DataError),
    /// The checkpoint cannot be used.
    Checkpoint(CheckpointError),
    /// More memory is needed than there is.
    Memory(Shortage),
    /// The cluster cannot be built.
    Build(BuildError),
    /// The cluster failed while it ran.
    Run(RunError),
    /// An operation of a worker failed.
    Access(OpError),
    /// Training produced a number that is none.
    NotFinite {
        /// Key whose update, or whose example's loss, was not finite.
        key: u64,
        /// What the task knows the key as: `entity Q42`, `row 17`, `word sun`.
        name: String,
        /// The worker's clock at the first step of the unit of work: counted from the start of the run, and with independent
        /// negatives in data points, else in chunks.
        step: u64,
        /// The learning rate.
        learning_rate: f32,
    },
    /// A worker thread panicked; its message went to standard error.
    Panicked,
    /// The operating system refused a thread.
    Thread(Refusal),
    /// The processes of the run cannot go on together.
    Group(GroupError),
    /// The processes of the run do not mean the same run.
    Disagreement {
        /// The node that differs from the others.
        node: NodeId,
        /// In what.
        what: Disagreement,
    },
    /// Another process of the run failed.
    Elsewhere {
        /// The node it is.
        node: NodeId,
        /// Its reason, one line.
        reason: String,
    },
    /// Another process of the run sent a note that makes no sense.
    Unintelligible {
        /// The node it is.
        node: NodeId,
    },
}

impl Error for TaskError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Data(error) => Some(error),
            Self::Checkpoint(error) => Some(error),
            Self::Memory(shortage) => Some(shortage),
            Self::Build(error) => Some(error),
            Self::Run(error) => Some(error),
            Self::Access(error) => Some(error),
            Self::Group(error) => Some(error),
            Self::Thread(refusal) => Some(refusal),
            Self::Disagreement { .. }
            | Self::NotFinite { .. }
            | Self::Panicked
            | Self::Elsewhere { .. }
            | Self::Unintelligible { .. } => None,
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Data(error) => error.fmt(f),
            Self::Checkpoint(error) => error.fmt(f),
            Self::Memory(shortage) => shortage.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Access(error) => error.fmt(f),
            Self::NotFinite { name, step, learning_rate, .. } => {
                let name = OneLine(name);
                write!(f, "training diverged: the update of {name} at step {step} is not a finite number")?;
                write!(f, " with learning rate {learning_rate:?}; lower it")
            }
            Self::Panicked => f.write_str("a worker thread panicked; see its message above"),
            Self::Group(error) => error.fmt(f),
            Self::Thread(refusal) => refusal.fmt(f),
            Self::Disagreement { node, what } => write!(f, "node {node} {what}"),
            Self::Elsewhere { node, reason } => write!(f, "node {node} failed: {}", OneLine(reason)),
            Self::Unintelligible { node } => {
                write!(f, "node {node} sent a note that makes no sense; run the same program on all nodes")
            }
        }
    }
}

impl From<ConfigError> for TaskError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<DataError> for TaskError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<CheckpointError> for TaskError {
    fn from(error: CheckpointError) -> Self {
        Self::Checkpoint(error)
    }
}

impl From<BuildError> for TaskError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<RunError> for TaskError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<OpError> for TaskError {
    fn from(error: OpError) -> Self {
        Self::Access(error)
    }
}

impl From<GroupError> for TaskError {
    fn from(error: GroupError) -> Self {
        Self::Group(error)
    }
}

impl From<Infallible> for TaskError {
    fn from(error: Infallible) -> Self {
        match error {}
    }
}
