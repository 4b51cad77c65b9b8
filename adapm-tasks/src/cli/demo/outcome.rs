//! Outcomes of the jobs of the demo, system by system, as their runs are recorded.

use serde::Deserialize;
use serde_json::Value;

use crate::System;
use crate::cli::measure::compare::Record;

/// The outcome of a job under one system.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(super) system: System,
    /// The figure of merit.
    pub(super) figure: Option<f64>,
    pub(super) totals: Totals,
}

/// Totals of a run, as its last object has them.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Totals {
    /// Of training.
    pub(super) epoch_seconds: Vec<f64>,
    pub(super) local: u64,
    pub(super) waited: u64,
    pub(super) remote: u64,
    pub(super) bytes_sent: u64,
    pub(super) relocations: u64,
    pub(super) replicas: u64,
    pub(super) refreshes: u64,
    pub(super) staleness_mean: f64,
}

/// A figure of merit: its field in the object that a run prints last, and that of the best that can
/// be expected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought {
    pub(super) field: &'static str,
    pub(super) best: &'static str,
    pub(super) is_higher_better: bool,
}

/// The outcomes of a job under all systems.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compared {
    pub(super) name: &'static str,
    pub(super) is_higher_better: bool,
    /// The best figure that can be expected.
    pub(super) best: Option<f64>,
    /// Seconds of training under adapm on one node, if there are more.
    pub(super) alone: Option<f64>,
    pub(super) outcomes: Vec<Outcome>,
}

impl Outcome {
    /// Returns the seconds of training, all epochs.
    pub(super) fn seconds(&self) -> f64 {
        self.totals.epoch_seconds.iter().sum()
    }

    pub(super) fn accesses(&self) -> u64 {
        let Totals { local, waited, remote, .. } = self.totals;
        local + waited + remote
    }

    pub(super) fn local_share(&self) -> f64 {
        self.totals.local as f64 / self.accesses().max(1) as f64
    }

    /// Adds what was done in another job.
    pub(super) fn add(&mut self, other: &Self) {
        let (own, other) = (&mut self.totals, &other.totals);
        own.epoch_seconds.extend(&other.epoch_seconds);
        own.local += other.local;
        own.waited += other.waited;
        own.remote += other.remote;
        own.bytes_sent += other.bytes_sent;
        own.relocations += other.relocations;
        own.replicas += other.replicas;
    }
}

impl Compared {
    /// Returns the outcomes of the runs of a job that have a result on so many nodes.
    pub(super) fn of(
        (name, sought): (&'static str, Sought),
        records: &[Record],
        nodes: usize,
    ) -> Self {
        let number = |result: &Value, field: &str| result.get(field)?.as_f64();
        let outcome = |record: &Record| {
            let result = record.result.as_ref()?;
            let totals = serde_json::from_value(result.clone()).ok()?;
            let (system, figure) = (record.cell.system, number(result, sought.field));
            Some((record.cell.nodes, Outcome { system, figure, totals }))
        };
        let ended: Vec<(usize, Outcome)> = records.iter().filter_map(outcome).collect();
        let alone = ended.iter().find(|(on, _)| *on == 1 && nodes > 1);
        Self {
            name,
            is_higher_better: sought.is_higher_better,
            best: records.iter().find_map(|record| number(record.result.as_ref()?, sought.best)),
            alone: alone.map(|(_, outcome)| outcome.seconds()),
            outcomes: ended
                .into_iter()
                .filter(|(on, _)| *on == nodes)
                .map(|(_, own)| own)
                .collect(),
        }
    }
}
