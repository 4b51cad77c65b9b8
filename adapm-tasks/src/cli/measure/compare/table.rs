//! Tables of a comparison, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::System;
use crate::cli::format;
use crate::cli::measure::compare::cell::Record;
use crate::cli::measure::compare::figures::{
    self, COLUMNS, Column, Group, Merit, Reference, Row, Run, Unit,
};
use crate::cli::measure::compare::settings::Knobs;
use crate::cli::output::Output;
use crate::cli::table::{Align, Table};
use crate::run::flags::by_text;

/// Returns the tables, of at most `width` columns: a row a system and number of nodes, with the
/// range over its runs.
pub(crate) fn tables(
    rows: &[Row<'_>],
    merit: &Merit,
    reference: &Reference,
    (output, width): (Output, usize),
) -> String {
    let mut text = String::new();
    for (group, title) in GROUPS {
        let title = title.replace("quality", merit.name);
        let _ = write!(text, "\n{}\n{}", output.bold(title), table(rows, group, (output, width)));
    }
    text.push('\n');
    for sentence in sentences(rows, merit, reference) {
        let _ = writeln!(text, "  {}", format::wrapped(&sentence, width - 2).replace('\n', "\n  "));
    }
    text
}

fn table(rows: &[Row<'_>], group: Group, (output, width): (Output, usize)) -> String {
    // What did not happen under any system would only make the table wider.
    let is_some = |range: figures::Range| range.max != 0.0;
    let has_some = |column: &&Column| rows.iter().any(|row| row.range(column).is_some_and(is_some));
    let of_group = COLUMNS.iter().filter(|column| column.group == group);
    let columns: Vec<&Column> = of_group.filter(has_some).collect();
    let aligned = [vec![Align::Left, Align::Right], vec![Align::Right; columns.len()]].concat();
    let mut table = Table::new(&aligned).named_by(2);
    let headings = columns.iter().map(|column| column.heading);
    table.row(
        ["system", "nodes"].into_iter().chain(headings).map(|cell| output.dim(cell).to_string()),
    );
    for row in rows {
        let cells = [row.system.to_string(), row.nodes.to_string()];
        let figures = columns.iter().map(|column| cell(row, column));
        let is_dim = figures::is_no_gain(rows, row.system);
        let shown = |cell: String| if is_dim { output.dim(cell).to_string() } else { cell };
        table.row(cells.into_iter().chain(figures).map(shown));
    }
    table.within(width)
}

/// Returns a figure as `0.2814`, or its range over runs, `0.2801..0.2830`.
fn cell(row: &Row<'_>, column: &Column) -> String {
    let Some(range) = row.range(column) else { return "-".to_owned() };
    let [low, high] = [range.min, range.max].map(|value| shown(value, column.unit));
    if low == high {
        return low;
    }
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((low, one)), Some((_, other))) if one == other => format!("{low}..{high}"),
        _ => format!("{low}..{high}"),
    }
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Figure => format::figure(value),
        Unit::Number if value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        Unit::Number => format::count(value.round() as u64),
        Unit::Seconds => format::seconds(value),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Bytes => format::bytes(value as u64),
        Unit::Times => format!("{value:.2}x"),
    }
}

/// Returns what tables do not say by themselves.
fn sentences(rows: &[Row<'_>], merit: &Merit, reference: &Reference) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut say = |sentence: String| sentences.push(sentence);
    match (reference.target, reference.best, reference.chance) {
        (Some(target), Some(best), Some(chance)) => say(format!(
            "target: {} {}; adapm on one node reached {}, chance is {}",
            merit.name,
            format::figure(target),
            format::figure(best),
            format::figure(chance),
        )),
        (Some(target), ..) => say(format!("target: {} {}", merit.name, format::figure(target))),
        _ => say("no target: no run of adapm on one node was evaluated".to_owned()),
    }
    let clocks =
        rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.record.knobs.clock_every);
    if let Some(every) = clocks.reduce(u32::max) {
        let word = if every == 1 { "batch" } else { "batches" };
        say(format!("a bound counts clocks of {every} {word} each"));
    }
    let mut judged: Vec<System> = Vec::new();
    for row in rows {
        let title = format!("{} on {}", row.system, format::plural(row.nodes, "node"));
        if !row.failed.is_empty() {
            say(format!("{title}: {} failed", format::plural(row.failed.len(), "run")));
        }
        if row.stopped > 0 {
            let runs = format::plural(row.stopped, "run");
            say(format!("{title}: {runs} stopped when the budget was spent; whole epochs count"));
        }
        let (short, unjudged) = (row.misses(), row.unjudged());
        if merit.is_of_end && unjudged > 0 {
            let runs = format::plural(unjudged, "run");
            let why = "which is measured at the end, and they did not get there";
            say(format!("{title}: {runs} without {}, {why}", merit.name));
        } else if short > 0 {
            let runs = format::plural(row.runs.len(), "run");
            say(format!("{title}: {short} of {runs} did not reach the target"));
        }
        if let Some(tuned) = row.runs.iter().find_map(|run| run.record.tuned.as_ref()) {
            say(format!("{title}: tuned to {}", tuned.words().join(" ")));
        }
        if row.trains_otherwise() {
            say(format!("{title}: epochs of other lengths than on one node; times are by example"));
        }
        if !judged.contains(&row.system) {
            judged.push(row.system);
            if figures::is_no_gain(rows, row.system) {
                say(format!("{}: no number of nodes is faster than one node of adapm", row.system));
            }
        }
    }
    sentences
}

/// A row for programs.
#[derive(Serialize)]
pub(crate) struct RowObject {
    #[serde(serialize_with = "by_text::serialize")]
    system: System,
    nodes: usize,
    runs: usize,
    failed: usize,
    stopped: usize,
    is_no_gain: bool,
    /// By name, each with mean, min and max over runs; `null` if it was not measured.
    figures: Map<String, Value>,
}

impl RowObject {
    pub(crate) fn all(rows: &[Row<'_>]) -> Vec<Self> {
        let object = |row: &Row<'_>| {
            let figure = |column: &Column| {
                let range = row.range(column).map(|range| serde_json::json!(range));
                (column.field.to_owned(), range.unwrap_or(Value::Null))
            };
            Self {
                system: row.system,
                nodes: row.nodes,
                runs: row.runs.len(),
                failed: row.failed.len(),
                stopped: row.stopped,
                is_no_gain: figures::is_no_gain(rows, row.system),
                figures: COLUMNS.iter().map(figure).collect(),
            }
        };
        rows.iter().map(object).collect()
    }
}

/// Returns all runs as CSV, a run a line; what was not measured is empty, and so is all of a run
/// that failed.
pub(crate) fn csv(rows: &[Row<'_>]) -> String {
    let mut text = "system,nodes,seed,ending,flags,clock_every,localize_ahead".to_owned();
    COLUMNS.iter().for_each(|column| text.extend([",", column.field]));
    text.push('\n');
    let mut line = |record: &Record, run: Option<&Run<'_>>| {
        let cell = &record.cell;
        let ending = serde_json::json!(record.ending);
        let ending = ending.as_str().unwrap_or_default();
        let Knobs { flags, clock_every, localize_ahead } = &record.knobs;
        let flags = flags.replace('"', "\"\"");
        let _ = write!(text, "{},{},{},{ending},\"{flags}\"", cell.system, cell.nodes, cell.seed);
        for knob in [clock_every.map(u64::from), *localize_ahead] {
            let _ = write!(text, ",{}", knob.map_or_else(String::new, |knob| knob.to_string()));
        }
        for column in &COLUMNS {
            let figure = run.and_then(column.of).filter(|figure| figure.is_finite());
            let _ =
                write!(text, ",{}", figure.map_or_else(String::new, |figure| figure.to_string()));
        }
        text.push('\n');
    };
    for row in rows {
        row.runs.iter().for_each(|run| line(run.record, Some(run)));
        row.failed.iter().for_each(|record| line(record, None));
    }
    text
}

const GROUPS: [(Group, &str); 6] = [
    (Group::Quality, "quality, at its best"),
    (Group::Time, "time, and speed-up over adapm on one node"),
    (Group::Access, "accesses, per epoch"),
    (Group::Network, "network, per node and epoch; of the bytes"),
    (Group::Copies, "copies, per epoch; replicas of a node"),
    (Group::Freshness, "freshness of replicas, and each run as a whole"),
];
