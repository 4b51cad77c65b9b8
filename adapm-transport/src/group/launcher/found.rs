//! What a launcher has left for the processes that it started.

use crate::group::config::Rendezvous;

/// A value and the flag or variable that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// The name of the flag or variable.
    pub origin: &'static str,
}

/// What a launcher says. Any part may be missing.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) launcher: &'static str,
    pub(super) node: Option<Sourced<usize>>,
    pub(super) nodes: Option<Sourced<usize>>,
    pub(super) rendezvous: Option<Sourced<Rendezvous>>,
    /// The number is an index that says nothing about others.
    pub(super) index_only: bool,
    /// What tells this run from others of the same launcher.
    pub(super) job: Option<String>,
}
