//! Training runs, each a command as a user would give it, in turns.

use std::io::{self, Write as _};
use std::process::Command;

use crate::measure::bench::{Figure, Goal, Outcome};
use console::style;
use rustix::process::Signal;
use serde_json::Value;

use super::child;
use super::job::Way;
use crate::cli::data::sets::Task;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::bench::child::ChildError;

/// Trains in all ways, in turns, and reports the rates of each and what several nodes cost.
pub(super) fn measure(
    job: Task,
    is_quick: bool,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Outcome),
) -> Result<(), Failure> {
    let (flags, data) = job.flags(is_quick);
    let mut runs = Way::ALL.map(|way| (way, Vec::new()));
    for _ in 0..job.rounds(is_quick) {
        for (way, runs) in &mut runs {
            let run = train(job, *way, &flags, job.warm_up(is_quick), interrupt)?;
            runs.push(run);
        }
    }
    let find =
        |way: Way| runs.iter().find(|(other, _)| *other == way).map(|(_, runs)| runs.as_slice());
    for (way, runs) in &runs {
        let (_, unit, _) = job.rate();
        let mut figure = Figure::new(format!("{data}, {}", way.name()), unit, rate(runs));
        let compared = match *way {
            Way::Nodes(_) => Some((Way::Workers(2), None)),
            way => job.goal(way).map(|(other, share)| (other, Some(share))),
        };
        if let Some((other, share)) = compared {
            let others = find(other).unwrap_or_default();
            let floor = rate(others);
            figure = figure.beside(floor);
            figure.ratio_of_turns = Some(by_turns(runs, others));
            figure.goal = share.map(|share| Goal::AtLeast(share * floor));
        }
        figure.reference = job.reference(*way);
        tell(Outcome::Measured(figure));
        if let Way::Processes(_) = way {
            let alone = find(Way::Workers(2)).unwrap_or_default();
            costs(job, *way, runs, alone)
                .into_iter()
                .for_each(|figure| tell(Outcome::Measured(figure)));
        }
    }
    Ok(())
}

/// Lists the costs of several nodes besides time.
fn costs(job: Task, way: Way, runs: &[Run], alone: &[Run]) -> Vec<Figure> {
    let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let what = |what: &str| format!("  {what}, {}", way.name());
    let mut figures = Vec::new();
    if let Some((_, name, less)) = job.quality() {
        let quality = |runs: &[Run]| median(runs.iter().map(|run| run.quality).collect());
        let figure = Figure::new(what(name), "", quality(runs)).beside(quality(alone));
        figures.push(figure.towards(Goal::AtLeast(quality(alone) - less)));
    }
    let bounds = job.staleness().map(|bounds| bounds.map(Goal::AtMost));
    for (at, name) in ["staleness, mean", "staleness, 99 % below"].into_iter().enumerate() {
        let mut staleness = Figure::new(what(name), "ms", mean(&|run| run.staleness[at] * 1e3));
        staleness.goal = bounds.map(|bounds| bounds[at]);
        figures.push(staleness);
    }
    let mut traffic = Figure::new(what("per node and epoch"), "MB", mean(&|run| run.bytes / 1e6));
    let (reference, bound) = job.traffic();
    (traffic.reference, traffic.goal) = (reference, bound.map(Goal::AtMost));
    figures.push(traffic);
    let late =
        Figure::new(what("waited or remote"), "% of accesses", mean(&|run| run.late * 100.0));
    figures.push(late.towards(Goal::AtMost(0.01)));
    figures
}

/// The figures of a run over the epochs that count.
struct Run {
    rates: Vec<f64>,
    quality: f64,
    /// In seconds: the mean, and what 99 % are below.
    staleness: [f64; 2],
    /// Of a node in an epoch.
    bytes: f64,
    /// Share of the accesses that waited or were remote.
    late: f64,
}

/// Trains once.
fn train(
    job: Task,
    way: Way,
    flags: &[String],
    warm_up: usize,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    let mut words = way.words(flags);
    words.push("--json".to_owned());
    let has_quality = job.quality().is_some() && matches!(way, Way::Workers(2) | Way::Processes(_));
    if !has_quality {
        words.push("--no-eval".to_owned());
    }
    let command = format!("adapm {}", words.join(" "));
    // Shows the user what the program waits for.
    let _ = writeln!(io::stderr(), "{}", style(format!("  {command}")).dim().for_stderr());
    let program = std::env::current_exe()
        .map_err(|error| Failure::Child(ChildError::start("adapm", error)))?;
    let printed =
        child::run(Command::new(program).args(&words), &command, Signal::TERM, interrupt)?;
    let (examples, _, scale) = job.rate();
    let quality = job.quality().map_or("", |(field, ..)| field);
    read(&printed, warm_up, examples, scale, quality)
        .ok_or(Failure::Child(ChildError::Output { command }))
}

/// Parses the output of `train --json`.
fn read(printed: &str, warm_up: usize, examples: &str, scale: f64, quality: &str) -> Option<Run> {
    let lines: Vec<Value> =
        printed.lines().map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    let (last, epochs) = lines.split_last()?;
    let epochs = epochs.get(warm_up..).filter(|epochs| !epochs.is_empty())?;
    let number = |object: &Value, field: &str| object.get(field).and_then(Value::as_f64);
    let mut run = Run {
        rates: Vec::new(),
        quality: number(last, quality).unwrap_or(f64::NAN),
        staleness: [0.0; 2],
        bytes: 0.0,
        late: 0.0,
    };
    let nodes = number(last, "nodes")?;
    let count = epochs.len() as f64;
    let (mut late, mut local) = (0.0, 0.0);
    for epoch in epochs {
        run.rates.push(number(epoch, examples)? / number(epoch, "seconds")? / scale);
        for (sum, field) in run.staleness.iter_mut().zip(["staleness_mean", "staleness_p99"]) {
            *sum += number(epoch, field).unwrap_or(0.0) / count;
        }
        run.bytes += number(epoch, "bytes_sent")? / count / nodes;
        late += number(epoch, "waited")? + number(epoch, "remote")?;
        local += number(epoch, "local")?;
    }
    run.late = late / f64::max(late + local, 1.0);
    Some(run)
}

/// Returns the median of what all epochs of some runs reached.
fn rate(runs: &[Run]) -> f64 {
    median(runs.iter().flat_map(|run| run.rates.iter().copied()).collect())
}

/// Returns the median of how many times the rate of others some runs reached, turn by turn: a turn
/// takes a minute, in which the machine's speed changes less than in all of them.
fn by_turns(runs: &[Run], others: &[Run]) -> f64 {
    let rate = |run: &Run| median(run.rates.clone());
    median(runs.iter().zip(others).map(|(run, other)| rate(run) / rate(other)).collect())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"
{"epoch":1,"seconds":9.0,"triples":1000,"local":10,"waited":5,"remote":5,"bytes_sent":900,"staleness_mean":1.0}
{"epoch":2,"seconds":2.0,"triples":1000,"local":98,"waited":1,"remote":1,"bytes_sent":600,"staleness_mean":0.002,"staleness_p99":0.02}
{"epoch":3,"seconds":4.0,"triples":1000,"local":100,"waited":0,"remote":0,"bytes_sent":200,"staleness_mean":0.004,"staleness_p99":0.04}
{"nodes":2,"mrr":0.25}"#;

    #[test]
    fn epochs_behind_the_first_count() {
        let run =
            read(PRINTED.trim_start(), 1, "triples", 1e3, "mrr").expect("it is what train prints");
        assert_eq!(run.rates, [0.5, 0.25]);
        assert_eq!((run.bytes, run.late, run.quality), (200.0, 0.01, 0.25));
        assert!(
            run.staleness.iter().zip([0.003, 0.03]).all(|(is, meant)| (is - meant).abs() < 1e-12)
        );
        assert_eq!(rate(&[run]), 0.5);
    }

    #[test]
    fn ratios_are_of_runs_of_one_turn() {
        let run = |rate: f64| Run {
            rates: vec![rate],
            quality: 0.0,
            staleness: [0.0; 2],
            bytes: 0.0,
            late: 0.0,
        };
        let (ours, others) = ([run(9.0), run(4.0), run(2.0)], [run(10.0), run(5.0), run(20.0)]);
        assert_eq!(by_turns(&ours, &others), 0.8);
        assert!(by_turns(&ours, &[]).is_nan());
    }

    #[test]
    fn what_is_no_run_is_none() {
        assert!(read("", 0, "triples", 1.0, "mrr").is_none());
        assert!(read("no JSON", 0, "triples", 1.0, "mrr").is_none());
        assert!(read(PRINTED.trim_start(), 0, "cells", 1.0, "mrr").is_none());
        assert!(read(PRINTED.trim_start(), 3, "triples", 1.0, "mrr").is_none());
    }
}
