//! The start-up table: who has joined, who is missing, where everybody is reached, and who said so.

use std::net::SocketAddr;
use std::time::Duration;

use adapm_transport::group::launcher::Position;

use crate::format;
use crate::table::Table;

/// What is known of one node that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) rtt: Option<Duration>,
}

/// What node 0 says of the whole, and every other node of itself: with the flags and variables that
/// said so.
pub(super) fn heading(position: &Position, transport: &str, is_sealed: bool, width: usize) -> String {
    let Position { node, nodes, rendezvous, launcher, .. } = position;
    let launcher = launcher.map_or_else(String::new, |launcher| format!("{launcher}: "));
    let from = format!(
        "{launcher}node from {}, count from {}, meeting from {}",
        node.origin, nodes.origin, rendezvous.origin
    );
    let place = &rendezvous.value;
    let sealed = if is_sealed { "sealed" } else { "not sealed, for want of a token" };
    let nodes = nodes.value;
    match node.value {
        0 => {
            let what = format!("{nodes} processes over {transport} ({sealed}), meeting at {place}");
            let room = width.saturating_sub(CLUSTER.len());
            let lines = [what, from].map(|text| format::lines(&text, room)).concat();
            let indent = " ".repeat(CLUSTER.len());
            format!("{CLUSTER}{}\n", lines.join(&format!("\n{indent}")))
        }
        own => {
            let text = format!("n{own} of {nodes} over {transport} ({sealed}), meeting at {place} ({from})");
            format::wrapped(&text, width) + "\n"
        }
    }
}

/// A row per node, in order, within so many columns.
pub(super) fn rows(own: usize, seats: &[Option<Seat>], width: usize) -> String {
    let mut table = Table::new(&[]);
    for (node, seat) in seats.iter().enumerate() {
        let name = format!("n{node}");
        match seat {
            None => table.row([name.as_str(), "missing"]),
            Some(Seat { address, host, pid, rtt }) => {
                let rtt = match rtt {
                    _ if node == own => "this process".to_owned(),
                    Some(rtt) => format!("round trip {}", format::seconds(rtt.as_secs_f64())),
                    None => String::new(),
                };
                table.row([name, address.to_string(), format!("{host}, process {pid}"), rtt]);
            }
        }
    }
    table.within(width)
}

/// `2 of 4 nodes joined; waiting for n2, n3`.
pub(super) fn waiting(seats: &[Option<Seat>]) -> String {
    let missing: Vec<usize> = (0..seats.len()).filter(|node| seats[*node].is_none()).collect();
    let shown: Vec<String> = missing.iter().take(NAMES_MAX).map(|node| format!("n{node}")).collect();
    let more = match missing.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} of {} nodes joined; waiting for {}{more}",
        seats.len() - missing.len(),
        seats.len(),
        shown.join(", ")
    )
}

const CLUSTER: &str = "cluster   ";

/// Names of missing nodes in one line.
const NAMES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use adapm_transport::group::Rendezvous;
    use adapm_transport::group::launcher::Sourced;

    use super::*;

    fn seat(last: u8, rtt: Option<Duration>) -> Option<Seat> {
        Some(Seat { address: SocketAddr::from(([10, 0, 0, last], 4157)), host: "ann".into(), pid: 7, rtt })
    }

    #[test]
    fn every_node_has_a_row_joined_or_missing() {
        let seats = [seat(1, None), None, seat(3, Some(Duration::from_micros(52)))];
        let text = "  n0   10.0.0.1:4157   ann, process 7   this process\n  n1   missing\n  n2   10.0.0.3:4157   ann, process 7   round trip 52 us\n";
        assert_eq!(rows(0, &seats, 80), text);
        assert_eq!(waiting(&seats), "2 of 3 nodes joined; waiting for n1");
    }

    #[test]
    fn the_heading_says_where_each_value_came_from() {
        let member = |node| Position {
            node: Sourced { value: node, origin: "SLURM_PROCID" },
            nodes: Sourced { value: 4, origin: "--nodes" },
            rendezvous: Sourced { value: Rendezvous::File("x/y".into()), origin: "SLURM_JOB_NODELIST" },
            job: None,
            launcher: Some("Slurm"),
        };
        let from = "Slurm: node from SLURM_PROCID, count from --nodes, meeting from SLURM_JOB_NODELIST";
        let text =
            format!("cluster   4 processes over zmq (sealed), meeting at file:x/y\n          {from}\n");
        assert_eq!(heading(&member(0), "zmq", true, 120), text);
        let text =
            format!("n2 of 4 over zmq (not sealed, for want of a token), meeting at file:x/y ({from})\n");
        assert_eq!(heading(&member(2), "zmq", false, 200), text);
        for (node, width) in [(0, 74), (2, 74), (0, 40), (2, 40)] {
            let text = heading(&member(node), "zmq", true, width);
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
        }
    }

    #[test]
    fn many_missing_nodes_are_counted() {
        let seats = vec![None; 100];
        assert!(waiting(&seats).ends_with("n10, n11 and 88 more"), "{}", waiting(&seats));
    }
}
