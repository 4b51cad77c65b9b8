//! The bar at the bottom of a terminal, which shows a moment of a run.
//!
//! A process draws it itself, or, if `adapm launch` started it, tells the launcher what to draw: a
//! line of stderr that begins with [`MARK`] and holds a [`Moment`] as JSON. All that is printed
//! meanwhile goes through [`Painter::aside`], so that no line and bar mix. Without a terminal
//! nothing is drawn.
//!
//! # Spinner
//! A bar turns a sign between reports of progress.
//!
//! indicatif turns one itself by a thread whose start panics where no thread can be had, and starts
//! it for hidden bars too.

use std::io::{self, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adapm_transport::threads;
use console::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cli::terminal::Stream;
use crate::cli::{format, launched};

/// The activity of a run at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Moment {
    /// Something of unknown length.
    Waiting(String),
    /// So much of something is done.
    Step(Step),
    /// Nothing that is to be shown.
    Over,
}

/// So much of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) done: u64,
    pub(crate) all: u64,
    /// Texts beside the bar, the most important first.
    pub(crate) beside: Vec<String>,
    /// Texts below the bar, the most important first.
    pub(crate) below: Vec<String>,
}

/// The display of progress.
pub(crate) struct Painter {
    way: Way,
}

enum Way {
    Nobody,
    Launcher,
    Here(Mutex<Here>),
}

struct Here {
    bar: ProgressBar,
    spinner: Option<Spinner>,
    is_shown: bool,
}

impl Painter {
    /// Returns the display for this process.
    pub(crate) fn new() -> Self {
        if launched::has_screen() {
            return Self { way: Way::Launcher };
        }
        if !Stream::Stderr.is_attended() {
            return Self::nobody();
        }
        Self { way: Way::Here(Mutex::new(Here { bar: bar(), spinner: None, is_shown: false })) }
    }

    /// Draws nothing.
    pub(crate) fn nobody() -> Self {
        Self { way: Way::Nobody }
    }

    /// Returns true if nothing is drawn.
    pub(crate) fn is_nobody(&self) -> bool {
        matches!(self.way, Way::Nobody)
    }

    /// Shows a moment in place of the one before.
    pub(crate) fn show(&self, moment: &Moment) {
        match &self.way {
            Way::Nobody => {}
            Way::Launcher => {
                // A moment has no part that JSON cannot hold.
                let Ok(text) = serde_json::to_string(moment) else { return };
                // One write: lines of other threads stay whole.
                drop(io::stderr().lock().write_all(format!("{MARK}{text}\n").as_bytes()));
            }
            Way::Here(here) => lock(here).show(moment),
        }
    }

    /// Does what prints whole lines, above the bar.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.way {
            Way::Here(here) => {
                let here = lock(here);
                // A bar that was never drawn would be drawn after the lines.
                if here.is_shown { here.bar.suspend(print) } else { print() }
            }
            Way::Nobody | Way::Launcher => print(),
        }
    }
}

impl Here {
    fn show(&mut self, moment: &Moment) {
        match moment {
            Moment::Waiting(text) => {
                self.bar.set_style(style("{spinner} {msg}"));
                self.bar.set_message(format::fitting(
                    std::slice::from_ref(text),
                    Stream::Stderr.width() - 3,
                ));
                self.spinner.get_or_insert_with(|| Spinner::turn(&self.bar));
            }
            Moment::Step(step) => {
                self.spinner = None;
                let (first, second) = step.drawn(Stream::Stderr.width());
                self.bar.set_style(style(if second.is_empty() {
                    "{prefix}"
                } else {
                    "{prefix}\n{msg}"
                }));
                // The first to be set is drawn with what was there of the other.
                if self.is_shown {
                    self.bar.set_prefix(first);
                    self.bar.set_message(second);
                } else {
                    self.bar.set_message(second);
                    self.bar.set_prefix(first);
                }
            }
            Moment::Over => {
                self.spinner = None;
                if self.is_shown {
                    std::mem::replace(&mut self.bar, bar()).finish_and_clear();
                }
            }
        }
        self.is_shown = *moment != Moment::Over;
    }
}

impl Step {
    /// Returns the first line of a bar.
    pub(crate) fn line(&self) -> String {
        let percent = 100 * self.done.min(self.all) / self.all.max(1);
        format!("{} {percent:>3} %   {}", self.name, self.beside.join("  "))
    }

    /// Returns the bar, in one or two lines of less than `width` columns: what is too much is left
    /// out.
    fn drawn(&self, width: usize) -> (String, String) {
        let width = width.saturating_sub(1);
        let percent = format!("{:>3} %", 100 * self.done.min(self.all) / self.all.max(1));
        let fixed = self.name.chars().count() + percent.len() + 4;
        let wanted = format::fitting(&self.beside, usize::MAX).chars().count();
        let cells = width.saturating_sub(fixed + wanted).clamp(BAR_MIN, BAR_MAX);
        let full = (cells as u64 * self.done.min(self.all) / self.all.max(1)) as usize;
        let bar = Style::new().cyan().for_stderr().apply_to("━".repeat(full));
        let rest = Style::new().dim().for_stderr().apply_to("─".repeat(cells - full));
        let beside = format::fitting(&self.beside, width.saturating_sub(fixed + cells));
        let below = format::fitting(&self.below, width.saturating_sub(2));
        let second = if below.is_empty() { below } else { format!("  {below}") };
        (format!("{} {bar}{rest} {percent}  {beside}", self.name), second)
    }
}

/// Returns a bar that was not drawn.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.with_finish(ProgressFinish::AndClear)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A panic elsewhere leaves the bar as good as it was.
fn lock(here: &Mutex<Here>) -> MutexGuard<'_, Here> {
    here.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns until it is dropped, as long as its bar can be seen.
pub(crate) struct Spinner {
    _end: Sender<()>,
}

impl Spinner {
    /// Turns the spinner of `bar`. Without a thread, or while the bar is hidden, it stands still.
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

/// The start of a line to the launcher that is not to be printed: ASCII's record separator, as in
/// RFC 7464.
pub(crate) const MARK: char = '\u{1e}';

const BAR_MIN: usize = 10;
const BAR_MAX: usize = 40;

/// The time of a step of the spinner.
const TICK: Duration = Duration::from_millis(120);

#[cfg(test)]
mod tests {
    use console::strip_ansi_codes;

    use super::*;

    fn step(done: u64, all: u64) -> Step {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Step {
            name: "train".to_owned(),
            done,
            all,
            beside: texts(&["epoch 2/20", "loss 0.5", "ETA 3 s"]),
            below: texts(&["local 99.98 %", "12,345 triples/s"]),
        }
    }

    #[test]
    fn a_line_says_what_a_bar_would() {
        assert_eq!(step(5, 8).line(), "train  62 %   epoch 2/20  loss 0.5  ETA 3 s");
        assert_eq!(Step { beside: Vec::new(), ..step(0, 0) }.line(), "train   0 %   ");
    }

    #[test]
    fn a_bar_fits_whatever_the_width() {
        let drawn = |width| {
            let (first, second) = step(1, 2).drawn(width);
            strip_ansi_codes(&format!("{first}\n{second}")).into_owned()
        };
        for width in [40, 60, 80, 120, 300] {
            let text = drawn(width);
            assert!(text.lines().all(|line| line.chars().count() < width), "{width}: {text}");
            assert!(text.contains(" 50 %  epoch 2/20"), "{width}: {text}");
        }
        let text = drawn(60);
        assert_eq!(
            text,
            "train ━━━━━━━━────────  50 %  epoch 2/20  loss 0.5  ETA 3 s\n  local 99.98 %  12,345 triples/s"
        );
    }

    #[test]
    fn a_moment_survives_the_way_to_the_launcher() {
        for moment in
            [Moment::Waiting("reading".to_owned()), Moment::Step(step(3, 4)), Moment::Over]
        {
            let text = serde_json::to_string(&moment).expect("has no part that JSON cannot hold");
            assert!(!text.contains('\n'));
            assert_eq!(serde_json::from_str::<Moment>(&text).expect("was written"), moment);
        }
    }
}
