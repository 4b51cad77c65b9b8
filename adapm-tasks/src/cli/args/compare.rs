//! Arguments of `compare`: the flags of training, and what is compared.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args};

use crate::System;
use crate::cli::program::{Program, TrainArgs};
use crate::run::Config as _;
use crate::run::flags::{at_least_one, manager};

/// The flags of a comparison: those of training, without the ones that differ from run to run or
/// are of one run alone.
#[derive(Args)]
#[command(args_override_self = true)]
#[command(mut_arg("nodes", |flag| renamed(flag, "run-nodes")))]
#[command(mut_arg("system", |flag| renamed(flag, "run-system")))]
#[command(mut_arg("out", |flag| renamed(flag, "run-out")))]
#[command(mut_arg("resume_run", |flag| renamed(flag, "run-resume_run")))]
#[command(mut_arg("json", |flag| renamed(flag, "run-json")))]
#[command(mut_args(|flag| if OF_ONE_RUN.contains(&flag.get_long().unwrap_or_default()) { of_one_run(flag) } else { flag }))]
pub(crate) struct CompareArgs<P: Program> {
    #[command(flatten)]
    pub(crate) train: TrainArgs<P>,
    #[command(flatten)]
    pub(crate) comparison: Comparison,
}

/// What is compared, how often, and where the results go.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = COMPARISON)]
pub(crate) struct Comparison {
    /// Systems to compare, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = SYSTEMS, value_parser = system)]
    pub(crate) systems: Vec<System>,
    /// Numbers of nodes, separated by commas; adapm on one node is always run, to compare with
    #[arg(long = "nodes", value_name = "N,N,..", value_delimiter = ',', default_values_t = [1, 2], value_parser = at_least_one)]
    pub(crate) node_counts: Vec<usize>,
    /// Runs of each system on each number of nodes, with seeds from --seed on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub(crate) runs: usize,
    /// Time after which a run is stopped, such as 90s, 2m or 4h [default: none]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) budget: Option<Duration>,
    /// Quality whose time is compared [default: chance + 0.9 (best of one node - chance)]
    #[arg(long, value_name = "FIGURE", value_parser = figure, allow_negative_numbers = true)]
    pub(crate) target: Option<f64>,
    /// Tune nups for each number of nodes before its runs, by `adapm tune nups`; how long that took
    /// is a column
    #[arg(id = "tune", long)]
    pub(crate) tunes: bool,
    /// Run each node as a process of its own
    #[arg(id = "processes", long)]
    pub(crate) as_processes: bool,
    /// Folder for all runs, tables and pictures
    #[arg(long = "out", value_name = "FOLDER", required = true)]
    pub(crate) folder: PathBuf,
    /// Go on with the comparison in --out: runs that are done are not run again
    #[arg(long)]
    pub(crate) resume: bool,
    /// Print one JSON object per run, then one per system and number of nodes; tables go to stderr
    #[arg(long = "json")]
    pub(crate) as_objects: bool,
}

impl<P: Program> CompareArgs<P> {
    /// Returns the seed of each run.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = u64> {
        let first = self.train.config.run().seed;
        (0..self.comparison.runs as u64).map(move |run| first.wrapping_add(run))
    }
}

impl Comparison {
    /// Returns the systems to compare, each once.
    pub(crate) fn systems(&self) -> Vec<System> {
        let mut systems: Vec<System> = Vec::new();
        for system in &self.systems {
            if !systems.contains(system) {
                systems.push(*system);
            }
        }
        systems
    }

    /// Returns the numbers of nodes, each once, ascending.
    pub(crate) fn node_counts(&self) -> Vec<usize> {
        let mut counts = self.node_counts.clone();
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

/// Returns a flag of training under a name that nobody gives, as `compare` has one of its own.
fn renamed(flag: Arg, long: &'static str) -> Arg {
    of_one_run(flag.long(long))
}

/// Returns a flag that is no setting of a comparison.
fn of_one_run(flag: Arg) -> Arg {
    flag.hide(true).help_heading(COMPARISON)
}

fn system(name: &str) -> Result<System, String> {
    manager(name)?.ok_or_else(|| "plain arrays are no system of a cluster: leave it out".to_owned())
}

fn span(text: &str) -> Result<Duration, &'static str> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit);
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or("give a time above 0, such as 90s, 2m or 4h")
}

fn figure(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|figure: &f64| figure.is_finite()).ok_or("give a number")
}

/// Flags of training that are of one run and its files.
pub(crate) const OF_ONE_RUN: [&str; 20] = [
    "run-nodes",
    "run-system",
    "run-out",
    "run-json",
    "run-resume_run",
    "out-local",
    "overwrite",
    "save",
    "print-config",
    "trace-keys",
    "trace",
    "node",
    "rendezvous",
    "transport",
    "token-file",
    "insecure",
    "bind",
    "advertise",
    "dead-after",
    "join-timeout",
];

const COMPARISON: &str = "Comparison";

const SYSTEMS: &str = "adapm,full,classic,lapse";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let spans = ["90s", "2m", "1.5h", "7"].map(|text| span(text).map(|span| span.as_secs()));
        assert_eq!(spans, [Ok(90), Ok(120), Ok(5_400), Ok(7)]);
        for text in ["", "s", "0", "-1m", "2d", "infs", "nan", "1e300h", "µ"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
