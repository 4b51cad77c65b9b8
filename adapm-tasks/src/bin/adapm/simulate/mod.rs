//! The verb `simulate`: the paper's workloads under several systems on clusters that are not there.
//!
//! [`tables`] shows the figures and what the paper states beside them, [`json`] the same for programs, [`picture`] draws
//! speed-up and traffic. Every run is of one thread; as many go on at a time as there are cores.

mod json;
mod picture;
mod tables;

use std::fs;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use adapm_tasks::simulate::{self, Contender, Figures, Run, SimulateError, Task};
use indicatif::{ProgressBar, ProgressStyle};

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
        fs::create_dir_all(folder).map_err(|error| unwritable(folder.clone(), error))?;
    }
    let results = simulate_all(&wanted(args), interrupt)?;
    if let Some(code) = interrupt.exit_code() {
        return Err(Failure::Interrupted(code));
    }
    for (run, figures) in &results {
        output.object(&json::Row::new(run, figures, speed_up(&results, run, figures)))?;
    }
    output.text(&tables::heading(args, output))?;
    for task in args.tasks() {
        output.text(&tables::of_task(task, &results, output))?;
        if let Some(folder) = &args.svg {
            let path = folder.join(format!("{task}.svg"));
            let drawn = picture::draw(task, &results);
            fs::write(&path, drawn).map_err(|error| unwritable(path, error))?;
        }
    }
    let statements = simulate::paper::compare(&results);
    for statement in &statements {
        output.object(&json::Stated::new(statement))?;
    }
    output.text(&tables::beside_the_paper(&statements, output))
}

/// How many times faster an epoch is than on one node.
pub(crate) fn speed_up(results: &Results, run: &Run, figures: &Figures) -> Option<f64> {
    let alone = results.iter().find(|(other, _)| other.task == run.task && other.nodes == 1)?;
    Some(alone.1.epoch_seconds / figures.epoch_seconds)
}

/// One node is the same under all systems, and simulated once.
fn wanted(args: &SimulateArgs) -> Vec<Run> {
    let mut runs = Vec::new();
    let machine = args.machine.machine();
    let mut add = |task: Task, contender: Contender, nodes| {
        runs.push(Run { task, contender, nodes, workers: args.workers, machine, seed: args.seed });
    };
    for task in args.tasks() {
        for nodes in args.nodes() {
            if nodes == 1 {
                add(task, args.system[0], 1);
                continue;
            }
            for (index, contender) in args.system.iter().enumerate() {
                if contender.is_modelled_for(task) && !args.system[..index].contains(contender) {
                    add(task, *contender, nodes);
                }
            }
        }
    }
    runs
}

fn simulate_all(runs: &[Run], interrupt: &Interrupt) -> Result<Results, Failure> {
    let bar = ProgressBar::new(runs.len() as u64);
    let style = ProgressStyle::with_template("  simulating {wide_bar} {pos}/{len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let done: Mutex<Vec<(usize, Result<Figures, SimulateError>)>> = Mutex::default();
    let next = AtomicUsize::new(0);
    // The largest first: a long one at the end would leave the other cores idle.
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse((runs[*index].nodes, *index)));
    let work = || {
        while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if interrupt.exit_code().is_some() {
                return;
            }
            let run = &runs[*index];
            bar.set_message(format!("{} {} on {}", run.task, run.contender, run.nodes));
            let outcome = simulate::simulate(run);
            bar.inc(1);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((*index, outcome));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(runs.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(index, outcome)| Ok((runs[index], outcome.map_err(Failure::Simulate)?))).collect()
}

fn unwritable(path: std::path::PathBuf, error: std::io::Error) -> Failure {
    Failure::Unwritable { flag: "--svg", path, error }
}
