//! A trace as text: for each key where its copies were and how long, with a line of time for each node.

use adapm_core::{Instant, NodeId};
use adapm_runtime::trace::{Span, Spans, Trace};

use crate::format;
use crate::output::Output;
use crate::table::{Align, Table};
use crate::trace::shares::shares;

/// What `trace` shows in `window`.
pub(super) fn summary(trace: &Trace, window: Span, output: Output) -> String {
    let mut text = format!("{}\n", output.bold(headline(trace, window)));
    if !trace.is_complete() {
        text.push_str("  the trace was cut off: the run did not end in order, or is not over\n");
    }
    let marks: Vec<String> =
        marks(trace, window).map(|(at, what)| format!("{what} at {}", moment(at.end))).collect();
    if !marks.is_empty() {
        let shown = marks.len().min(MARKS_MAX);
        let more =
            if shown < marks.len() { format!(" and {} more", marks.len() - shown) } else { String::new() };
        text.push_str(&format!("  {}{more}\n", marks[..shown].join(", ")));
    }
    for (key, title) in trace.keys() {
        text.push_str(&format!("\n{} {title}\n", output.bold(key)));
        text.push_str(&panel(trace, &trace.spans(*key), window));
    }
    text.push_str(&format!("\n  {}\n", output.dim(LEGEND)));
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

/// The stretch of time that is shown: `1.23 s`, or `0.500 s to 0.700 s of 1.23 s`.
fn stretch(trace: &Trace, window: Span) -> String {
    let whole = format::seconds(trace.end().nanos() as f64 / 1e9);
    if window.start.nanos() == 0 && window.end == trace.end() {
        return whole;
    }
    let [from, until] = [window.start, window.end].map(|at| at.nanos() as f64 / 1e9);
    format!("{from:.3} s to {until:.3} s of {whole}")
}

/// The moments of the window of which the program said something, each with how far it is from the start; of what several
/// processes have said the first.
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

fn panel(trace: &Trace, nodes: &[Spans], window: Span) -> String {
    let right = Align::Right;
    let mut table = Table::new(&[Align::Left, right, right, right, right, right, Align::Left]);
    let edges = edges(window);
    table.row(["", "main copy", "times", "replica", "times", "intent", &edges]);
    for (index, spans) in nodes.iter().enumerate() {
        let node = NodeId(u16::try_from(index).unwrap_or(u16::MAX));
        if !trace.parts().is_empty() && !trace.parts().contains(&node) {
            table.row([node.to_string().as_str(), "", "", "", "", "", "its part is missing"]);
            continue;
        }
        table.row([
            node.to_string(),
            share(&spans.main, window),
            within(&spans.main, window),
            share(&spans.replica, window),
            within(&spans.replica, window),
            share(&spans.intent, window),
            line(spans, window),
        ]);
    }
    table.render()
}

/// The bounds of a line of time above its ends.
fn edges(window: Span) -> String {
    let [left, right] = [window.start, window.end].map(moment);
    let gap = (COLUMNS + 2).saturating_sub(left.len() + right.len());
    format!("{left}{}{right}", " ".repeat(gap))
}

fn moment(at: Instant) -> String {
    if at == Instant::ZERO { "0 s".to_owned() } else { format::seconds(at.nanos() as f64 / 1e9) }
}

fn share(spans: &[Span], window: Span) -> String {
    let covered: f64 = shares(spans, window, 1).iter().sum();
    if covered > 0.0 && covered < 1e-4 { "< 0.01 %".to_owned() } else { format::share(covered.min(1.0)) }
}

/// Spans of which some part lies in the window.
fn within(spans: &[Span], window: Span) -> String {
    let count = spans.iter().filter(|span| span.end > window.start && span.start < window.end).count();
    format::count(count as u64)
}

/// `|MMMMm..rRRR   |`
fn line(spans: &Spans, window: Span) -> String {
    let [main, replica, intent] =
        [&spans.main, &spans.replica, &spans.intent].map(|spans| shares(spans, window, COLUMNS));
    let letter = |column: usize| match (main[column], replica[column], intent[column]) {
        (main, replica, _) if main >= 0.5 && main >= replica => 'M',
        (_, replica, _) if replica >= 0.5 => 'R',
        (main, replica, _) if main > 0.0 && main >= replica => 'm',
        (_, replica, _) if replica > 0.0 => 'r',
        (_, _, intent) if intent > 0.0 => '.',
        _ => ' ',
    };
    format!("|{}|", (0..COLUMNS).map(letter).collect::<String>())
}

const LEGEND: &str =
    "M main copy, R replica for at least half of a column's time, m and r for less; . intent but no copy";

/// Characters of a line of time.
const COLUMNS: usize = 60;

/// Marks that are listed.
const MARKS_MAX: usize = 12;
