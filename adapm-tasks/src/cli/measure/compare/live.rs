//! The bar of a comparison: which run goes on, how far it is, and how long all will take.

use std::cell::Cell as Number;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::painter::{Moment, Painter, Step};
use crate::cli::progress::remaining;
use crate::files;

/// A bar of a step for each run.
pub(crate) struct Live<'a> {
    painter: Painter,
    interrupt: &'a Interrupt,
    name: String,
    /// Runs, and how many of them have ended.
    all: usize,
    ended: Number<usize>,
    began: Instant,
    /// Runs that have ended since then.
    ended_here: Number<usize>,
    /// When the log of the run that goes on was last looked at.
    looked: Number<Option<Instant>>,
}

impl<'a> Live<'a> {
    /// Returns the bar of `all` runs.
    pub(crate) fn new(painter: Painter, name: &str, all: usize, interrupt: &'a Interrupt) -> Self {
        Self {
            painter,
            interrupt,
            name: name.to_owned(),
            all,
            ended: Number::default(),
            began: Instant::now(),
            ended_here: Number::default(),
            looked: Number::default(),
        }
    }

    /// A run has ended, of which nothing was recorded before if `is_new`.
    pub(crate) fn ended(&self, is_new: bool) {
        self.ended.set(self.ended.get() + 1);
        self.ended_here.set(self.ended_here.get() + usize::from(is_new));
    }

    /// A process goes on, which writes an object an epoch to `log`.
    pub(crate) fn moves(&self, title: &str, log: &Path) {
        self.interrupt.moves(|| format!("running {title}"));
        let is_early = |looked: Instant| looked.elapsed() < LOOK;
        if self.painter.is_nobody() || self.looked.get().is_some_and(is_early) {
            return;
        }
        self.looked.set(Some(Instant::now()));
        let epochs =
            files::read(log).map_or(0, |log| log.iter().filter(|byte| **byte == b'\n').count());
        let mut beside = vec![title.to_owned()];
        beside.extend((epochs > 0).then(|| format!("epoch {}", epochs + 1)));
        let (ended, all) =
            (self.ended_here.get(), self.all - (self.ended.get() - self.ended_here.get()));
        let left = remaining(self.began.elapsed(), ended as u64, all as u64);
        beside.extend(left.map(|left| format!("ETA {}", format::whole_seconds(left))));
        let (name, below) = (self.name.clone(), Vec::new());
        let (done, all) = (self.ended.get() as u64, self.all as u64);
        self.painter.show(&Moment::Step(Step { name, done, all, beside, below }));
    }

    /// Does what prints whole lines, above the bar.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.painter.aside(print)
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.painter.show(&Moment::Over);
    }
}

/// The time between two looks at a log.
const LOOK: Duration = Duration::from_millis(250);
