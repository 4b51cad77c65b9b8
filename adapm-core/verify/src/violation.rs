//! A broken invariant, as the checkers report it.

use core::fmt;

use crate::Check;

/// A checker's finding, returned by tests; its text is one line.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("invariant {invariant} is broken: {what}")]
pub struct Violation {
    /// The checker that found it.
    pub check: Check,
    /// The invariant of the protocol, "What must hold": 1 to 12.
    pub invariant: u8,
    /// The place and the failure.
    pub what: String,
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the [`Violation`] found by this checker, if it is among `checks`, unless the condition
/// holds.
macro_rules! hold {
    ($checks:expr => $check:ident, $condition:expr, $($what:tt)+) => {
        if $checks.has($crate::Check::$check) && !$condition {
            let check = $crate::Check::$check;
            let what = format!($($what)+);
            return Err($crate::Violation { check, invariant: check.invariant(), what });
        }
    };
}

pub(crate) use hold;
