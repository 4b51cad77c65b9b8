//! The spinner of a bar, which turns while nobody reports progress.
//!
//! indicatif turns one itself by a thread whose start panics where no thread can be had, and starts it for hidden bars too.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use adapm_transport::threads;
use indicatif::ProgressBar;

/// Turns until it is dropped, as long as its bar can be seen.
pub(crate) struct Spinner {
    _end: Sender<()>,
}

impl Spinner {
    /// Turns the spinner of `bar`. Without a thread, or if nobody sees the bar, it stands still.
    pub(crate) fn turn(bar: &ProgressBar) -> Self {
        let (end, ended) = mpsc::channel();
        if !bar.is_hidden() {
            let bar = bar.downgrade();
            let turn = move || {
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    let Some(bar) = bar.upgrade() else { return };
                    bar.tick();
                }
            };
            // A bar that stands still is no reason not to go on.
            let _ = threads::spawn("adapm spinner", turn);
        }
        Self { _end: end }
    }
}

/// The time of a step of the spinner.
const TICK: Duration = Duration::from_millis(120);
