//! A broken invariant, as the checkers report it.

use core::fmt;

use crate::Check;

/// What a checker found. Tests return it; its text is one line for people.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// Who found it.
    pub check: Check,
    /// The invariant of the protocol, "What must hold": 1 to 12.
    pub invariant: u8,
    /// Where, and what.
    pub what: String,
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {} is broken: {}", self.invariant, self.what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl core::error::Error for Violation {}

/// Returns the [`Violation`] that this checker finds, if it is among `checks`, unless the condition
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
