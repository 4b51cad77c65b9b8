//! `eval mf`.

use std::sync::atomic::AtomicBool;

use adapm_tasks::mf::{self, Checkpoint, EvalConfig, EvalReport, Ratings};
use adapm_tasks::run::{Split, TaskError};
use serde::Serialize;

use crate::args::mf::EvalArgs;
use crate::eval::{Evaluating, Shared, Summary};
use crate::failure::Failure;
use crate::files::Files;
use crate::format;
use crate::input;
use crate::mf::Quality;
use crate::processes::Processes;
use crate::progress::{Labels, Screen};
use crate::train::{Common, Plan};

impl Evaluating for EvalArgs {
    const TASK: &'static str = super::TASK;
    const LABELS: Labels = super::LABELS;
    type Subject = (Checkpoint, Ratings);
    type Report = EvalReport;

    fn shared(&self) -> Shared<'_> {
        Shared { cluster: &self.cluster, processes: &self.processes, json: self.output.json }
    }

    fn files(&self) -> Files<'_> {
        let mut read = Files::given([("--data", &self.data.data)]);
        read.push(("--load", &self.load));
        Files { read, ..Files::default() }
    }

    fn subject(&self) -> Result<Self::Subject, Failure> {
        let checkpoint = Checkpoint::load(&self.load).map_err(TaskError::Checkpoint)?;
        let ratings = self.data.data.as_ref().map_or_else(
            || super::ratings(&self.data),
            |name| {
                let path = input::locate(super::TASK, name)?;
                let ratings = Ratings::load_for(&path, &checkpoint, self.split);
                Ok(ratings.map_err(TaskError::Data)?)
            },
        )?;
        if self.cells(&ratings) == 0 {
            return Err(Failure::NoPart(self.split));
        }
        Ok((checkpoint, ratings))
    }

    fn source((_, ratings): &Self::Subject) -> String {
        ratings.source().to_string()
    }

    fn is_generated((_, ratings): &Self::Subject) -> bool {
        ratings.is_generated()
    }

    fn plan(&self, plan: &mut Plan<'_>, (checkpoint, ratings): &Self::Subject) {
        super::describe(plan.table, ratings, &self.data, plan.given);
        let clip = if self.clip { ", predictions clipped" } else { "" };
        let means = if checkpoint.scale() == 0.0 { ", the means are predicted" } else { "" };
        let model = format!("{} factors{clip}{means}", checkpoint.dim());
        let origin = format!("--load {} {}", self.load.display(), plan.given.among(&["clip"]));
        plan.table.row(["model", &model, origin.trim_end()]);
        plan.row("cells", &format!("{} of {}", format::count(self.cells(ratings)), self.split), &["split"]);
    }

    fn evaluate(
        &self,
        (checkpoint, ratings): &Self::Subject,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<EvalReport, Failure> {
        let mut config = EvalConfig::default();
        (config.system, config.nodes, config.workers) = (common.system, common.nodes, common.workers);
        (config.split, config.clip) = (self.split, self.clip);
        Ok(match processes.company() {
            None => mf::evaluate(ratings, checkpoint, &config, screen, stop),
            Some(company) => {
                mf::evaluate_in_group(ratings, checkpoint, &config, &company.group, screen, stop)
            }
        }?)
    }

    fn summary(report: &EvalReport) -> Summary {
        Summary {
            items: ("cells", report.metrics.map_or(0, |metrics| metrics.predicted)),
            seconds: report.seconds,
            stats: report.stats,
            stopped: report.stopped,
            nodes: report.nodes,
            workers: report.workers,
        }
    }

    fn quality(&self, (_, ratings): &Self::Subject, report: &EvalReport) -> String {
        let splits = [(self.split.name(), report.metrics.as_ref()), (super::MEANS, report.means.as_ref())];
        super::table(&splits, ratings)
    }

    fn object(&self, (checkpoint, ratings): &Self::Subject, report: &EvalReport) -> impl Serialize {
        Own {
            split: self.split.name(),
            dim: checkpoint.dim(),
            quality: Quality::new(report.metrics.as_ref(), report.means.as_ref(), ratings),
        }
    }
}

impl EvalArgs {
    /// Cells of the part to predict.
    fn cells(&self, ratings: &Ratings) -> u64 {
        let cells = match self.split {
            Split::Valid => ratings.valid_len(),
            _ => ratings.test_len(),
        };
        cells as u64
    }
}

/// What is the task's in the object of an evaluation.
#[derive(Serialize)]
struct Own {
    split: &'static str,
    dim: usize,
    #[serde(flatten)]
    quality: Quality,
}
