//! Node 0's part of the count, by the ordinary runtime, and the check of all results.

use std::fmt;

use adapm_core::error::OpError;
use adapm_core::{Key, NodeId};
use adapm_runtime::{Builder, Nodes, Stats, Worker};
use serial_node::line::LineStats;
use serial_node::task::{self, Report};

use crate::serial::Serial;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Each counted key, one element of its value, and the expected one.
    pub sums: Vec<(Key, i64, i64)>,
    /// The report of node 1.
    pub report: Report,
    /// Totals of node 0.
    pub stats: Stats,
    /// Totals of node 0's end of the line.
    pub line: LineStats,
}

/// Runs node 0 over `serial` until all is counted.
///
/// # Errors
/// The failure, in one line.
pub fn count(serial: Serial) -> Result<Summary, String> {
    let meter = serial.meter();
    let mut endpoint = Some(serial);
    let node = Nodes::only(NodeId(0), 2, move |_| endpoint.take().expect("there is one channel"));
    // Both nodes are built from the same task, and node 1 has no builder to introduce it.
    let node = node.without_introduction();
    let builder =
        Builder::<i64>::new(task::layout()).nodes(node).channels(1).initial(task::initial);
    let cluster = builder.build().map_err(|error| error.to_string())?;
    let outcome = cluster.try_run(work).map_err(|error| error.to_string())?;
    let (values, report) = outcome.into_iter().next().expect("one worker");
    let sums =
        task::counted().map(Key).zip(values).map(|(key, value)| (key, value, task::expected(key)));
    Ok(Summary { sums: sums.collect(), report, stats: cluster.stats(), line: meter.read() })
}

/// Runs the worker of node 0. Returns an element of each counted key, and the report; an element
/// that differs from its neighbours counts as none.
fn work(mut worker: Worker<i64>) -> Result<(Vec<i64>, Report), OpError> {
    let this = NodeId(0);
    for step in 0..task::STEPS {
        if task::has_barrier_before(step) {
            worker.barrier()?;
        }
        for (keys, clocks) in task::intents(this, step) {
            worker.intent(&keys, clocks)?;
        }
        worker.advance_clock();
        let keys = task::keys(this, step);
        let mut values = vec![task::digit(this); 4 * keys.len()];
        worker.push(&keys, &values)?;
        worker.pull(&keys, &mut values)?;
        worker.wait_sync()?;
    }
    worker.quiesce()?;
    let keys: Vec<Key> = task::counted().map(Key).collect();
    let mut values = vec![0; 4 * keys.len()];
    worker.pull(&keys, &mut values)?;
    let sums =
        values.chunks(4).map(|value| if value == [value[0]; 4] { value[0] } else { i64::MIN });
    let mut report = [0; 8];
    worker.pull(&[task::REPORT], &mut report)?;
    worker.barrier()?;
    Ok((sums.collect(), Report::from_value(report)))
}

impl Summary {
    /// Checks sums, and that keys have travelled and replicas existed.
    ///
    /// # Errors
    /// The first deviation, in one line.
    pub fn check(&self) -> Result<(), String> {
        if let Some((key, sum, expected)) =
            self.sums.iter().find(|(_, sum, expected)| sum != expected)
        {
            return Err(format!(
                "{key} has the sum {sum}, {expected} was pushed: updates are lost or doubled"
            ));
        }
        // Each travelling key goes to the other node and comes back.
        let least = task::TRAVELLING.count() as u64;
        for (to, came) in [(0, self.stats.relocations), (1, self.report.relocations as u64)] {
            if came < least {
                return Err(format!(
                    "{came} main copies came to node {to}, {least} should: intent has no effect"
                ));
            }
        }
        let (replicas, hot) =
            (self.report.replicas as u64 + self.stats.replicas, task::HOT.count() as u64);
        if replicas < hot {
            return Err(format!(
                "{replicas} replicas for {hot} keys that both nodes use: intent has no effect"
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = [("hot", task::HOT), ("travelling", task::TRAVELLING), ("cold", task::COLD)];
        writeln!(f, "{:<12} {:>4} {:>22} {:>22}", "keys", "key", "sum", "expected")?;
        for (name, keys) in groups {
            for (key, sum, expected) in self.sums.iter().filter(|(key, ..)| keys.contains(&key.0)) {
                writeln!(f, "{name:<12} {:>4} {sum:>22} {expected:>22}", key.to_string())?;
            }
        }
        let Report { relocations, replicas, local, remote, pipes, damaged, bytes_in, bytes_out } =
            self.report;
        writeln!(f, "\n{:<36} {:>10} {:>10}", "", "node 0", "node 1")?;
        for (name, host, node) in [
            ("main copies that came", self.stats.relocations, relocations),
            ("replicas set up", self.stats.replicas, replicas),
            ("accesses served by a copy here", self.stats.local + self.stats.waited, local),
            ("accesses that needed the other node", self.stats.remote, remote),
            ("pipes", self.line.pipes, pipes),
            ("damaged packets", self.line.damaged, damaged),
            ("bytes received", self.line.bytes_in, bytes_in),
            ("bytes sent", self.line.bytes_out, bytes_out),
        ] {
            writeln!(f, "{name:<36} {host:>10} {node:>10}")?;
        }
        write!(f, "\n{} keys x 4 elements: every sum is exact", self.sums.len())
    }
}
