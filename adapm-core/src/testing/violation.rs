//! A broken invariant, as the checkers report it.

use alloc::string::String;
use core::fmt;

/// What a checker found. Tests return it; its text is one line for people.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant of protocol section 8: 1 to 11.
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

/// Returns a [`Violation`] of the invariant unless the condition holds.
macro_rules! hold {
    ($invariant:expr, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::testing::Violation { invariant: $invariant, what: alloc::format!($($what)+) });
        }
    };
}

pub(crate) use hold;
