//! The display while processes join: the table at once or when it is complete, then each that
//! joins, then those that are missing.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use adapm_transport::group::launcher::Position;

use crate::cli::format;
use crate::cli::table::Table;
use crate::cli::terminal::Stream;

/// Prints a membership to stderr: node 0 for all, the others a line for themselves.
pub(super) struct Watch {
    own: usize,
    heading: String,
    patient_until: Instant,
    shown: Option<Vec<bool>>,
    /// The nodes that had joined at the last look.
    last: Vec<Option<Peer>>,
    reminded: Instant,
    fault: Option<String>,
    refused: Refused,
}

/// The refusals printed so far.
#[derive(Default)]
struct Refused {
    last: Option<String>,
    /// Other refusals are not printed until then.
    silent_until: Option<Instant>,
}

/// The state of the group at a moment.
pub(super) struct View<'a> {
    pub(super) peers: Vec<Option<Peer>>,
    /// The fault that keeps this node from its links.
    pub(super) fault: Option<String>,
    /// The last refusals, each with its reason, and their number.
    pub(super) refused: &'a [String],
    pub(super) refusals: u64,
}

impl Watch {
    pub(super) fn new(own: usize, heading: String) -> Self {
        let now = Instant::now();
        Self {
            own,
            heading,
            patient_until: now + PATIENCE,
            shown: None,
            last: Vec::new(),
            reminded: now,
            fault: None,
            refused: Refused::default(),
        }
    }

    /// Shows what is new.
    pub(super) fn look(&mut self, view: &View<'_>) {
        self.last.clone_from(&view.peers);
        print(&self.news(view, Instant::now()));
    }

    /// Shows what there is to show of an attempt that failed before there was a table.
    pub(super) fn give_up(&mut self) {
        let view =
            View { peers: std::mem::take(&mut self.last), fault: None, refused: &[], refusals: 0 };
        if self.shown.is_none() {
            self.patient_until = Instant::now();
            print(&self.news(&view, Instant::now()));
        }
    }

    fn news(&mut self, view: &View<'_>, now: Instant) -> String {
        let mut text = String::new();
        let here: Vec<bool> = view.peers.iter().map(Option::is_some).collect();
        let complete = here.iter().all(|here| *here);
        let patient = now < self.patient_until;
        let all_for = |text: &mut String| {
            if self.own == 0 {
                text.push_str(&rows(self.own, &view.peers, Stream::Stderr.width()));
            }
        };
        match &self.shown {
            // Most often all are there before a user could read that some are missing.
            None if !complete && patient => return text,
            None => {
                text.push_str(&self.heading);
                all_for(&mut text);
            }
            Some(shown) if complete && *shown != here => all_for(&mut text),
            Some(shown) if self.own == 0 => {
                for (node, peer) in view.peers.iter().enumerate() {
                    let Some(peer) = peer.as_ref().filter(|_| !shown[node]) else { continue };
                    text.push_str(&format!(
                        "  n{node} joined from {} ({})\n",
                        peer.address, peer.host
                    ));
                }
            }
            Some(_) => {}
        }
        self.shown = Some(here);
        self.refused.tell(view, now, &mut text);
        if !complete
            && (text.len() > self.heading.len() && self.own == 0 || now >= self.reminded + REMIND)
        {
            self.reminded = now;
            text.push_str(&format!("  {}\n", waiting(&view.peers)));
        }
        if let Some(fault) = view.fault.as_ref().filter(|fault| self.fault.as_ref() != Some(*fault))
        {
            text.push_str(&format!("  {fault}\n"));
            self.fault = Some(fault.clone());
        }
        text
    }
}

impl Refused {
    /// Prints the processes that were refused since the last such line, at most once a second: a
    /// flood must not fill a log.
    fn tell(&mut self, view: &View<'_>, now: Instant, text: &mut String) {
        let known = view.refused.iter().rposition(|line| Some(line) == self.last.as_ref());
        let news = &view.refused[known.map_or(0, |known| known + 1)..];
        if news.is_empty() || self.silent_until.is_some_and(|until| now < until) {
            return;
        }
        for line in news.iter().skip(news.len().saturating_sub(REFUSED_LINES)) {
            text.push_str(&format!("  {line}\n"));
        }
        if news.len() > REFUSED_LINES {
            text.push_str(&format!("  {} connections were refused so far\n", view.refusals));
        }
        self.last = news.last().cloned();
        self.silent_until = Some(now + REFUSED_EVERY);
    }
}

/// Prints to stderr; a closed stderr is no error.
fn print(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A node that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) rtt: Option<Duration>,
}

/// Returns the heading: of the whole on node 0, of itself on every other node, with the flags and
/// variables that said so.
pub(super) fn heading(
    position: &Position,
    transport: &str,
    is_sealed: bool,
    width: usize,
) -> String {
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
            let text = format!(
                "n{own} of {nodes} over {transport} ({sealed}), meeting at {place} ({from})"
            );
            format::wrapped(&text, width) + "\n"
        }
    }
}

/// Returns a row per node, in order, within so many columns.
pub(super) fn rows(own: usize, peers: &[Option<Peer>], width: usize) -> String {
    let mut table = Table::new(&[]);
    for (node, peer) in peers.iter().enumerate() {
        let name = format!("n{node}");
        match peer {
            None => table.row([name.as_str(), "missing"]),
            Some(Peer { address, host, pid, rtt }) => {
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
pub(super) fn waiting(peers: &[Option<Peer>]) -> String {
    let missing: Vec<usize> = (0..peers.len()).filter(|node| peers[*node].is_none()).collect();
    let shown: Vec<String> =
        missing.iter().take(NAMES_MAX).map(|node| format!("n{node}")).collect();
    let more = match missing.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} of {} nodes joined; waiting for {}{more}",
        peers.len() - missing.len(),
        peers.len(),
        shown.join(", ")
    )
}

/// Within this time all join if they are started together.
const PATIENCE: Duration = Duration::from_millis(400);

/// Time between two lines that name refused processes, and how many each names.
const REFUSED_EVERY: Duration = Duration::from_secs(1);
const REFUSED_LINES: usize = 3;

/// Time between two lines that name the missing nodes.
const REMIND: Duration = Duration::from_secs(5);

const CLUSTER: &str = "cluster   ";

/// Names of missing nodes in one line.
const NAMES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use adapm_transport::group::Rendezvous;
    use adapm_transport::group::launcher::Sourced;

    use super::*;

    fn view(joined: &[bool]) -> View<'static> {
        let peer = Peer {
            address: SocketAddr::from(([10, 0, 0, 1], 7)),
            host: "ann".into(),
            pid: 1,
            rtt: None,
        };
        View {
            peers: joined.iter().map(|here| here.then(|| peer.clone())).collect(),
            fault: None,
            refused: &[],
            refusals: 0,
        }
    }

    #[test]
    fn a_table_that_is_complete_at_once_is_shown_once() {
        let mut watch = Watch::new(0, "heading\n".into());
        let start = watch.reminded;
        assert_eq!(watch.news(&view(&[true, false]), start), "");
        let text = watch.news(&view(&[true, true]), start + Duration::from_millis(80));
        assert!(
            text.starts_with("heading\n  n0   10.0.0.1:7 ") && text.lines().count() == 3,
            "{text}"
        );
        assert_eq!(watch.news(&view(&[true, true]), start + Duration::from_secs(60)), "");
    }

    #[test]
    fn those_who_come_late_are_named_as_missing_within_a_second() {
        let mut watch = Watch::new(0, "heading\n".into());
        let start = watch.reminded;
        let text = watch.news(&view(&[true, false, false]), start + Duration::from_millis(900));
        assert!(
            text.contains(
                "  n1   missing\n  n2   missing\n  1 of 3 nodes joined; waiting for n1, n2\n"
            ),
            "{text}"
        );
        assert_eq!(watch.news(&view(&[true, false, false]), start + Duration::from_secs(2)), "");
        let text = watch.news(&view(&[true, false, true]), start + Duration::from_secs(3));
        assert_eq!(
            text,
            "  n2 joined from 10.0.0.1:7 (ann)\n  2 of 3 nodes joined; waiting for n1\n"
        );
        let text = watch.news(&view(&[true, false, true]), start + Duration::from_secs(9));
        assert_eq!(text, "  2 of 3 nodes joined; waiting for n1\n");
        let text = watch.news(&view(&[true, true, true]), start + Duration::from_secs(10));
        assert!(text.lines().count() == 3 && !text.contains("missing"), "{text}");
    }

    #[test]
    fn the_others_say_their_place_and_what_keeps_them() {
        let mut watch = Watch::new(1, "heading\n".into());
        let start = watch.reminded;
        let fault =
            View { fault: Some("n0 was not reached so far".into()), ..view(&[false, true]) };
        let text = watch.news(&fault, start + Duration::from_secs(1));
        assert_eq!(text, "heading\n  n0 was not reached so far\n");
        assert_eq!(watch.news(&fault, start + Duration::from_secs(2)), "");
        assert_eq!(watch.news(&view(&[true, true]), start + Duration::from_secs(3)), "");
    }

    #[test]
    fn who_is_refused_is_told_once() {
        let mut watch = Watch::new(0, String::new());
        let start = watch.reminded;
        let refused = ["refused 10.0.0.9:1: wrong token".to_owned()];
        let text =
            watch.news(&View { refused: &refused, ..view(&[true, false]) }, start + PATIENCE);
        assert!(text.contains("  refused 10.0.0.9:1: wrong token\n"), "{text}");
        let text =
            watch.news(&View { refused: &refused, ..view(&[true, false]) }, start + PATIENCE);
        assert_eq!(text, "");
    }

    #[test]
    fn of_a_flood_the_last_are_named_once_a_second_with_a_count() {
        let mut watch = Watch::new(0, String::new());
        let start = watch.reminded + PATIENCE;
        let mut told = |numbers: core::ops::Range<u64>, after: Duration| {
            let refused: Vec<String> =
                numbers.clone().map(|number| format!("refused {number}")).collect();
            let view = View { refused: &refused, refusals: numbers.end, ..view(&[true, false]) };
            let text = watch.news(&view, start + after);
            text.lines()
                .filter(|line| line.contains("refused"))
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(told(0..1, Duration::ZERO), ["refused 0"]);
        assert!(told(0..16, Duration::from_millis(999)).is_empty());
        // The list holds the last ones only.
        let last = ["refused 37", "refused 38", "refused 39", "40 connections were refused so far"];
        assert_eq!(told(24..40, Duration::from_millis(1_000)), last);
        assert!(told(24..40, Duration::from_millis(2_500)).is_empty());
        assert_eq!(told(25..41, Duration::from_millis(2_600)), ["refused 40"]);
    }

    fn peer(last: u8, rtt: Option<Duration>) -> Option<Peer> {
        Some(Peer {
            address: SocketAddr::from(([10, 0, 0, last], 4157)),
            host: "ann".into(),
            pid: 7,
            rtt,
        })
    }

    #[test]
    fn every_node_has_a_row_joined_or_missing() {
        let peers = [peer(1, None), None, peer(3, Some(Duration::from_micros(52)))];
        let text = "  n0   10.0.0.1:4157   ann, process 7   this process\n  n1   missing\n  n2   10.0.0.3:4157   ann, process 7   round trip 52 us\n";
        assert_eq!(rows(0, &peers, 80), text);
        assert_eq!(waiting(&peers), "2 of 3 nodes joined; waiting for n1");
    }

    #[test]
    fn the_heading_says_where_each_value_came_from() {
        let member = |node| Position {
            node: Sourced { value: node, origin: "SLURM_PROCID" },
            nodes: Sourced { value: 4, origin: "--nodes" },
            rendezvous: Sourced {
                value: Rendezvous::File("x/y".into()),
                origin: "SLURM_JOB_NODELIST",
            },
            job: None,
            launcher: Some("Slurm"),
        };
        let from =
            "Slurm: node from SLURM_PROCID, count from --nodes, meeting from SLURM_JOB_NODELIST";
        let text = format!(
            "cluster   4 processes over zmq (sealed), meeting at file:x/y\n          {from}\n"
        );
        assert_eq!(heading(&member(0), "zmq", true, 120), text);
        let text = format!(
            "n2 of 4 over zmq (not sealed, for want of a token), meeting at file:x/y ({from})\n"
        );
        assert_eq!(heading(&member(2), "zmq", false, 200), text);
        for (node, width) in [(0, 74), (2, 74), (0, 40), (2, 40)] {
            let text = heading(&member(node), "zmq", true, width);
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
        }
    }

    #[test]
    fn many_missing_nodes_are_counted() {
        let peers = vec![None; 100];
        assert!(waiting(&peers).ends_with("n10, n11 and 88 more"), "{}", waiting(&peers));
    }
}
