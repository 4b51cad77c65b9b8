//! Figures of a comparison: of each run, and their range over the runs of a system on a number of
//! nodes (AdaPM §5.1).
//!
//! Times are of training; evaluation is in none, tuning and partitioning have columns. An epoch is
//! as long as it would be with the examples of the reference's epochs: a run that loses a node
//! trains fewer.

use serde::Serialize;
use serde_json::Value;

use crate::System;
use crate::cli::epoch::Labels;
use crate::cli::measure::compare::cell::{Ending, Record};

/// The figure of merit of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merit {
    /// The name for people: `MRR`.
    pub(crate) name: &'static str,
    examples: &'static str,
    is_less_better: bool,
    /// It is measured at the end alone, not after epochs.
    pub(crate) is_of_end: bool,
    /// Its field for what a model that has learnt nothing reaches, or the value.
    chance: Chance,
}

#[derive(Clone, Copy, Debug)]
enum Chance {
    Value(f64),
    Field(&'static str),
    /// One over this field.
    OneOf(&'static str),
}

impl Merit {
    /// Returns that of a task with these words.
    pub(crate) fn of(task: &str, labels: Labels) -> Self {
        let (is_less_better, chance) = match task {
            "mf" => (true, Chance::Field("means_rmse")),
            "ctr" => (false, Chance::Value(0.5)),
            "gnn" => (false, Chance::OneOf("classes")),
            _ => (false, Chance::Value(0.0)),
        };
        let (name, examples, is_of_end) = (labels.quality, labels.examples, task == "wv");
        Self { name, examples, is_less_better, is_of_end, chance }
    }

    /// Returns the better one.
    fn better(&self, one: f64, other: f64) -> f64 {
        if self.is_less_better { one.min(other) } else { one.max(other) }
    }

    fn reaches(&self, figure: f64, target: f64) -> bool {
        if self.is_less_better { figure <= target } else { figure >= target }
    }

    /// Returns the figure of a model that has learnt nothing, as far as a run tells.
    fn chance(&self, record: &Record) -> Option<f64> {
        let field = |name| number(record.result.as_ref()?, name);
        match self.chance {
            Chance::Value(value) => Some(value),
            Chance::Field(name) => field(name),
            Chance::OneOf(name) => {
                field(name).filter(|count| *count > 0.0).map(|count| 1.0 / count)
            }
        }
    }
}

/// An epoch, by what was trained until its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Seconds of training.
    pub(crate) seconds: f64,
    /// Epochs of the reference.
    pub(crate) epochs: f64,
    pub(crate) quality: f64,
}

/// What all runs are measured by: adapm on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Reference {
    /// Examples of an epoch.
    pub(crate) examples: Option<f64>,
    pub(crate) epoch_seconds: Option<f64>,
    pub(crate) chance: Option<f64>,
    /// The best figure of all its runs.
    pub(crate) best: Option<f64>,
    /// The figure whose time is compared.
    pub(crate) target: Option<f64>,
    pub(crate) target_seconds: Option<f64>,
}

impl Reference {
    /// Returns that of these runs of a comparison; with `target` if it is chosen by hand.
    pub(crate) fn of(all: &[Record], merit: &Merit, target: Option<f64>) -> Self {
        let mut reference = Self::default();
        let is_own = |record: &&Record| {
            let is_one = record.cell.nodes == 1 && record.cell.system == System::default();
            is_one && record.ending != Ending::Failed
        };
        let records: Vec<&Record> = all.iter().filter(is_own).collect();
        // Without a reference figures an epoch are still of epochs of one length.
        let first = records.iter().copied().chain(all).find_map(|record| record.epochs.first());
        reference.examples = first.and_then(|epoch| number(epoch, merit.examples));
        let mean = |reference: &Self, of: fn(&Run<'_>) -> Option<f64>| {
            let runs = records.iter().map(|record| Run { record, merit, reference });
            Some(Range::of(runs.filter_map(|run| of(&run)))?.mean)
        };
        reference.epoch_seconds = mean(&reference, |run| run.epoch_seconds());
        reference.chance = records.iter().find_map(|record| merit.chance(record));
        reference.best = records
            .iter()
            .filter_map(|record| Run { record, merit, reference: &reference }.best())
            .map(|point| point.quality)
            .reduce(|one, other| merit.better(one, other));
        let derived = || Some(reference.chance? + SHARE * (reference.best? - reference.chance?));
        reference.target = target.or_else(derived);
        reference.target_seconds = mean(&reference, |run| run.target_seconds());
        reference
    }
}

/// One run and what it is measured by.
pub(crate) struct Run<'a> {
    pub(crate) record: &'a Record,
    pub(crate) merit: &'a Merit,
    pub(crate) reference: &'a Reference,
}

impl Run<'_> {
    /// Returns the quality after each epoch that was evaluated; if none was, that of the end.
    pub(crate) fn curve(&self) -> Vec<Point> {
        let field = format!("valid_{}", self.merit.name.to_lowercase());
        let (mut seconds, mut examples) = (0.0, 0.0);
        let mut curve = Vec::new();
        let mut epochs = 0.0;
        for epoch in &self.record.epochs {
            seconds += number(epoch, "seconds").unwrap_or(0.0);
            examples += number(epoch, self.merit.examples).unwrap_or(0.0);
            epochs = self.reference.examples.map_or(0.0, |all| examples / all);
            if let Some(quality) = number(epoch, &field) {
                curve.push(Point { seconds, epochs, quality });
            }
        }
        if curve.is_empty() {
            let field = self.merit.name.to_lowercase();
            let quality = self.record.result.as_ref().and_then(|result| number(result, &field));
            curve.extend(quality.map(|quality| Point { seconds, epochs, quality }));
        }
        curve
    }

    fn best(&self) -> Option<Point> {
        let better = |one: Point, other: Point| {
            if self.merit.better(one.quality, other.quality) == one.quality { one } else { other }
        };
        self.curve().into_iter().reduce(better)
    }

    fn sum(&self, field: &str) -> f64 {
        self.record.epochs.iter().filter_map(|epoch| number(epoch, field)).sum()
    }

    /// Returns the sum of `field` an epoch.
    fn per_epoch(&self, field: &str) -> Option<f64> {
        let epochs = self.sum(self.merit.examples) / self.reference.examples?;
        (epochs > 0.0).then(|| self.sum(field) / epochs)
    }

    fn per_node(&self, field: &str) -> Option<f64> {
        Some(self.per_epoch(field)? / self.record.cell.nodes as f64)
    }

    /// Returns the share of `part` in the sum of `all`, or how much of it there is for each.
    fn share(&self, part: &str, all: &[&str]) -> Option<f64> {
        let all: f64 = all.iter().map(|field| self.sum(field)).sum();
        (all > 0.0).then(|| self.sum(part) / all)
    }

    /// Returns the largest `field` of an epoch.
    fn most(&self, field: &str) -> Option<f64> {
        Some(Range::of(self.record.epochs.iter().filter_map(|epoch| number(epoch, field)))?.max)
    }

    /// Returns the mean of `field` over epochs, each as often as its `weight` says; `None` without
    /// any weight.
    fn mean(&self, field: &str, weight: &str) -> Option<f64> {
        let weighed = |epoch: &Value| Some((number(epoch, field)?, number(epoch, weight)?));
        let (mut sum, mut all) = (0.0, 0.0);
        for (value, weight) in self.record.epochs.iter().filter_map(weighed) {
            (sum, all) = (sum + value * weight, all + weight);
        }
        (all > 0.0).then(|| sum / all)
    }

    fn epoch_seconds(&self) -> Option<f64> {
        self.per_epoch("seconds")
    }

    /// Returns the seconds of training until the target was first reached.
    fn target_seconds(&self) -> Option<f64> {
        let target = self.reference.target?;
        let reached = |point: &Point| self.merit.reaches(point.quality, target);
        self.curve().into_iter().find(reached).map(|point| point.seconds)
    }

    /// Returns the share of the workers' time that `field` says in seconds.
    fn share_of_time(&self, field: &str) -> Option<f64> {
        number(self.record.epochs.last()?, field)?;
        let workers = match self.record.result.as_ref()?.get("workers")? {
            Value::Array(each) => each.iter().filter_map(Value::as_f64).sum(),
            all => all.as_f64()? * self.record.cell.nodes as f64,
        };
        let time = self.sum("seconds") * workers;
        (time > 0.0).then(|| self.sum(field) / time)
    }
}

/// A group of columns: a table of its own, as all together are wider than a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Quality,
    Time,
    Access,
    Network,
    Copies,
    Freshness,
}

/// The unit of a column, by which it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The figure of merit, or a loss.
    Figure,
    Number,
    Seconds,
    /// In 0..=1.
    Share,
    Bytes,
    Times,
}

/// A figure of a run.
pub(crate) struct Column {
    pub(crate) group: Group,
    /// Its name for programs.
    pub(crate) field: &'static str,
    /// Its heading; empty if it is for programs alone.
    pub(crate) heading: &'static str,
    pub(crate) unit: Unit,
    pub(crate) of: fn(&Run<'_>) -> Option<f64>,
}

/// Accesses of workers.
pub(crate) const ACCESSES: [&str; 3] = ["local", "waited", "remote"];
/// Bytes sent, by what they are.
pub(crate) const BYTES: [&str; 7] = [
    "delta_bytes",
    "refresh_bytes",
    "replica_bytes",
    "relocation_bytes",
    "operation_bytes",
    "answer_bytes",
    "head_bytes",
];

macro_rules! columns {
    ($($group:ident $field:literal $heading:literal $unit:ident $of:expr;)+) => {
        /// All columns, in the order of the tables.
        pub(crate) const COLUMNS: [Column; [$($field),+].len()] = [$(Column {
            group: Group::$group,
            field: $field,
            heading: $heading,
            unit: Unit::$unit,
            of: $of,
        }),+];
    };
}

columns! {
    Quality "quality" "quality" Figure |run| Some(run.best()?.quality);
    Quality "best_epoch" "at epoch" Number |run| Some(run.best()?.epochs.round());
    Quality "loss" "loss" Figure |run| number(run.record.epochs.last()?, "loss");
    Time "epoch_seconds" "an epoch" Seconds |run| run.epoch_seconds();
    Time "target_seconds" "to target" Seconds |run| run.target_seconds();
    Time "raw_speed_up" "raw" Times |run| Some(run.reference.epoch_seconds? / run.epoch_seconds()?);
    Time "effective_speed_up" "effective" Times |run| Some(run.reference.target_seconds? / run.target_seconds()?);
    Time "tuning_seconds" "tuned in" Seconds |run| run.record.tuned.as_ref().map(|tuned| tuned.seconds);
    Time "partition_seconds" "partition" Seconds |run| number(run.record.result.as_ref()?, "partition_seconds");
    Access "local_share" "local" Share |run| run.share("local", &ACCESSES);
    Access "waited_share" "waited" Share |run| run.share("waited", &ACCESSES);
    Access "remote_share" "remote" Share |run| run.share("remote", &ACCESSES);
    Access "accesses" "all" Number |run| ACCESSES.iter().map(|field| run.per_epoch(field)).sum();
    Access "blocked_share" "blocked" Share |run| run.share_of_time("blocked_seconds");
    Access "wait_mean" "a wait" Seconds |run| run.share("blocked_seconds", &["waits"]);
    Access "wait_p99" "99 % below" Seconds |run| run.most("wait_p99").filter(|_| run.sum("waits") > 0.0);
    Access "gated_share" "at clocks" Share |run| run.share_of_time("gated_seconds");
    Network "bytes_per_node" "sent" Bytes |run| run.per_node("bytes_sent");
    Network "messages_per_node" "messages" Number |run| run.per_node("messages_sent");
    Network "delta_share" "changes" Share |run| run.share("delta_bytes", &BYTES);
    Network "refresh_share" "refreshes" Share |run| run.share("refresh_bytes", &BYTES);
    Network "replica_share" "replicas" Share |run| run.share("replica_bytes", &BYTES);
    Network "relocation_share" "relocations" Share |run| run.share("relocation_bytes", &BYTES);
    Network "operation_share" "pushes" Share |run| run.share("operation_bytes", &BYTES);
    Network "answer_share" "pulls" Share |run| run.share("answer_bytes", &BYTES);
    Network "head_share" "heads" Share |run| run.share("head_bytes", &BYTES);
    Copies "relocations" "relocations" Number |run| run.per_epoch("relocations");
    Copies "replicas" "set up" Number |run| run.per_epoch("replicas");
    Copies "releases" "released" Number |run| run.per_epoch("releases");
    Copies "renews" "renewed" Number |run| run.most("renews").and_then(|_| run.per_epoch("renews"));
    Copies "held_mean" "held, mean" Number |run| run.mean("held_mean", "seconds");
    Copies "held_max" "at most" Number |run| number(run.record.epochs.last()?, "held_max");
    Copies "coerced" "coerced" Number |run| run.per_epoch("coerced");
    Copies "refusals" "refused" Number |run| run.per_epoch("refusals");
    Freshness "staleness_mean" "staleness" Seconds |run| run.mean("staleness_mean", "refreshes");
    Freshness "staleness_p99" "99 % below" Seconds |run| run.most("staleness_p99").filter(|_| run.sum("refreshes") > 0.0);
    Freshness "delay_mean" "waited" Seconds |run| run.mean("delay_mean", "deltas").filter(|delay| *delay > 0.0);
    Freshness "delta_updates_mean" "pushes" Number |run| run.mean("delta_updates_mean", "deltas");
    Freshness "peak_bytes" "peak memory" Bytes |run| Some(run.record.peak_bytes? as f64);
    Freshness "channel_share" "channels" Share |run| run.record.channel_share;
    Freshness "run_seconds" "whole run" Seconds |run| Some(run.record.seconds);
}

/// A figure over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Range {
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Range {
    /// Returns the range of some numbers; `None` without any.
    pub(crate) fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let min = numbers.iter().copied().reduce(f64::min)?;
        let max = numbers.iter().copied().reduce(f64::max)?;
        Some(Self { mean, min, max })
    }
}

/// A system on a number of nodes.
pub(crate) struct Row<'a> {
    pub(crate) system: System,
    pub(crate) nodes: usize,
    /// Runs that have something to show.
    pub(crate) runs: Vec<Run<'a>>,
    pub(crate) failed: Vec<&'a Record>,
    /// Runs stopped as their time was over.
    pub(crate) stopped: usize,
}

impl Row<'_> {
    /// Returns a figure over its runs.
    pub(crate) fn range(&self, column: &Column) -> Option<Range> {
        Range::of(self.runs.iter().filter_map(column.of))
    }

    /// Returns the mean of the figure of this name over its runs.
    pub(crate) fn mean(&self, field: &str) -> Option<f64> {
        let column = COLUMNS.iter().find(|column| column.field == field)?;
        Some(self.range(column)?.mean)
    }

    /// Returns how many times faster than the reference it is: to the target, else an epoch.
    fn speed_up(&self) -> Option<f64> {
        self.mean("effective_speed_up").or_else(|| self.mean("raw_speed_up"))
    }

    /// Returns the number of runs that did not reach the target, if there is one.
    pub(crate) fn misses(&self) -> usize {
        let misses =
            |run: &&Run<'_>| run.reference.target.is_some() && run.target_seconds().is_none();
        self.runs.iter().filter(misses).count()
    }

    /// Returns the number of runs that have epochs, but no quality of any.
    pub(crate) fn unjudged(&self) -> usize {
        let is_unjudged = |run: &&Run<'_>| !run.record.epochs.is_empty() && run.curve().is_empty();
        self.runs.iter().filter(is_unjudged).count()
    }

    /// Returns true if an epoch of one of its runs has other examples than one of the reference.
    pub(crate) fn trains_otherwise(&self) -> bool {
        let differs = |run: &Run<'_>| {
            let Some(all) = run.reference.examples else { return false };
            let examples = run.record.epochs.iter();
            let mut examples = examples.filter_map(|epoch| number(epoch, run.merit.examples));
            examples.any(|examples| (examples - all).abs() > ALIKE * all)
        };
        self.runs.iter().any(differs)
    }
}

/// Groups records by system and nodes, in the order in which systems appear.
pub(crate) fn rows<'a>(
    records: &'a [Record],
    merit: &'a Merit,
    reference: &'a Reference,
) -> Vec<Row<'a>> {
    let mut systems: Vec<System> = Vec::new();
    for record in records {
        if !systems.contains(&record.cell.system) {
            systems.push(record.cell.system);
        }
    }
    let mut rows: Vec<Row<'a>> = Vec::new();
    for record in records {
        let (system, nodes) = (record.cell.system, record.cell.nodes);
        let at = rows.iter().position(|row| row.system == system && row.nodes == nodes);
        let at = at.unwrap_or_else(|| {
            rows.push(Row { system, nodes, runs: Vec::new(), failed: Vec::new(), stopped: 0 });
            rows.len() - 1
        });
        match record.ending {
            Ending::Failed => rows[at].failed.push(record),
            ending => {
                rows[at].stopped += usize::from(ending == Ending::Budget);
                rows[at].runs.push(Run { record, merit, reference });
            }
        }
    }
    rows.sort_by_key(|row| (systems.iter().position(|system| *system == row.system), row.nodes));
    rows
}

/// Returns true if no number of nodes makes the system faster than the reference: the shading of
/// AdaPM §5.1. A system without several nodes is not judged.
pub(crate) fn is_no_gain(rows: &[Row<'_>], system: System) -> bool {
    let several = rows.iter().filter(|row| row.system == system && row.nodes > 1);
    let speed_ups: Vec<f64> = several.filter_map(Row::speed_up).collect();
    !speed_ups.is_empty() && speed_ups.iter().all(|speed_up| *speed_up <= 1.0)
}

fn number(object: &Value, field: &str) -> Option<f64> {
    object.get(field).and_then(Value::as_f64)
}

/// The target is so far from chance to the best of one node (AdaPM §5.1).
const SHARE: f64 = 0.9;
/// Numbers of examples that differ by less are the same: parts of workers are rounded.
const ALIKE: f64 = 1e-3;
