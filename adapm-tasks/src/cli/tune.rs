//! The verb `tune`: finds the flags of a system that has to be tuned.
//!
//! NuPS wants two choices for each task: which keys are hot, and how far ahead the others are
//! localized. As the search of AdaPM App. D, this one takes the first points of a Sobol sequence
//! over both, on logarithmic scales, and trains a twentieth of an epoch with each. Of data that
//! takes less than the tenths of a second between two looks it is more, an epoch at most: the table
//! says how much. The time of all points together belongs to the system's price.
//!
//! All nodes are in one process. Not here: other systems, which have one choice, or none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::System;
use crate::cli::args::Given;
use crate::cli::epoch::Figures;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::cli::format;
use crate::cli::input;
use crate::cli::interrupt::Interrupt;
use crate::cli::json;
use crate::cli::output::Output;
use crate::cli::processes::{self, Processes};
use crate::cli::program::{Program, TrainArgs};
use crate::cli::progress::Screen;
use crate::cli::table::{Align, Table};
use crate::cli::train;
use crate::run::{
    Config as _, Epoch, Keep, ManagerStats, Observer, Run, Split, TaskError, Training, Work,
};

/// Trains with each point as `args` describe, and prints what it found and the flags of the
/// fastest; or lists recipes.
pub(crate) fn run<P: Program>(
    args: &TrainArgs<P>,
    given: &Given,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if args.settings.lists() {
        return train::run(args, given, interrupt);
    }
    P::check_flags(args).map_err(|error| *error.0)?;
    check(args, given)?;
    let check = || files::check_shared(&P::files(&args.flags));
    let nodes = args.config.cluster().nodes;
    processes::with(&args.processes, nodes, interrupt, check, |processes| {
        tune(args, processes, interrupt)
    })
}

/// Checks that nothing is asked for that a search has no use for. What a file says beside may be
/// that of any run.
fn check<P: Program>(args: &TrainArgs<P>, given: &Given) -> Result<(), Failure> {
    let refused = |text: &str| Err(Failure::Input(text.to_owned()));
    let output = &args.output;
    let has_folder = output.out.is_some() || output.out_local.is_some();
    if output.save.is_some() || has_folder || args.traced.trace_keys.is_some() {
        return refused(
            "tune trains parts of epochs and keeps nothing: leave out --save, --out and --trace-keys",
        );
    }
    if args.settings.print_config {
        return refused("tune prints what it finds: leave out --print-config");
    }
    if given.has_any(&["localize-ahead"]) {
        return refused(
            "tune chooses how far ahead keys are localized: leave out --localize-ahead",
        );
    }
    let is_nups = args.config.cluster().system == Some(System::Nups);
    if given.has_any(&["system"]) && !is_nups {
        return refused("tune nups is of nups: leave out --system");
    }
    Ok(())
}

fn tune<P: Program>(
    args: &TrainArgs<P>,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let config = configured(args, processes)?;
    let output = Output::new(args.output.json);
    let read = || P::read(args).map_err(|error| *error.0);
    let (data, source) = input::read(output, interrupt, true, read)?;
    let began = Instant::now();
    let (mut trials, mut shortage) = (Vec::new(), None);
    for (number, (factor, ahead)) in (1..).zip(points()) {
        let mut config = config.clone();
        let (_, run) = config.common_mut();
        (run.replicate_factor, run.localize_ahead) = (Some(factor), ahead);
        let screen = Screen::new(&format!("tune {number}/{POINTS}"), output, interrupt);
        let screen = screen.labelled(P::LABELS).without_lines();
        let watch = Watch::new(&screen, interrupt.stop());
        let run = Run::alone().observed_by(&watch).stopped_by(&watch.stop);
        let is_fit = match P::train(&data, &config, &run) {
            Err(error @ TaskError::Memory(_)) => {
                shortage = Some(error);
                false
            }
            trained => trained.map(|_| true)?,
        };
        let seen = watch.seen();
        screen.finish()?;
        if let Some(code) = interrupt.exit_code() {
            return Err(Failure::Interrupted(code));
        }
        trials.push(Trial { is_fit, ..Trial::new(factor, ahead, &seen) });
    }
    let best = best(&trials);
    if let Some(error) = shortage.filter(|_| best.is_none()) {
        return Err(error.into());
    }
    let cluster = config.cluster();
    let tuned = Tuned {
        task: P::NAME,
        system: System::Nups.name(),
        data: &source.text,
        nodes: cluster.nodes.unwrap_or(1),
        seconds: began.elapsed().as_secs_f64(),
        best,
        trials: &trials,
    };
    output.text(&tuned.text(P::LABELS.examples, output))?;
    output.object(&tuned)
}

/// Returns the settings that all points share.
fn configured<P: Program>(
    args: &TrainArgs<P>,
    processes: &Processes,
) -> Result<P::Config, Failure> {
    let refused = |text: &str| Err(Failure::Input(text.to_owned()));
    if processes.company().is_some() {
        return refused("tune has all nodes in one process: start it once, with --nodes 2 or more");
    }
    let mut config = args.config.clone();
    let (cluster, run) = config.common_mut();
    if cluster.nodes.is_none_or(|nodes| nodes < 2) {
        return refused("tune needs several nodes, as one has all keys: give --nodes 2 or more");
    }
    if run.replicate.is_some() || run.replicate_keys.is_some() || run.replicate_factor.is_some() {
        return refused("tune chooses what is hot: leave out --replicate and its like");
    }
    cluster.system = Some(System::Nups);
    (run.keep, run.no_eval, run.trace) = (Keep::Nothing, true, None);
    run.partition = args.partition()?;
    config.check()?;
    Ok(config)
}

/// Returns the points to try: the multiple of the mean frequency from which keys are hot, and the
/// clocks from localize to access.
fn points() -> impl Iterator<Item = (f64, u64)> {
    sobol().take(POINTS).map(|[of_factor, of_ahead]| {
        let [factor, ahead] = [scaled(FACTORS, of_factor), scaled(AHEADS, of_ahead)];
        // Three digits, so that the flag to copy is the number that was tried.
        let factor = format!("{factor:.2e}").parse().unwrap_or(factor);
        (factor, ahead.round().max(1.0) as u64)
    })
}

/// Returns the number at a share of a range, on a logarithmic scale.
fn scaled((low, high): (f64, f64), share: f64) -> f64 {
    low * (high / low).powf(share)
}

/// Returns the points of a Sobol sequence in two dimensions, from 0 to 1, behind that at the
/// origin.
fn sobol() -> impl Iterator<Item = [f64; 2]> {
    // Directions of both dimensions: bits, and those of the polynomial x + 1.
    let directions = |bit: u32| {
        let odd = (0..bit).fold(1_u64, |number, _| (2 * number) ^ number);
        [1 << (31 - bit), odd << (31 - bit)]
    };
    let mut at = [0_u64; 2];
    (1_u32..).map(move |number| {
        let [first, second] = directions(number.trailing_zeros());
        at = [at[0] ^ first, at[1] ^ second];
        at.map(|coordinate| coordinate as f64 / 2.0_f64.powi(32))
    })
}

/// Returns the fastest of the trials that fit into memory.
fn best(trials: &[Trial]) -> Option<&Trial> {
    let fit = trials.iter().filter(|trial| trial.is_fit);
    fit.max_by(|a, b| a.examples_per_second.total_cmp(&b.examples_per_second))
}

/// What a point came to.
#[derive(Serialize)]
struct Trial {
    replicate_factor: f64,
    localize_ahead: u64,
    /// There was memory enough for it.
    is_fit: bool,
    /// Keys that were hot, of all keys.
    hot: u64,
    keys: u64,
    /// Examples that were timed, of those of an epoch.
    examples: u64,
    epoch_examples: u64,
    seconds: f64,
    examples_per_second: f64,
    #[serde(flatten, serialize_with = "json::manager")]
    stats: ManagerStats,
}

impl Trial {
    fn new(replicate_factor: f64, localize_ahead: u64, seen: &Seen) -> Self {
        let Seen { hot, keys, examples, epoch_examples, seconds, stats, .. } = *seen;
        let examples_per_second = if seconds > 0.0 { examples as f64 / seconds } else { 0.0 };
        Self {
            replicate_factor,
            localize_ahead,
            is_fit: true,
            hot,
            keys,
            examples,
            epoch_examples,
            seconds,
            examples_per_second,
            stats,
        }
    }

    /// Returns the flags that repeat it.
    fn flags(&self) -> String {
        let Self { replicate_factor, localize_ahead, .. } = self;
        format!(
            "--system {} --replicate-factor {replicate_factor} --localize-ahead {localize_ahead}",
            System::Nups
        )
    }
}

/// The object of `--json`.
#[derive(Serialize)]
struct Tuned<'a> {
    task: &'a str,
    system: &'a str,
    data: &'a str,
    nodes: usize,
    /// Of all points together: the price of tuning.
    seconds: f64,
    best: Option<&'a Trial>,
    trials: &'a [Trial],
}

impl Tuned<'_> {
    /// Returns a row per point, and the flags of the fastest.
    fn text(&self, examples: &str, output: Output) -> String {
        let mut table = Table::new(&[Align::Right; 9]);
        let per_second = format!("{examples}/s");
        table.row([
            "factor",
            "ahead",
            "hot keys",
            "epoch",
            "time",
            &*per_second,
            "local",
            "waited",
            "remote",
        ]);
        for trial in self.trials {
            let [factor, ahead] =
                [trial.replicate_factor.to_string(), trial.localize_ahead.to_string()];
            if !trial.is_fit {
                let none = || "-".to_owned();
                let too_large = "no memory".to_owned();
                table.row([
                    factor,
                    ahead,
                    too_large,
                    none(),
                    none(),
                    none(),
                    none(),
                    none(),
                    none(),
                ]);
                continue;
            }
            let share = trial.examples as f64 / trial.epoch_examples.max(1) as f64;
            table.row([
                factor,
                ahead,
                format!("{} of {}", format::count(trial.hot), format::count(trial.keys)),
                format::share(share),
                format::seconds(trial.seconds),
                format::count(trial.examples_per_second as u64),
                format::share(trial.stats.local_share()),
                format::count(trial.stats.waited),
                format::count(trial.stats.remote),
            ]);
        }
        let heading = output.bold(format!("tune {} {}", self.system, self.task));
        let best = self.best.map(Trial::flags).unwrap_or_default();
        let time = format::seconds(self.seconds);
        format!(
            "{heading} on {}, {}\n{}\n  tuning took {time}\n  fastest: {best}\n",
            self.data,
            format::plural(self.nodes, "node"),
            table.render()
        )
    }
}

/// Watches a point, and ends it once it has been timed.
struct Watch<'a> {
    screen: &'a Screen<'a>,
    /// Ends all points.
    interrupted: &'a AtomicBool,
    stop: AtomicBool,
    seen: Mutex<Seen>,
}

/// What was seen of a point.
#[derive(Clone, Copy, Default)]
struct Seen {
    hot: u64,
    keys: u64,
    is_timed: bool,
    examples: u64,
    epoch_examples: u64,
    seconds: f64,
    stats: ManagerStats,
}

impl<'a> Watch<'a> {
    fn new(screen: &'a Screen<'a>, interrupted: &'a AtomicBool) -> Self {
        let (stop, seen) = (AtomicBool::new(false), Mutex::default());
        Self { screen, interrupted, stop, seen }
    }

    fn seen(&self) -> Seen {
        *self.lock()
    }

    /// Notes the first part of an epoch that is large enough, and ends the point.
    fn note(&self, (examples, epoch_examples): (u64, u64), seconds: f64, stats: ManagerStats) {
        let mut seen = self.lock();
        if !seen.is_timed {
            let Seen { hot, keys, .. } = *seen;
            let is_timed = true;
            *seen = Seen { hot, keys, is_timed, examples, epoch_examples, seconds, stats };
        }
        self.stop.store(true, Ordering::Relaxed);
    }

    fn heed_interrupt(&self) {
        if self.interrupted.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Figures> Observer<F> for Watch<'_> {
    fn training(&self, moment: &Training) {
        Observer::<F>::training(self.screen, moment);
        if moment.done > 0 && moment.done.saturating_mul(PARTS) >= moment.total {
            self.note((moment.done, moment.total), moment.seconds, moment.stats);
        }
        self.heed_interrupt();
    }

    fn evaluating(&self, split: Split, done: u64, all: u64) {
        Observer::<F>::evaluating(self.screen, split, done, all);
        self.heed_interrupt();
    }

    fn working(&self, work: Work, done: u64, all: u64) {
        Observer::<F>::working(self.screen, work, done, all);
        self.heed_interrupt();
    }

    fn replicating(&self, hot: u64, keys: u64) {
        let mut seen = self.lock();
        (seen.hot, seen.keys) = (hot, keys);
    }

    fn epoch(&self, epoch: &Epoch<F>) {
        self.note((epoch.examples, epoch.examples), epoch.seconds, epoch.epoch_stats);
    }
}

/// Points to try.
const POINTS: usize = 6;
/// Parts of an epoch of which a point trains one.
const PARTS: u64 = 20;
/// The ranges of the search (AdaPM App. D).
const FACTORS: (f64, f64) = (0.01, 100.0);
const AHEADS: (f64, f64) = (1.0, 1_000.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_the_first_of_a_sobol_sequence_on_logarithmic_scales() {
        let first: Vec<[f64; 2]> = sobol().take(POINTS).collect();
        // As scipy.stats.qmc.Sobol(2, scramble=False) gives them behind the origin.
        let expected = [
            [0.5, 0.5],
            [0.75, 0.25],
            [0.25, 0.75],
            [0.375, 0.375],
            [0.875, 0.875],
            [0.625, 0.125],
        ];
        assert_eq!(first, expected);
        let points: Vec<(f64, u64)> = points().collect();
        let expected = [(1.0, 32), (10.0, 6), (0.1, 178), (0.316, 13), (31.6, 422), (3.16, 2)];
        assert_eq!(points, expected);
        assert_eq!((scaled(FACTORS, 0.0), scaled(AHEADS, 0.0)), (0.01, 1.0));
    }

    #[test]
    fn the_fastest_is_best() {
        let trial = |ahead, seconds| {
            let seen = Seen { examples: 100, seconds, ..Seen::default() };
            Trial::new(2.5, ahead, &seen)
        };
        let large = Trial { is_fit: false, ..trial(7, 0.1) };
        let trials = [trial(1, 2.0), trial(4, 0.5), trial(9, 0.0), large];
        let flags = best(&trials).map(Trial::flags);
        let expected = "--system nups --replicate-factor 2.5 --localize-ahead 4";
        assert_eq!(flags.as_deref(), Some(expected));
        assert!(best(&trials[3..]).is_none(), "nothing fits");

        let best = best(&trials);
        let (task, system, data, nodes, seconds) = ("mf", "nups", "ratings", 2, 1.0);
        let tuned = Tuned { task, system, data, nodes, seconds, best, trials: &trials };
        let text = tuned.text("cells", Output::new(false));
        let row = text.lines().find(|line| line.contains("no memory")).expect("a row of its own");
        assert!(row.split_whitespace().take(2).eq(["2.5", "7"]), "{text}");
    }
}
