//! Creation of main copies at the start, block by block. Each node uses as many threads as it has
//! workers; fewer if the system refuses threads, and only the calling thread if it refuses all.
//!
//! Any thread may create any copy: an initial value is a function of its key. Not here: sparse
//! layouts, whose main copies are created on first access.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use adapm_core::engine::{Initial, create_main_copies};
use adapm_core::home::HomeMap;
use adapm_core::layout::{Kind, Layout};
use adapm_core::store::Store;
use adapm_core::{Key, NodeId, Value};
use adapm_transport::threads;

use crate::error::{BuildError, message_of};
use crate::failure::Failure;
use crate::node_handle::Plan;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Progress of the creation of main copies, passed to [`crate::Builder::build_telling`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Populating {
    /// Keys processed so far, mean of the nodes in this process: those of them with their home here
    /// have their main copy.
    pub done: u64,
    /// Number of keys of the layout.
    pub keys: u64,
}

/// The main copies of one node, and the progress of their creation.
struct Share<'a, S: Store> {
    node: NodeId,
    homes: &'a HomeMap,
    store: &'a S,
    initial: &'a Initial<S::Value>,
    failure: &'a Failure,
    /// Set once a thread of any node has panicked.
    stopped: &'a AtomicBool,
    keys: u64,
    block: u64,
    /// The first key of the next block that a thread takes.
    next: AtomicU64,
}

/// Creates the main copies of the nodes that own `stores`, and reports progress up to ten times a
/// second. Stops early if the cluster has failed.
///
/// # Errors
/// [`BuildError::Panicked`] if the function of initial values panics.
pub(crate) fn populate<S: Store + Sync>(
    plan: &Plan<S::Value>,
    stores: &[(NodeId, S)],
    tell: &mut dyn FnMut(Populating),
) -> Result<(), BuildError> {
    if plan.layout.kind() == Kind::Sparse {
        return Ok(());
    }
    let keys = plan.layout.keys().end.0;
    let (block, stopped) = (block::<S::Value>(&plan.layout, plan.nodes), AtomicBool::new(false));
    let shares = stores.iter().map(|(node, store)| Share {
        node: *node,
        homes: &plan.homes,
        store,
        initial: &plan.initial,
        failure: &plan.failure,
        stopped: &stopped,
        keys,
        block,
        next: AtomicU64::new(0),
    });
    let shares: Vec<Share<'_, S>> = shares.collect();
    thread::scope(|scope| {
        let (sender, made) = mpsc::channel();
        // Threads beyond the number of blocks would find nothing to do.
        let of =
            |share: &Share<'_, S>| keys.div_ceil(block).min(plan.workers.of(share.node) as u64);
        let all: u64 = shares.iter().map(of).sum();
        let wanted = shares.iter().flat_map(|share| (0..of(share)).map(move |_| share));
        let mut started = Vec::new();
        for share in wanted {
            let sender = sender.clone();
            // After one refusal the next would be refused, too.
            match threads::spawn_scoped(scope, "adapm initial", move || share.make(&sender)) {
                Ok(thread) => started.push(thread),
                Err(_) => break,
            }
        }
        let mut meter = Meter { done: 0, keys, shares: shares.len() as u64, told: Instant::now() };
        let mut tell = |count| meter.add(count, Instant::now()).into_iter().for_each(&mut *tell);
        let own = if started.len() as u64 == all {
            Ok(())
        } else {
            // The blocks that no thread has taken yet.
            let make = || shares.iter().for_each(|share| share.make(&sender));
            panic::catch_unwind(AssertUnwindSafe(make))
        };
        drop(sender);
        made.into_iter().for_each(&mut tell);
        let others = started.into_iter().map(ScopedJoinHandle::join);
        others.chain([own]).collect::<Result<(), _>>().map_err(|payload| BuildError::Panicked {
            what: "the function of initial values".to_owned(),
            message: message_of(payload.as_ref()),
        })
    })
}

impl<S: Store> Share<'_, S> {
    /// Takes blocks of keys and creates the main copies of those at home here; sends the number of
    /// keys of each block.
    fn make(&self, made: &Sender<u64>) {
        let mut at_home = Vec::new();
        let _stop = StopOthers(self.stopped);
        while self.failure.check().is_ok() && !self.stopped.load(Ordering::Relaxed) {
            // Relaxed suffices: each block is taken once, and nothing else depends on the order.
            let start = self.next.fetch_add(self.block, Ordering::Relaxed);
            if start >= self.keys {
                break;
            }
            let end = self.keys.min(start + self.block);
            at_home.clear();
            at_home.extend((start..end).map(Key).filter(|key| self.homes.home(*key) == self.node));
            create_main_copies(self.store, &at_home, self.initial);
            // The receiver waits for all threads.
            let _ = made.send(end - start);
        }
    }
}

/// A guard that stops the other threads if its own panics.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A progress meter: keys processed by all shares, and the time of the last report.
struct Meter {
    done: u64,
    keys: u64,
    shares: u64,
    told: Instant,
}

impl Meter {
    /// Counts keys of one share. Returns a report if one is due.
    fn add(&mut self, count: u64, now: Instant) -> Option<Populating> {
        self.done += count;
        if now.saturating_duration_since(self.told) < TELLING {
            return None;
        }
        self.told = now;
        Some(Populating { done: self.done / self.shares, keys: self.keys })
    }
}

/// Returns the number of keys of a block: enough that the values with their home on one node fill
/// some huge pages.
fn block<V: Value>(layout: &Layout, nodes: usize) -> u64 {
    let keys = layout.keys().end.0;
    let values = layout.extents().iter().map(|extent| {
        u128::from(extent.keys.end.0 - extent.keys.start.0)
            * (extent.value_len * size_of::<V>()) as u128
    });
    let mean = (values.sum::<u128>() / u128::from(keys)).max(1);
    u64::try_from(BLOCK_BYTES * nodes as u128 / mean).unwrap_or(u64::MAX).clamp(1, BLOCK_KEYS_MAX)
}

/// Bytes of values of one node in a block: threads that touch new memory then share pages only at
/// its ends.
const BLOCK_BYTES: u128 = 4 << 20;
const BLOCK_KEYS_MAX: u64 = 1 << 18;
/// Shortest time between two reports.
const TELLING: Duration = Duration::from_millis(100);

#[cfg(all(test, not(adapm_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_told_now_and_then_as_a_part_of_all_keys() {
        let start = Instant::now();
        let mut meter = Meter { done: 0, keys: 100, shares: 2, told: start };
        assert_eq!(meter.add(30, start + TELLING / 2), None);
        assert_eq!(meter.add(30, start + TELLING), Some(Populating { done: 30, keys: 100 }));
        assert_eq!(meter.add(30, start + TELLING), None);
        assert_eq!(meter.add(110, start + 2 * TELLING), Some(Populating { done: 100, keys: 100 }));
    }

    #[test]
    fn a_block_is_a_few_megabytes_of_each_node() {
        let of =
            |extents: &[_], nodes| block::<f32>(&Layout::dense(extents).expect("legal"), nodes);
        assert_eq!(of(&[(1_000_000, 1 << 10)], 1), 1 << 10);
        assert_eq!(of(&[(1_000_000, 1 << 10)], 4), 4 << 10);
        assert_eq!(of(&[(500, 2 << 10), (500, 0x200)], 1), (4 << 20) / 0x1400);
        assert_eq!(of(&[(5, Layout::VALUE_LEN_MAX)], 1), 1);
        assert_eq!(of(&[(5, 1)], 1), BLOCK_KEYS_MAX);
    }
}
