//! The verb `simulate`: the paper's workloads under several systems on clusters that are not there.
//!
//! Threads run what is wanted on all cores, one run each at a time; [`tables`] shows the figures of
//! a workload and what the paper states beside them as soon as it is done, and the same for
//! programs; [`picture`] draws speed-up and traffic.
//!
//! Workloads are done one after another, the largest cluster of each first: a long run at the end
//! would leave cores idle. A workload is handed on as soon as all its runs are done. Threads that
//! still simulate when the verb ends early end with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::files::OutputError;
use crate::measure::simulate::{self, Contender, Figures, Run, SimulateError, Task, paper};
use crate::run::TaskError;
use adapm_transport::threads;

use crate::cli::args::SimulateArgs;
use crate::cli::failure::Failure;
use crate::cli::files::Files;
use crate::cli::files::Outputs;
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::simulate::results::{Results, speed_up};
use crate::cli::output::Output;
use crate::cli::painter::{Moment, Painter, Step};

mod picture;
mod results;
mod tables;

/// Simulates everything asked for and shows what came out.
pub(crate) fn run(args: &SimulateArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(args.json);
    let mut pictures = pictures(args, interrupt)?;
    let wanted = wanted(args);
    output.text(&tables::heading(args, output))?;
    let mut statements = Vec::new();
    simulate_all(&wanted, interrupt, |task, results| {
        for (run, figures) in results {
            output.object(&tables::Row::new(run, figures, speed_up(results, run, figures)))?;
        }
        output.text(&tables::of_task(task, results, output))?;
        let compared = paper::compare(results);
        for statement in &compared {
            output.object(statement)?;
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

/// One node is the same under all systems, and simulated once.
fn wanted(args: &SimulateArgs) -> Vec<Run> {
    let mut runs = Vec::new();
    let machine = args.machine.machine();
    let mut add = |task: Task, contender: Contender, nodes| {
        let (compute, round_nanos) = (args.machine.compute, args.machine.round_nanos());
        let (workers, seed) = (args.workers, args.seed);
        runs.push(Run { task, contender, nodes, workers, machine, compute, round_nanos, seed });
    };
    for task in args.tasks() {
        let systems = args.systems(task);
        for nodes in args.nodes() {
            for contender in &systems[..if nodes == 1 { 1 } else { systems.len() }] {
                add(task, *contender, nodes);
            }
        }
    }
    runs
}

/// Returns the picture of each task, before minutes of work.
fn pictures(args: &SimulateArgs, interrupt: &Interrupt) -> Result<Vec<(Task, Outputs)>, Failure> {
    let Some(folder) = &args.svg else { return Ok(Vec::new()) };
    let refused = |error| Failure::Unwritable { flag: "--svg", path: folder.clone(), error };
    fs::create_dir_all(folder).map_err(|error| refused(OutputError::Refused(error)))?;
    let prepare = |task: Task| {
        let path = folder.join(format!("{task}.svg"));
        let files = Files { written: vec![("--svg", &path)], ..Files::default() };
        Ok((task, Outputs::prepare(&files, interrupt)?))
    };
    args.tasks().into_iter().map(prepare).collect()
}

/// A message of a thread: the start of the run at this place, or its result.
enum News {
    Begun(usize),
    Done(usize, Result<Figures, SimulateError>),
}

/// Simulates `runs`, and calls `show` for each workload with the figures of its runs.
fn simulate_all(
    runs: &[Run],
    interrupt: &Interrupt,
    mut show: impl FnMut(Task, &Results) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let painter = Painter::new();
    let (began, mut running) = (Instant::now(), String::new());
    let news = start(runs)?;
    let mut figures: Vec<Option<Figures>> = vec![None; runs.len()];
    let mut left = runs.len();
    while left > 0 {
        if let Some(code) = interrupt.exit_code() {
            painter.show(&Moment::Over);
            return Err(Failure::Interrupted(code));
        }
        match news.recv_timeout(TICK) {
            Ok(News::Begun(at)) => running = name(&runs[at]),
            Ok(News::Done(at, outcome)) => {
                figures[at] = Some(outcome.map_err(Failure::Simulate)?);
                left -= 1;
                let task = runs[at].task;
                let of_task = || runs.iter().zip(&figures).filter(|(run, _)| run.task == task);
                let results: Results =
                    of_task().filter_map(|(run, done)| Some((*run, (*done)?))).collect();
                if results.len() == of_task().count() {
                    painter
                        .aside(|| show(task, &results))
                        .inspect_err(|_| painter.show(&Moment::Over))?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("threads tell of every run"),
        }
        painter.show(&moment(runs.len(), left, began, &running));
    }
    painter.show(&Moment::Over);
    Ok(())
}

/// Starts as many threads as there are cores, or as the system grants.
fn start(runs: &[Run]) -> Result<mpsc::Receiver<News>, Failure> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| (runs[*at].task, std::cmp::Reverse((runs[*at].nodes, *at))));
    let order: Arc<[(usize, Run)]> = order.into_iter().map(|at| (at, runs[at])).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, news) = mpsc::channel();
    for index in 0..thread::available_parallelism().map_or(1, usize::from).min(runs.len()) {
        let (order, next, sender) = (Arc::clone(&order), Arc::clone(&next), sender.clone());
        match threads::spawn("adapm simulate", move || work(&order, &next, &sender)) {
            Err(refusal) if index == 0 => return Err(Failure::Task(TaskError::Thread(refusal))),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(news)
}

fn work(order: &[(usize, Run)], next: &AtomicUsize, news: &Sender<News>) {
    while let Some((at, run)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
        // The receiver is gone if another run has failed.
        if news.send(News::Begun(*at)).is_err()
            || news.send(News::Done(*at, simulate::simulate(run))).is_err()
        {
            return;
        }
    }
}

/// Returns the progress to show.
fn moment(all: usize, left: usize, began: Instant, running: &str) -> Moment {
    let elapsed = format::whole_seconds(began.elapsed().as_secs_f64());
    let beside = vec![format!("{} of {all} runs", all - left), elapsed];
    let (name, below) = ("simulate".to_owned(), vec![running.to_owned()]);
    Moment::Step(Step { name, done: (all - left) as u64, all: all as u64, beside, below })
}

fn name(run: &Run) -> String {
    format!("{} under {} on {} nodes", run.task, run.contender, run.nodes)
}

/// The interval at which the display is renewed and a Ctrl-C noticed.
const TICK: Duration = Duration::from_millis(200);
