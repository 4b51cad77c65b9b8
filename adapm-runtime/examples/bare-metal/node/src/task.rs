//! The counts of the two nodes of this example, in which every push can be accounted for.
//!
//! | keys | users | effect |
//! | --- | --- | --- |
//! | [`HOT`] | both, all the time, with intent | each node has a copy: a main copy and a replica |
//! | [`TRAVELLING`] | the other node in the first half, home in the second, with intent | main copies travel there and back |
//! | [`COLD`] | both, every fifth step, without intent | operations go to the owner |
//! | [`REPORT`] | set once by node 1 | node 1 reports its totals |
//!
//! A push of node 0 adds 1, one of node 1 a million: a sum shows whose push is missing or doubled.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use adapm_core::engine::OpBody;
use adapm_core::store::Store;
use adapm_core::wire::PROTOCOL_VERSION;
use adapm_core::{Clock, Key, Layout, NodeId};

use crate::node::{NodeError, Port, SerialNode};

/// (Number of keys, value length) of the layout.
pub const EXTENTS: &[(u64, usize)] = &[(24, 4), (1, 8)];
/// Keys that both nodes use.
pub const HOT: Range<u64> = 0..4;
/// Keys that one node uses at a time.
pub const TRAVELLING: Range<u64> = 4..16;
/// Keys that are used rarely and unannounced.
pub const COLD: Range<u64> = 16..24;
/// The report of node 1: see [`Report`].
pub const REPORT: Key = Key(24);
/// Steps of each node.
pub const STEPS: u64 = 60;
const HALF: u64 = STEPS / 2;

/// The report of node 1 about its run, shortly before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Main copies that arrived there.
    pub relocations: i64,
    /// Replicas set up there.
    pub replicas: i64,
    /// Accesses of its worker that were served by a copy there.
    pub local: i64,
    /// Accesses that needed node 0.
    pub remote: i64,
    /// Pipes of its end of the line.
    pub pipes: i64,
    /// Packets that arrived damaged.
    pub damaged: i64,
    /// Bytes received.
    pub bytes_in: i64,
    /// Bytes sent.
    pub bytes_out: i64,
}

/// Returns the layout.
#[must_use]
pub fn layout() -> Layout {
    Layout::dense(EXTENTS).expect("the extents are legal")
}

/// Returns the digest of the settings that both ends must share.
#[must_use]
pub fn terms() -> u64 {
    layout().digest::<i64>() ^ (STEPS << 8) ^ u64::from(PROTOCOL_VERSION)
}

/// Writes the initial value of a key.
pub fn initial(key: Key, value: &mut [i64]) {
    value.fill(if key == REPORT { 0 } else { key.0 as i64 * 1_000_000_000_000 });
}

/// Returns the amount that a push of `node` adds to each element.
#[must_use]
pub fn digit(node: NodeId) -> i64 {
    if node == NodeId(0) { 1 } else { 1_000_000 }
}

/// Returns the keys that `node` pushes to and then pulls at `step`.
#[must_use]
pub fn keys(node: NodeId, step: u64) -> Vec<Key> {
    let travelling = TRAVELLING.filter(|key| uses(node, Key(*key), step));
    let cold = COLD.filter(|_| step.is_multiple_of(5));
    HOT.chain(travelling).chain(cold).map(Key).collect()
}

/// Returns the signals of `node` before `step`, after the barrier: keys, and the clocks in which it
/// will access them. The clock of step `s` is `s + 1`.
///
/// The second half is signalled when it begins: signalled earlier, it would overlap with the other
/// node's first half, and replicas would take the place of some journeys.
#[must_use]
pub fn intents(node: NodeId, step: u64) -> Vec<(Vec<Key>, Range<Clock>)> {
    let half = |step| Clock(step + 1)..Clock(step + HALF + 1);
    let travelling = || TRAVELLING.map(Key).filter(|key| uses(node, *key, step)).collect();
    match step {
        0 => vec![(HOT.map(Key).collect(), Clock(1)..Clock(STEPS + 1)), (travelling(), half(step))],
        HALF => vec![(travelling(), half(step))],
        _ => vec![],
    }
}

/// Returns true if both nodes wait for each other before `step`.
#[must_use]
pub fn has_barrier_before(step: u64) -> bool {
    step == HALF
}

/// Returns the expected elements of the value of `key` when all pushes of both nodes are in it.
#[must_use]
pub fn expected(key: Key) -> i64 {
    let mut value = [0];
    initial(key, &mut value);
    let pushes = |node| (0..STEPS).filter(|step| keys(node, *step).contains(&key)).count() as i64;
    value[0] + [NodeId(0), NodeId(1)].iter().map(|node| pushes(*node) * digit(*node)).sum::<i64>()
}

/// Returns all keys whose sums are conserved.
#[must_use]
pub fn counted() -> Range<u64> {
    HOT.start..COLD.end
}

/// Runs node 1's part, from the first signal to the last goodbye. Returns the number of keys with a
/// wrong sum.
///
/// # Errors
/// The error that ends the node before.
pub fn run<S: Store<Value = i64>, P: Port>(
    node: &mut SerialNode<S, P>,
) -> Result<usize, NodeError> {
    let this = NodeId(1);
    for step in 0..STEPS {
        if has_barrier_before(step) {
            node.collective(OpBody::Barrier)?;
        }
        for (keys, clocks) in intents(this, step) {
            node.intent(keys, clocks)?;
        }
        node.advance_clock();
        for key in keys(this, step) {
            node.push(key, &[digit(this); 4])?;
            node.pull(key)?;
        }
        node.collective(OpBody::WaitSync)?;
    }
    let report = Report::of(node);
    node.set(REPORT, &report.to_value())?;
    node.collective(OpBody::Quiesce)?;
    let mut wrong = 0;
    for key in counted().map(Key) {
        wrong += usize::from(node.pull(key)? != [expected(key); 4]);
    }
    node.collective(OpBody::Barrier)?;
    node.leave()?;
    Ok(wrong)
}

impl Report {
    fn of<S: Store, P: Port>(node: &SerialNode<S, P>) -> Self {
        let (stats, accesses, line) = (node.stats(), node.accesses(), node.line_stats());
        Self {
            relocations: stats.relocations as i64,
            replicas: stats.replicas as i64,
            local: (accesses.local + stats.local + stats.waited) as i64,
            remote: stats.remote as i64,
            pipes: line.pipes as i64,
            damaged: line.damaged as i64,
            bytes_in: line.bytes_in as i64,
            bytes_out: line.bytes_out as i64,
        }
    }

    /// Returns the report as a value.
    #[must_use]
    pub fn to_value(self) -> [i64; 8] {
        let Self { relocations, replicas, local, remote, pipes, damaged, bytes_in, bytes_out } =
            self;
        [relocations, replicas, local, remote, pipes, damaged, bytes_in, bytes_out]
    }

    /// Parses the report of a value.
    #[must_use]
    pub fn from_value(value: [i64; 8]) -> Self {
        let [relocations, replicas, local, remote, pipes, damaged, bytes_in, bytes_out] = value;
        Self { relocations, replicas, local, remote, pipes, damaged, bytes_in, bytes_out }
    }
}

/// Returns true if `node` uses a travelling key at `step`.
fn uses(node: NodeId, key: Key, step: u64) -> bool {
    (Layout::home(key, 2) == node) == (step >= HALF)
}
