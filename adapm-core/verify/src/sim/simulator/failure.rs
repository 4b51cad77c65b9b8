//! Why a run ends badly.

use core::fmt;

use crate::sim::links::Broken;

/// Why a run ended badly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure<V> {
    /// The under_test found something wrong.
    Violation(V),
    /// The links did.
    Links(Broken),
    /// It does not come to rest: who waits for what.
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
