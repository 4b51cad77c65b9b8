//! What can be chosen about every run, and which choices make no sense.

use std::fmt;

use adapm_runtime::trace::Tracer;

use crate::System;
use crate::run::named::named;

/// What is chosen about a training run whatever is trained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// `None`: plain arrays, one node, one worker.
    pub(crate) system: Option<System>,
    pub(crate) nodes: usize,
    /// Of each node; `None`: as many as there are cores for.
    pub(crate) workers: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) epochs: u32,
    /// Evaluates what there is to evaluate: valid to select an epoch, test in the end.
    pub(crate) evaluate: bool,
    /// Epochs between two evaluations of valid; positive.
    pub(crate) valid_every: u32,
    pub(crate) trace: Option<&'a Tracer>,
}

/// Which part of the data is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Split {
    /// The part a model is selected on.
    Valid,
    /// The part that is looked at once.
    Test,
}

/// A choice that makes no sense. Its text is one line: what, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// Zero nodes.
    NoNodes,
    /// Zero workers.
    NoWorkers,
    /// More nodes than keys.
    MoreNodesThanKeys {
        /// Nodes asked for.
        nodes: usize,
        /// Keys of the parameters.
        keys: u64,
    },
    /// Dimension 0 or above 65536, or odd for ComplEx.
    Dimension {
        /// The dimension asked for.
        dim: usize,
    },
    /// A number that has to be positive (and finite) is not.
    NotPositive {
        /// Name of the field of the configuration.
        field: &'static str,
    },
    /// Nodes are processes and there is no manager that joins them.
    NoSystem,
    /// There is no example to train on.
    NothingToTrain,
    /// A weight is negative or no finite number.
    Negative {
        /// Name of the field of the configuration.
        field: &'static str,
    },
    /// A number is larger than is supported.
    TooMany {
        /// Name of the field of the configuration.
        field: &'static str,
        /// The largest that is.
        max: usize,
    },
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("0 nodes cannot train; give at least 1"),
            Self::NoWorkers => f.write_str("0 workers cannot train; give at least 1 per node"),
            Self::MoreNodesThanKeys { nodes, keys } => {
                write!(f, "{nodes} nodes for {keys} keys: some would own nothing; give at most {keys} nodes")
            }
            Self::Dimension { dim } => {
                write!(
                    f,
                    "dimension {dim} is impossible; give 1 to 65536 (an even one for the model complex)"
                )
            }
            Self::NotPositive { field } => write!(f, "{field} has to be a positive number"),
            Self::NoSystem => {
                f.write_str("plain arrays are in one process; choose a system, or start one process")
            }
            Self::NothingToTrain => {
                f.write_str("the data has no example to train on; give data with at least one")
            }
            Self::Negative { field } => write!(f, "{field} has to be 0 or a positive number"),
            Self::TooMany { field, max } => write!(f, "{field} can be at most {max}; give fewer"),
        }
    }
}

named!(Split, "valid test", Split::Valid => "valid", Split::Test => "test");
