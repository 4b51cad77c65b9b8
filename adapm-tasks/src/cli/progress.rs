//! The display of a run for people.
//!
//! | what | where |
//! | --- | --- |
//! | the plan, a line an epoch, the results | stdout; with `--json` stderr |
//! | JSON lines | stdout |
//! | a bar | stderr, if it is a terminal |
//! | a line that says what goes on, after 15 s without any other | stderr, if it is none |
//!
//! The library calls in a few times a second.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::run::{Epoch, Observer, Resumption, Split, Training, Work};
use adapm_runtime::checkpoint::{CheckpointError, Saved};
use adapm_transport::threads;

use crate::cli::epoch::EpochDone;
use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::folder::RunFolder;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::painter::{Moment, Painter, Step};
use crate::cli::{format, json};

/// Shows a run on the screen.
pub(crate) struct Screen<'a> {
    painter: Painter,
    output: Output,
    name: String,
    labels: Labels,
    lines: bool,
    /// When training began.
    started: OnceLock<Instant>,
    signs: Signs,
    interrupt: &'a Interrupt,
    folder: Option<&'a RunFolder>,
    /// A folder that is not node 0's.
    elsewhere: Option<&'a RunFolder>,
    /// This process is the first of those that share it.
    leads: AtomicBool,
    told: AtomicBool,
    preface: Mutex<Option<String>>,
    failure: Mutex<Option<Failure>>,
}

impl<'a> Screen<'a> {
    /// Returns the screen of a run called `name`, which it asks to end if stdout is closed.
    pub(crate) fn new(name: &str, output: Output, interrupt: &'a Interrupt) -> Self {
        let painter = if output.is_silent() { Painter::nobody() } else { Painter::new() };
        let signs = Signs::new(painter.is_nobody() && !output.is_silent());
        Self {
            painter,
            output,
            name: name.to_owned(),
            labels: Labels::default(),
            lines: true,
            started: OnceLock::new(),
            signs,
            interrupt,
            folder: None,
            elsewhere: None,
            leads: AtomicBool::new(false),
            told: AtomicBool::new(false),
            preface: Mutex::new(None),
            failure: Mutex::new(None),
        }
    }

    /// Calls things as a task does.
    pub(crate) fn labelled(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// Writes epochs to the folder of the run, too.
    pub(crate) fn recorded(mut self, folder: Option<&'a RunFolder>) -> Self {
        self.folder = folder;
        self
    }

    /// Begins a folder of the run that node 0 does not see, if this process is the first there.
    pub(crate) fn set_up(mut self, folder: Option<&'a RunFolder>) -> Self {
        self.elsewhere = folder;
        self
    }

    /// Shows no line per epoch.
    pub(crate) fn without_lines(mut self) -> Self {
        self.lines = false;
        self
    }

    /// Opens with `text` on the first sign of life: a run that is refused shows the reason only.
    pub(crate) fn preface(mut self, text: String) -> Self {
        self.preface = Mutex::new(Some(text));
        self
    }

    /// Prints the preface if that is still to do.
    pub(crate) fn open(&self) {
        if let Some(text) = lock(&self.preface).take() {
            self.print(|| self.output.text(&text));
        }
    }

    /// Begins the folder of the run, if that is still to do: where a run fails before it has learnt
    /// anything, the same command can be given again.
    pub(crate) fn begin(&self) {
        self.open();
        self.folder.iter().for_each(|folder| self.print(|| folder.begin()));
        let leads = self.leads.swap(false, Ordering::Relaxed);
        let elsewhere = self.elsewhere.filter(|_| leads);
        elsewhere.iter().for_each(|folder| self.print(|| folder.begin_elsewhere()));
    }

    /// Shows that something goes on whose length is not known, such as reading data.
    pub(crate) fn waiting(&self, what: &str) {
        self.interrupt.moves(|| what.to_owned());
        self.signs.step(|| what.to_owned());
        self.painter.show(&Moment::Waiting(what.to_owned()));
    }

    /// Clears the screen and returns its error, if any.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.painter.show(&Moment::Over);
        lock(&self.failure).take().map_or(Ok(()), Err)
    }

    fn show(&self, done: u64, all: u64, beside: Vec<String>, below: Vec<String>) {
        self.open();
        let step = Step { name: self.name.clone(), done, all, beside, below };
        self.interrupt.moves(|| step.line());
        self.signs.step(|| step.line());
        self.painter.show(&Moment::Step(step));
        self.tell_interrupt();
    }

    /// Prints results above the bar, and ends the run if stdout is closed.
    fn print(&self, print: impl FnOnce() -> Result<(), Failure>) {
        if let Err(failure) = self.painter.aside(print) {
            lock(&self.failure).get_or_insert(failure);
            self.told.store(true, Ordering::Relaxed);
            self.interrupt.stop().store(true, Ordering::Relaxed);
        }
        self.signs.printed();
    }

    fn tell_interrupt(&self) {
        if self.interrupt.stop().load(Ordering::Relaxed) && !self.told.swap(true, Ordering::Relaxed)
        {
            self.line("stopping; Ctrl-C again exits at once");
        }
    }

    fn line(&self, text: &str) {
        if self.output.is_silent() {
            return;
        }
        // Lines are for users: if stderr is closed, none reads them.
        self.painter.aside(|| drop(writeln!(io::stderr(), "{text}")));
        self.signs.printed();
    }
}

impl<F: Figures> Observer<F> for Screen<'_> {
    fn training(&self, moment: &Training) {
        // Where the number of epochs is unknown, the bar is that of one epoch.
        let (epochs, before) = if moment.may_end_early {
            (1, 0)
        } else {
            (moment.epochs, moment.epoch.saturating_sub(1))
        };
        let all = u64::from(epochs) * moment.total;
        let done = u64::from(before) * moment.total + moment.done;
        let since = Duration::from_secs_f64(moment.seconds);
        let began = || Instant::now().checked_sub(since).unwrap_or_else(Instant::now);
        let started = self.started.get_or_init(began);
        let (elapsed, epochs, end) = if moment.may_end_early {
            (since, format!(" of at most {}", moment.epochs), "ends in")
        } else {
            (started.elapsed(), format!("/{}", moment.epochs), "ETA")
        };
        let eta =
            remaining(elapsed, done, all).map_or_else(|| "?".to_owned(), format::whole_seconds);
        let mut beside = vec![format!("epoch {}{epochs}", moment.epoch)];
        // Some tasks know the loss at the end of an epoch only.
        if !moment.loss.is_nan() {
            beside.push(format!("loss {:.4}", moment.loss));
        }
        beside.push(format!("{end} {eta}"));
        let below = vec![
            format!("{} {}/s", format::count(moment.throughput() as u64), self.labels.examples),
            format!("local {}", format::share(moment.stats.local_share())),
            format!("sent {}", format::bytes(moment.stats.bytes_sent)),
        ];
        self.show(done, all, beside, below);
    }

    fn evaluating(&self, split: Split, done: u64, all: u64) {
        let (what, split) = (self.labels.evaluating, split.name());
        let (done, all) = (F::COUNTED * done, F::COUNTED * all);
        self.show(done, all, vec![format!("{what} {split}"), of(done, all)], Vec::new());
    }

    fn working(&self, work: Work, done: u64, all: u64) {
        let beside = match work {
            Work::Initializing => vec!["initialising parameters".to_owned(), of(done, all)],
            Work::Selecting => {
                vec!["choosing the epochs on cells left out".to_owned(), format!("epoch {done}")]
            }
            Work::Dividing => vec!["dividing the data among workers".to_owned()],
            Work::Settling => vec!["placing parameters".to_owned()],
            Work::Copying => vec!["copying the best parameters".to_owned(), of(done, all)],
            Work::Checkpointing => vec!["writing a last checkpoint".to_owned(), of(done, all)],
        };
        self.show(done, all, beside, Vec::new());
    }

    fn partitioned(&self, replicas: u64, keys: u64, seconds: f64) {
        self.open();
        let (replicas, keys) = (format::count(replicas), format::count(keys));
        let held = format!("a node holds replicas of at most {replicas} of {keys} keys");
        self.print(|| self.output.sentence(&format!("partitioned in {seconds:.1} s: {held}")));
    }

    fn opened(&self, leads: bool) {
        self.leads.store(leads, Ordering::Relaxed);
    }

    fn begins(&self) {
        self.begin();
    }

    fn resumed(&self, from: &Resumption) {
        self.open();
        self.folder.iter().for_each(|folder| self.print(|| folder.keep_epochs(from.epoch)));
        let Resumption { checkpoint, epoch, done, again, left_out, .. } = from;
        let examples = |count: u64| format!("{} {}", format::count(count), self.labels.examples);
        let mut text = format!("goes on from {checkpoint}: epoch {epoch}");
        if from.has_others {
            text += &match (again, left_out) {
                (0, 0) => ", with other workers".to_owned(),
                (0, left_out) => {
                    format!(", with other workers: {} are left out", examples(*left_out))
                }
                (again, _) => format!(", with other workers: {} are done again", examples(*again)),
            };
        } else if *done > 0 {
            text += &format!(", after {}", examples(*done));
        }
        self.print(|| self.output.sentence(&text));
    }

    fn checkpointed(&self, outcome: &Result<Saved, CheckpointError>, _: f64) {
        if let Err(error) = outcome {
            let text = format!("warning: no checkpoint, training goes on: {error}");
            self.print(|| self.output.sentence(&text));
        }
    }

    fn replicating(&self, hot: u64, keys: u64) {
        self.open();
        let (hot, keys) = (format::count(hot), format::count(keys));
        let text = format!("every node holds {hot} hot keys of {keys} for the whole run");
        self.print(|| self.output.sentence(&text));
    }

    fn epoch(&self, epoch: &Epoch<F>) {
        let epoch = &EpochDone::new(epoch);
        self.open();
        if self.lines {
            let line = epoch_line(epoch, self.labels, self.output.width());
            self.print(|| self.output.text(&format!("{line}\n")));
        }
        let object = json::Epoch::new(epoch, self.labels);
        self.print(|| self.output.object(&object));
        self.folder.iter().for_each(|folder| folder.epoch(&object));
        self.tell_interrupt();
    }
}

impl Drop for Screen<'_> {
    /// A run that fails shows nothing more than the reason.
    fn drop(&mut self) {
        self.painter.show(&Moment::Over);
    }
}

/// Seconds until the end if the rest goes as what was done; `None` if nothing was done.
pub(crate) fn remaining(elapsed: Duration, done: u64, all: u64) -> Option<f64> {
    (done > 0).then(|| elapsed.as_secs_f64() * all.saturating_sub(done) as f64 / done as f64)
}

/// A panic elsewhere leaves texts and failures as good as they were.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `1,000 of 14,541`.
fn of(done: u64, all: u64) -> String {
    format!("{} of {}", format::count(done), format::count(all))
}

/// Returns the line of an epoch: in less than [`WIDE`] columns without what the plan says too.
fn epoch_line(epoch: &EpochDone, labels: Labels, width: usize) -> String {
    let throughput = format::count((epoch.examples as f64 / epoch.seconds.max(1e-9)) as u64);
    let (metric, examples) = if width < WIDE {
        (String::new(), String::new())
    } else {
        (format!("{} ", labels.quality), format!(" {}", labels.examples))
    };
    let mut parts = vec![
        format!("epoch {:>3}", epoch.epoch),
        format!("loss {:>7.4}", epoch.loss),
        format!("{:>7}", format::seconds(epoch.seconds)),
        format!("{throughput:>9}{examples}/s"),
        format!("local {:>8}", format::share(epoch.stats.local_share())),
    ];
    if let Some(figure) = epoch.valid {
        let valid = format!("valid {metric}{figure:.4}");
        if parts.iter().chain([&valid]).map(|part| part.len() + 2).sum::<usize>() > width + 2 {
            parts.pop();
        }
        parts.push(valid);
    }
    format::fitting(&parts, width)
}

/// Prints what goes on to stderr when it has been silent for long. Ends when dropped.
pub(crate) struct Signs {
    step: Arc<Mutex<Going>>,
    /// Dropped to end the thread that waits for it.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The current activity, and the time since the last sign of it.
#[derive(Debug)]
struct Going {
    text: Option<String>,
    last: Instant,
}

impl Signs {
    /// Signs, or if they are not wanted, none.
    pub(crate) fn new(wanted: bool) -> Self {
        let step = Arc::new(Mutex::new(Going { text: None, last: Instant::now() }));
        let (end, ended) = mpsc::channel();
        let shared = Arc::clone(&step);
        let print = move || {
            let mut wait = SILENCE_MAX;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let line;
                (line, wait) = lock(&shared).look(Instant::now());
                // Lines are for users: if stderr is closed, none reads them.
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

impl Going {
    /// Returns the line that is due, if one is, and how long to wait before the next look.
    fn look(&mut self, now: Instant) -> (Option<String>, Duration) {
        let silence = now.saturating_duration_since(self.last);
        if silence < SILENCE_MAX {
            return (None, SILENCE_MAX - silence);
        }
        self.last = now;
        (self.text.clone(), SILENCE_MAX)
    }
}

/// Columns from which on a line of an epoch says what it counts.
const WIDE: usize = 100;

/// The longest silence.
const SILENCE_MAX: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use crate::cli::config;
    use crate::cli::folder::{self, FolderFlag};
    use crate::mf::RatingMetrics;
    use crate::run::ManagerStats;
    use crate::run::checkpoints::CHECKPOINTS;

    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_was_done() {
        assert_eq!(remaining(Duration::from_secs(3), 1, 3), Some(6.0));
        assert_eq!(remaining(Duration::from_secs(3), 0, 3), None);
    }

    #[test]
    fn the_line_of_an_epoch_fits() {
        let labels =
            Labels { examples: "triples", evaluating: "ranking", items: "queries", quality: "MRR" };
        let epoch = EpochDone {
            epoch: 12,
            seconds: 125.0,
            loss: 10.5,
            examples: 250_000_000,
            valid: Some(0.25),
            evaluation_seconds: 1.0,
            stats: ManagerStats::default(),
        };
        let lines = [64, 80, 100].map(|width| epoch_line(&epoch, labels, width));
        assert_eq!(lines[0], "epoch  12  loss 10.5000  2 min 05 s  2,000,000/s  valid 0.2500");
        let short =
            "epoch  12  loss 10.5000  2 min 05 s  2,000,000/s  local 100.00 %  valid 0.2500";
        assert_eq!(lines[1], short);
        let long = "epoch  12  loss 10.5000  2 min 05 s  2,000,000 triples/s  local 100.00 %  valid MRR 0.2500";
        assert_eq!(lines[2], long);
    }

    #[test]
    fn the_folder_of_a_run_begins_as_training_does_on_every_host() {
        let name = format!("adapm-screen-{}", std::process::id());
        let all = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&all);
        let paths = ["here", "elsewhere"].map(|name| all.join(name));
        let of = |path| RunFolder::of(path, FolderFlag::OutLocal, config::HEAD.to_owned(), false);
        let [here, elsewhere] = [&paths[0], &paths[1]].map(|path| of(path).made());
        let (here, elsewhere) = (here.expect("can be made"), elsewhere.expect("can be made"));
        paths.iter().for_each(|path| fs::create_dir(path.join(CHECKPOINTS)).expect("can be made"));
        let interrupt = Interrupt::new();
        let screen = Screen::new("train", Output::new(false).silent(), &interrupt);
        let screen = screen.preface(String::new());
        let screen = screen.recorded(Some(&here)).set_up(Some(&elsewhere));
        let observer: &dyn Observer<RatingMetrics> = &screen;
        let check = |path: &PathBuf| folder::check(path, false, false);
        observer.replicating(1, 2);
        observer.opened(true);
        for work in [Work::Initializing, Work::Settling] {
            observer.working(work, 0, 1);
        }
        // What fails here has learnt nothing: the same command does.
        assert!(paths.iter().all(|path| check(path).is_ok()));
        observer.begins();
        for path in &paths {
            let refused = check(path).expect_err("it is of this run").to_string();
            assert!(refused.contains("it is of another run"), "{refused}");
        }
        assert!(screen.finish().is_ok());
        fs::remove_dir_all(all).expect("can be removed");
    }

    #[test]
    fn a_line_is_due_after_a_silence_and_not_sooner() {
        let start = Instant::now();
        let mut step = Going { text: None, last: start };
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
