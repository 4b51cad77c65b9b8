//! `eval kge`.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use adapm_tasks::kge::{self, Checkpoint, EvalConfig, EvalReport, Graph, Split};
use adapm_tasks::metric::Rank;
use adapm_tasks::run::TaskError;
use serde::Serialize;

use crate::args::kge::EvalArgs;
use crate::eval::{Evaluating, Shared, Summary};
use crate::failure::Failure;
use crate::files::{Files, Outputs};
use crate::format;
use crate::kge::Quality;
use crate::processes::Processes;
use crate::progress::{Labels, Screen};
use crate::train::{Common, Plan};

impl Evaluating for EvalArgs {
    const TASK: &'static str = super::TASK;
    const LABELS: Labels = super::LABELS;
    type Subject = (Checkpoint, Graph);
    type Report = EvalReport;

    fn shared(&self) -> Shared<'_> {
        Shared { cluster: &self.cluster, processes: &self.processes, json: self.output.json }
    }

    fn files(&self) -> Files<'_> {
        let mut read = Files::given([("--data", &self.data.data)]);
        read.push(("--load", &self.load));
        Files { read, written: Files::given([("--ranks", &self.ranks)]) }
    }

    fn subject(&self) -> Result<Self::Subject, Failure> {
        let checkpoint = Checkpoint::load(&self.load).map_err(TaskError::Checkpoint)?;
        let graph = super::graph(&self.data)?;
        if self.queries(&graph) == 0 {
            return Err(Failure::NoPart(self.split));
        }
        Ok((checkpoint, graph))
    }

    fn source((_, graph): &Self::Subject) -> String {
        graph.source().to_string()
    }

    fn is_generated((_, graph): &Self::Subject) -> bool {
        graph.is_generated()
    }

    fn plan(&self, plan: &mut Plan<'_>, (checkpoint, graph): &Self::Subject) {
        super::describe(plan.table, graph, &self.data, plan.given);
        let model = format!("{}, {} reals an entity", checkpoint.model(), checkpoint.dim());
        plan.table.row(["model".into(), model, format!("--load {}", self.load.display())]);
        plan.row("queries", &format!("{} of {}", format::count(self.queries(graph)), self.split), &["split"]);
    }

    fn evaluate(
        &self,
        (checkpoint, graph): &Self::Subject,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<EvalReport, Failure> {
        let mut config = EvalConfig::default();
        (config.system, config.nodes, config.workers) = (common.system, common.nodes, common.workers);
        config.split = self.split;
        Ok(match processes.company() {
            None => kge::evaluate(graph, checkpoint, &config, screen, stop),
            Some(company) => kge::evaluate_in_group(graph, checkpoint, &config, &company.group, screen, stop),
        }?)
    }

    fn summary(report: &EvalReport) -> Summary {
        Summary {
            items: ("queries", report.metrics.queries),
            seconds: report.seconds,
            stats: report.stats,
            stopped: report.stopped,
            nodes: report.nodes,
            workers: report.workers,
        }
    }

    fn quality(&self, (_, graph): &Self::Subject, report: &EvalReport) -> String {
        let splits = [(self.split.name(), Some(&report.metrics))];
        super::table(&splits, Some((&report.baseline, report.frequency_weight)), graph.is_generated())
    }

    fn keep(&self, report: &EvalReport, outputs: &mut Outputs) {
        outputs.save("--ranks", "ranks", |file| write_ranks(file, &report.ranks));
    }

    fn object(&self, (checkpoint, graph): &Self::Subject, report: &EvalReport) -> impl Serialize {
        let metrics = (!report.stopped).then_some(&report.metrics);
        Own {
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

/// What is the task's in the object of an evaluation.
#[derive(Serialize)]
struct Own {
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
