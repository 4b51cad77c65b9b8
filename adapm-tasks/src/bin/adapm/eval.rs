//! The verb `eval kge`.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use adapm_tasks::kge::{self, Checkpoint, EvalConfig, Graph, TaskError};
use adapm_tasks::metric::Rank;

use crate::args::{EvalArgs, Given};
use crate::failure::Failure;
use crate::format;
use crate::input;
use crate::interrupt::Interrupt;
use crate::json;
use crate::processes::{self, Processes};
use crate::progress::Screen;
use crate::report;
use crate::table::Table;

/// What is evaluated, on what, and how.
struct Plan<'a> {
    graph: &'a Graph,
    checkpoint: &'a Checkpoint,
    config: &'a EvalConfig,
}

/// Evaluates the parameters of a file, prints the figures and writes the ranks if asked to.
pub(crate) fn run(args: &EvalArgs, given: &Given, interrupt: &Interrupt) -> Result<(), Failure> {
    processes::with(&args.processes, args.cluster.nodes, interrupt, |processes| {
        evaluate(args, given, processes, interrupt)
    })
}

fn evaluate(
    args: &EvalArgs,
    given: &Given,
    processes: &Processes,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let output = processes.output(args.json);
    let mut config = EvalConfig::default();
    config.system = Some(args.cluster.system);
    config.nodes = processes.nodes(args.cluster.nodes);
    config.workers = args.cluster.workers;
    config.split = args.split;
    let ranks = args.ranks.as_deref().filter(|_| processes.is_first());
    input::probe_writable("--ranks", ranks)?;
    let checkpoint = Checkpoint::load(&args.load).map_err(TaskError::Checkpoint)?;
    let graph = input::graph(&args.data, output, interrupt)?;
    let plan = Plan { graph: &graph, checkpoint: &checkpoint, config: &config };
    let opening = describe(&plan, args, given, processes);

    let screen = Screen::new("eval", output, interrupt.stop()).opening(opening);
    let stop = interrupt.stop();
    let evaluated = match processes.company() {
        None => kge::evaluate(&graph, &checkpoint, &config, &screen, stop),
        Some(company) => kge::evaluate_in_group(&graph, &checkpoint, &config, &company.group, &screen, stop),
    }?;
    screen.open();
    let shown = screen.finish();
    if let Some(path) = ranks.filter(|_| !evaluated.stopped) {
        write_ranks(path, &evaluated.ranks).map_err(|error| Failure::Unwritable {
            flag: "--ranks",
            path: path.to_path_buf(),
            error,
        })?;
    }
    shown?;
    output.text(&report::evaluation_result(output, &graph, config.split, &evaluated, processes))?;
    output.object(&json::Evaluation::new(&graph, &checkpoint, &config, &evaluated, processes))?;
    interrupt.exit_code().map_or(Ok(()), |code| Err(Failure::Interrupted(code)))
}

fn describe(plan: &Plan<'_>, args: &EvalArgs, given: &Given, processes: &Processes) -> String {
    let Plan { graph, checkpoint, config } = plan;
    let mut table = Table::new(&[]);
    report::describe_data(&mut table, graph, input::origin(&args.data, given));
    let model = format!("{}, {} reals an entity", checkpoint.model(), checkpoint.dim());
    table.row(["model".into(), model, format!("--load {}", args.load.display())]);
    let cluster = report::crew(processes, config.nodes, config.workers);
    table.row(["cluster".into(), cluster, given.among(&report::CLUSTER_FLAGS)]);
    let system = config.system.map_or("none", |system| system.name());
    table.row(["system", system, &given.among(&["system"])]);
    let split = format!(
        "{} of {split}",
        format::count(
            match config.split {
                kge::Split::Valid => graph.valid().len() as u64,
                _ => graph.test().len() as u64,
            } * 2
        ),
        split = config.split
    );
    table.row(["queries".into(), split, given.among(&["split"])]);
    format!("{}\n{}\n", processes.output(args.json).bold("eval kge"), table.render())
}

/// One rank a line, ties counted half.
fn write_ranks(path: &Path, ranks: &[Rank]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for rank in ranks {
        writeln!(file, "{}", rank.mean())?;
    }
    file.flush()
}
