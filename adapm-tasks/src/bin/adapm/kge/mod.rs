//! Knowledge graph embeddings on the command line.

mod eval;
mod figures;
mod findings;
mod train;

use adapm_tasks::kge::{EpochReport, Graph, GraphOptions, Progress, Stage, Training};

use crate::args::Given;
use crate::args::kge::DataArgs;
use crate::failure::Failure;
use crate::format;
use crate::input;
use crate::progress::{EpochDone, Labels, Screen};
use crate::table::Table;

pub(crate) use figures::BEST_MRR;
pub(crate) use findings::{Finding, findings};

/// The seed that is meant if none is given.
pub(crate) const DATA_SEED: u64 = 1;

/// The name of the task.
const TASK: &str = "kge";

pub(crate) const LABELS: Labels = Labels { examples: "triples", evaluating: "ranking", quality: "MRR" };

impl Progress for Screen<'_> {
    fn training(&self, moment: &Training) {
        self.show_training(moment);
    }

    fn stage(&self, stage: Stage) {
        match stage {
            Stage::Evaluating(split, done, all) => self.show_evaluating(split, done, all),
            Stage::Working(work, done, all) => self.show_working(work, done, all),
            _ => {}
        }
    }

    fn epoch(&self, report: &EpochReport) {
        self.show_epoch(&EpochDone {
            epoch: report.epoch,
            seconds: report.seconds,
            loss: report.loss,
            examples: report.triples,
            valid: report.valid.map(|metrics| metrics.mrr),
            evaluation_seconds: report.evaluation_seconds,
            stats: report.epoch_stats,
        });
    }
}

/// Reads the graph that is asked for, or generates one.
fn graph(args: &DataArgs) -> Result<Graph, Failure> {
    let Some(name) = &args.data else { return Ok(Graph::family(args.data_seed)) };
    let mut options = GraphOptions::default();
    (options.column_order, options.seed) = (args.column_order, args.data_seed);
    let path = input::locate(TASK, name)?;
    if path.is_dir() && args.data_seed != DATA_SEED {
        return Err(Failure::SeedOfFolder(path));
    }
    Graph::load_with(&path, &options).map_err(|error| adapm_tasks::run::TaskError::Data(error).into())
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(table: &mut Table, graph: &Graph, args: &DataArgs, given: &Given) {
    let origin = input::origin(args.data.as_deref(), &["data", "column-order", "data-seed"], given);
    table.row(["data".to_owned(), graph.source().to_string(), origin]);
    let splits = format!(
        "{} train, {} valid, {} test triples; {} entities, {} relations",
        format::count(graph.train().len() as u64),
        format::count(graph.valid().len() as u64),
        format::count(graph.test().len() as u64),
        format::count(graph.entities().len() as u64),
        format::count(graph.relations().len() as u64),
    );
    table.row(["", &splits]);
    findings(graph).iter().for_each(|finding| table.row(["", finding.text.as_str()]));
}
