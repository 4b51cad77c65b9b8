//! The verb `demo`: a generated job of each task under three systems, side by side; what is
//! generated, and how each is trained.
//!
//! Nothing is delayed and nothing is left out: every figure is of the run at hand, also where
//! adapting loses.

use std::sync::atomic::AtomicBool;

use crate::System;
use crate::kge::{self, Graph, LossKind};
use crate::mf::{self, Ratings, SyntheticConfig};
use crate::run::{Epoch, Keep, Run};
use crate::wv::{self, Analogies, Corpus, Text};

use crate::cli::args::DemoArgs;
use crate::cli::demo::outcome::{Compared, Outcome};
use crate::cli::epoch::{Figures, Labels};
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::Output;
use crate::cli::progress::Screen;
use crate::cli::table::{Align, Table};
use crate::cli::{format, report};

mod outcome;
mod verdict;

/// Reads a figure from an outcome.
type Cell<'a> = &'a dyn Fn(&Outcome) -> String;

/// Trains each job under each system in turn and compares.
pub(crate) fn run(args: &DemoArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = Output::new(false);
    let jobs = Job::all(args)?;
    let mut preface = Some(introduction(args, &jobs, output));
    let mut compared = Vec::new();
    for job in &jobs {
        let mut outcomes = Vec::new();
        for system in SYSTEMS {
            let name = format!("{:<3} {:<8}", job.name, system.name());
            let screen = Screen::new(&name, output, interrupt).labelled(job.labels).without_lines();
            let screen = screen.preface(preface.take().unwrap_or_default());
            let outcome = job.train(system, &screen, interrupt.stop())?;
            screen.open();
            screen.finish()?;
            outcomes.push(outcome);
            if interrupt.exit_code().is_some() {
                break;
            }
        }
        output.text(&comparison(job, &outcomes, output))?;
        if let Some(code) = interrupt.exit_code() {
            output.text("\nstopped: the last column is of what was done until then\n")?;
            return Err(Failure::Interrupted(code));
        }
        compared.push(Compared {
            name: job.name,
            is_higher_better: job.is_higher_better,
            outcomes,
        });
    }
    output.text(&verdict::sentences(&compared, args.nodes, output))?;
    output.text(&format!("\n{}\n{NEXT}", output.bold("try next")))
}

fn introduction(args: &DemoArgs, jobs: &[Job], output: Output) -> String {
    let mut table = Table::new(&[]);
    for job in jobs {
        table.row([output.bold(job.name).to_string(), job.data.clone()]);
        table.row(["", &job.plan]);
    }
    let cluster = report::cluster(args.nodes, &report::workers(None, args.nodes));
    table.row(["cluster", &cluster]);
    let names = SYSTEMS.map(System::name).join(", ");
    let heading = output.bold("adapm demo");
    let title = format::wrapped(
        &format!("{heading}: three small jobs, each under {names}"),
        output.width(),
    );
    format!("{title}\n{}", table.render())
}

/// Returns a column per system, a row per figure, with what the row means.
fn comparison(job: &Job, outcomes: &[Outcome], output: Output) -> String {
    let mut columns = vec![Align::Left];
    columns.resize(1 + outcomes.len(), Align::Right);
    let mut table = Table::new(&columns);
    let heading = outcomes.iter().map(|outcome| output.bold(outcome.system.name()).to_string());
    table.row([output.bold(job.name).to_string()].into_iter().chain(heading));
    let best = format!("best possible: {}", format::figure(job.best));
    let rows: [(&str, Cell<'_>, &str); 9] = [
        (job.figure, &|run| run.figure.map_or_else(|| "-".into(), format::figure), &best),
        ("training time", &|run| format::seconds(run.seconds), "without evaluation"),
        ("local accesses", &|run| format::share(run.stats.local_share()), "needed no other node"),
        ("waited", &|run| format::count(run.stats.waited), "for a key in transit"),
        ("remote", &|run| format::count(run.stats.remote), "asked another node"),
        ("bytes sent", &|run| format::bytes(run.stats.bytes_sent), "between the nodes"),
        ("relocations", &|run| format::count(run.stats.relocations), "keys moved to a node"),
        ("replicas", &|run| format::count(run.stats.replicas), "copies set up"),
        ("staleness", &staleness, "mean age of a copy"),
    ];
    for (name, cell, note) in rows {
        let cells = outcomes.iter().map(cell);
        table.row([name.to_owned()].into_iter().chain(cells).chain([output.dim(note).to_string()]));
    }
    format!("\n{}", table.render())
}

fn staleness(outcome: &Outcome) -> String {
    let stats = &outcome.stats;
    if stats.staleness.count() == 0 { "-".into() } else { format::seconds(stats.staleness_mean()) }
}

const SYSTEMS: [System; 3] = [System::Adapm, System::Classic, System::Full];

const NEXT: &str = "  adapm train kge --nodes 4 --system lapse  another system, the same graph
  adapm train mf --data RATINGS --nodes 2   your ratings: `user item rating`
  adapm train wv --data TEXT --nodes 2      your text: a sentence a line
  adapm train kge --help                    all settings

  From a clone, write `cargo run --release --` for `adapm`.
";

/// A job that each system gets.
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) labels: Labels,
    /// The generated data, in words.
    pub(super) data: String,
    /// The model and its settings, in words.
    pub(super) plan: String,
    /// The figure that is measured in the end.
    pub(super) figure: &'static str,
    /// The best of it that can be expected.
    pub(super) best: f64,
    pub(super) is_higher_better: bool,
    task: Task,
}

enum Task {
    Kge(Graph, kge::TrainConfig),
    Mf(Box<Ratings>, mf::TrainConfig),
    Wv(Corpus, Analogies, wv::TrainConfig),
}

impl Job {
    /// Returns one of each task, generated.
    pub(super) fn all(args: &DemoArgs) -> Result<Vec<Self>, Failure> {
        Ok(vec![kge(args), mf(args)?, wv(args)?])
    }

    /// Trains under `system`.
    pub(super) fn train(
        &self,
        system: System,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Outcome, Failure> {
        let (figure, seconds, stats) = match &self.task {
            Task::Kge(graph, config) => {
                let mut config = config.clone();
                config.cluster.system = Some(system);
                let report = kge::train(graph, &config, &watched(screen, stop))?;
                (report.test.map(|test| test.mrr), seconds(&report.epochs), report.stats)
            }
            Task::Mf(ratings, config) => {
                let mut config = config.clone();
                config.cluster.system = Some(system);
                let report = mf::train(ratings, &config, &watched(screen, stop))?;
                (report.test.map(|test| test.rmse), seconds(&report.epochs), report.stats)
            }
            Task::Wv(corpus, questions, config) => {
                let mut config = config.clone();
                config.cluster.system = Some(system);
                let report = wv::train(corpus, Some(questions), &config, &watched(screen, stop))?;
                let accuracy = report.test.map(|answers| answers.total().accuracy_of_all());
                (accuracy, seconds(&report.epochs), report.stats)
            }
        };
        Ok(Outcome { system, figure, seconds, stats })
    }
}

fn watched<'a, F: Figures>(screen: &'a Screen<'_>, stop: &'a AtomicBool) -> Run<'a, F> {
    Run::alone().observed_by(screen).stopped_by(stop)
}

fn seconds<F>(epochs: &[Epoch<F>]) -> f64 {
    report::seconds_of(epochs).0.iter().sum()
}

fn kge(args: &DemoArgs) -> Job {
    let graph = Graph::family(DATA_SEED);
    let mut config = kge::TrainConfig::default();
    (config.cluster.nodes, config.run.seed) = (Some(args.nodes), args.seed);
    (config.dim, config.epochs) = (args.dim.unwrap_or(64), args.epochs.unwrap_or(8));
    // Few facts and few epochs: at the usual rate, where a run ends depends on luck.
    config.learning_rate = 0.2;
    // The papers' way to draw negatives (AdaPM §5.1): many small accesses, which is what a
    // parameter manager is for.
    config.negatives = kge::Negatives::Independent;
    config.negative_count = Some(16);
    config.loss = LossKind::Logistic;
    config.n3 = Some(0.0);
    // Quality is compared at the end: selecting an epoch on the way would take longer than the
    // training.
    config.valid_every = Some(config.epochs);
    config.run.keep = Keep::Nothing;
    let plan = format!(
        "{}, {} reals an entity, {} loss, 16 negatives for each side of a triple; {} epochs",
        config.model, config.dim, config.loss, config.epochs
    );
    let triples = format::count(graph.train().len() as u64);
    Job {
        name: "kge",
        labels: crate::kge::program::LABELS,
        data: format!("{}, {triples} triples to train on", graph.source()),
        plan,
        figure: "test MRR",
        best: crate::kge::program::BEST_MRR,
        is_higher_better: true,
        task: Task::Kge(graph, config),
    }
}

fn mf(args: &DemoArgs) -> Result<Job, Failure> {
    let synthetic = SyntheticConfig { seed: DATA_SEED, ..SyntheticConfig::default() };
    let ratings = Ratings::synthetic(synthetic)?;
    let mut config = mf::TrainConfig::default();
    (config.cluster.nodes, config.run.seed) = (Some(args.nodes), args.seed);
    (config.dim, config.epochs) = (args.dim.unwrap_or(8), Some(args.epochs.unwrap_or(8)));
    // Noise is small here, and nothing is selected: what is compared is the end.
    (config.l2, config.no_hold_back) = (Some(0.01), true);
    config.run.keep = Keep::Nothing;
    let cells = format::count(ratings.train_len());
    Ok(Job {
        name: "mf",
        labels: crate::mf::program::LABELS,
        data: format!("{}, {cells} cells to train on", ratings.source()),
        plan: format!(
            "{} factors, {}, {} epochs",
            config.dim,
            config.optimizer,
            args.epochs.unwrap_or(8)
        ),
        figure: "test RMSE",
        best: ratings.best_rmse().unwrap_or(0.0),
        is_higher_better: false,
        task: Task::Mf(Box::new(ratings), config),
    })
}

fn wv(args: &DemoArgs) -> Result<Job, Failure> {
    let corpus = Corpus::count(Text::generated(DATA_SEED, SENTENCES), 1, 1)?;
    let mut config = wv::TrainConfig::default();
    (config.cluster.nodes, config.run.seed) = (Some(args.nodes), args.seed);
    let epochs = args.epochs.unwrap_or(5);
    (config.dim, config.epochs) = (args.dim.unwrap_or(32), Some(epochs));
    // Few words, each seen often: steps may be long, and none is too frequent. After 3 epochs
    // accuracy depends on luck.
    (config.learning_rate, config.sample) = (0.1, 0.0);
    config.run.keep = Keep::Nothing;
    let words = format::count(corpus.words());
    Ok(Job {
        name: "wv",
        labels: crate::wv::program::LABELS,
        data: format!("{}, {words} words", corpus.text().source()),
        plan: format!(
            "skip-gram, {} numbers a vector, {} negatives; {epochs} epochs",
            config.dim, config.negatives
        ),
        figure: "accuracy",
        best: crate::wv::program::BEST_ACCURACY,
        is_higher_better: true,
        task: Task::Wv(corpus, Analogies::generated(), config),
    })
}

/// The data of the demo is also that of `train` without data.
const DATA_SEED: u64 = 1;

const SENTENCES: u64 = 20_000;
