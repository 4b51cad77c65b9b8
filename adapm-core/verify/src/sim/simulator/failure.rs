//! Failures of a run.

use core::fmt;

use crate::sim::links::Broken;

/// The reason that a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure<V> {
    /// The system under test found a violation.
    Violation(V),
    /// The links did.
    Links(Broken),
    /// The run does not come to rest; lists pending work.
    Stuck(String),
}

impl<V: fmt::Display> fmt::Display for Failure<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => violation.fmt(f),
            Self::Links(Broken(what)) => write!(f, "a link is broken: {what}"),
            Self::Stuck(what) => write!(f, "the simulation does not come to rest: {what}"),
        }
    }
}

impl<V: fmt::Display + fmt::Debug> core::error::Error for Failure<V> {}
