//! Where measurements hand in their figures, and hear how much to measure.

use std::sync::atomic::{AtomicBool, Ordering};

use adapm_transport::net::Kind;

use super::error::BenchError;
use super::figure::{Figure, Outcome};
use super::host;

/// How much to measure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Small sizes only. Defaults to false.
    pub is_quick: bool,
    /// Links between nodes, besides those within a process. Defaults to all that are built in.
    pub kinds: Vec<Kind>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { is_quick: false, kinds: Kind::ALL.to_vec() }
    }
}

/// Where measurements of a group hand in their figures.
pub(super) struct Desk<'a> {
    pub(super) plan: &'a Plan,
    pub(super) stop: &'a AtomicBool,
    pub(super) tell: &'a mut dyn FnMut(Outcome),
}

impl Desk<'_> {
    /// A figure, told at once.
    pub(super) fn add(&mut self, figure: Figure) -> Result<(), BenchError> {
        (self.tell)(Outcome::Measured(figure));
        self.check()
    }

    /// Whether there is memory for a measurement that needs `bytes`; if not, tells that it is skipped.
    pub(super) fn has_room(&mut self, what: &str, bytes: usize) -> bool {
        let Some(room) = host::memory_available() else { return true };
        // Half is left to everybody else.
        let fits = bytes <= room / 2;
        if !fits {
            let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
            let why = format!(
                "needs {:.1} GiB and at most half of the {:.1} GiB available are taken",
                gib(bytes),
                gib(room)
            );
            (self.tell)(Outcome::Skipped { what: what.to_owned(), why });
        }
        fits
    }

    fn check(&self) -> Result<(), BenchError> {
        if self.stop.load(Ordering::Relaxed) { Err(BenchError::Stopped) } else { Ok(()) }
    }
}
