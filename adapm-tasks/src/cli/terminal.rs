//! The two streams that people may look at: whether they do, and how wide they see them.

use std::env;

use console::Term;

use crate::cli::launched;

/// One of the two streams of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// Returns true if this stream takes more than plain lines: it is a terminal that supports
    /// control codes, and `NO_COLOR` is not set. All others get neither control
    /// codes nor carriage returns.
    pub(crate) fn is_attended(self) -> bool {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        self.term().features().is_attended()
            && env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
            && !is_set("NO_COLOR")
    }

    /// Columns of the terminal; without one what `COLUMNS` says, else 80.
    pub(crate) fn width(self) -> usize {
        let term = self.term();
        let seen = term.features().is_attended().then(|| term.size_checked()).flatten();
        let told = || env::var("COLUMNS").ok()?.parse().ok();
        let width =
            seen.map(|(_, columns)| usize::from(columns)).filter(|width| *width > 0).or_else(told);
        // The launcher of this process puts the name of the node in front of each line.
        let before = if self == Self::Stderr && launched::is_launched() { PREFIX } else { 0 };
        width.unwrap_or(WIDTH).max(WIDTH_MIN) - before
    }

    fn term(self) -> Term {
        match self {
            Self::Stdout => Term::stdout(),
            Self::Stderr => Term::stderr(),
        }
    }
}

const WIDTH: usize = 80;
/// The least width that is laid out.
const WIDTH_MIN: usize = 40;
/// `n12 | `.
pub(crate) const PREFIX: usize = 6;
