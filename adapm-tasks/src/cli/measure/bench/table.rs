//! Figures as lines of a table that grows while they are measured: columns are as wide as is usual,
//! not as what they hold.
//!
//! And the objects of `bench --json`, whose names of fields are an interface: programs read them.
//!
//! Figure, floor and goal are in `unit`. What there is none of is `null`.

use crate::measure::bench::{Figure, Goal, Outcome, Plan};
use serde::Serialize;

use crate::cli::format;
use crate::cli::output::Output;

pub(super) fn heading(plan: &Plan, output: Output) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let size = if plan.is_quick { ", small sizes" } else { "" };
    format!("{}\n", output.bold(format!("adapm bench on {}{size}", format::plural(cores, "core"))))
}

/// Explains figures, and heads their columns.
pub(super) fn figures_heading(output: Output) -> String {
    let width = output.width();
    let note = "Medians, also of the ratios where turns are long; floors are measured in turns with the metrics. C++: AdaPM on 2 \
                cores of another machine, once.";
    let columns = row(["", "measured", "", "floor", "ratio", "goal", "", "C++"], width);
    format!("{}\n\n{}", output.dim(format::lines(note, width).join("\n")), output.dim(columns))
}

pub(super) fn group(name: &str, output: Output) -> String {
    format!("{}\n", output.bold(name))
}

pub(super) fn line(figure: &Figure, output: Output) -> String {
    let optional = |value: Option<f64>| value.map_or_else(String::new, number);
    let goal = figure.goal.map_or_else(String::new, |goal| match goal {
        Goal::AtMost(bound) => format!("<= {}", number(bound)),
        Goal::AtLeast(bound) => format!(">= {}", number(bound)),
    });
    let verdict = match figure.is_reached() {
        Some(true) => "ok",
        Some(false) => "missed",
        None => "",
    };
    let cells = [
        &*figure.what,
        &number(figure.value),
        figure.unit,
        &optional(figure.floor),
        &figure.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        &goal,
        verdict,
        figure.reference.unwrap_or_default(),
    ];
    let text = row(cells, output.width());
    if figure.is_reached() == Some(false) { output.bold(text).to_string() } else { text }
}

pub(super) fn skipped(what: &str, why: &str, output: Output) -> String {
    let lines = format::lines(&format!("SKIPPED {what}: {why}"), output.width() - 2);
    format!("{}\n", output.dim(format!("  {}", lines.join("\n  "))))
}

/// Returns the columns of counts.
pub(super) fn counts_heading(output: Output) -> String {
    let width = output.width();
    let note = "What all nodes do and send together, for one key or call; left out is what goes by time, as rounds do.";
    let note = format!("  {}", format::lines(note, width - 2).join("\n  "));
    let columns =
        counts_row("", "per", ["instructions", "allocations", "messages", "bytes"], width);
    format!("{}\n{}", output.dim(note), output.dim(columns))
}

/// Counts of an operation, as far as there are any.
pub(super) fn counts_line(
    what: &str,
    unit: &str,
    figures: &[Option<Figure>; 4],
    output: Output,
) -> String {
    let cells = figures
        .each_ref()
        .map(|figure| figure.as_ref().map_or_else(String::new, |figure| number(figure.value)));
    counts_row(what, unit, cells.each_ref().map(String::as_str), output.width())
}

fn counts_row(what: &str, unit: &str, cells: [&str; 4], width: usize) -> String {
    let [instructions, allocations, messages, bytes] = cells;
    let cells = format!("{unit:<4} {instructions:>12} {allocations:>12} {messages:>9} {bytes:>9}");
    named(what, &cells, width - 53)
}

/// Returns a name of what was measured and what came out: in one line if the name fits into `room`,
/// else in two.
fn named(what: &str, cells: &str, room: usize) -> String {
    let room = room.min(NAME_MAX);
    let line = if what.chars().count() > room {
        format!("  {what}\n  {:room$} {cells}", "")
    } else {
        format!("  {what:<room$} {cells}")
    };
    format!("{}\n", line.trim_end())
}

pub(super) fn closing(figures: &[Figure], output: Output) -> String {
    let goals = figures.iter().filter(|figure| figure.goal.is_some()).count();
    if goals == 0 {
        return String::new();
    }
    let reached = goals - missed(figures).count();
    format!("\n{}\n", output.bold(format!("{reached} of {goals} goals reached")))
}

fn row(cells: [&str; 8], width: usize) -> String {
    let [what, figure, unit, floor, ratio, goal, verdict, reference] = cells;
    let cells = format!(
        "{figure:>8} {unit:<13} {floor:>8} {ratio:>6}  {goal:<10} {verdict:<6}  {reference}"
    );
    named(what, &cells, width.saturating_sub(79))
}

/// Those whose goal was not reached.
pub(super) fn missed(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    figures.iter().filter(|figure| figure.is_reached() == Some(false))
}

/// Columns of a name, as wide as the longest.
const NAME_MAX: usize = 52;

/// Returns three digits that say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        size if size >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// One figure, or why there is none.
#[derive(Default, Serialize)]
pub(super) struct Row<'a> {
    group: &'static str,
    what: &'a str,
    value: Option<f64>,
    unit: Option<&'static str>,
    floor: Option<f64>,
    ratio: Option<f64>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    reached: Option<bool>,
    /// The figure of the predecessor in C++, one number or several.
    reference: Option<&'static str>,
    skipped: Option<&'a str>,
}

impl<'a> Row<'a> {
    pub(super) fn new(group: &'static str, outcome: &'a Outcome) -> Self {
        let empty = Self { group, ..Self::default() };
        match outcome {
            Outcome::Skipped { what, why } => Self { what, skipped: Some(why), ..empty },
            Outcome::Measured(figure) => Self {
                what: &figure.what,
                value: Some(figure.value),
                unit: Some(figure.unit),
                floor: figure.floor,
                ratio: figure.ratio(),
                at_most: figure.goal.and_then(|goal| match goal {
                    Goal::AtMost(bound) => Some(bound),
                    Goal::AtLeast(_) => None,
                }),
                at_least: figure.goal.and_then(|goal| match goal {
                    Goal::AtLeast(bound) => Some(bound),
                    Goal::AtMost(_) => None,
                }),
                reached: figure.is_reached(),
                reference: figure.reference,
                ..empty
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_there_is() {
        let output = Output::new(false);
        let whole = Figure::new("pull", "us", 123.4)
            .beside(100.0)
            .towards(Goal::AtMost(160.0))
            .after("133");
        let words: Vec<String> =
            line(&whole, output).split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["pull", "123", "us", "100", "1.23", "<=", "160", "ok", "133"]);
        let bare = Figure::new("clock", "ns", 0.96);
        assert_eq!(
            line(&bare, output).split_whitespace().collect::<Vec<_>>(),
            ["clock", "0.960", "ns"]
        );
        let missed = Figure::new("rate", "1/s", 2.0).towards(Goal::AtLeast(3.0));
        assert!(line(&missed, output).contains("missed"));
        assert!(closing(&[whole, bare, missed], output).contains("1 of 2 goals reached"));
    }

    #[test]
    fn counts_stand_in_their_columns() {
        let figures = [
            Some(Figure::new("pull", "instructions/call", 18_094.3)),
            None,
            None,
            Some(Figure::new("pull", "", 118.0)),
        ];
        let line = counts_line("pull", "call", &figures, Output::new(false));
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["pull", "call", "18094", "118"]);
        let heading = counts_heading(Output::new(false));
        let columns = heading.lines().next_back().expect("it has lines");
        for (count, name) in [("18094", "instructions"), ("118", "bytes")] {
            let [count, name] = [(&*line, count), (columns, name)]
                .map(|(text, word)| text.find(word).map(|at| at + word.len()));
            assert_eq!(count, name, "{line}{heading}");
        }
    }

    #[test]
    fn numbers_keep_three_digits() {
        let numbers = [1234.5, 99.94, 1.005, 0.1, 0.001_23, 0.0].map(number);
        assert_eq!(numbers, ["1234", "99.9", "1.00", "0.100", "0.0012", "0.00"]);
    }
}
