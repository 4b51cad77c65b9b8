//! Knowledge graph embeddings on the command line: how they are trained and evaluated, what is
//! found in a graph, and figures over ranks, for people and for programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use adapm_core::Key;
use clap::Args;
use serde::Serialize;

use crate::Scheme;
use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::program::{
    Error, EvalArgs, EvalReportOf, Finding, Model, Plan, Program, ReportOf, Source, TrainArgs,
};
use crate::cli::table::{Align, Table};
use crate::cli::{format, input};
use crate::data::triples::ColumnOrder;
use crate::kge::checkpoint::Checkpoint;
use crate::kge::config::{EvalConfig, Negatives, TrainConfig};
use crate::kge::graph::{Graph, GraphFiles, GraphOptions, GraphSource};
use crate::kge::task::{KEY_KINDS, traced_keys};
use crate::kge::training::{self, EvalReport, Found, NAME, Ranked, TrainReport};
use crate::metric::{Rank, RankMetrics};
use crate::run::flags::one_of;
use crate::run::{ClusterConfig, KeyChoice, Run, Split, TaskError, UnknownKey};

pub(crate) const LABELS: Labels =
    Labels { examples: "triples", evaluating: "ranking", items: "queries", quality: "MRR" };

impl Figures for RankMetrics {
    /// Two queries a triple.
    const COUNTED: u64 = 2;

    fn figure(&self) -> f64 {
        self.mrr
    }

    fn items(&self) -> u64 {
        self.queries
    }
}

impl Model for Checkpoint {
    fn write_to(&self, file: &mut dyn Write) -> io::Result<()> {
        Checkpoint::write_to(self, file).map(drop)
    }
}

/// Flags that choose a graph.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Folder with train, valid (or dev), test (.txt, .tsv, .csv, .del, also .gz); one file of
    /// triples, which is split 80/10/10; or its name in $ADAPM_DATA/kge; none: generated family
    /// trees
    #[arg(long, value_name = "PATH|NAME")]
    data: Option<PathBuf>,
    /// Columns of the files, where no first line names them: head, relation, tail, or OpenKE's
    /// head, tail, relation
    #[arg(long, value_name = "ORDER", value_parser = one_of::<ColumnOrder>(&["hrt", "htr"]), requires = "data")]
    column_order: Option<ColumnOrder>,
    /// Seed of the generated graph, or of the split of one file
    #[arg(long, value_name = "N", default_value_t = DATA_SEED)]
    data_seed: u64,
}

/// Flags of an evaluation.
#[derive(Debug, Args)]
pub struct EvalFlags {
    #[command(flatten)]
    data: DataArgs,
    /// Part of the data to rank
    #[arg(long, value_name = "PART", default_value_t, value_parser = one_of::<Split>(Split::NAMES), help_heading = "Data")]
    split: Split,
    /// Write the ranks to FILE, one a line: of each triple its object's, then its subject's
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    ranks: Option<PathBuf>,
}

impl DataArgs {
    /// Reads the graph that is asked for, or generates one.
    pub(crate) fn read(&self) -> Result<(Graph, Source), Failure> {
        let graph = match &self.data {
            None => Graph::family(self.data_seed),
            Some(name) => {
                let mut options = GraphOptions::default();
                (options.column_order, options.seed) = (self.column_order, self.data_seed);
                let path = input::locate(NAME, name)?;
                if path.is_dir() && self.data_seed != DATA_SEED {
                    return Err(Failure::SeedOfFolder(path));
                }
                Graph::load_with(&path, &options).map_err(TaskError::Data)?
            }
        };
        let (text, is_generated) = (graph.source().to_string(), graph.is_generated());
        Ok((graph, Source { text, is_generated }))
    }

    fn files(&self) -> Vec<(&'static str, &Path)> {
        Files::given([("--data", &self.data)])
    }
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(plan: &mut Plan<'_>, graph: &Graph, args: &DataArgs) {
    plan.data(args.data.as_deref(), &["data", "column-order", "data-seed"]);
    let splits = format!(
        "{} train, {} valid, {} test triples; {} entities, {} relations",
        format::count(graph.train().len() as u64),
        format::count(graph.valid().len() as u64),
        format::count(graph.test().len() as u64),
        format::count(graph.entities().len() as u64),
        format::count(graph.relations().len() as u64),
    );
    plan.note("", &splits);
    findings(graph).iter().for_each(|finding| plan.note("", &finding.text));
}

/// Means over ranks.
#[derive(Serialize)]
pub(crate) struct Quality {
    mrr: Option<f64>,
    mrr_optimistic: Option<f64>,
    mrr_pessimistic: Option<f64>,
    hits_at_1: Option<f64>,
    hits_at_3: Option<f64>,
    hits_at_10: Option<f64>,
    /// The figure of ranking by frequency.
    baseline_mrr: Option<f64>,
    /// The best that is possible, where it is known: on generated data.
    best_mrr: Option<f64>,
}

impl Quality {
    pub(crate) fn new(
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

/// Returns a row per split that was evaluated, and what ranking by frequency reaches on the last;
/// empty if none was.
pub(crate) fn table(
    splits: &[(&str, Option<&RankMetrics>)],
    baseline: Option<(&RankMetrics, f32)>,
    is_generated: bool,
) -> String {
    let mut table =
        Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
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

/// Lists the findings of reading a graph.
pub(crate) fn findings(graph: &Graph) -> Vec<Finding> {
    let mut findings = match graph.source() {
        GraphSource::Files(files) => {
            of_files(files, [graph.valid().is_empty(), graph.test().is_empty()])
        }
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
    findings.extend(
        found.map(|(count, text)| Finding::problem(format!("{} {text}", format::count(count)))),
    );
    if counts.unknown_entities + counts.unknown_relations > 0 {
        let names = [(counts.unknown_entities, "entity"), (counts.unknown_relations, "relation")];
        let names = names.into_iter().filter(|(count, _)| *count > 0);
        let names: Vec<String> =
            names.map(|(count, name)| format::plural(count as usize, name)).collect();
        findings.push(Finding::problem(format!("{} unknown to train", names.join(" and "))));
    }
    findings
}

/// Lists the findings about the files of a graph.
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
        findings.push(Finding::problem(
            "no valid triples: training selects on triples held back".to_owned(),
        ));
    }
    if has_no_test {
        findings.push(Finding::problem("no test triples: nothing to report on".to_owned()));
    }
    findings
}

/// Knowledge graph embeddings as a program.
#[derive(Debug)]
pub enum Kge {}

impl Program for Kge {
    const NAME: &'static str = NAME;
    const LABELS: Labels = LABELS;
    const DEALS_BY_PARTITION: bool = true;
    const KEY_KINDS: &'static [&'static str] = KEY_KINDS;
    type TrainFlags = DataArgs;
    type Config = TrainConfig;
    type Data = Graph;
    type Figures = RankMetrics;
    type Model = Checkpoint;
    type Extra = Found;
    type EvalFlags = EvalFlags;
    type EvalData = (Checkpoint, Graph);
    type EvalExtra = Ranked;

    fn read(args: &TrainArgs<Self>) -> Result<(Graph, Source), Error> {
        Ok(args.flags.read()?)
    }

    fn plan(args: &TrainArgs<Self>, config: &TrainConfig, graph: &Graph, plan: &mut Plan<'_>) {
        describe(plan, graph, &args.flags);
        let reciprocal = if config.reciprocal { ", reciprocal relations" } else { "" };
        let model = format!("{}, {} reals an entity{reciprocal}", config.model, config.dim);
        plan.row("model", &model, &["model", "dim", "reciprocal", "initial-deviation"]);
        let mut training =
            format!("{} loss, AdaGrad, learning rate {}", config.loss, config.learning_rate);
        let l2 = [("L2", config.l2_entity), ("relation L2", config.l2_relation)];
        for (name, weight) in l2.into_iter().chain([("N3", config.n3_of())]) {
            if weight != 0.0 {
                training.push_str(&format!(", {name} {weight}"));
            }
        }
        let flags = ["loss", "learning-rate", "l2-entity", "l2-relation", "n3"];
        plan.row("training", &training, &flags);
        let held_back = config.held_back_of(graph.train().len(), graph.valid().len());
        let train = graph.train().len() - held_back;
        let negatives = negatives(config, train, graph.entities().len(), plan.workers);
        let flags = ["negatives", "negative-count", "sampling", "chunk"];
        plan.row("negatives", &negatives, &flags);
        plan.warn_of_sampling(config.sampling(), &config.cluster);
        let valid = graph.valid().len().max(held_back);
        let every = config.valid_every_of(train, valid, graph.entities().len());
        let epochs = match valid {
            _ if config.run.no_eval => format!("{}, not evaluated", config.epochs),
            0 => format!("{}, the last one is taken", config.epochs),
            _ if held_back > 0 => {
                format!("{}, {held_back} triples held back from train every {every}", config.epochs)
            }
            _ => format!("{}, valid every {every}", config.epochs),
        };
        plan.row("epochs", &epochs, &["epochs", "valid-every", "no-eval"]);
    }

    fn train(
        graph: &Graph,
        config: &TrainConfig,
        run: &Run<'_, RankMetrics>,
    ) -> Result<TrainReport, TaskError> {
        training::train(graph, config, run)
    }

    fn quality(graph: &Graph, report: &ReportOf<Self>) -> String {
        let found = &report.own;
        let valid = if found.held_back > 0 { "held back" } else { "valid" };
        let splits = [(valid, report.chosen_valid()), ("test", report.test.as_ref())];
        let baseline = found.baseline.as_ref().map(|baseline| (baseline, found.frequency_weight));
        table(&splits, baseline, graph.is_generated())
    }

    fn object(graph: &Graph, config: &TrainConfig, report: &TrainReport) -> impl Serialize {
        let found = &report.own;
        OfRun {
            seed: config.run.seed,
            model: config.model.name(),
            dim: config.dim,
            held_back: found.held_back,
            frequency_weight: found.frequency_weight,
            negatives: config.negatives.name(),
            negative_count: found.negatives,
            chunk: found.chunk,
            sampling: config.sampling().map(Scheme::name),
            learning_rate: config.learning_rate,
            valid_mrr: report.chosen_valid().map(|metrics| metrics.mrr),
            test: Quality::new(report.test.as_ref(), found.baseline.as_ref(), graph.is_generated()),
        }
    }

    fn sizes(graph: &Graph, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let dim = config.dim as u64;
        let relation = config.model.relation_len(config.dim) as u64;
        let relations = graph.relations().len() as u64 * if config.reciprocal { 2 } else { 1 };
        let entities = dim.saturating_mul(graph.entities().len() as u64);
        let floats = relation.saturating_mul(relations).saturating_add(entities);
        vec![("--save", floats.saturating_mul(4))]
    }

    fn files(flags: &DataArgs) -> Files<'_> {
        Files { read: flags.files(), ..Files::default() }
    }

    fn traced_keys(
        graph: &Graph,
        config: &TrainConfig,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        traced_keys(graph, config.reciprocal, choices)
    }

    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Self::EvalData, Source), Error> {
        let checkpoint = Checkpoint::open(&args.load)?;
        args.check(&checkpoint.values)?;
        let (graph, source) = args.flags.data.read()?;
        let split = args.flags.split;
        if queries(&graph, split) == 0 {
            return Err(Failure::NoPart(split).into());
        }
        Ok(((checkpoint, graph), source))
    }

    fn plan_evaluation(
        args: &EvalArgs<Self>,
        (checkpoint, graph): &Self::EvalData,
        plan: &mut Plan<'_>,
    ) {
        describe(plan, graph, &args.flags.data);
        let model = format!("{}, {} reals an entity", checkpoint.model(), checkpoint.dim());
        plan.model(&model, &args.load, &[]);
        let split = args.flags.split;
        let count = format::count(queries(graph, split));
        plan.row("queries", &format!("{count} of {split}"), &["split"]);
    }

    fn evaluate(
        (checkpoint, graph): &Self::EvalData,
        flags: &EvalFlags,
        cluster: &ClusterConfig,
        run: &Run<'_, RankMetrics>,
    ) -> Result<EvalReport, TaskError> {
        let config = EvalConfig { split: flags.split, cluster: cluster.clone() };
        training::evaluate(graph, checkpoint, &config, run)
    }

    fn evaluation_quality(
        flags: &EvalFlags,
        (_, graph): &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> String {
        let splits = [(flags.split.name(), report.figures.as_ref())];
        let Ranked { baseline, frequency_weight, .. } = &report.own;
        table(&splits, Some((baseline, *frequency_weight)), graph.is_generated())
    }

    fn evaluation_object(
        flags: &EvalFlags,
        (checkpoint, graph): &Self::EvalData,
        report: &EvalReport,
    ) -> impl Serialize {
        let (figures, is_generated) = (report.figures.as_ref(), graph.is_generated());
        OfEvaluation {
            split: flags.split.name(),
            model: checkpoint.model().name(),
            dim: checkpoint.dim(),
            frequency_weight: checkpoint.frequency_weight(),
            queries: figures.map_or(0, |metrics| metrics.queries),
            quality: Quality::new(figures, Some(&report.own.baseline), is_generated),
        }
    }

    fn evaluation_files(flags: &EvalFlags) -> Files<'_> {
        Files { read: flags.data.files(), written: Files::given([("--ranks", &flags.ranks)]) }
    }

    fn write_evaluation_files(report: &EvalReport, outputs: &mut Outputs) {
        outputs.save("--ranks", "ranks", |file| write_ranks(file, &report.own.ranks));
    }
}

/// Describes the negatives of a run that trains on so many triples and entities.
fn negatives(
    config: &TrainConfig,
    train: usize,
    entities: usize,
    workers: Option<usize>,
) -> String {
    let count = config.negatives_of(entities);
    let chunk = |workers| format::count(config.chunk_of(train, workers) as u64);
    let negatives = match (config.negatives, workers) {
        (Negatives::Independent, _) => format!("{count} for each side of a triple"),
        (Negatives::Shared, Some(workers)) => {
            format!("{count} shared by a chunk of {} triples", chunk(workers))
        }
        (Negatives::Shared, None) => {
            let nodes = config.cluster.nodes.unwrap_or(1);
            format!("{count} shared by a chunk of at most {} triples", chunk(nodes))
        }
    };
    let sampling = config.sampling().map_or(String::new(), |scheme| format!("; sampling {scheme}"));
    negatives + &sampling
}

/// Queries of the part to rank: two a triple.
fn queries(graph: &Graph, split: Split) -> u64 {
    2 * graph.part(split).len() as u64
}

/// The task's own fields in the object of a run.
#[derive(Serialize)]
struct OfRun {
    seed: u64,
    model: &'static str,
    dim: usize,
    held_back: usize,
    frequency_weight: f32,
    negatives: &'static str,
    negative_count: usize,
    /// Triples of a step.
    chunk: usize,
    sampling: Option<&'static str>,
    learning_rate: f32,
    valid_mrr: Option<f64>,
    #[serde(flatten)]
    test: Quality,
}

/// The task's own fields in the object of an evaluation.
#[derive(Serialize)]
struct OfEvaluation {
    split: &'static str,
    model: &'static str,
    dim: usize,
    frequency_weight: f32,
    queries: u64,
    #[serde(flatten)]
    quality: Quality,
}

/// One rank a line, ties counted half.
fn write_ranks(file: &mut dyn Write, ranks: &[Rank]) -> io::Result<()> {
    ranks.iter().try_for_each(|rank| writeln!(file, "{}", rank.mean()))
}

/// Each held-out fact of generated family trees follows from a training fact.
pub(crate) const BEST_MRR: f64 = 1.0;

/// The seed that is meant if none is given.
const DATA_SEED: u64 = 1;

pub(crate) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train kge --nodes 4
  adapm train kge --data FB15k-237 --epochs 30 --save fb.adapm
  adapm train kge --data triples.tsv
  adapm train kge --recipe umls
  adapm train kge --json --no-eval | jq .local_share";

pub(crate) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval kge --load fb.adapm --data FB15k-237
  adapm eval kge --load fb.adapm --data FB15k-237 --nodes 4 --ranks ranks.txt";
