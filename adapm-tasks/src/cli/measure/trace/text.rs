//! A trace as text: for each key where its copies were and how long, with a line of time for each
//! node.

use adapm_core::{Instant, NodeId};
use adapm_runtime::trace::{Span, Spans, Trace};

use crate::cli::format;
use crate::cli::measure::trace::shares::shares;
use crate::cli::output::Output;
use crate::cli::table::{Align, Table};

/// Renders the output of `trace` for `window`.
pub(super) fn summary(trace: &Trace, window: Span, output: Output) -> String {
    let width = output.width();
    let mut text = format!("{}\n", output.bold(format::wrapped(&headline(trace, window), width)));
    if !trace.is_complete() {
        text.push_str("  the trace was cut off: the run did not end in order, or is not over\n");
    }
    let marks: Vec<String> =
        marks(trace, window).map(|(at, what)| format!("{what} at {}", moment(at.end))).collect();
    if !marks.is_empty() {
        let shown = marks.len().min(MARKS_MAX);
        let more = if shown < marks.len() {
            format!(" and {} more", marks.len() - shown)
        } else {
            String::new()
        };
        let shown = format::lines(&format!("{}{more}", marks[..shown].join(", ")), width - 2);
        text.push_str(&format!("  {}\n", shown.join("\n  ")));
    }
    for (key, title) in trace.keys() {
        let title = format::wrapped(&format!("{} {title}", output.bold(key)), width);
        text.push_str(&format!("\n{title}\n"));
        text.push_str(&panel(trace, &trace.spans(*key), window, width));
    }
    let legend = format::lines(LEGEND, width - 2).join("\n  ");
    text.push_str(&format!("\n  {}\n", output.dim(legend)));
    text
}

/// `adapm on 4 nodes, 1.23 s, 10,234 events of 5 keys`.
pub(super) fn headline(trace: &Trace, window: Span) -> String {
    format!(
        "{} on {}, {}, {} events of {}",
        trace.system(),
        format::plural(trace.nodes(), "node"),
        stretch(trace, window),
        format::count(trace.events().len() as u64),
        format::plural(trace.keys().len(), "key"),
    )
}

/// Returns the stretch of time that is shown: `1.23 s`, or `0.500 s to 0.700 s of 1.23 s`.
fn stretch(trace: &Trace, window: Span) -> String {
    let whole = format::seconds(trace.end().nanos() as f64 / 1e9);
    if window.start.nanos() == 0 && window.end == trace.end() {
        return whole;
    }
    let [from, until] = [window.start, window.end].map(|at| at.nanos() as f64 / 1e9);
    format!("{from:.3} s to {until:.3} s of {whole}")
}

/// Returns the program's marks inside the window, each with the span from the start of the window
/// to it. A mark that several processes have made is returned once, at its first time.
pub(super) fn marks(trace: &Trace, window: Span) -> impl Iterator<Item = (Span, &str)> {
    let several = trace.parts().len() > 1;
    let mut last: Vec<&str> = Vec::new();
    let inside = move |at| (window.start..window.end).contains(&at);
    trace.marks().iter().filter_map(move |mark| {
        let again = several && last.contains(&mark.text.as_str());
        if last.len() == 2 {
            last.remove(0);
        }
        last.push(&mark.text);
        let span = Span { start: window.start, end: mark.at };
        (!again && inside(mark.at)).then_some((span, mark.text.as_str()))
    })
}

/// Shares and counts of each node with its line of time: beside them, or, on a narrow terminal,
/// below.
fn panel(trace: &Trace, nodes: &[Spans], window: Span, width: usize) -> String {
    let right = Align::Right;
    let is_wide = width >= WIDE;
    let columns =
        if is_wide { COLUMNS } else { width.saturating_sub(NARROW_FRAME).min(COLUMNS_MAX) };
    let mut numbers = Table::new(&[Align::Left, right, right, right, right, right, Align::Left]);
    let mut lines = String::new();
    let edges = edges(window, columns);
    let head =
        ["", "main copy", "times", "replica", "times", "intent", if is_wide { &edges } else { "" }];
    numbers.row(head);
    let name_width =
        NodeId(u16::try_from(nodes.len().saturating_sub(1)).unwrap_or(u16::MAX)).to_string().len();
    lines.push_str(&format!("  {:name_width$}   {edges}\n", ""));
    for (index, spans) in nodes.iter().enumerate() {
        let node = NodeId(u16::try_from(index).unwrap_or(u16::MAX));
        if !trace.parts().is_empty() && !trace.parts().contains(&node) {
            numbers.row([node.to_string().as_str(), "", "", "", "", "", "its part is missing"]);
            continue;
        }
        let line = line(spans, window, columns);
        lines.push_str(&format!("  {:name_width$}   {line}\n", node.to_string()));
        numbers.row([
            node.to_string(),
            share(&spans.main, window),
            within(&spans.main, window),
            share(&spans.replica, window),
            within(&spans.replica, window),
            share(&spans.intent, window),
            if is_wide { line } else { String::new() },
        ]);
    }
    if is_wide { numbers.within(width) } else { lines + "\n" + &numbers.within(width) }
}

/// Returns the bounds of a line of time above its ends.
fn edges(window: Span, columns: usize) -> String {
    let [left, right] = [window.start, window.end].map(moment);
    let gap = (columns + 2).saturating_sub(left.len() + right.len());
    format!("{left}{}{right}", " ".repeat(gap))
}

fn moment(at: Instant) -> String {
    if at == Instant::ZERO { "0 s".to_owned() } else { format::seconds(at.nanos() as f64 / 1e9) }
}

fn share(spans: &[Span], window: Span) -> String {
    let covered: f64 = shares(spans, window, 1).iter().sum();
    if covered > 0.0 && covered < 1e-4 {
        "< 0.01 %".to_owned()
    } else {
        format::share(covered.min(1.0))
    }
}

/// Returns the number of spans that overlap the window.
fn within(spans: &[Span], window: Span) -> String {
    let count =
        spans.iter().filter(|span| span.end > window.start && span.start < window.end).count();
    format::count(count as u64)
}

/// `|MMMMm..rRRR   |`
fn line(spans: &Spans, window: Span, columns: usize) -> String {
    let [main, replica, intent] =
        [&spans.main, &spans.replica, &spans.intent].map(|spans| shares(spans, window, columns));
    let letter = |column: usize| match (main[column], replica[column], intent[column]) {
        (main, replica, _) if main >= 0.5 && main >= replica => 'M',
        (_, replica, _) if replica >= 0.5 => 'R',
        (main, replica, _) if main > 0.0 && main >= replica => 'm',
        (_, replica, _) if replica > 0.0 => 'r',
        (_, _, intent) if intent > 0.0 => '.',
        _ => ' ',
    };
    format!("|{}|", (0..columns).map(letter).collect::<String>())
}

const LEGEND: &str = "M main copy, R replica for at least half of a column's time, m and r for less; . intent but no copy";

/// Characters of a line of time beside its numbers.
const COLUMNS: usize = 60;
/// The most of them below.
const COLUMNS_MAX: usize = 100;
/// Columns before and after a time line that stands below its numbers.
const NARROW_FRAME: usize = 12;
/// Columns from which on there is room for both.
const WIDE: usize = 122;

/// Marks that are listed.
const MARKS_MAX: usize = 12;
