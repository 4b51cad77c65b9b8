//! `train kge`.

use std::sync::atomic::AtomicBool;

use adapm_core::Key;
use adapm_tasks::Scheme;
use adapm_tasks::kge::{self, Graph, ModelKind, Negatives, TrainConfig, TrainReport};
use adapm_tasks::metric::RankMetrics;
use adapm_tasks::run::{ConfigError, KeyChoice, UnknownKey};
use serde::Serialize;

use crate::args::kge::TrainArgs;
use crate::failure::Failure;
use crate::files::{Files, Outputs};
use crate::format;
use crate::kge::Quality;
use crate::processes::Processes;
use crate::progress::{Labels, Screen};
use crate::report::{self, Summary};
use crate::train::{Common, Plan, Shared, Training};

impl Training for TrainArgs {
    const TASK: &'static str = super::TASK;
    const LABELS: Labels = super::LABELS;
    const KEY_KINDS: &'static [&'static str] = kge::KEY_KINDS;
    type Data = Graph;
    type Config = TrainConfig;
    type Report = (TrainReport, u32);

    fn shared(&self) -> Shared<'_> {
        let Self { recipe, cluster, output, traced, processes, .. } = self;
        Shared { recipe, cluster, output, traced, processes }
    }

    fn files(&self) -> Files<'_> {
        Files { read: Files::given([("--data", &self.data.data)]), ..Files::default() }
    }

    fn data(&self) -> Result<Graph, Failure> {
        super::graph(&self.data)
    }

    fn source(graph: &Graph) -> String {
        graph.source().to_string()
    }

    fn is_generated(graph: &Graph) -> bool {
        graph.is_generated()
    }

    fn traced_keys(&self, graph: &Graph, choices: &[KeyChoice]) -> Result<Vec<(Key, String)>, UnknownKey> {
        kge::traced_keys(graph, self.model.reciprocal, choices)
    }

    fn config(&self, common: Common) -> TrainConfig {
        let mut config = TrainConfig::default();
        (config.system, config.nodes, config.workers) = (common.system, common.nodes, common.workers);
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
        super::describe(plan.table, graph, &self.data, plan.given);
        let reciprocal = if config.reciprocal { ", reciprocal relations" } else { "" };
        let model = format!("{}, {} reals an entity{reciprocal}", config.model, config.dim);
        plan.row("model", &model, &["model", "dim", "reciprocal", "initial-deviation"]);
        let mut training = format!("{} loss, AdaGrad, learning rate {}", config.loss, config.learning_rate);
        for (name, weight) in
            [("L2", config.l2_entity), ("relation L2", config.l2_relation), ("N3", config.n3)]
        {
            if weight != 0.0 {
                training.push_str(&format!(", {name} {weight}"));
            }
        }
        plan.row("training", &training, &["loss", "learning-rate", "l2-entity", "l2-relation", "n3"]);
        let held_back = config.held_back_of(graph.train().len(), graph.valid().len());
        let train = graph.train().len() - held_back;
        let count = config.negatives_of(graph.entities().len());
        let chunk = |workers| format::count(config.chunk_of(train, workers) as u64);
        let negatives = match config.negatives {
            Negatives::Shared => match plan.workers {
                Some(workers) => format!("{count} shared by a chunk of {} triples", chunk(workers)),
                None => format!("{count} shared by a chunk of at most {} triples", chunk(config.nodes)),
            },
            _ => format!("{count} for each side of a triple"),
        };
        let sampling = config.sampling().map_or(String::new(), |scheme| format!("; sampling {scheme}"));
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
        super::table(&splits, baseline, graph.is_generated())
    }

    fn is_judged(&self, graph: &Graph, (report, _): &Self::Report) -> bool {
        let is_possible = !self.training.no_eval && (!graph.valid().is_empty() || report.held_back > 0);
        !is_possible || report.epochs.iter().any(|epoch| epoch.valid.is_some())
    }

    fn sizes(graph: &Graph, config: &TrainConfig) -> Vec<(&'static str, u64)> {
        let dim = config.dim as u64;
        let relation = if config.model == ModelKind::Rescal { dim.saturating_mul(dim) } else { dim };
        let relations = graph.relations().len() as u64 * if config.reciprocal { 2 } else { 1 };
        let entities = dim.saturating_mul(graph.entities().len() as u64);
        vec![("--save", relation.saturating_mul(relations).saturating_add(entities).saturating_mul(4))]
    }

    fn keep(&self, _: &Graph, (report, _): &Self::Report, state: &str, outputs: &mut Outputs) {
        if let Some(checkpoint) = &report.checkpoint {
            let what = format!("parameters of {state}");
            outputs.save("--save", &what, |file| checkpoint.write_to(file).map(drop));
        }
    }

    fn object(graph: &Graph, config: &TrainConfig, (report, _): &Self::Report) -> impl Serialize {
        Own {
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
            test: Quality::new(report.test.as_ref(), report.baseline.as_ref(), graph.is_generated()),
        }
    }
}

/// What is the task's in the object of a run.
#[derive(Serialize)]
struct Own {
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

/// The figures on valid that selected the epoch.
fn chosen_valid(report: &TrainReport) -> Option<&RankMetrics> {
    let chosen = report.epochs.iter().find(|epoch| epoch.epoch == report.chosen_epoch)?;
    chosen.valid.as_ref()
}
