//! What was measured, as tables of from and to, and the pairs that stand out.

use adapm_core::NodeId;
use serde::Serialize;

use crate::format;
use crate::measure::check_net::probe::Measured;
use crate::output::Output;
use crate::table::{Align, Table};

/// All ordered pairs of nodes with what was measured between them.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    pairs: Vec<(NodeId, NodeId, Measured)>,
}

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    task: &'static str,
    nodes: usize,
    transport: &'a str,
    pairs: Vec<Pair>,
}

#[derive(Serialize)]
struct Pair {
    from: u16,
    to: u16,
    rtt_median_seconds: f64,
    rtt_p99_seconds: f64,
    bytes_per_second: f64,
}

impl Matrix {
    pub(super) fn push(&mut self, from: NodeId, to: NodeId, measured: Measured) {
        self.pairs.push((from, to, measured));
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn report<'a>(&self, nodes: usize, transport: &'a str) -> Report<'a> {
        let pair = |(from, to, measured): &(NodeId, NodeId, Measured)| Pair {
            from: from.0,
            to: to.0,
            rtt_median_seconds: measured.rtt_median,
            rtt_p99_seconds: measured.rtt_p99,
            bytes_per_second: measured.bandwidth,
        };
        Report { task: "check-net", nodes, transport, pairs: self.pairs.iter().map(pair).collect() }
    }

    /// Two tables and two lines.
    pub(super) fn text(&self, nodes: usize, output: Output) -> String {
        let mut text = format!("{}, from the node of the row\n", output.bold("round trip, median"));
        text.push_str(&self.table(nodes, |measured| format::seconds(measured.rtt_median)));
        text.push_str(&format!("\n{}, from the node of the row\n", output.bold("bandwidth")));
        text.push_str(&self.table(nodes, |measured| rate(measured.bandwidth)));
        let by = |of: fn(&Measured) -> f64| {
            self.pairs.iter().max_by(|(_, _, one), (_, _, other)| of(one).total_cmp(&of(other)))
        };
        if let Some((from, to, measured)) = by(|measured| measured.rtt_p99) {
            let p99 = format::seconds(measured.rtt_p99);
            text.push_str(&format!("\n  longest round trip   {p99} for one in a hundred, {from} to {to}\n"));
        }
        if let Some((from, to, measured)) = by(|measured| -measured.bandwidth) {
            text.push_str(&format!("  least bandwidth      {}, {from} to {to}\n", rate(measured.bandwidth)));
        }
        text
    }

    fn table(&self, nodes: usize, cell: impl Fn(&Measured) -> String) -> String {
        let ids = || (0..nodes).map(|id| NodeId(u16::try_from(id).unwrap_or(u16::MAX)));
        let mut table = Table::new(&[vec![Align::Left], vec![Align::Right; nodes]].concat());
        table.row([String::new()].into_iter().chain(ids().map(|to| format!("to {to}"))));
        for from in ids() {
            let cells = ids().map(|to| {
                let pair = self.pairs.iter().find(|pair| (pair.0, pair.1) == (from, to));
                pair.map_or_else(|| "-".to_owned(), |(_, _, measured)| cell(measured))
            });
            table.row([from.to_string()].into_iter().chain(cells));
        }
        table.render()
    }
}

/// Bytes a second.
fn rate(bytes: f64) -> String {
    format!("{}/s", format::bytes(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_from_and_columns_to() {
        let mut matrix = Matrix::default();
        let measured = |rtt: f64, bandwidth| Measured { rtt_median: rtt, rtt_p99: 2.0 * rtt, bandwidth };
        matrix.push(NodeId(0), NodeId(1), measured(50e-6, 2e9));
        matrix.push(NodeId(1), NodeId(0), measured(60e-6, 1e9));
        let expected = "round trip, median, from the node of the row\n           to n0   to n1\n  n0           -   50 us\n  n1       60 us       -\n";
        let text = matrix.text(2, Output::new(false));
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
        assert!(text.contains("longest round trip   120 us for one in a hundred, n1 to n0\n"), "{text}");
        assert!(text.contains("least bandwidth      1.00 GB/s, n1 to n0\n"), "{text}");
        let object = serde_json::to_value(matrix.report(2, "tcp")).expect("an object");
        assert_eq!(object["pairs"][1]["bytes_per_second"], 1e9);
        assert_eq!((&object["task"], &object["transport"]), (&"check-net".into(), &"tcp".into()));
    }
}
