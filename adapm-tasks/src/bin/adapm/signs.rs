//! Signs of life where there is no bar: a line that says what goes on, once nothing was printed for a while.

use adapm_transport::threads;
use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Prints what goes on to stderr when it has been silent for long. Ends when dropped.
pub(crate) struct Signs {
    step: Arc<Mutex<Step>>,
    /// Whoever waits at the other end leaves when this goes.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What goes on, and since when nobody has heard of it.
#[derive(Debug)]
struct Step {
    text: Option<String>,
    last: Instant,
}

impl Signs {
    /// Signs, or if they are not wanted, none.
    pub(crate) fn new(wanted: bool) -> Self {
        let step = Arc::new(Mutex::new(Step { text: None, last: Instant::now() }));
        let (end, ended) = mpsc::channel();
        let shared = Arc::clone(&step);
        let print = move || {
            let mut wait = SILENCE_MAX;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let line;
                (line, wait) = lock(&shared).look(Instant::now());
                // Lines are for people: if stderr is closed, nobody misses them.
                line.into_iter().for_each(|line| drop(writeln!(io::stderr(), "{line}")));
            }
        };
        // Without a thread it stays silent, which is no reason not to go on.
        let thread = wanted.then(|| threads::spawn("adapm signs", print).ok());
        Self { step, end: Some(end), thread: thread.flatten() }
    }

    /// From here on this goes on.
    pub(crate) fn step(&self, text: impl FnOnce() -> String) {
        if self.thread.is_some() {
            lock(&self.step).text = Some(text());
        }
    }

    /// Something else was printed.
    pub(crate) fn printed(&self) {
        lock(&self.step).last = Instant::now();
    }
}

impl Drop for Signs {
    fn drop(&mut self) {
        self.end = None;
        // It does nothing that could fail.
        self.thread.take().map(JoinHandle::join);
    }
}

impl Step {
    /// The line that is due, if one is, and how long to wait before the next look.
    fn look(&mut self, now: Instant) -> (Option<String>, Duration) {
        let silence = now.saturating_duration_since(self.last);
        if silence < SILENCE_MAX {
            return (None, SILENCE_MAX - silence);
        }
        self.last = now;
        (self.text.clone(), SILENCE_MAX)
    }
}

fn lock(step: &Mutex<Step>) -> MutexGuard<'_, Step> {
    step.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest silence.
const SILENCE_MAX: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_after_a_silence_and_not_sooner() {
        let start = Instant::now();
        let mut step = Step { text: None, last: start };
        assert_eq!(step.look(start + SILENCE_MAX / 3), (None, SILENCE_MAX - SILENCE_MAX / 3));
        assert_eq!(step.look(start + SILENCE_MAX), (None, SILENCE_MAX), "there is nothing to say");
        step.text = Some("reading".to_owned());
        assert_eq!(step.look(start + SILENCE_MAX * 3 / 2), (None, SILENCE_MAX / 2));
        assert_eq!(step.look(start + SILENCE_MAX * 2), (Some("reading".to_owned()), SILENCE_MAX));
        assert_eq!(step.look(start + SILENCE_MAX * 3), (Some("reading".to_owned()), SILENCE_MAX));
    }

    #[test]
    fn signs_end_when_they_are_dropped() {
        let signs = Signs::new(true);
        signs.step(|| "of the test".to_owned());
        signs.printed();
        drop(signs);
        Signs::new(false).step(|| panic!("nobody wants to know"));
    }
}
