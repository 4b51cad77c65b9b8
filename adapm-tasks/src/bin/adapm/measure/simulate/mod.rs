//! The verb `simulate`: the paper's workloads under several systems on clusters that are not there.
//!
//! [`crew`] runs what is wanted on all cores, [`tables`] shows the figures of a workload and what the paper states beside them
//! as soon as it is done, [`json`] the same for programs, [`picture`] draws speed-up and traffic.

mod crew;
mod picture;
mod tables;

use std::fs;

use adapm_tasks::files::OutputError;
use adapm_tasks::measure::simulate::{Contender, Figures, Run, Task, paper};

use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::files::{Files, Outputs};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Figures of runs, in the order in which they were asked for.
pub(crate) type Results = Vec<(Run, Figures)>;

/// Simulates everything asked for and shows what came out.
pub(crate) fn run(args: &SimulateArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    let mut pictures = pictures(args, interrupt)?;
    let wanted = wanted(args)?;
    output.text(&tables::heading(args, output))?;
    let mut statements = Vec::new();
    crew::simulate_all(&wanted, interrupt, |task, results| {
        for (run, figures) in results {
            output.object(&tables::Row::new(run, figures, speed_up(results, run, figures)))?;
        }
        output.text(&tables::of_task(task, results, output))?;
        let compared = paper::compare(results);
        for statement in &compared {
            output.object(&tables::Stated::new(statement))?;
        }
        output.text(&tables::beside_the_paper(&compared, output))?;
        statements.extend(compared);
        let Some(at) = pictures.iter().position(|(of, _)| *of == task) else { return Ok(()) };
        let (_, mut outputs) = pictures.swap_remove(at);
        let drawn = picture::draw(task, results);
        outputs.save("--svg", "pictures", |file| file.write_all(drawn.as_bytes()));
        outputs.finish()
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

/// The picture of each task, before minutes of work.
fn pictures(args: &SimulateArgs, interrupt: &Interrupt) -> Result<Vec<(Task, Outputs)>, Failure> {
    let Some(folder) = &args.svg else { return Ok(Vec::new()) };
    let refused = |error| Failure::Unwritable { flag: "--svg", path: folder.clone(), error };
    fs::create_dir_all(folder).map_err(|error| refused(OutputError::Refused(error)))?;
    let prepare = |task: Task| {
        let path = folder.join(format!("{task}.svg"));
        let files = Files { written: vec![("--svg", &path)], ..Files::default() };
        Ok((task, files.prepare(interrupt)?))
    };
    args.tasks().into_iter().map(prepare).collect()
}
