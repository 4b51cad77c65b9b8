//! Subjects of measurement, by name; the jobs trained for them, and in what ways.

use std::path::Path;
use std::str::FromStr;

use crate::measure::bench::Group;

use crate::cli::data::sets::Task;

/// The placement of the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Plain arrays, one worker, no manager.
    Plain,
    /// One node with so many workers.
    Workers(usize),
    /// So many processes over TCP, a worker each.
    Processes(usize),
    /// As many nodes within one process, a worker each.
    Nodes(usize),
}

impl Way {
    /// In the order in which they take turns: what others are compared with comes first.
    pub(super) const ALL: [Self; 7] = [
        Self::Plain,
        Self::Workers(1),
        Self::Workers(2),
        Self::Processes(2),
        Self::Processes(4),
        Self::Nodes(2),
        Self::Nodes(4),
    ];

    pub(super) fn name(self) -> String {
        match self {
            Self::Plain => "plain arrays, 1 worker".to_owned(),
            Self::Workers(workers) => format!("1 node x {workers}"),
            Self::Processes(nodes) => format!("{nodes} processes x 1 over TCP"),
            Self::Nodes(nodes) => format!("{nodes} nodes x 1 in one process"),
        }
    }

    /// Returns the words of a command line that trains this way, where the task's are `train`.
    pub(super) fn words(self, train: &[String]) -> Vec<String> {
        let all = |before: &[&str], after: &[&str]| {
            let own =
                |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            [own(before), train.to_vec(), own(after)].concat()
        };
        match self {
            Self::Plain => all(&[], &["--system", "none"]),
            Self::Workers(workers) => all(&[], &["--workers", &workers.to_string()]),
            Self::Processes(nodes) => {
                all(&["launch", "--nodes", &nodes.to_string(), "--"], &["--workers", "1"])
            }
            Self::Nodes(nodes) => all(&[], &["--nodes", &nodes.to_string(), "--workers", "1"]),
        }
    }
}

/// How a task is trained to be measured: by the settings with which the predecessor was.
impl Task {
    /// Flags of `train`, and what is trained on, in a few words.
    pub(super) fn flags(self, is_quick: bool) -> (Vec<String>, &'static str) {
        let (flags, data) = match (self, is_quick) {
            (Self::Kge, false) => (
                "--dim 100 --negatives independent --negative-count 6 --epochs 4 --valid-every 4",
                KGE,
            ),
            (Self::Kge, true) => (
                "--dim 100 --negatives independent --negative-count 6 --epochs 3 --valid-every 3",
                NOTHING,
            ),
            (Self::Mf, false) => (
                "--rows 100000 --columns 10000 --cells 10000000 --test-cells 1000 --rank 32 --dim 32 --epochs 4",
                NOTHING,
            ),
            (Self::Mf, true) => (
                "--rows 20000 --columns 2000 --cells 1000000 --test-cells 1000 --rank 32 --dim 32 --epochs 4",
                NOTHING,
            ),
            (Self::Wv, false) => ("--epochs 1", WV),
            (Self::Wv, true) => ("--epochs 3", NOTHING),
            (Self::Ctr, false) => ("--epochs 3 --valid-every 3", NOTHING),
            (Self::Ctr, true) => ("--epochs 3 --valid-every 3 --examples 100000", NOTHING),
            (Self::Gnn, false) => {
                ("--features learned --graph-nodes 50000 --epochs 4 --valid-every 4", NOTHING)
            }
            (Self::Gnn, true) => ("--features learned --epochs 4 --valid-every 4", NOTHING),
        };
        let mut words: Vec<String> = ["train", self.name()].map(str::to_owned).to_vec();
        words.extend(flags.split_whitespace().map(str::to_owned));
        let folder = std::env::var_os("ADAPM_DATA").unwrap_or_default();
        let path = Path::new(&folder).join(data.path);
        if data.path.is_empty() || !path.exists() {
            return (words, self.generated());
        }
        words.extend(["--data".to_owned(), path.display().to_string()]);
        (words, data.name)
    }

    fn generated(self) -> &'static str {
        match self {
            Self::Kge | Self::Gnn => "generated graph",
            Self::Mf => "generated matrix",
            Self::Wv => "generated text",
            Self::Ctr => "generated clicks",
        }
    }

    /// Returns the number of turns of each way.
    pub(super) fn rounds(self, is_quick: bool) -> usize {
        match (self, is_quick) {
            (_, true) => 1,
            (Self::Kge | Self::Mf, false) => 5,
            (Self::Wv | Self::Ctr | Self::Gnn, false) => 3,
        }
    }

    /// Epochs of a run before the first that counts: it warms up where there are others.
    pub(super) fn warm_up(self, is_quick: bool) -> usize {
        usize::from(is_quick || self != Self::Wv)
    }

    /// Returns the name of examples in JSON, the unit of their rate, and how many make one of it.
    pub(super) fn rate(self) -> (&'static str, &'static str, f64) {
        match self {
            Self::Kge => ("triples", "k triples/s", 1e3),
            Self::Mf => ("cells", "M cells/s", 1e6),
            Self::Wv => ("words", "k words/s", 1e3),
            Self::Ctr => ("examples", "k examples/s", 1e3),
            Self::Gnn => ("nodes", "k nodes/s", 1e3),
        }
    }

    /// Returns the figure of merit in JSON, its name, and the most by which it may be lower on
    /// several nodes.
    pub(super) fn quality(self) -> Option<(&'static str, &'static str, f64)> {
        match self {
            Self::Kge => Some(("mrr", "test MRR", 0.01)),
            Self::Ctr => Some(("auc", "test AUC", 0.003)),
            Self::Gnn => Some(("accuracy", "test accuracy", 0.02)),
            Self::Mf | Self::Wv => None,
        }
    }

    /// Returns the way to compare a way with, and the least share of its rate that is to be
    /// reached.
    pub(super) fn goal(self, way: Way) -> Option<(Way, f64)> {
        let of = |other: Way, times: f64| Some((other, times.recip()));
        match (self, way) {
            (_, Way::Plain | Way::Nodes(_)) => None,
            (Self::Kge, Way::Workers(1)) => of(Way::Plain, 1.25),
            (Self::Mf, Way::Workers(1)) => of(Way::Plain, 1.5),
            (Self::Wv | Self::Ctr | Self::Gnn, Way::Workers(1)) => of(Way::Plain, 1.3),
            (_, Way::Workers(_)) => of(Way::Workers(1), 1.0 / 1.8),
            (Self::Kge, Way::Processes(2)) => of(Way::Workers(2), 1.2),
            (Self::Kge, Way::Processes(_)) => of(Way::Workers(2), 1.4),
            (Self::Mf, Way::Processes(2)) => of(Way::Workers(2), 1.05),
            (Self::Wv | Self::Ctr | Self::Gnn, Way::Processes(2)) => of(Way::Workers(2), 1.2),
            (Self::Ctr | Self::Gnn, Way::Processes(_)) => of(Way::Workers(2), 1.5),
            (Self::Mf | Self::Wv, Way::Processes(_)) => None,
        }
    }

    /// Returns the predecessor's rate in the same unit.
    pub(super) fn reference(self, way: Way) -> Option<&'static str> {
        match (self, way) {
            (Self::Kge, Way::Workers(2)) => Some("69"),
            (Self::Kge, Way::Processes(2)) => Some("29, 1 channel 49"),
            (Self::Kge, Way::Processes(4)) => Some("14"),
            (Self::Mf, Way::Workers(2)) => Some("2.7"),
            (Self::Mf, Way::Processes(2)) => Some("1.7, 1 channel 2.6"),
            (Self::Wv, Way::Workers(2)) => Some("90"),
            (Self::Wv, Way::Processes(2)) => Some("38"),
            _ => None,
        }
    }

    /// Returns the predecessor's traffic per node and epoch in MB, if known, and the most that is
    /// to be reached, if that is set.
    pub(super) fn traffic(self) -> (Option<&'static str>, Option<f64>) {
        match self {
            Self::Kge => (Some("370"), Some(185.0)),
            Self::Mf => (Some("18"), None),
            Self::Wv | Self::Ctr | Self::Gnn => (None, None),
        }
    }

    /// Returns the largest mean staleness and its largest 99th percentile in milliseconds, if they
    /// are set.
    pub(super) fn staleness(self) -> Option<[f64; 2]> {
        (self == Self::Kge).then_some([5.0, 50.0])
    }
}

/// Data that may be there.
struct Data {
    path: &'static str,
    name: &'static str,
}

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Benchmark {
    /// Calls of the parameter manager.
    Calls(Group),
    /// Messages and instructions of calls.
    Counts,
    /// Training, as processes of their own.
    Training(Task),
}

impl Benchmark {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let calls = Group::ALL.into_iter().map(Self::Calls);
        calls.chain([Self::Counts]).chain(Task::ALL.into_iter().map(Self::Training))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calls(group) => group.name(),
            Self::Counts => "counts",
            Self::Training(job) => job.name(),
        }
    }
}

impl FromStr for Benchmark {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all()
            .find(|benchmark| benchmark.name() == name)
            .ok_or_else(|| format!("no group {name}"))
    }
}

const KGE: Data = Data { path: "kge/FB15k-237", name: "FB15k-237" };
const WV: Data = Data { path: "wv/enwiki-2018.txt", name: "Wikipedia text" };
const NOTHING: Data = Data { path: "", name: "" };
