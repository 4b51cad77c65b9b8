//! Graph networks on the command line.

use std::path::{Path, PathBuf};

use adapm_core::Key;
use clap::Args;
use serde::Serialize;

use crate::cli::epoch::{Figures, Labels};
use crate::cli::files::Files;
use crate::cli::program::{
    Error, EvalArgs, EvalReportOf, Finding, Plan, Program, ReportOf, Source, TrainArgs,
};
use crate::cli::table::{Align, Table};
use crate::cli::{format, input};
use crate::data::DataError;
use crate::gnn::NAME;
use crate::gnn::config::TrainConfig;
use crate::gnn::evaluation::Accuracy;
use crate::gnn::graph::Graph;
use crate::gnn::model::{Architecture, Inputs};
use crate::gnn::reader;
use crate::gnn::synthetic::SyntheticConfig;
use crate::gnn::task::{KEY_KINDS, traced_keys};
use crate::gnn::training::{self, Model};
use crate::run::flags::one_of;
use crate::run::{
    ClusterConfig, EvalReport, KeyChoice, Run, Split, TaskError, TrainReport, UnknownKey,
};

/// Flags that choose data.
const DATA_FLAGS: [&str; 7] =
    ["data", "parts", "data-seed", "graph-nodes", "classes", "degree", "homophily"];

impl Figures for Accuracy {
    fn figure(&self) -> f64 {
        self.accuracy
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn named(&self) -> Vec<(&'static str, f64)> {
        vec![("accuracy", self.accuracy), ("log_loss", self.loss)]
    }
}

/// Flags that choose a graph.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// A graph: a folder with nodes.txt (`node class part`), edges.txt (`node node`) and
    /// features.txt (a line for each node: `index:value ...`), or one of the Open Graph Benchmark;
    /// .gz too; or its name in $ADAPM_DATA/gnn; none: a generated graph
    #[arg(long, value_name = "PATH|NAME", conflicts_with_all = ["data_seed", "graph_nodes", "classes", "degree", "homophily"])]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    generated: GeneratedArgs,
}

#[derive(Debug, Args)]
struct GeneratedArgs {
    /// Seed of the generated graph
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().seed)]
    data_seed: u64,
    /// Nodes of the generated graph
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().nodes)]
    graph_nodes: u32,
    /// Classes of the generated graph
    #[arg(long, value_name = "N", default_value_t = SyntheticConfig::default().classes)]
    classes: u32,
    /// Mean number of neighbours in the generated graph
    #[arg(long, value_name = "X", default_value_t = SyntheticConfig::default().degree)]
    degree: f64,
    /// Share of neighbours of the same class in the generated graph
    #[arg(long, value_name = "SHARE", default_value_t = SyntheticConfig::default().homophily)]
    homophily: f64,
}

/// Flags of training.
#[derive(Debug, Args)]
pub struct TrainFlags {
    #[command(flatten)]
    data: DataArgs,
    /// The part of each training node, in lines `node part`: part p is trained on by node p of the
    /// run, modulo their number
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    parts: Option<PathBuf>,
}

/// Flags of an evaluation.
#[derive(Debug, Args)]
pub struct EvalFlags {
    #[command(flatten)]
    data: DataArgs,
    /// Part of the data to classify
    #[arg(long, value_name = "PART", default_value_t, value_parser = one_of::<Split>(Split::NAMES), help_heading = "Data")]
    split: Split,
}

impl DataArgs {
    /// Reads or generates the graph.
    pub(crate) fn read(&self) -> Result<(Graph, Source), Error> {
        let Some(name) = &self.data else {
            let graph = Graph::synthetic(self.generated.config()).map_err(TaskError::Config)?;
            let text = format!("planted partition, seed {} (generated)", self.generated.data_seed);
            return Ok((graph, Source { text, is_generated: true }));
        };
        let path = input::locate(NAME, name)?;
        let graph = Graph::load(&path)?;
        Ok((graph, Source::of_file(&path)))
    }
}

impl GeneratedArgs {
    fn config(&self) -> SyntheticConfig {
        let Self { data_seed: seed, graph_nodes: nodes, classes, degree, homophily } = *self;
        SyntheticConfig { nodes, classes, degree, homophily, seed }
    }
}

/// Adds what the data is and what was found in it, with the flags that chose it.
fn describe(plan: &mut Plan<'_>, graph: &Graph, data: Option<&Path>) {
    plan.data(data, &DATA_FLAGS);
    let (counts, count) = (graph.counts(), |number: usize| format::count(number as u64));
    let sizes = format!(
        "{} nodes, {} edges, {} classes; {} train, {} valid, {} test",
        count(graph.nodes()),
        format::count(counts.edges),
        count(graph.classes()),
        count(graph.train().len()),
        count(graph.held_out(Split::Valid).len()),
        count(graph.held_out(Split::Test).len()),
    );
    plan.note("", &sizes);
    findings(graph).iter().for_each(|finding| plan.note("", &finding.text));
}

/// Lists the findings of reading a graph.
pub(crate) fn findings(graph: &Graph) -> Vec<Finding> {
    let counts = graph.counts();
    let found = [
        (counts.repeated, "repeated edges, each counted once"),
        (counts.loops, "edges of a node to itself, left out"),
        (counts.alone, "nodes without neighbours"),
        (counts.bare, "nodes without features"),
    ];
    let found = found.into_iter().filter(|(count, _)| *count > 0);
    found.map(|(count, text)| Finding::note(format!("{} {text}", format::count(count)))).collect()
}

fn in_words(model: &Architecture) -> String {
    let Architecture { inputs, width, scaled, hidden, classes, .. } = model;
    let features = match (inputs, scaled) {
        (Inputs::Learned, _) => "learned features",
        (_, true) => "features scaled by node",
        (_, false) => "features",
    };
    format!("GCN of 2 layers, {width} {features}, {hidden} hidden, {classes} classes")
}

/// Returns the length of a vector that is learned, if features are.
fn dim_of(model: &Architecture) -> Option<usize> {
    (model.inputs == Inputs::Learned).then_some(model.width)
}

/// Returns a row per part that was evaluated; empty if none was.
fn table(splits: &[(&str, Option<&Accuracy>)], graph: &Graph) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right]);
    if splits.iter().all(|(_, figures)| figures.is_none()) {
        return String::new();
    }
    table.row(["", "accuracy", "log loss", "nodes"]);
    for (split, figures) in splits.iter().filter_map(|(split, of)| of.map(|of| (split, of))) {
        let [accuracy, loss] = [figures.accuracy, figures.loss].map(format::figure);
        table.row([(*split).to_owned(), accuracy, loss, format::count(figures.items)]);
    }
    if let Some(known) = graph.known {
        table.row(["bound (all other classes known)".to_owned(), format::figure(known.bound)]);
        table.row(["features alone".to_owned(), format::figure(known.features_alone)]);
    }
    table.render() + "\n"
}

/// Graph networks as a program.
#[derive(Debug)]
pub enum Gnn {}

impl Program for Gnn {
    const NAME: &'static str = NAME;
    const DEALS_BY_PARTITION: bool = true;
    const LABELS: Labels = Labels {
        examples: "nodes",
        evaluating: "classifying",
        items: "nodes",
        quality: "accuracy",
    };
    const KEY_KINDS: &'static [&'static str] = KEY_KINDS;
    type TrainFlags = TrainFlags;
    type Config = TrainConfig;
    type Data = Graph;
    type Figures = Accuracy;
    type Model = Model;
    type Extra = ();
    type EvalFlags = EvalFlags;
    type EvalData = (Model, Graph);
    type EvalExtra = ();

    fn read(args: &TrainArgs<Self>) -> Result<(Graph, Source), Error> {
        let (mut graph, source) = args.flags.data.read()?;
        if graph.train().is_empty() {
            let path = args.flags.data.data.clone().unwrap_or_default();
            return Err(DataError::NoTrainNode { path }.into());
        }
        if let Some(path) = &args.flags.parts {
            graph.dealt = Some(reader::read_parts(path, &graph)?);
        }
        args.config.architecture(&graph).map_err(|error| Error::of_input(error.to_string()))?;
        Ok((graph, source))
    }

    fn plan(args: &TrainArgs<Self>, config: &TrainConfig, graph: &Graph, plan: &mut Plan<'_>) {
        describe(plan, graph, args.flags.data.data.as_deref());
        // Reading has refused features that there are not.
        let Ok(model) = config.architecture(graph) else { return };
        plan.row("model", &in_words(&model), &["features", "dim", "scale", "hidden"]);
        let TrainConfig { batch, learning_rate, dropout, fanout, .. } = config;
        let l2 = config.l2(graph.train().len());
        let training = format!(
            "AdaGrad with learning rate {learning_rate}, L2 {l2}, dropout {dropout}, batches of {batch}, \
             neighbours {fanout}"
        );
        let flags = ["learning-rate", "l2", "dropout", "batch", "fanout"];
        plan.row("training", &training, &flags);
        let partition = if graph.dealt.is_some() {
            "as the file says"
        } else {
            config.partition(&model).name()
        };
        plan.row("partition", partition, &["partition"]);
        let passes = config.passes(graph.train().len());
        let epochs = format!("{passes}, evaluated every {}", config.valid_every);
        plan.row("epochs", &epochs, &["epochs", "valid-every", "no-eval"]);
    }

    fn train(
        graph: &Graph,
        config: &TrainConfig,
        run: &Run<'_, Accuracy>,
    ) -> Result<TrainReport<Accuracy, Model>, TaskError> {
        training::train(graph, config, run)
    }

    fn quality(graph: &Graph, report: &ReportOf<Self>) -> String {
        table(&[("valid", report.chosen_valid()), ("test", report.test.as_ref())], graph)
    }

    fn object(graph: &Graph, config: &TrainConfig, report: &ReportOf<Self>) -> impl Serialize {
        OfRun {
            seed: config.run.seed,
            dim: config.architecture(graph).ok().as_ref().and_then(dim_of),
            hidden: config.hidden,
            graph_nodes: graph.nodes(),
            edges: graph.counts().edges,
            classes: graph.classes(),
            valid_accuracy: report.chosen_valid().map(|figures| figures.accuracy),
            quality: Quality::new(report.test.as_ref(), graph),
        }
    }

    fn sizes(graph: &Graph, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let model = config.architecture(graph);
        vec![("--save", model.map_or(0, |model| 4 * model.best_shape().total() as u64))]
    }

    fn files(flags: &TrainFlags) -> Files<'_> {
        let read = Files::given([("--data", &flags.data.data), ("--parts", &flags.parts)]);
        Files { read, ..Files::default() }
    }

    fn traced_keys(
        graph: &Graph,
        config: &TrainConfig,
        choices: &[KeyChoice],
    ) -> Result<Vec<(Key, String)>, UnknownKey> {
        let Ok(model) = config.architecture(graph) else { return Ok(Vec::new()) };
        traced_keys(graph, &model, choices)
    }

    fn read_evaluation(args: &EvalArgs<Self>) -> Result<(Self::EvalData, Source), Error> {
        let model = Architecture::open(&args.load)?;
        args.check(&model.values)?;
        let (graph, source) = args.flags.data.read()?;
        training::check(&graph, &model.head)
            .map_err(|error| Error::of_input(format!("{}: {error}", args.load.display())))?;
        if graph.held_out(args.flags.split).is_empty() {
            return Err(crate::cli::failure::Failure::NoPart(args.flags.split).into());
        }
        Ok(((model, graph), source))
    }

    fn plan_evaluation(
        args: &EvalArgs<Self>,
        (model, graph): &Self::EvalData,
        plan: &mut Plan<'_>,
    ) {
        describe(plan, graph, args.flags.data.data.as_deref());
        plan.model(&in_words(&model.head), &args.load, &[]);
        let split = args.flags.split;
        let count = format::count(graph.held_out(split).len() as u64);
        plan.row("nodes", &format!("{count} of {split}"), &["split"]);
    }

    fn evaluate(
        (model, graph): &Self::EvalData,
        flags: &EvalFlags,
        cluster: &ClusterConfig,
        run: &Run<'_, Accuracy>,
    ) -> Result<EvalReport<Accuracy>, TaskError> {
        training::evaluate(graph, model, flags.split, cluster, run)
    }

    fn evaluation_quality(
        flags: &EvalFlags,
        (_, graph): &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> String {
        table(&[(flags.split.name(), report.figures.as_ref())], graph)
    }

    fn evaluation_object(
        flags: &EvalFlags,
        (model, graph): &Self::EvalData,
        report: &EvalReportOf<Self>,
    ) -> impl Serialize {
        let quality = Quality::new(report.figures.as_ref(), graph);
        let Architecture { hidden, .. } = model.head;
        OfEvaluation { split: flags.split.name(), dim: dim_of(&model.head), hidden, quality }
    }

    fn evaluation_files(flags: &EvalFlags) -> Files<'_> {
        Files { read: Files::given([("--data", &flags.data.data)]), ..Files::default() }
    }
}

/// Figures, and what is known of generated data.
#[derive(Serialize)]
struct Quality {
    accuracy: Option<f64>,
    /// That of the run is the mean over training.
    log_loss: Option<f64>,
    classified: Option<u64>,
    /// A bound of the accuracy on test that can be expected, on generated data.
    bound_accuracy: Option<f64>,
    /// The best accuracy on test by features alone, on generated data.
    features_accuracy: Option<f64>,
}

impl Quality {
    fn new(figures: Option<&Accuracy>, graph: &Graph) -> Self {
        Self {
            accuracy: figures.map(|figures| figures.accuracy),
            log_loss: figures.map(|figures| figures.loss),
            classified: figures.map(|figures| figures.items),
            bound_accuracy: graph.known.map(|known| known.bound),
            features_accuracy: graph.known.map(|known| known.features_alone),
        }
    }
}

/// The task's own fields in the object of a run.
#[derive(Serialize)]
struct OfRun {
    seed: u64,
    /// Of features that are learned.
    dim: Option<usize>,
    hidden: usize,
    graph_nodes: usize,
    edges: u64,
    classes: usize,
    valid_accuracy: Option<f64>,
    #[serde(flatten)]
    quality: Quality,
}

/// The task's own fields in the object of an evaluation.
#[derive(Serialize)]
struct OfEvaluation {
    split: &'static str,
    /// Of features that are learned.
    dim: Option<usize>,
    hidden: usize,
    #[serde(flatten)]
    quality: Quality,
}

pub(crate) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train gnn --nodes 4
  adapm train gnn --features learned --nodes 4
  adapm train gnn --data citeseer --recipe citeseer --save citeseer.adapm
  adapm train gnn --data ogbn_arxiv --hidden 256 --fanout 10,25";

pub(crate) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval gnn --load citeseer.adapm --data citeseer
  adapm eval gnn --load citeseer.adapm --data citeseer --split valid --json";
