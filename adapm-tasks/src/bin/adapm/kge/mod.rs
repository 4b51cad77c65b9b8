//! Knowledge graph embeddings on the command line: what is found in a graph, and figures over ranks, for people and for programs.

use adapm_tasks::kge::{Graph, GraphFiles, GraphOptions, GraphSource};
use adapm_tasks::metric::RankMetrics;
use adapm_tasks::run::TaskError;
use serde::Serialize;

use crate::args::Given;
use crate::args::kge::DataArgs;
use crate::failure::Failure;
use crate::progress::{Figure, Labels};
use crate::table::{Align, Table};
use crate::{format, input};

mod eval;
mod train;

/// The seed that is meant if none is given.
pub(crate) const DATA_SEED: u64 = 1;

/// The name of the task.
const TASK: &str = "kge";

pub(crate) const LABELS: Labels = Labels { examples: "triples", evaluating: "ranking", quality: "MRR" };

impl Figure for RankMetrics {
    /// Two queries a triple.
    const COUNTED: u64 = 2;

    fn figure(&self) -> f64 {
        self.mrr
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
    Graph::load_with(&path, &options).map_err(|error| TaskError::Data(error).into())
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

/// Means over ranks.
#[derive(Serialize)]
pub(super) struct Quality {
    mrr: Option<f64>,
    mrr_optimistic: Option<f64>,
    mrr_pessimistic: Option<f64>,
    hits_at_1: Option<f64>,
    hits_at_3: Option<f64>,
    hits_at_10: Option<f64>,
    /// What ranking by frequency reaches.
    baseline_mrr: Option<f64>,
    /// The best that is possible, where it is known: on generated data.
    best_mrr: Option<f64>,
}

impl Quality {
    pub(super) fn new(
        metrics: Option<&RankMetrics>,
        baseline: Option<&RankMetrics>,
        is_generated: bool,
    ) -> Self {
        Self {
            mrr: metrics.map(|metrics| metrics.mrr),
            mrr_optimistic: metrics.map(|metrics| metrics.mrr_optimistic),
            mrr_pessimistic: metrics.map(|metrics| metrics.mrr_pessimistic),
            hits_at_1: metrics.map(|metrics| metrics.hits_at_1),
            hits_at_3: metrics.map(|metrics| metrics.hits_at_3),
            hits_at_10: metrics.map(|metrics| metrics.hits_at_10),
            baseline_mrr: baseline.map(|metrics| metrics.mrr),
            best_mrr: is_generated.then_some(BEST_MRR),
        }
    }
}

/// A row per split that was evaluated, and what ranking by frequency reaches on the last; empty if none was.
pub(super) fn table(
    splits: &[(&str, Option<&RankMetrics>)],
    baseline: Option<(&RankMetrics, f32)>,
    is_generated: bool,
) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
    let mut any = false;
    for (split, metrics) in splits {
        let Some(metrics) = metrics else { continue };
        if !any {
            table.row(["filtered", "MRR", "Hits@1", "Hits@3", "Hits@10"]);
            any = true;
        }
        let mut row = figures(split, metrics);
        if metrics.has_ties() {
            let (worst, best) = (metrics.mrr_pessimistic, metrics.mrr_optimistic);
            row.push(format!("pessimistic {worst:.4}, optimistic {best:.4}"));
        }
        table.row(row);
    }
    if !any {
        return String::new();
    }
    if let Some((baseline, weight)) = baseline {
        let mut row = figures("by frequency", baseline);
        row.push(match weight {
            0.0 => "the obvious baseline".to_owned(),
            weight if weight > 1.0 => "decides above".to_owned(),
            weight => format!("weighs {weight} above"),
        });
        table.row(row);
    }
    if is_generated {
        table.row(["best possible".to_owned(), format::figure(BEST_MRR)]);
    }
    table.render() + "\n"
}

fn figures(name: &str, metrics: &RankMetrics) -> Vec<String> {
    let RankMetrics { mrr, hits_at_1, hits_at_3, hits_at_10, .. } = *metrics;
    let figures = [mrr, hits_at_1, hits_at_3, hits_at_10].map(format::figure);
    [name.to_owned()].into_iter().chain(figures).collect()
}

/// Something that was found.
pub(crate) struct Finding {
    /// Without a name of the data.
    pub(crate) text: String,
    /// It may make figures wrong: something is repeated, unknown, or missing.
    pub(crate) is_problem: bool,
}

impl Finding {
    pub(crate) fn note(text: String) -> Self {
        Self { text, is_problem: false }
    }

    pub(crate) fn problem(text: String) -> Self {
        Self { text, is_problem: true }
    }
}

/// What was found while the graph was read.
pub(crate) fn findings(graph: &Graph) -> Vec<Finding> {
    let mut findings = match graph.source() {
        GraphSource::Files(files) => of_files(files, [graph.valid().is_empty(), graph.test().is_empty()]),
        _ => Vec::new(),
    };
    let counts = graph.counts();
    let problems = [
        (counts.duplicates, "repeated in train, trained on once"),
        (counts.duplicates_valid, "repeated in valid, kept"),
        (counts.duplicates_test, "repeated in test, kept"),
        (counts.overlap_valid, "of valid are in train, too, kept"),
        (counts.overlap_test, "of test are in train, too, kept: figures are too good"),
        (counts.valid_in_test, "of valid are in test, too, kept"),
        (counts.unknown_valid, "of valid with a name unknown to train, kept"),
        (counts.unknown_test, "of test with a name unknown to train, kept"),
    ];
    let found = problems.into_iter().filter(|(count, _)| *count > 0);
    findings.extend(found.map(|(count, text)| Finding::problem(format!("{} {text}", format::count(count)))));
    if counts.unknown_entities + counts.unknown_relations > 0 {
        let names = [(counts.unknown_entities, "entity"), (counts.unknown_relations, "relation")];
        let names = names.into_iter().filter(|(count, _)| *count > 0);
        let names: Vec<String> = names.map(|(count, name)| format::plural(count as usize, name)).collect();
        findings.push(Finding::problem(format!("{} unknown to train", names.join(" and "))));
    }
    findings
}

/// How files were read.
fn of_files(files: &GraphFiles, [has_no_valid, has_no_test]: [bool; 2]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(seed) = files.split_seed {
        findings.push(Finding::note(format!(
            "one file, split 80/10/10 by seed {seed}; no name is unknown to train"
        )));
    }
    let [_, valid, _] = &files.files;
    let name = valid.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    if let Some(name) = name.filter(|name| name.starts_with("dev.")) {
        findings.push(Finding::note(format!("{name} is valid")));
    }
    if files.header.is_some() {
        findings.push(Finding::note("the first line names the columns, skipped".to_owned()));
    }
    if !files.unused.is_empty() {
        findings.push(Finding::note(format!("columns not used: {}", files.unused.join(", "))));
    }
    if files.trimmed > 0 {
        let names = format::plural(files.trimmed as usize, "name");
        findings.push(Finding::note(format!("{names} with blanks at an end, cut off")));
    }
    if has_no_valid {
        findings.push(Finding::problem("no valid triples: training selects on triples held back".to_owned()));
    }
    if has_no_test {
        findings.push(Finding::problem("no test triples: nothing to report on".to_owned()));
    }
    findings
}

/// Each held-out fact of generated family trees follows from a training fact.
pub(crate) const BEST_MRR: f64 = 1.0;
