//! Flags of the verbs that compare, measure and show: demo, simulate, bench, check-net, trace; and
//! of the keys that a training run traces.

use std::path::PathBuf;
use std::time::Duration;

use crate::measure::bench::counts::Operation;
use crate::measure::simulate::{Contender, InvalidContender, Machine, Task};
use adapm_transport::group::launcher::seconds;
use adapm_transport::net::Kind;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, value_parser};

use crate::cli::args::ProcessArgs;
use crate::cli::args::launch::transport;
use crate::cli::measure::bench::job::Benchmark;
use crate::run::KeyChoice;
use crate::run::flags::{at_least_one, manager, positive_count};

#[derive(Debug, Args)]
#[command(after_help = SIMULATE_EXAMPLES, args_override_self = true)]
pub(crate) struct SimulateArgs {
    /// Workloads of the paper, separated by commas
    #[arg(long, value_name = "TASKS", value_delimiter = ',', default_value = "all", value_parser = tasks())]
    pub(crate) task: Vec<Vec<Task>>,
    /// Systems, separated by commas, as ssp:3 where one has a parameter; all but full and eventual
    /// [default: adapm, adapm-no-relocation, classic; for kge, wv and mf also adapm-no-replication
    /// and nups]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = contender)]
    system: Vec<Contender>,
    /// Numbers of nodes, separated by commas; one node is always simulated, too
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', default_values_t = [2, 4, 8], value_parser = nodes)]
    pub(crate) nodes: Vec<usize>,
    /// Workers of each node
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = workers)]
    pub(crate) workers: usize,
    /// Seed of all choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    /// Write a picture per workload to FOLDER
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// Print one JSON object per run; tables go to stderr
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineArgs {
    /// Preset: the paper's cluster, rented machines, or machines on which protocol work takes no
    /// time
    #[arg(long, value_name = "NAME", default_value = Machine::PAPER.name, value_parser = machine())]
    machine: Machine,
    /// Latency of the network [default: as in the preset: 20, 50, 0]
    #[arg(long, value_name = "MICROSECONDS", value_parser = value_parser!(u32).range(..=LATENCY_MAX))]
    latency: Option<u32>,
    /// Bandwidth of a node, in each direction [default: 100, 10, no limit]
    #[arg(long, value_name = "GBIT/S", value_parser = positive)]
    bandwidth: Option<u32>,
    /// Channel threads of a node [default: 4, 1, 1]
    #[arg(long, value_name = "N", value_parser = positive)]
    channels: Option<u32>,
    /// Cores that workers and channel threads share, 0 for as many as there are threads [default:
    /// 32, 8, 0]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Time of a channel thread for a message, on either side [default: 3000, 3000, 0]
    #[arg(long, value_name = "NANOSECONDS")]
    message_cost: Option<u32>,
    /// Time of a channel thread for a key of a message, on either side [default: 200, 200, 0]
    #[arg(long, value_name = "NANOSECONDS")]
    key_cost: Option<u32>,
    /// Factor on the time that workers are assumed to compute for a data point
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = times)]
    pub(crate) compute: f64,
    /// Time from the start of one round to the next at the least [default: 500, as in real runs]
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive)]
    round: Option<u32>,
}

impl SimulateArgs {
    /// Returns the workloads asked for, each once, in the paper's order.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        let mut tasks = self.task.concat();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// Returns the systems to compare on `task`, each once, at least one.
    pub(crate) fn systems(&self, task: Task) -> Vec<Contender> {
        if self.system.is_empty() {
            return Contender::compared(task);
        }
        let mut systems = Vec::new();
        for contender in &self.system {
            if !systems.contains(contender) {
                systems.push(*contender);
            }
        }
        systems
    }

    /// Returns the numbers of nodes asked for, each once, ascending, from one on.
    pub(crate) fn nodes(&self) -> Vec<usize> {
        let mut nodes = self.nodes.clone();
        nodes.push(1);
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}

impl MachineArgs {
    /// Returns the time between two rounds at the least, in nanoseconds, if it was chosen.
    pub(crate) fn round_nanos(&self) -> Option<u64> {
        self.round.map(|micros| u64::from(micros) * 1_000)
    }

    /// Returns the preset with what was changed.
    pub(crate) fn machine(&self) -> Machine {
        let mut machine = self.machine;
        let set = |field: &mut u64, value: Option<u32>, unit: u64| {
            *field = value.map_or(*field, |value| u64::from(value) * unit);
        };
        set(&mut machine.latency_nanos, self.latency, 1_000);
        set(&mut machine.bytes_per_second, self.bandwidth, 125_000_000);
        set(&mut machine.channels, self.channels, 1);
        set(&mut machine.cores, self.cores, 1);
        set(&mut machine.message_nanos, self.message_cost, 1);
        set(&mut machine.key_nanos, self.key_cost, 1);
        machine
    }
}

fn tasks() -> impl TypedValueParser<Value = Vec<Task>> {
    let names = Task::ALL.map(Task::name).into_iter().chain(["all"]);
    PossibleValuesParser::new(names).map(|name| match name.parse() {
        Ok(task) => vec![task],
        Err(()) => Task::ALL.to_vec(),
    })
}

fn contender(name: &str) -> Result<Contender, String> {
    // Who mistypes a name is told the one that may have been meant.
    manager(name)?;
    name.parse().map_err(|error: InvalidContender| error.to_string())
}

fn machine() -> impl TypedValueParser<Value = Machine> {
    PossibleValuesParser::new(Machine::ALL.map(|machine| machine.name)).try_map(|name| {
        Machine::ALL.into_iter().find(|machine| machine.name == name).ok_or("no such preset")
    })
}

fn nodes(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=NODES_MAX).contains(number));
    number.ok_or_else(|| format!("give whole numbers from 1 to {NODES_MAX}"))
}

fn workers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=WORKERS_MAX).contains(number));
    number.ok_or_else(|| format!("give a whole number from 1 to {WORKERS_MAX}"))
}

fn times(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times| (TIMES_MIN..=TIMES_MAX).contains(times));
    times.ok_or_else(|| format!("give a number from {TIMES_MIN} to {TIMES_MAX}"))
}

fn positive(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("give a whole number of at least 1")
}

/// A bound on memory: each node keeps state for each other.
const NODES_MAX: usize = 4_096;
const WORKERS_MAX: usize = 256;
/// A second: beyond, workers do nothing but wait.
const LATENCY_MAX: i64 = 1_000_000;
/// Beyond, a slice of an epoch is shorter than a round, or takes hours to simulate.
const TIMES_MIN: f64 = 0.01;
const TIMES_MAX: f64 = 100.0;

const SIMULATE_EXAMPLES: &str = "\
Real protocol engines in virtual time; values are counted, not trained. What is modelled, what is left out, and where the \
numbers come from: the page `simulate` of the documentation.

Examples:
  adapm simulate                                      all workloads
  adapm simulate --task kge --nodes 8,64 --svg PLOTS  one of them, as a picture
  adapm simulate --machine ethernet --workers 8       on rented machines
  adapm simulate --task mf --bandwidth 1 --json       for programs";

#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLES, args_override_self = true)]
pub(crate) struct BenchArgs {
    /// Subjects to measure [default: all]
    #[arg(value_name = "GROUP", value_parser = benchmark())]
    benchmarks: Vec<Benchmark>,
    /// Small sizes, few runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Links between nodes to measure, separated by commas [default: all that are built in]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = transport())]
    transport: Vec<Kind>,
    /// Print one JSON object per metric; the table goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Do one operation only, for callgrind
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) operation: Option<Operation>,
    /// Number of repetitions
    #[arg(long, value_name = "COUNT", hide = true, default_value_t = 1)]
    pub(crate) times: u64,
}

impl BenchArgs {
    /// Returns the benchmarks to measure, each once, in the order of the list.
    pub(crate) fn benchmarks(&self) -> Vec<Benchmark> {
        Benchmark::all()
            .filter(|benchmark| self.benchmarks.is_empty() || self.benchmarks.contains(benchmark))
            .collect()
    }

    /// Returns the links between nodes to measure.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        Kind::available()
            .filter(|kind| self.transport.is_empty() || self.transport.contains(kind))
            .collect()
    }
}

fn benchmark() -> impl TypedValueParser<Value = Benchmark> {
    PossibleValuesParser::new(Benchmark::all().map(Benchmark::name).collect::<Vec<_>>())
        .map(|name| name.parse().expect("one of the names"))
}

const BENCH_EXAMPLES: &str = "\
Groups:
  access    local pull and push
  workers   two of them
  signals   intent, clock
  remote    keys of another node
  moves     relocation, replicas
  rest      nothing happens
  memory    bytes of copies
  counts    what repeats from run to run: messages, bytes, and, if valgrind is
            installed, instructions and allocations (by callgrind)
  kge, mf, wv, ctr, gnn
            training with plain arrays, on one node, and on several processes
            over TCP

Each metric stands beside its floor, what it would be without a parameter manager, measured in turns in the same run, and \
beside what AdaPM in C++ reached once on a machine of this kind. Leave the machine alone meanwhile. Training takes FB15k-237 \
and Wikipedia text from $ADAPM_DATA (kge/FB15k-237, wv/enwiki-2018.txt) if they are there, else generated data.

Examples:
  adapm bench                       everything
  adapm bench access --quick        local access, small sizes
  adapm bench remote --transport tcp,unix
  adapm bench counts --quick        instructions, allocations, messages, bytes
  adapm bench kge --json            for programs";

#[derive(Debug, Args)]
#[command(after_help = CHECK_NET_EXAMPLES, args_override_self = true)]
pub(crate) struct CheckNetArgs {
    /// Number of processes [default: as the launcher says]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) nodes: Option<usize>,
    /// Time to measure for, all pairs together
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) seconds: Duration,
    /// Print one JSON object; tables go to stderr
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

const CHECK_NET_EXAMPLES: &str = "\
Every pair of nodes is measured alone, in both directions: small messages for round trips, 64 KiB messages for bandwidth, over \
the transport that a run would use.

Examples:
  adapm launch --nodes 4 -- check-net
  adapm launch --hosts ann,bob --transport zmq -- check-net --json
  srun -N4 adapm check-net --token-file TOKEN";

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct DemoArgs {
    /// Nodes, all in this process
    #[arg(long, value_name = "N", default_value_t = NODES, value_parser = at_least_one)]
    pub(crate) nodes: usize,
    /// Passes over the training data of each task [default: kge 8, mf 8, wv 5]
    #[arg(long, value_name = "N", value_parser = positive_count, allow_negative_numbers = true)]
    pub(crate) epochs: Option<u32>,
    /// Length of a vector of each task [default: kge 64, mf 8, wv 32]
    #[arg(long, value_name = "N")]
    pub(crate) dim: Option<usize>,
    /// Seed of initial values, order of the data and negatives
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub(crate) seed: u64,
    /// Folder that keeps all runs, tables and pictures [default: nothing is kept]
    #[arg(long = "out", value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

impl DemoArgs {
    /// Returns the arguments of `adapm` without a verb.
    pub(crate) fn default_values() -> Self {
        Self { nodes: NODES, epochs: None, dim: None, seed: SEED, folder: None }
    }
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceKeysArgs {
    /// Write what happens to some keys while training to FILE, for `adapm trace`; each of several
    /// processes to FILE.n0, FILE.n1, ...
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_keys: Option<PathBuf>,
    // Its help names the kinds of the task's keys.
    #[arg(long, value_name = "KEY,...", requires = "trace_keys")]
    pub(crate) trace: Option<String>,
}

/// Returns the help of `--trace` for a task of these kinds of keys.
pub(crate) fn trace_help(kinds: &[&str]) -> String {
    let default = match kinds {
        [] => "",
        _ => " [default: five from the most frequent to a typical one]",
    };
    format!("Keys of --trace-keys: {}{default}", KeyChoice::forms(kinds))
}

#[derive(Debug, Args)]
#[command(after_help = TRACE_EXAMPLES, args_override_self = true)]
pub(crate) struct TraceArgs {
    /// Trace of a run. If processes have written parts FILE.n0, FILE.n1, ..., give FILE or the
    /// parts
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Draw it to OUT: a panel for each key, a row for each node
    #[arg(long, value_name = "OUT")]
    pub(crate) svg: Option<PathBuf>,
    /// Show it from here on, in seconds since the start
    #[arg(long, value_name = "SECONDS", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) from: Option<f64>,
    /// Show it up to here
    #[arg(long, value_name = "SECONDS", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) until: Option<f64>,
}

fn moment(text: &str) -> Result<f64, &'static str> {
    let seconds: Option<f64> =
        text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or("give seconds since the start, 0 or more")
}

const TRACE_EXAMPLES: &str = "\
Examples:
  adapm train kge --nodes 4 --epochs 2 --trace-keys run.trace
  adapm trace run.trace
  adapm trace run.trace --svg run.svg --from 0.5 --until 0.7";

const NODES: usize = 4;
const SEED: u64 = 1;
