//! Errors of training and evaluation: who is to blame, where, what to do.

use std::convert::Infallible;

use adapm_core::NodeId;
use adapm_core::error::{OneLine, OpError};
use adapm_runtime::{BuildError, RunError};
use adapm_transport::group::GroupError;
use adapm_transport::threads::SpawnError;

use crate::data::DataError;
use crate::partition::PartitionError;
use crate::run::checkpoints::ResumeError;
use crate::run::config::ConfigError;
use crate::run::file::CheckpointError;
use crate::run::shortage::Shortage;

/// An error of a run. Its text is one line: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The caller asked for something impossible.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The data cannot be used.
    #[error("{0}")]
    Data(#[from] DataError),
    /// The checkpoint cannot be used.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// The run cannot have its checkpoints, or go on from one.
    #[error("{0}")]
    Resume(#[from] ResumeError),
    /// The partition of keys and samples cannot be used.
    #[error("{0}")]
    Partition(#[from] PartitionError),
    /// There is nothing to partition.
    #[error(
        "this task has no samples that access keys of their own: there is nothing to partition"
    )]
    NoSamples,
    /// More memory is needed than there is.
    #[error("{0}")]
    Memory(#[source] Shortage),
    /// A task of one's own cannot go on: one line with what, where, what to do.
    #[error("{0}")]
    Own(String),
    /// The cluster cannot be built.
    #[error("{0}")]
    Build(#[from] BuildError),
    /// The cluster failed while it ran.
    #[error("{0}")]
    Run(#[from] RunError),
    /// An operation of a worker failed.
    #[error("{0}")]
    Access(#[from] OpError),
    /// Training produced a number that is not finite.
    #[error(
        "training diverged: the update of {} at step {step} is not a finite number with learning rate \
         {learning_rate:?}; lower it",
        OneLine(name)
    )]
    NotFinite {
        /// Key whose update, or whose example's loss, was not finite.
        key: u64,
        /// The task's name for the key: `entity Q42`, `row 17`, `word sun`.
        name: String,
        /// The worker's clock at the first step of the batch of work: counted from the start of the
        /// run, and with independent negatives in data points, else in chunks.
        step: u64,
        /// The learning rate.
        learning_rate: f32,
    },
    /// Training ended with a value that is not finite, the sum of updates that each are.
    #[error(
        "training diverged: in the end {} has a value that is not a finite number; lower the learning \
         rate",
        OneLine(name)
    )]
    ValueNotFinite {
        /// The key of the value.
        key: u64,
        /// The task's name for the key.
        name: String,
    },
    /// A worker thread panicked; its message went to standard error.
    #[error("a worker thread panicked; see its message above")]
    Panicked,
    /// The operating system refused a thread.
    #[error("{0}")]
    Thread(#[source] SpawnError),
    /// The processes of the run cannot go on together.
    #[error("{0}")]
    Group(#[from] GroupError),
    /// The processes of the run do not mean the same run.
    #[error("node {node} {what}")]
    Mismatch {
        /// The node that differs from the others.
        node: NodeId,
        /// The difference.
        what: Mismatch,
    },
    /// Another process of the run failed.
    #[error("node {node} failed: {}", OneLine(reason))]
    Elsewhere {
        /// The node it is.
        node: NodeId,
        /// Its reason, one line.
        reason: String,
    },
    /// Another process of the run sent a message that cannot be decoded.
    #[error("node {node} sent a message that makes no sense; run the same program on all nodes")]
    Unintelligible {
        /// The node it is.
        node: NodeId,
    },
}

impl TaskError {
    /// Returns true if this process cannot go on because it has lost another.
    pub(crate) fn is_loss(&self) -> bool {
        let is_ended = |error: &RunError| match error {
            RunError::Group(error) => error.is_loss(),
            error => {
                matches!(error, RunError::PeerLost { .. } | RunError::Op(OpError::PeerLost { .. }))
            }
        };
        match self {
            Self::Access(error) => matches!(error, OpError::PeerLost { .. }),
            Self::Group(error) | Self::Build(BuildError::Group(error)) => error.is_loss(),
            Self::Run(error) | Self::Build(BuildError::Run(error)) => is_ended(error),
            _ => false,
        }
    }

    /// Returns the node whose process has told all others that it cannot go on, if that ends this
    /// one.
    pub(crate) fn culprit(&self) -> Option<NodeId> {
        match self {
            Self::Elsewhere { node, .. }
            | Self::Build(BuildError::Process { node, .. })
            | Self::Run(RunError::Process { node, .. }) => Some(*node),
            _ => None,
        }
    }
}

impl From<Infallible> for TaskError {
    fn from(error: Infallible) -> Self {
        match error {}
    }
}

/// A difference of a node from the others. The text continues `node n2 `; some of it is what others
/// say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Its data.
    #[error(
        "has other data: {}, others have {}; give all nodes the same data",
        OneLine(there),
        OneLine(elsewhere)
    )]
    Data {
        /// Its data.
        there: String,
        /// The data of others.
        elsewhere: String,
    },
    /// A choice of its configuration, or its program.
    #[error("{}", differs(name, &OneLine(there), &OneLine(elsewhere)))]
    Setting {
        /// Name of the field, `program` or `task`.
        name: String,
        /// Its choice.
        there: String,
        /// The choice of others.
        elsewhere: String,
    },
}

fn differs(name: &str, there: &OneLine<&String>, elsewhere: &OneLine<&String>) -> String {
    if name == TASK {
        return format!("runs {there}, the others {elsewhere}; start all nodes with the same task");
    }
    format!("has {} {there}, others have {elsewhere}; start all nodes alike", OneLine(name))
}

/// The setting that says what is done.
pub(crate) const TASK: &str = "task";
