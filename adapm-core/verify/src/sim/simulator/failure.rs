//! Failures of a run.

use crate::sim::links::Broken;

/// The reason that a run failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure<V> {
    /// The system under test found a violation.
    #[error("{0}")]
    Violation(V),
    /// The links did.
    #[error("a link is broken: {}", .0.0)]
    Links(Broken),
    /// The run does not come to rest; lists pending work.
    #[error("the simulation does not come to rest: {0}")]
    Stuck(String),
}
