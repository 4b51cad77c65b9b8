//! What a person sees while a run goes: a bar on a terminal, else a line an epoch, and one at times while a long step goes on; and
//! the JSON line of each epoch.
//!
//! All of it goes to stderr but the JSON lines. The library calls in a few times a second.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use adapm_tasks::run::{Epoch, ManagerStats, Split, Training, Work};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::failure::Failure;
use crate::format;
use crate::interrupt::Interrupt;
use crate::json;
use crate::output::Output;
use crate::signs::Signs;
use crate::spinner::Spinner;

/// What a task calls what it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels {
    /// What is trained on.
    pub(crate) examples: &'static str,
    /// What an evaluation does with held-out data.
    pub(crate) evaluating: &'static str,
    /// The figure by which an epoch is selected on valid.
    pub(crate) quality: &'static str,
}

/// An epoch that is over, of whatever task.
#[derive(Clone, Debug)]
pub(crate) struct EpochDone {
    pub(crate) epoch: u32,
    /// Of training.
    pub(crate) seconds: f64,
    /// Mean over examples.
    pub(crate) loss: f64,
    pub(crate) examples: u64,
    /// The figure on valid, if it was evaluated.
    pub(crate) valid: Option<f64>,
    pub(crate) evaluation_seconds: f64,
    /// Of this epoch's training.
    pub(crate) stats: ManagerStats,
}

impl EpochDone {
    /// What `epoch` came to, of whose figures `quality` takes the one that counts.
    pub(crate) fn new<F>(epoch: &Epoch<F>, quality: impl Fn(&F) -> f64) -> Self {
        Self {
            epoch: epoch.epoch,
            seconds: epoch.seconds,
            loss: epoch.loss,
            examples: epoch.examples,
            valid: epoch.valid.as_ref().map(quality),
            evaluation_seconds: epoch.evaluation_seconds,
            stats: epoch.epoch_stats,
        }
    }
}

/// Shows a run on the screen.
pub(crate) struct Screen<'a> {
    bar: ProgressBar,
    spinner: Mutex<Option<Spinner>>,
    output: Output,
    name: String,
    labels: Labels,
    lines: bool,
    /// When training began.
    started: OnceLock<Instant>,
    signs: Signs,
    interrupt: &'a Interrupt,
    told: AtomicBool,
    opening: Mutex<Option<String>>,
    failure: Mutex<Option<Failure>>,
}

impl<'a> Screen<'a> {
    /// A screen for a run called `name`, which it asks to end if nobody takes the results.
    pub(crate) fn new(name: &str, output: Output, interrupt: &'a Interrupt) -> Self {
        let target =
            if output.is_silent() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let signs = Signs::new(target.is_hidden() && !output.is_silent());
        let bar = ProgressBar::with_draw_target(None, target).with_finish(ProgressFinish::AndClear);
        Self {
            bar,
            spinner: Mutex::new(None),
            output,
            name: name.to_owned(),
            labels: Labels::default(),
            lines: true,
            started: OnceLock::new(),
            signs,
            interrupt,
            told: AtomicBool::new(false),
            opening: Mutex::new(None),
            failure: Mutex::new(None),
        }
    }

    /// Calls things as a task does.
    pub(crate) fn labelled(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// Shows no line per epoch.
    pub(crate) fn without_lines(mut self) -> Self {
        self.lines = false;
        self
    }

    /// Opens with `text` on the first sign of life: a run that is refused shows the reason only.
    pub(crate) fn opening(mut self, text: String) -> Self {
        self.opening = Mutex::new(Some(text));
        self
    }

    /// Prints the opening if that is still to do.
    pub(crate) fn open(&self) {
        if let Some(text) = lock(&self.opening).take() {
            self.print(|| self.output.text(&text));
        }
    }

    /// Shows that something goes on whose length is not known, such as reading data.
    pub(crate) fn waiting(&self, what: &str) {
        self.interrupt.moves(|| what.to_owned());
        self.signs.step(|| what.to_owned());
        self.bar.set_style(style("{spinner} {msg}"));
        self.bar.set_message(what.to_owned());
        lock(&self.spinner).get_or_insert_with(|| Spinner::turn(&self.bar));
    }

    /// Shows a moment of training.
    pub(crate) fn show_training(&self, moment: &Training) {
        let all = u64::from(moment.epochs) * moment.total;
        let done = u64::from(moment.epoch.saturating_sub(1)) * moment.total + moment.done;
        let since = Duration::from_secs_f64(moment.seconds);
        let began = || Instant::now().checked_sub(since).unwrap_or_else(Instant::now);
        let started = self.started.get_or_init(began);
        let eta =
            remaining(started.elapsed(), done, all).map_or_else(|| "?".to_owned(), format::whole_seconds);
        let message = format!(
            "epoch {}/{}  loss {:.4}  ETA {eta}\n  {}  {} {}/s",
            moment.epoch,
            moment.epochs,
            moment.loss,
            manager(&moment.stats),
            format::count(moment.throughput() as u64),
            self.labels.examples,
        );
        self.show(&format!("{} {BAR} {{msg}}", self.name), done, all, message);
    }

    /// Shows a moment of an evaluation.
    pub(crate) fn show_evaluating(&self, split: Split, done: u64, all: u64) {
        let (what, split) = (self.labels.evaluating, split.name());
        let message = format!("{what} {split}: {} of {}", format::count(done), format::count(all));
        self.show(&format!("{} {BAR} {{msg}}", self.name), done, all, message);
    }

    /// Shows a moment of other work.
    pub(crate) fn show_working(&self, work: Work, done: u64, all: u64) {
        let counts = format!("{} of {}", format::count(done), format::count(all));
        let message = match work {
            Work::Initializing => format!("giving keys their values: {counts}"),
            Work::Dividing => "dividing the data among workers".to_owned(),
            Work::Settling => "bringing keys to where they are needed first".to_owned(),
            Work::Copying => format!("copying what is kept: {counts} keys"),
            _ => return,
        };
        self.show(&format!("{} {BAR} {{msg}}", self.name), done, all, message);
    }

    /// Shows an epoch that is over.
    pub(crate) fn show_epoch(&self, epoch: &EpochDone) {
        self.open();
        if self.lines {
            self.line(&epoch_line(epoch, self.labels));
        }
        self.print(|| self.output.object(&json::Epoch::new(epoch, self.labels)));
        self.tell_interrupt();
    }

    /// Clears the screen and tells whether it failed.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn show(&self, template: &str, position: u64, length: u64, message: String) {
        self.open();
        let line = || step_line(&self.name, position, length, &message);
        self.interrupt.moves(line);
        self.signs.step(line);
        lock(&self.spinner).take();
        self.bar.set_style(style(template));
        self.bar.set_length(length.max(1));
        self.bar.set_position(position);
        self.bar.set_message(message);
        self.tell_interrupt();
    }

    /// Prints results above the bar, and ends the run if nobody takes them.
    fn print(&self, print: impl FnOnce() -> Result<(), Failure>) {
        if let Err(failure) = self.bar.suspend(print) {
            lock(&self.failure).get_or_insert(failure);
            self.told.store(true, Ordering::Relaxed);
            self.interrupt.stop().store(true, Ordering::Relaxed);
        }
    }

    fn tell_interrupt(&self) {
        if self.interrupt.stop().load(Ordering::Relaxed) && !self.told.swap(true, Ordering::Relaxed) {
            self.line("stopping; Ctrl-C again exits at once");
        }
    }

    fn line(&self, text: &str) {
        if self.output.is_silent() {
            return;
        }
        // Lines are for people: if stderr is closed, nobody misses them.
        self.bar.suspend(|| drop(writeln!(io::stderr(), "{text}")));
        self.signs.printed();
    }
}

/// Seconds until the end if the rest goes as what was done; `None` if nothing was done.
fn remaining(elapsed: Duration, done: u64, all: u64) -> Option<f64> {
    (done > 0).then(|| elapsed.as_secs_f64() * all.saturating_sub(done) as f64 / done as f64)
}

/// A panic elsewhere leaves texts and failures as good as they were.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a bar would show, in one line.
fn step_line(name: &str, done: u64, all: u64, message: &str) -> String {
    let percent = 100 * done.min(all) / all.max(1);
    format!("{name} {percent:>3} %   {}", message.lines().next().unwrap_or_default())
}

fn epoch_line(epoch: &EpochDone, labels: Labels) -> String {
    let throughput = epoch.examples as f64 / epoch.seconds.max(1e-9);
    let valid =
        epoch.valid.map_or_else(String::new, |figure| format!("   valid {} {figure:.4}", labels.quality));
    format!(
        "epoch {:>3}   loss {:.4}   {:>7}   {:>9} {}/s   local {:>8}{valid}",
        epoch.epoch,
        epoch.loss,
        format::seconds(epoch.seconds),
        format::count(throughput as u64),
        labels.examples,
        format::share(epoch.stats.local_share()),
    )
}

/// The manager's counts in one line, short enough for 80 columns with what follows.
fn manager(stats: &ManagerStats) -> String {
    format!(
        "local {}  relocations {}  replicas {}  sent {}",
        format::share(stats.local_share()),
        format::count(stats.relocations),
        format::count(stats.replicas),
        format::bytes(stats.bytes_sent),
    )
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("━╸─")
}

const BAR: &str = "{bar:20.cyan/dim} {percent:>3} %";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_a_bar_would() {
        assert_eq!(step_line("train", 5, 8, "loss 0.5  ETA 3 s\n  local"), "train  62 %   loss 0.5  ETA 3 s");
        assert_eq!(step_line("train", 0, 0, ""), "train   0 %   ");
        assert_eq!(remaining(Duration::from_secs(3), 1, 3), Some(6.0));
        assert_eq!(remaining(Duration::from_secs(3), 0, 3), None);
    }
}
