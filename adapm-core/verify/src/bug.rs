//! Planted mistakes by name, to run any suite with one: `ADAPM_BUG=SkipStale cargo test -p adapm-core --test paper`.

use std::env;

pub use adapm_core::planted::{Bug, LinkBug};

/// Returns the bug that the environment variable `ADAPM_BUG` names: what [`crate::Setup::new`] plants in every node.
///
/// # Panics
/// If the variable names neither a bug nor a [`LinkBug`].
#[must_use]
pub fn bug_from_environment() -> Option<Bug> {
    let name = env::var("ADAPM_BUG").ok().filter(|name| !name.is_empty())?;
    let named = Bug::ALL.into_iter().find(|bug| bug.to_string() == name);
    let known = named.is_some() || LinkBug::ALL.iter().any(|bug| bug.to_string() == name);
    assert!(known, "ADAPM_BUG={name}: no such bug; there are {:?} and {:?}", Bug::ALL, LinkBug::ALL);
    named
}

/// Returns the bug of a link session that `ADAPM_BUG` names: what a [`crate::link::Pair`] without another one has.
#[must_use]
pub fn link_bug_from_environment() -> Option<LinkBug> {
    let name = env::var("ADAPM_BUG").ok()?;
    LinkBug::ALL.into_iter().find(|bug| bug.to_string() == name)
}
