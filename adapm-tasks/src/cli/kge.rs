//! Knowledge graph embeddings on the command line: how they are trained and evaluated, what is
//! found in a graph, and figures over ranks, for people and for programs.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use crate::Scheme;
use crate::kge::{
    self, Checkpoint, EvalConfig, EvalReport, Graph, GraphFiles, GraphOptions, GraphSource,
    Negatives, Split, TrainConfig, TrainReport,
};
use crate::metric::{Rank, RankMetrics};
use crate::run::{ConfigError, KeyChoice, TaskError, UnknownKey};
use adapm_core::Key;
use serde::Serialize;

use crate::cli::args::Given;
use crate::cli::args::kge::{DATA_SEED, DataArgs, EvalArgs, TrainArgs};
use crate::cli::epoch::{Figure, Labels};
use crate::cli::eval::{self, Evaluating};
use crate::cli::failure::Failure;
use crate::cli::files::{Files, Outputs};
use crate::cli::processes::Processes;
use crate::cli::progress::Screen;
use crate::cli::report::{self, Summary};
use crate::cli::table::{Align, Table};
use crate::cli::train::{Common, Plan, Shared, Training};
use crate::cli::{format, input};

/// The name of the task.
const TASK: &str = "kge";

pub(crate) const LABELS: Labels =
    Labels { examples: "triples", evaluating: "ranking", quality: "MRR" };

impl Figure for RankMetrics {
    /// Two queries a triple.
    const COUNTED: u64 = 2;

    fn figure(&self) -> f64 {
        self.mrr
    }
}

/// Reads the graph that is asked for, or generates one.
pub(super) fn graph(args: &DataArgs) -> Result<Graph, Failure> {
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
    /// The figure of ranking by frequency.
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

/// Returns a row per split that was evaluated, and what ranking by frequency reaches on the last;
/// empty if none was.
pub(super) fn table(
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

impl Training for TrainArgs {
    const TASK: &'static str = TASK;
    const LABELS: Labels = LABELS;
    const KEY_KINDS: &'static [&'static str] = kge::KEY_KINDS;
    type Data = Graph;
    type Config = TrainConfig;
    type Report = (TrainReport, u32);

    fn shared(&self) -> Shared<'_> {
        let Self { settings, cluster, output, traced, processes, .. } = self;
        Shared { settings, cluster, output, traced, processes }
    }

    fn files(&self) -> Files<'_> {
        Files { read: Files::given([("--data", &self.data.data)]), ..Files::default() }
    }

    fn data(&self) -> Result<Graph, Failure> {
        graph(&self.data)
    }

    fn source(graph: &Graph) -> String {
        graph.source().to_string()
    }

    fn is_generated(graph: &Graph) -> bool {
        graph.is_generated()
    }

    fn traced_keys(
        &self,
        graph: &Graph,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        kge::traced_keys(graph, self.model.reciprocal, choices)
    }

    fn config(&self, common: Common) -> TrainConfig {
        let mut config = TrainConfig::default();
        (config.system, config.nodes, config.workers) =
            (common.system, common.nodes, common.workers);
        config.trace = common.trace;
        config.localize_ahead = self.localize_ahead;
        config.seed = self.model.seed;
        config.model = self.model.model;
        config.dim = self.model.dim;
        config.reciprocal = self.model.reciprocal;
        config.prior = self.model.prior;
        config.initial_deviation = self.model.initial_deviation;
        config.epochs = self.training.epochs;
        config.loss = self.training.loss;
        config.negatives = self.training.negatives;
        config.negative_count = self.training.negative_count;
        config.scheme = self.training.sampling;
        config.chunk = self.training.chunk;
        config.learning_rate = self.training.learning_rate;
        config.l2_entity = self.training.l2_entity;
        config.l2_relation = self.training.l2_relation;
        config.n3 = self.training.n3;
        config.evaluate = !self.training.no_eval;
        config.valid_every = self.training.valid_every;
        config.checkpoint = self.output.save.is_some();
        config
    }

    fn check(config: &TrainConfig) -> Result<(), ConfigError> {
        config.check_values()
    }

    fn plan(&self, plan: &mut Plan<'_>, graph: &Graph, config: &TrainConfig) {
        describe(plan.table, graph, &self.data, plan.given);
        let reciprocal = if config.reciprocal { ", reciprocal relations" } else { "" };
        let model = format!("{}, {} reals an entity{reciprocal}", config.model, config.dim);
        plan.row("model", &model, &["model", "dim", "reciprocal", "initial-deviation"]);
        let mut training =
            format!("{} loss, AdaGrad, learning rate {}", config.loss, config.learning_rate);
        for (name, weight) in
            [("L2", config.l2_entity), ("relation L2", config.l2_relation), ("N3", config.n3_of())]
        {
            if weight != 0.0 {
                training.push_str(&format!(", {name} {weight}"));
            }
        }
        plan.row(
            "training",
            &training,
            &["loss", "learning-rate", "l2-entity", "l2-relation", "n3"],
        );
        let held_back = config.held_back_of(graph.train().len(), graph.valid().len());
        let train = graph.train().len() - held_back;
        let count = config.negatives_of(graph.entities().len());
        let chunk = |workers| format::count(config.chunk_of(train, workers) as u64);
        let negatives = match config.negatives {
            Negatives::Shared => match plan.workers {
                Some(workers) => format!("{count} shared by a chunk of {} triples", chunk(workers)),
                None => {
                    format!("{count} shared by a chunk of at most {} triples", chunk(config.nodes))
                }
            },
            _ => format!("{count} for each side of a triple"),
        };
        let sampling =
            config.sampling().map_or(String::new(), |scheme| format!("; sampling {scheme}"));
        let flags = ["negatives", "negative-count", "sampling", "chunk"];
        plan.row("negatives", &(negatives + &sampling), &flags);
        plan.warn_of_sampling(config.sampling(), config.system, config.nodes);
        let valid = graph.valid().len().max(held_back);
        let every = config.valid_every_of(train, valid, graph.entities().len());
        let epochs = match valid {
            _ if !config.evaluate => format!("{}, not evaluated", config.epochs),
            0 => format!("{}, the last one is taken", config.epochs),
            _ if held_back > 0 => {
                format!("{}, {held_back} triples held back from train every {every}", config.epochs)
            }
            _ => format!("{}, valid every {every}", config.epochs),
        };
        plan.row("epochs", &epochs, &["epochs", "valid-every", "no-eval"]);
        plan.row("seed", &config.seed.to_string(), &["seed"]);
    }

    fn train(
        &self,
        graph: &Graph,
        config: &TrainConfig,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Self::Report, Failure> {
        let report = match processes.company() {
            None => kge::train(graph, config, screen, stop),
            Some(company) => kge::train_in_group(graph, config, &company.group, screen, stop),
        };
        Ok((report?, config.epochs))
    }

    fn summary(&self, (report, epochs): &Self::Report) -> Summary {
        let (seconds, valid_seconds) = report::seconds_of(&report.epochs);
        Summary {
            epochs: *epochs,
            seconds,
            loss: report.epochs.last().map(|epoch| epoch.loss),
            valid_seconds,
            test_seconds: report.test.map(|_| report.test_seconds),
            chosen: report.chosen_epoch,
            is_selected: !self.training.no_eval && report.chosen_epoch > 0,
            stats: report.stats,
            stopped: report.stopped,
            nodes: report.nodes,
            workers: report.workers,
        }
    }

    fn quality(graph: &Graph, (report, _): &Self::Report) -> String {
        let valid = if report.held_back > 0 { "held back" } else { "valid" };
        let splits = [(valid, chosen_valid(report)), ("test", report.test.as_ref())];
        let baseline = report.baseline.as_ref().map(|baseline| (baseline, report.frequency_weight));
        table(&splits, baseline, graph.is_generated())
    }

    fn is_judged(&self, graph: &Graph, (report, _): &Self::Report) -> bool {
        let is_possible =
            !self.training.no_eval && (!graph.valid().is_empty() || report.held_back > 0);
        !is_possible || report.epochs.iter().any(|epoch| epoch.valid.is_some())
    }

    fn sizes(graph: &Graph, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let dim = config.dim as u64;
        let relation = config.model.relation_len(config.dim) as u64;
        let relations = graph.relations().len() as u64 * if config.reciprocal { 2 } else { 1 };
        let entities = dim.saturating_mul(graph.entities().len() as u64);
        vec![(
            "--save",
            relation.saturating_mul(relations).saturating_add(entities).saturating_mul(4),
        )]
    }

    fn keep(&self, _: &Graph, (report, _): &Self::Report, state: &str, outputs: &mut Outputs) {
        if let Some(checkpoint) = &report.checkpoint {
            let what = format!("parameters of {state}");
            outputs.save("--save", &what, |file| checkpoint.write_to(file).map(drop));
        }
    }

    fn object(graph: &Graph, config: &TrainConfig, (report, _): &Self::Report) -> impl Serialize {
        OfRun {
            seed: config.seed,
            model: config.model.name(),
            dim: config.dim,
            held_back: report.held_back,
            frequency_weight: report.frequency_weight,
            negatives: config.negatives.name(),
            negative_count: report.negatives,
            chunk: report.chunk,
            sampling: config.sampling().map(Scheme::name),
            learning_rate: config.learning_rate,
            valid_mrr: chosen_valid(report).map(|metrics| metrics.mrr),
            test: Quality::new(
                report.test.as_ref(),
                report.baseline.as_ref(),
                graph.is_generated(),
            ),
        }
    }
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

/// Returns the figures on valid that selected the epoch.
fn chosen_valid(report: &TrainReport) -> Option<&RankMetrics> {
    let chosen = report.epochs.iter().find(|epoch| epoch.epoch == report.chosen_epoch)?;
    chosen.valid.as_ref()
}

impl Evaluating for EvalArgs {
    const TASK: &'static str = TASK;
    const LABELS: Labels = LABELS;
    type Input = (Checkpoint, Graph);
    type Report = EvalReport;

    fn shared(&self) -> eval::Shared<'_> {
        eval::Shared { cluster: &self.cluster, processes: &self.processes, json: self.output.json }
    }

    fn files(&self) -> Files<'_> {
        let mut read = Files::given([("--data", &self.data.data)]);
        read.push(("--load", &self.load));
        Files { read, written: Files::given([("--ranks", &self.ranks)]) }
    }

    fn input(&self) -> Result<Self::Input, Failure> {
        let checkpoint = Checkpoint::load(&self.load).map_err(TaskError::Checkpoint)?;
        let graph = graph(&self.data)?;
        if self.queries(&graph) == 0 {
            return Err(Failure::NoPart(self.split));
        }
        Ok((checkpoint, graph))
    }

    fn source((_, graph): &Self::Input) -> String {
        graph.source().to_string()
    }

    fn is_generated((_, graph): &Self::Input) -> bool {
        graph.is_generated()
    }

    fn plan(&self, plan: &mut Plan<'_>, (checkpoint, graph): &Self::Input) {
        describe(plan.table, graph, &self.data, plan.given);
        let model = format!("{}, {} reals an entity", checkpoint.model(), checkpoint.dim());
        plan.table.row(["model".into(), model, format!("--load {}", self.load.display())]);
        plan.row(
            "queries",
            &format!("{} of {}", format::count(self.queries(graph)), self.split),
            &["split"],
        );
    }

    fn evaluate(
        &self,
        (checkpoint, graph): &Self::Input,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<EvalReport, Failure> {
        let mut config = EvalConfig::default();
        (config.system, config.nodes, config.workers) =
            (common.system, common.nodes, common.workers);
        config.split = self.split;
        Ok(match processes.company() {
            None => kge::evaluate(graph, checkpoint, &config, screen, stop),
            Some(company) => {
                kge::evaluate_in_group(graph, checkpoint, &config, &company.group, screen, stop)
            }
        }?)
    }

    fn summary(report: &EvalReport) -> eval::Summary {
        eval::Summary {
            items: ("queries", report.metrics.queries),
            seconds: report.seconds,
            stats: report.stats,
            stopped: report.stopped,
            nodes: report.nodes,
            workers: report.workers,
        }
    }

    fn quality(&self, (_, graph): &Self::Input, report: &EvalReport) -> String {
        let splits = [(self.split.name(), Some(&report.metrics))];
        table(&splits, Some((&report.baseline, report.frequency_weight)), graph.is_generated())
    }

    fn keep(&self, report: &EvalReport, outputs: &mut Outputs) {
        outputs.save("--ranks", "ranks", |file| write_ranks(file, &report.ranks));
    }

    fn object(&self, (checkpoint, graph): &Self::Input, report: &EvalReport) -> impl Serialize {
        let metrics = (!report.stopped).then_some(&report.metrics);
        OfEvaluation {
            split: self.split.name(),
            model: checkpoint.model().name(),
            dim: checkpoint.dim(),
            frequency_weight: checkpoint.frequency_weight(),
            queries: report.metrics.queries,
            quality: Quality::new(metrics, Some(&report.baseline), graph.is_generated()),
        }
    }
}

impl EvalArgs {
    /// Queries of the part to rank: two a triple.
    fn queries(&self, graph: &Graph) -> u64 {
        let triples = match self.split {
            Split::Valid => graph.valid().len(),
            _ => graph.test().len(),
        };
        2 * triples as u64
    }
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
