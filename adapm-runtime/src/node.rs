//! State that the threads of one node share: the store, clocks and counters of workers, and a port
//! to each channel thread.
//!
//! The logical clocks of workers are read by channel threads (AdaPM §3).

use std::mem;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use adapm_core::engine::{Intent, OpBody, SignalId};
use adapm_core::error::OpError;
use adapm_core::home::HomeMap;
use adapm_core::layout::Layout;
use adapm_core::policy::Supply;
use adapm_core::store::Store;
use adapm_core::{ChannelId, Clock, Key, NodeId, Value, WorkerId};

use crate::hot_keys::HotKeys;
use crate::link::WakeFn;
use crate::mailbox::{Mailbox, Urgency};
use crate::order::Completions;
use crate::promise::{Promise, Waiter};
use crate::sampling::{SampleNode, Sampling};
use crate::stats::{Published, Stats, WorkerCounters};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};

/// State shared by the workers, loader threads and channel threads of a node.
pub(crate) struct NodeShared<S: Store> {
    pub(crate) node: NodeId,
    pub(crate) nodes: usize,
    pub(crate) homes: HomeMap,
    pub(crate) layout: Layout,
    pub(crate) store: Arc<S>,
    pub(crate) ports: Vec<Arc<Port<S::Value>>>,
    pub(crate) clocks: Arc<Clocks>,
    pub(crate) workers: Vec<WorkerShared>,
    /// The number of this node's first worker among those of all nodes, and how many these are.
    pub(crate) first_worker: usize,
    pub(crate) all_workers: usize,
    pub(crate) sampling: Option<Arc<Sampling>>,
    /// The mechanism that brings copies to this node.
    pub(crate) supply: Supply,
    /// The clocks after which a worker waits for others, under a bound.
    pub(crate) clocks_per_tick: Option<NonZeroU32>,
    /// The keys of which this node has a copy for the whole run; none unless the supply has some.
    pub(crate) hot_keys: HotKeys,
}

/// The shared part of a worker's state.
#[derive(Debug, Default)]
pub(crate) struct WorkerShared {
    pub(crate) counters: WorkerCounters,
    /// Number of random streams handed out; the worker's own is stream 0.
    pub(crate) streams: AtomicU64,
    /// Number of samples prepared: each signals under a name of its own.
    samples: AtomicU64,
    /// Where channel threads report its calls.
    pub(crate) completions: Arc<Completions>,
    /// Locked while anything of the worker is posted; true once it has ended.
    ended: Mutex<bool>,
}

/// A guard that keeps a worker from ending, so that everything posted meanwhile precedes its end.
pub(crate) struct Alive<'a> {
    _guard: MutexGuard<'a, bool>,
}

/// The queues to one channel thread.
pub(crate) struct Port<V> {
    pub(crate) mailbox: Mailbox<Command<V>>,
    pub(crate) published: Published,
    pub(crate) wake: WakeFn,
}

/// A command for a channel thread.
pub(crate) enum Command<V> {
    /// An operation, and its waiter.
    Op { waiter: Waiter<V>, worker: WorkerId, body: OpBody<V> },
    /// A signal.
    Intent(Intent),
    /// A signal taken back.
    TakeBack(Intent),
}

impl<V: Value> Port<V> {
    pub(crate) fn new(workers: usize, wake: WakeFn) -> Self {
        Self { mailbox: Mailbox::new(workers), published: Published::default(), wake }
    }

    /// Posts an operation; if the channel thread has ended, its promise ends here.
    pub(crate) fn post_op(
        &self,
        promise: &Arc<Promise<V>>,
        part: usize,
        worker: WorkerId,
        body: OpBody<V>,
    ) {
        let command = Command::Op { waiter: Waiter::new(Arc::clone(promise), part), worker, body };
        // A refused command is dropped, which notifies its waiter.
        if let Ok(true) = self.mailbox.post(command, Urgency::AtOnce) {
            (self.wake)();
        }
    }

    /// Posts a signal, or takes one back; it is looked at when the next round begins.
    pub(crate) fn post(&self, signal: Command<V>) -> Result<(), OpError> {
        if self.mailbox.post(signal, Urgency::NextRound).map_err(|_| OpError::Ended)? {
            (self.wake)();
        }
        Ok(())
    }

    /// Posts keys that `worker` dirtied.
    pub(crate) fn append_dirty(&self, worker: WorkerId, keys: impl Iterator<Item = Key>) {
        if self.mailbox.append_dirty(worker, keys) {
            (self.wake)();
        }
    }
}

impl<S: Store> NodeShared<S> {
    /// Returns true if workers' signals reach the engines. Where nothing acts on signals they would
    /// only pile up, and on a single node wake an engine that drops them.
    fn heeds_intents(&self) -> bool {
        self.supply == Supply::Intent && self.nodes > 1
    }

    /// Returns the port of `key`'s channel.
    pub(crate) fn port_of(&self, key: Key) -> &Port<S::Value> {
        &self.ports[self.channel(key).index()]
    }

    /// Returns the channel of `key`.
    #[inline]
    pub(crate) fn channel(&self, key: Key) -> ChannelId {
        if self.ports.len() == 1 { ChannelId(0) } else { Layout::channel(key, self.ports.len()) }
    }

    /// Returns the number of elements of the values of `keys` together.
    pub(crate) fn elements(&self, keys: &[Key]) -> Result<usize, OpError> {
        let end = self.layout.keys().end;
        if let [extent] = self.layout.extents() {
            return match keys.iter().find(|key| **key >= end) {
                None => Ok(keys.len() * extent.value_len),
                Some(key) => Err(OpError::UnknownKey { key: *key, end }),
            };
        }
        keys.iter().try_fold(0, |sum, key| {
            Ok(sum + self.layout.value_len(*key).ok_or(OpError::UnknownKey { key: *key, end })?)
        })
    }

    /// Checks that the values of `keys` have `given` elements together.
    pub(crate) fn check(&self, keys: &[Key], given: usize) -> Result<(), OpError> {
        let expected = self.elements(keys)?;
        if expected == given { Ok(()) } else { Err(OpError::ValueLen { expected, given }) }
    }

    /// Checks that `keys` can be localized.
    pub(crate) fn check_movable(&self, keys: &[Key]) -> Result<(), OpError> {
        self.elements(keys)?;
        match self.supply {
            Supply::Nothing | Supply::Hot | Supply::Partition | Supply::Access => {
                Err(OpError::Immovable)
            }
            Supply::Intent | Supply::Localize | Supply::Everything | Supply::HotAndLocalize => {
                Ok(())
            }
        }
    }

    /// Signals, under a name, that `worker` will access `keys` in `clocks`.
    pub(crate) fn intend(
        &self,
        worker: WorkerId,
        id: SignalId,
        keys: &[Key],
        clocks: Range<Clock>,
    ) -> Result<(), OpError> {
        self.elements(keys)?;
        check_window(&clocks)?;
        let _alive = self.alive(worker)?;
        if !self.heeds_intents() || keys.is_empty() || clocks.end <= self.clocks.clock(worker) {
            return Ok(());
        }
        self.signal(worker, id, keys, clocks)
    }

    /// Keeps sampled keys where they are until the window ends. Does nothing if it has ended, or on
    /// a single node.
    pub(crate) fn hold(
        &self,
        worker: WorkerId,
        id: SignalId,
        keys: &[Key],
        clocks: Range<Clock>,
    ) -> Result<(), OpError> {
        if self.nodes == 1 || clocks.start >= clocks.end {
            return Ok(());
        }
        self.intend(worker, id, keys, clocks)
    }

    /// Returns a fresh name for the signals of a sample of `worker`, distinct from that of signals
    /// that are never taken back.
    pub(crate) fn name_sample(&self, worker: WorkerId) -> SignalId {
        SignalId(1 + self.workers[worker.index()].samples.fetch_add(1, Ordering::Relaxed))
    }

    /// Posts a checked signal to the engines.
    pub(crate) fn signal(
        &self,
        worker: WorkerId,
        id: SignalId,
        keys: &[Key],
        clocks: Range<Clock>,
    ) -> Result<(), OpError> {
        self.post_signal(Command::Intent, worker, id, keys, clocks)
    }

    /// Posts a signal, or takes one back, in pieces small enough for an engine to handle without
    /// delaying others.
    fn post_signal(
        &self,
        command: fn(Intent) -> Command<S::Value>,
        worker: WorkerId,
        id: SignalId,
        keys: &[Key],
        clocks: Range<Clock>,
    ) -> Result<(), OpError> {
        for keys in keys.chunks(KEYS_A_SIGNAL) {
            for (channel, keys) in self.by_channel(keys) {
                let intent = Intent { worker, id, keys, clocks: clocks.clone() };
                self.ports[channel].post(command(intent))?;
            }
        }
        Ok(())
    }

    /// Asks every channel concerned to localize `keys`, but for hot ones: they have a copy here,
    /// and a main copy with holders would not move. Returns `None` if there are none.
    pub(crate) fn localize(
        &self,
        worker: WorkerId,
        keys: &[Key],
        promise: impl FnOnce(usize) -> Arc<Promise<S::Value>>,
    ) -> Option<Arc<Promise<S::Value>>> {
        let parts = self.by_channel(&self.hot_keys.cold_of(keys));
        if parts.is_empty() {
            return None;
        }
        let promise = promise(parts.len());
        for (part, (channel, keys)) in parts.into_iter().enumerate() {
            self.ports[channel].post_op(&promise, part, worker, OpBody::Localize { keys });
        }
        Some(promise)
    }

    /// Keeps `worker` from ending: a localize that followed the node's leave would bring a main
    /// copy to a node that no longer receives. Posters wait for room with this held, so the
    /// worker's end waits for them, and for the channel thread.
    ///
    /// # Errors
    /// The worker has ended; nothing of it may reach an engine.
    pub(crate) fn alive(&self, worker: WorkerId) -> Result<Alive<'_>, OpError> {
        let ended = lock(&self.workers[worker.index()].ended);
        if *ended {
            return Err(OpError::Ended);
        }
        Ok(Alive { _guard: ended })
    }

    /// Ends `worker`, once: its further calls are refused, all its intents expire, and no call
    /// waits for it. Does not wait for operations in flight.
    pub(crate) fn end(&self, worker: WorkerId) {
        if mem::replace(&mut *lock(&self.workers[worker.index()].ended), true) {
            return;
        }
        self.workers[worker.index()].completions.end();
        self.clocks.set(worker, Clock::INFINITY);
        let promise = Arc::new(Promise::new(self.ports.len(), None));
        for (part, port) in self.ports.iter().enumerate() {
            port.post_op(&promise, part, worker, OpBody::End);
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.ports.iter().for_each(|port| port.published.add_to(&mut stats));
        self.workers.iter().for_each(|worker| worker.counters.add_to(&mut stats));
        stats
    }

    fn by_channel(&self, keys: &[Key]) -> Vec<(usize, Vec<Key>)> {
        if self.ports.len() == 1 {
            return if keys.is_empty() { Vec::new() } else { vec![(0, keys.to_vec())] };
        }
        let mut parts: Vec<(usize, Vec<Key>)> =
            (0..self.ports.len()).map(|port| (port, Vec::new())).collect();
        for key in keys {
            parts[self.channel(*key).index()].1.push(*key);
        }
        parts.retain(|(_, keys)| !keys.is_empty());
        parts
    }
}

impl<S: Store + Send + Sync + 'static> SampleNode for NodeShared<S> {
    fn take_back(&self, worker: WorkerId, id: SignalId, keys: &[Key], clocks: Range<Clock>) {
        // Windows that end with the worker's present clock end soon enough by themselves.
        let matters = clocks.end > self.clocks.clock(worker) + 1;
        if !matters || !self.heeds_intents() {
            return;
        }
        // A worker that has ended has no intent.
        let Ok(_alive) = self.alive(worker) else { return };
        // Fails if the mailbox is closed: the channel threads have then dropped all intents.
        let _ = self.post_signal(Command::TakeBack, worker, id, keys, clocks);
    }

    fn note_unpulled(&self, worker: WorkerId, keys: u64) {
        self.workers[worker.index()].counters.add_unpulled(keys);
    }
}

pub(crate) fn check_window(clocks: &Range<Clock>) -> Result<(), OpError> {
    if clocks.start < clocks.end {
        Ok(())
    } else {
        Err(OpError::Window { start: clocks.start, end: clocks.end })
    }
}

/// One clock per worker, each on cache lines of its own.
///
/// # Ordering
/// A worker stores with `Release`, a channel thread loads with `Acquire`: an engine that sees a
/// clock also sees what the worker did before it raised it. Nothing depends on how soon it is seen.
#[derive(Debug)]
pub struct Clocks {
    clocks: Vec<Padded>,
}

/// Two cache lines, as processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl Clocks {
    /// Creates the clocks of `workers` workers, all 0.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self { clocks: (0..workers).map(|_| Padded(AtomicU64::new(0))).collect() }
    }

    /// Sets the clock of `worker`; only that worker's thread calls this.
    pub fn set(&self, worker: WorkerId, clock: Clock) {
        self.clocks[worker.index()].0.store(clock.0, Ordering::Release);
    }

    /// Returns the clock of `worker`.
    #[must_use]
    pub fn clock(&self, worker: WorkerId) -> Clock {
        Clock(self.clocks[worker.index()].0.load(Ordering::Acquire))
    }

    /// Overwrites `clocks` with the clocks of all workers, in order.
    pub fn read(&self, clocks: &mut Vec<Clock>) {
        clocks.clear();
        clocks.extend(self.clocks.iter().map(|clock| Clock(clock.0.load(Ordering::Acquire))));
    }
}

/// Keys of the largest piece of a signal.
const KEYS_A_SIGNAL: usize = 1 << 14;
