//! Settings of tests in environment variables.

use std::env;

/// Returns the number in an environment variable; `None` if it is not set.
///
/// # Panics
/// If it is not a number.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: give a number")))
}
