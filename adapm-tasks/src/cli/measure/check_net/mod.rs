//! The verb `check-net`: measures the links between the processes, over the transport that a
//! run would use.
//!
//! [`probe`] measures, a [`Matrix`] shows. Not here: anything of parameters; a run is slower than
//! the network alone.

use std::fmt;

use adapm_core::NodeId;
use adapm_core::transport::{CloseReason, Transport as _};
use adapm_transport::net::{Address, Net, NetError};
use serde::Serialize;

use crate::cli::args::CheckNetArgs;
use crate::cli::failure::{Blame, Failure};
use crate::cli::format;
use crate::cli::interrupt::Interrupt;
use crate::cli::measure::check_net::probe::{Measured, Probe, ProbeError};
use crate::cli::output::Output;
use crate::cli::processes::{self, Company};
use crate::cli::progress::Screen;
use crate::cli::table::{Align, Table};

mod probe;

/// Measures every pair of processes, one after the other, and prints what came out on node 0.
pub(crate) fn run(args: &CheckNetArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    processes::with(
        &args.processes,
        args.nodes,
        interrupt,
        || Ok(()),
        |processes| {
            let company = processes.company().ok_or(Failure::NoProcesses)?;
            let output = processes.output(args.json);
            let mut net = connect(company)?;
            let measured = measure(args, company, &mut net, output, interrupt);
            net.leave(if measured.is_ok() { CloseReason::Finished } else { CloseReason::Failed });
            let nodes = company.group.nodes();
            match measured? {
                Some(matrix) => {
                    let transport = company.config.kind.scheme();
                    output.text(&format!("\n{}", matrix.text(nodes, output)))?;
                    output.object(&matrix.report(nodes, transport))
                }
                None => Ok(()),
            }
        },
    )
}

/// Returns an endpoint of this process with the addresses of the others; links come up as they are
/// used.
fn connect(company: &Company) -> Result<Net, Failure> {
    let group = &company.group;
    let refused = |error: NetError| Failure::Between(Blame::Run, error.to_string());
    let mut net = group.listen(CHANNEL, 0).map_err(refused)?;
    let own = group.address_of(&net).to_string();
    let all = group.all_gather_for("check-net", own.as_bytes()).map_err(Failure::Group)?;
    let address = |bytes: &Vec<u8>| {
        std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Address>().ok())
    };
    let addresses: Vec<Option<Address>> = all.iter().map(address).collect();
    net.connect(&addresses);
    Ok(net)
}

/// Measures as node 0, or answers as another one.
fn measure(
    args: &CheckNetArgs,
    company: &Company,
    net: &mut Net,
    output: Output,
    interrupt: &Interrupt,
) -> Result<Option<Matrix>, Failure> {
    let (node, nodes) = (company.group.node(), company.group.nodes());
    let mut probe =
        Probe::new(net, node, nodes, interrupt.stop()).patient(company.group.join_timeout());
    if node.index() > 0 {
        return ended(probe.follow()).map(|()| None);
    }
    let pairs = nodes * (nodes - 1);
    let slice = args.seconds / u32::try_from(pairs).unwrap_or(u32::MAX).max(1);
    let screen = Screen::new("check-net", output, interrupt);
    screen.waiting("measuring");
    let mut matrix = Matrix::default();
    let led = probe.lead(slice, |from, to, measured| {
        matrix.push(from, to, measured);
        screen.waiting(&format!("measuring: {} of {pairs} links", matrix.len()));
    });
    screen.finish()?;
    ended(led)?;
    Ok((matrix.len() == pairs).then_some(matrix))
}

/// The end of a measurement, which one that was stopped has reached too: the exit code shows which.
fn ended<E: fmt::Display>(result: Result<(), ProbeError<E>>) -> Result<(), Failure> {
    match result {
        Ok(()) | Err(ProbeError::Stopped) => Ok(()),
        Err(error @ (ProbeError::Lost { .. } | ProbeError::Silent { .. })) => {
            Err(Failure::Between(Blame::Loss, error.to_string()))
        }
        Err(error @ (ProbeError::Transport(_) | ProbeError::Odd { .. })) => {
            Err(Failure::Between(Blame::Run, error.to_string()))
        }
    }
}

/// All ordered pairs of nodes with what was measured between them.
#[derive(Debug, Default)]
struct Matrix {
    pairs: Vec<(NodeId, NodeId, Measured)>,
}

/// The object of `--json`.
#[derive(Serialize)]
struct Report<'a> {
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
    fn push(&mut self, from: NodeId, to: NodeId, measured: Measured) {
        self.pairs.push((from, to, measured));
    }

    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn report<'a>(&self, nodes: usize, transport: &'a str) -> Report<'a> {
        let pair = |(from, to, measured): &(NodeId, NodeId, Measured)| Pair {
            from: from.0,
            to: to.0,
            rtt_median_seconds: measured.rtt_median,
            rtt_p99_seconds: measured.rtt_p99,
            bytes_per_second: measured.bandwidth,
        };
        Report { task: "check-net", nodes, transport, pairs: self.pairs.iter().map(pair).collect() }
    }

    /// Returns two tables and two lines.
    fn text(&self, nodes: usize, output: Output) -> String {
        let mut text = format!("{}, from the node of the row\n", output.bold("round trip, median"));
        text.push_str(&self.table(nodes, |measured| format::seconds(measured.rtt_median)));
        text.push_str(&format!("\n{}, from the node of the row\n", output.bold("bandwidth")));
        text.push_str(&self.table(nodes, |measured| rate(measured.bandwidth)));
        let by = |of: fn(&Measured) -> f64| {
            self.pairs.iter().max_by(|(_, _, one), (_, _, other)| of(one).total_cmp(&of(other)))
        };
        if let Some((from, to, measured)) = by(|measured| measured.rtt_p99) {
            let p99 = format::seconds(measured.rtt_p99);
            text.push_str(&format!(
                "\n  longest round trip   {p99} for one in a hundred, {from} to {to}\n"
            ));
        }
        if let Some((from, to, measured)) = by(|measured| -measured.bandwidth) {
            text.push_str(&format!(
                "  least bandwidth      {}, {from} to {to}\n",
                rate(measured.bandwidth)
            ));
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

/// No run that a process could take this one for uses it.
const CHANNEL: u16 = u16::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_from_and_columns_to() {
        let mut matrix = Matrix::default();
        let measured =
            |rtt: f64, bandwidth| Measured { rtt_median: rtt, rtt_p99: 2.0 * rtt, bandwidth };
        matrix.push(NodeId(0), NodeId(1), measured(50e-6, 2e9));
        matrix.push(NodeId(1), NodeId(0), measured(60e-6, 1e9));
        let expected = "round trip, median, from the node of the row\n           to n0   to n1\n  n0           -   50 us\n  n1       60 us       -\n";
        let text = matrix.text(2, Output::new(false));
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
        assert!(
            text.contains("longest round trip   120 us for one in a hundred, n1 to n0\n"),
            "{text}"
        );
        assert!(text.contains("least bandwidth      1.00 GB/s, n1 to n0\n"), "{text}");
        let object = serde_json::to_value(matrix.report(2, "tcp")).expect("an object");
        assert_eq!(object["pairs"][1]["bytes_per_second"], 1e9);
        assert_eq!((&object["task"], &object["transport"]), (&"check-net".into(), &"tcp".into()));
    }
}
