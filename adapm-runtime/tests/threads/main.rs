//! Whole clusters in threads: totals are exact in every schedule, under every system, on 1 to 4
//! nodes.
//!
//! Values are integers. Visibility is established by `quiesce` and `wait_sync`; eventual effects
//! are polled round by round. Nothing depends on time.

#[path = "../support/channels.rs"]
mod channels;
mod counting;
#[path = "../support/executor.rs"]
mod executor;
mod hot_keys;
mod locality;
mod many_keys;
#[cfg(target_os = "linux")]
mod priority;
mod sets;
mod steps;
mod tickets;

use adapm_core::{Key, Layout, NodeId};
use adapm_runtime::{Builder, Cluster, System, Worker};

type Ints = Cluster<i64>;
type IntWorker = Worker<i64>;

/// The number of nodes, and of workers per node.
#[derive(Clone, Copy, Debug)]
struct Size(usize, usize);

/// Returns settings for `keys` keys of length `len`, with a random number of channels; under
/// systems with hot keys a third of them are.
fn builder(system: System, size: Size, keys: u64, len: usize) -> Builder<i64> {
    let layout = Layout::dense(&[(keys, len)]).expect("a valid layout");
    let hot = (0..keys).step_by(3).filter(|_| system.has_hot_keys()).map(Key);
    let builder = Builder::new(layout).nodes(size.0).workers(size.1).channels(channels::draw());
    builder.system(system).hot_keys(hot)
}

fn cluster(system: System, size: Size, keys: u64, len: usize) -> Ints {
    builder(system, size, keys, len).build().expect("a valid cluster")
}

/// Returns a number that differs between workers, for their random sequences.
fn seed(worker: &IntWorker) -> u64 {
    u64::from(worker.node().0) << 8 | u64::from(worker.id().0)
}

/// Returns the first `N` keys whose home is `node` of `nodes`.
fn keys_at<const N: usize>(node: u16, nodes: usize) -> [Key; N] {
    let mut keys = (0..).map(Key).filter(|key| Layout::home(*key, nodes) == NodeId(node));
    std::array::from_fn(|_| keys.next().expect("every node is home of some keys"))
}

/// Returns true if `key` can be read here without another node; checks that its value is untouched
/// if not.
fn is_local(worker: &mut IntWorker, key: Key) -> bool {
    let mut value = [i64::MIN];
    let local = worker.pull_if_local(key, &mut value).expect("a known key");
    assert!(local || value == [i64::MIN], "a refused pull has written to the buffer");
    local
}

/// Repeats round by round until `holds` returns true.
fn eventually(worker: &mut IntWorker, claim: &str, mut holds: impl FnMut(&mut IntWorker) -> bool) {
    for _ in 0..20_000 {
        if holds(worker) {
            return;
        }
        worker.wait_sync().expect("no failure");
        std::thread::yield_now();
    }
    panic!("{claim}: not in 20,000 attempts");
}
