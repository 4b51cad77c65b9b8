//! The verb `simulate`: the paper's workloads under several systems on clusters that are not there.
//!
//! [`crew`] runs what is wanted on all cores, [`tables`] shows the figures of a workload and what the paper states beside them
//! as soon as it is done, [`json`] the same for programs, [`picture`] draws speed-up and traffic.

mod crew;
mod json;
mod picture;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use adapm_tasks::simulate::{Contender, Figures, Run, Task, paper};

use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Figures of runs, in the order in which they were asked for.
pub(crate) type Results = Vec<(Run, Figures)>;

/// Simulates everything asked for and shows what came out.
pub(crate) fn run(args: &SimulateArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    if let Some(folder) = &args.svg {
        writable(folder)?;
    }
    let wanted = wanted(args)?;
    output.text(&tables::heading(args, output))?;
    let mut statements = Vec::new();
    crew::simulate_all(&wanted, interrupt, |task, results| {
        for (run, figures) in results {
            output.object(&json::Row::new(run, figures, speed_up(results, run, figures)))?;
        }
        output.text(&tables::of_task(task, results, output))?;
        let compared = paper::compare(results);
        for statement in &compared {
            output.object(&json::Stated::new(statement))?;
        }
        output.text(&tables::beside_the_paper(&compared, output))?;
        statements.extend(compared);
        match &args.svg {
            Some(folder) => write(&folder.join(format!("{task}.svg")), &picture::draw(task, results)),
            None => Ok(()),
        }
    })?;
    output.text(&tables::closing(&statements, args.svg.as_deref(), output))
}

/// How many times faster an epoch is than on one node.
pub(crate) fn speed_up(results: &Results, run: &Run, figures: &Figures) -> Option<f64> {
    let alone = results.iter().find(|(other, _)| other.task == run.task && other.nodes == 1)?;
    Some(alone.1.epoch_seconds / figures.epoch_seconds)
}

/// One node is the same under all systems, and simulated once.
fn wanted(args: &SimulateArgs) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    let machine = args.machine.machine();
    let mut add = |task: Task, contender: Contender, nodes| {
        let (compute, round_nanos) = (args.machine.compute, args.machine.round_nanos());
        let (workers, seed) = (args.workers, args.seed);
        runs.push(Run { task, contender, nodes, workers, machine, compute, round_nanos, seed });
    };
    for task in args.tasks() {
        let systems = args.systems(task).map_err(Failure::Simulate)?;
        for nodes in args.nodes() {
            for contender in &systems[..if nodes == 1 { 1 } else { systems.len() }] {
                add(task, *contender, nodes);
            }
        }
    }
    Ok(runs)
}

/// Makes sure, before minutes of work, that pictures can be written to `folder`.
fn writable(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let probe = folder.join(format!(".adapm-{}", std::process::id()));
    fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(|error| unwritable(folder, error))
}

fn write(path: &Path, drawn: &str) -> Result<(), Failure> {
    fs::write(path, drawn).map_err(|error| unwritable(path, error))
}

fn unwritable(path: &Path, error: std::io::Error) -> Failure {
    Failure::Unwritable { flag: "--svg", path: PathBuf::from(path), error }
}
