//! Memory that a run needs at least, compared with the memory there is before it starts.
//!
//! A need is a lower bound: parameters where they have their home, with what the store keeps of
//! each, and replicas only under a system that has them of all keys, or of chosen ones, for the
//! whole run; the copy of the best parameters; and what this process has in memory already, which
//! is mostly data. What the machine and the control groups leave is for all processes of the run
//! that share them: pages of files that the system can drop count as free, and so does swap. A
//! bound of address space is for each process alone. So a run is refused only if it cannot end.

use std::fs;
use std::path::Path;

use adapm_core::Key;
use adapm_core::policy::Supply;
use adapm_runtime::System;
use adapm_transport::threads;
use serde::{Deserialize, Serialize};

use crate::partition;
use crate::run::error::TaskError;
use crate::run::hot::Hot;
use crate::run::parameters::Shape;
use crate::run::shortage::{Available, Bound, Need, Shortage};
use crate::run::topology::Topology;

impl Need {
    /// Returns the need of a process with the nodes of `topology` that are in it, for parameters of
    /// `shape`; with so many copies of the best ones.
    pub(crate) fn of(
        topology: Topology<'_>,
        shape: &Shape,
        best_shape: &Shape,
        copies: u64,
    ) -> Self {
        let processes = topology.peers.processes();
        let best = (bytes_of(best_shape) / processes as u64).saturating_mul(copies);
        let parameters = Self::parameters(topology.system, topology.nodes, processes, shape);
        Self { parameters, best, data: resident(&read).unwrap_or(0), ..Self::default() }
    }

    /// Returns the need of a process that partitions `keys` by so many nodes: counts of accesses.
    /// What it trains on comes to that, as far as it is not in memory.
    pub(crate) fn of_partition(keys: u64, nodes: usize) -> Self {
        let counts = keys.saturating_mul(nodes as u64).saturating_mul(partition::BYTES);
        Self { partition: counts, data: resident(&read).unwrap_or(0), ..Self::default() }
    }

    /// Returns the need with copies of `hot` keys on the nodes of this process: value and delta of
    /// those that have their home elsewhere, as all keys of a node's own list do.
    pub(crate) fn with_hot(self, topology: Topology<'_>, shape: &Shape, hot: &Hot) -> Self {
        let (nodes, processes) = (topology.nodes as u64, topology.peers.processes() as u64);
        let copies = |keys: &Vec<Key>| {
            let floats: u64 = keys.iter().map(|key| shape.len_of(*key) as u64).sum();
            floats.saturating_mul(2 * size_of::<f32>() as u64)
        };
        let here = match hot {
            Hot::Shared(keys) => {
                (nodes / processes).max(1).saturating_mul(copies(keys) / nodes * (nodes - 1))
            }
            Hot::ByNode(lists) if processes == 1 => lists.iter().map(copies).sum(),
            Hot::ByNode(lists) => lists.get(topology.peers.node()).map_or(0, copies),
        };
        Self { hot: here, ..self }
    }

    /// Returns the need with a copy of this process's share of parameters of this shape, for
    /// checkpoints: an equal one, where it may come to own more.
    pub(crate) fn with_checkpoint(self, topology: Topology<'_>, shape: Option<&Shape>) -> Self {
        let processes = topology.peers.processes() as u64;
        Self { checkpoint: shape.map_or(0, |shape| bytes_of(shape) / processes), ..self }
    }

    /// Bytes of main copies, directories and, where a system has them of all keys, replicas in one
    /// of so many processes.
    fn parameters(system: Option<System>, nodes: usize, processes: usize, shape: &Shape) -> u64 {
        let (keys, values) = (shape.keys(), bytes_of(shape));
        if system.is_none() {
            return values;
        }
        let (nodes_here, processes) = ((nodes / processes).max(1) as u64, processes as u64);
        let copies = values.saturating_add(keys.saturating_mul(SLOT_BYTES)) / processes;
        let directories = keys.saturating_mul(ENTRY_BYTES).saturating_mul(nodes_here);
        let replicas = match system {
            // Value and delta of what has its home elsewhere.
            Some(system) if system.supply() == Supply::Everything => {
                (2 * nodes_here).saturating_mul(values / nodes as u64 * (nodes as u64 - 1))
            }
            _ => 0,
        };
        copies.saturating_add(directories).saturating_add(replicas)
    }
}

/// The memory message of a process to the others.
#[derive(Serialize, Deserialize)]
struct Told {
    need: Need,
    /// Equal for processes that share what is available.
    place: String,
}

/// Checks that there is memory for the processes of a run. Collective.
///
/// # Errors
///
/// [`TaskError::Memory`] where there is too little, in the other processes an error that says so.
pub(crate) fn check(topology: Topology<'_>, need: Need) -> Result<(), TaskError> {
    let place = place(&read);
    let told = topology.peers.share(Ok(Told { need, place: place.clone() }))?;
    let here: Vec<Need> =
        told.iter().filter(|told| told.place == place).map(|told| told.need).collect();
    let own =
        threads::address_space_left().map(|bytes| Available { bytes, bound: Bound::AddressSpace });
    let alone = own.and_then(|available| shortage(&[need], available));
    let shortage = alone.or_else(|| shortage(&here, available(&read)?));
    topology
        .peers
        .share(shortage.map_or(Ok(()), |shortage| Err(TaskError::Memory(shortage))))
        .map(drop)
}

/// Returns the shortage, if the needs of the processes on this machine are together more than is
/// available beside what they have.
fn shortage(needs: &[Need], free: Available) -> Option<Shortage> {
    let sum = |of: fn(&Need) -> u64| needs.iter().map(of).fold(0, u64::saturating_add);
    let need = Need {
        parameters: sum(|need| need.parameters),
        hot: sum(|need| need.hot),
        best: sum(|need| need.best),
        checkpoint: sum(|need| need.checkpoint),
        partition: sum(|need| need.partition),
        data: sum(|need| need.data),
    };
    let available = Available { bytes: free.bytes.saturating_add(need.data), bound: free.bound };
    (need.total() > available.bytes).then_some(Shortage { need, processes: needs.len(), available })
}

/// Reads a file of the system, `None` if it is not there.
type ReadFile<'a> = dyn Fn(&Path) -> Option<String> + 'a;

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Returns the memory left by machine and control groups; `None` where the system does not report
/// it.
fn available(read: &ReadFile<'_>) -> Option<Available> {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let machine = machine(read).map(|bytes| Available { bytes, bound: Bound::Machine });
    let groups =
        groups.lines().filter_map(Hierarchy::of).flat_map(|hierarchy| hierarchy.available(read));
    machine.into_iter().chain(groups).min_by_key(|available| available.bytes)
}

/// Bytes that the machine can give, swap included.
fn machine(read: &ReadFile<'_>) -> Option<u64> {
    let text = read(Path::new("/proc/meminfo"))?;
    let field = |name: &str| kilobytes(&text, name);
    Some(field("MemAvailable:")?.saturating_add(field("SwapFree:").unwrap_or(0)))
}

/// Bytes that this process has in memory.
fn resident(read: &ReadFile<'_>) -> Option<u64> {
    kilobytes(&read(Path::new("/proc/self/status"))?, "VmRSS:")
}

/// Returns a size in a text of lines `name: number kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let count: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(count.saturating_mul(1024))
}

/// Control groups of memory, of version 1 or 2: where they are mounted, and the path of this
/// process's.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    is_first_version: bool,
    path: String,
}

impl Hierarchy {
    /// Returns the hierarchy of a line of `/proc/self/cgroup`, if it is one of memory.
    fn of(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_first_version = controllers.split(',').any(|controller| controller == "memory");
        let path = path.trim_start_matches('/').to_owned();
        (is_first_version || controllers.is_empty()).then_some(Self { is_first_version, path })
    }

    /// Returns the memory left by each group from this process's up to the outermost.
    fn available(self, read: &ReadFile<'_>) -> Vec<Available> {
        let root = Path::new(if self.is_first_version {
            "/sys/fs/cgroup/memory"
        } else {
            "/sys/fs/cgroup"
        });
        let groups = Path::new(&self.path).ancestors();
        let left = groups.filter_map(|group| {
            let bytes = self.left(&|name| read(&root.join(group).join(name)))?;
            Some(Available { bytes, bound: Bound::ControlGroup(format!("/{}", group.display())) })
        });
        left.collect()
    }

    /// Returns the memory left by a group: its limit less its usage, without pages of files that
    /// can be dropped.
    fn left(&self, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
        let [limit, usage] = if self.is_first_version { FIRST } else { SECOND };
        let number = |name| read(name)?.trim().parse::<u64>().ok();
        // A group without a limit has a word, or a number that no machine has.
        let limit = number(limit).filter(|limit| *limit < 1 << 60)?;
        let stat = read("memory.stat").unwrap_or_default();
        let pages = |name: &str| {
            let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok();
            stat.lines().find_map(of)
        };
        let files = ["inactive_file", "active_file"]
            .map(|name| pages(&format!("total_{name}")).or_else(|| pages(name)).unwrap_or(0));
        let dropped = files.into_iter().fold(0, u64::saturating_add);
        Some(limit.saturating_sub(number(usage)?.saturating_sub(dropped)))
    }
}

/// Returns a text that is equal for processes that share memory: of one run of one machine, and of
/// one control group. Containers may all see their group by the same name; their namespaces differ.
fn place(read: &ReadFile<'_>) -> String {
    let text = |path: &str| read(Path::new(path)).unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/cgroup").unwrap_or_default();
    format!(
        "{}{}{}",
        text("/proc/sys/kernel/random/boot_id"),
        text("/proc/self/cgroup"),
        namespace.display()
    )
}

fn bytes_of(shape: &Shape) -> u64 {
    (shape.total() as u64).saturating_mul(size_of::<f32>() as u64)
}

/// Limit and usage in version 1.
const FIRST: [&str; 2] = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
/// Limit and usage in version 2.
const SECOND: [&str; 2] = ["memory.max", "memory.current"];
/// Bytes of a key in the directory of each node.
const ENTRY_BYTES: u64 = 8;
/// Bytes of a main copy beside its value.
const SLOT_BYTES: u64 = 16;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::run::config::Pacing;
    use crate::run::peers::Peers;

    const GIB: u64 = 1 << 30;

    fn files(files: &[(&str, String)]) -> impl Fn(&Path) -> Option<String> + use<> {
        let files: HashMap<String, String> =
            files.iter().map(|(path, text)| ((*path).to_owned(), text.clone())).collect();
        move |path| files.get(path.to_str()?).cloned()
    }

    fn meminfo(available: u64, swap: u64) -> (&'static str, String) {
        let text = format!(
            "MemTotal: 9 kB\nMemAvailable:   {} kB\nSwapFree:  {} kB\n",
            available >> 10,
            swap >> 10
        );
        ("/proc/meminfo", text)
    }

    #[test]
    fn the_least_of_machine_and_control_groups_is_available() {
        let none = files(&[]);
        assert_eq!(available(&none), None);
        let machine = files(&[meminfo(8 * GIB, GIB)]);
        assert_eq!(available(&machine), Some(Available { bytes: 9 * GIB, bound: Bound::Machine }));

        let second = |limit: &str| {
            files(&[
                meminfo(8 * GIB, 0),
                ("/proc/self/cgroup", "0::/a/b\n".to_owned()),
                ("/sys/fs/cgroup/a/b/memory.max", "max\n".to_owned()),
                ("/sys/fs/cgroup/a/memory.max", format!("{limit}\n")),
                ("/sys/fs/cgroup/a/memory.current", format!("{}\n", 3 * GIB)),
                (
                    "/sys/fs/cgroup/a/memory.stat",
                    format!("anon 5\ninactive_file {GIB}\nactive_file 0\n"),
                ),
            ])
        };
        let bound = Bound::ControlGroup("/a".to_owned());
        let limited = available(&second(&(4 * GIB).to_string()));
        assert_eq!(limited, Some(Available { bytes: 2 * GIB, bound }));
        assert_eq!(
            available(&second("max")).map(|available| available.bound),
            Some(Bound::Machine)
        );

        // In a container the group is not below the path that the host knows it by.
        let first = files(&[
            meminfo(8 * GIB, 0),
            ("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/1f\n0::/\n".to_owned()),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", (2 * GIB).to_string()),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", GIB.to_string()),
        ]);
        let bound = Bound::ControlGroup("/".to_owned());
        assert_eq!(available(&first), Some(Available { bytes: GIB, bound }));
    }

    #[test]
    fn what_is_needed_by_all_processes_is_compared_and_told_with_its_parts() {
        let free = |bytes| Available { bytes, bound: Bound::ControlGroup("/job".to_owned()) };
        let (parameters, best, data) = (9_600_000_000, 1_400_000_000, 2_100_000_000);
        let need = Need { parameters, best, data, ..Need::default() };
        assert_eq!(shortage(&[need], free(11_000_000_000)), None);
        let text = shortage(&[need], free(5_800_000_000)).expect("too little").to_string();
        assert_eq!(
            text,
            "this run needs at least 13.1 GB: parameters 9600 MB, the best of them 1400 MB, data and program \
             2100 MB; 7900 MB are available (limit of the control group /job); use a smaller --dim, or nodes \
             on more machines"
        );
        let text =
            shortage(&[need; 2], free(11_000_000_000)).expect("too little for two").to_string();
        assert!(
            text.starts_with("this run needs at least 26.2 GB in its 2 processes here: "),
            "{text}"
        );
        let need = Need { partition: 20_000_000_000, data, ..Need::default() };
        let text = shortage(&[need], free(5_800_000_000)).expect("too little").to_string();
        assert_eq!(
            text,
            "this run needs at least 22.1 GB: its partition 20.0 GB, data and program 2100 MB; 7900 MB are \
             available (limit of the control group /job); use `adapm partition` on a larger machine and give \
             its file as --homes"
        );
        let partition = Need::of_partition(1_000_000, 8).partition;
        assert_eq!(partition, 32_000_000);
    }

    #[test]
    fn replicas_of_hot_keys_are_told_apart_from_parameters() {
        let peers = Peers::alone();
        let topology = Topology {
            system: Some(System::Nups),
            nodes: 2,
            workers: &[1, 1],
            pacing: Pacing::default(),
            peers: &peers,
        };
        let shape = Shape::new(&[(1_000, 64)]);
        let keys: Vec<Key> = (0..100).map(Key).collect();
        let value_and_delta = 2 * 4 * 64;
        let hot = |hot| Need::default().with_hot(topology, &shape, &hot).hot;
        // Half of the shared ones have their home on either node.
        assert_eq!(hot(Hot::Shared(keys.clone())), 100 * value_and_delta);
        let by_node = vec![keys.clone(), keys[..10].to_vec()];
        assert_eq!(hot(Hot::ByNode(by_node)), 110 * value_and_delta);
        let need = Need { parameters: 1_000_000, hot: 5_000_000_000, ..Need::default() };
        let available = Available { bytes: 2_000_000_000, bound: Bound::Machine };
        assert_eq!(
            shortage(&[need], available).expect("too little").to_string(),
            "this run needs at least 5001 MB: parameters 1 MB, replicas of hot keys 5000 MB, data and \
             program 0 MB; 2000 MB are available on this machine; have fewer hot keys (--replicate, \
             --replicate-factor, --replicate-keys or --homes)"
        );
    }

    #[test]
    fn parameters_are_counted_where_they_have_their_home() {
        let shape = Shape::new(&[(1_000, 64)]);
        let of = |system, nodes| Need::parameters(system, nodes, 1, &shape);
        let values = 1_000 * 64 * 4;
        assert_eq!(of(None, 1), values);
        assert_eq!(of(Some(System::Adapm), 1), values + 1_000 * (8 + 16));
        assert_eq!(of(Some(System::Adapm), 4), values + 1_000 * (4 * 8 + 16));
        let in_processes = Need::parameters(Some(System::Adapm), 4, 4, &shape);
        assert_eq!(in_processes, values / 4 + 1_000 * (8 + 4));
        assert_eq!(of(Some(System::Full), 2), values + 1_000 * (2 * 8 + 16) + 4 * values / 2);
        let endless = Shape::new(&[(u64::MAX, 1)]);
        assert!(Need::parameters(Some(System::Adapm), 1, 1, &endless) > u64::MAX / 2);
    }

    #[test]
    fn this_machine_tells() {
        let here = available(&read).expect("the files of Linux are there");
        assert!(
            here.bytes > 1 << 20 && resident(&read).is_some_and(|bytes| bytes > 1 << 18),
            "{here:?}"
        );
    }
}
