//! What enters a node: the one door in.

use alloc::vec::Vec;
use core::ops::Range;

use crate::clock::Clock;
use crate::id::{Key, NodeId, WorkerId};
use crate::wire::Message;

/// One input. Exhaustive on purpose: a driver must see a new one.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<'a, V> {
    /// A message of a peer.
    Message(NodeId, Message),
    /// An operation of a worker of this node that the fast path could not serve.
    Op(Op<V>),
    /// A signal of a worker of this node.
    Intent(Intent),
    /// A signal of a worker of this node is not meant any more: as often as a key stands here, one
    /// that was signalled for it by the same worker with the same id and window, and has not
    /// expired, is forgotten. What was not signalled is ignored.
    ///
    /// Nobody hears of a signal that was not acted on. One that was ends in one of the next rounds,
    /// as if its window had; other signals for the key last as long as they did. Costs a look at
    /// each signal of the worker with that id and window: at one, where ids are unique.
    TakeBack(Intent),
    /// The wait is over or workers moved on; the clocks of all workers, in order. Begins a round if
    /// one is due.
    Timeout(&'a [Clock]),
    /// A peer is gone for good. Told twice it is as told once; refused for this node itself and for
    /// nodes there are not.
    ///
    /// All unfinished operations fail and name it. From here on an operation is done at once if all
    /// its keys are local, else it fails at once; barriers, quiesces, `wait_sync` and
    /// [`OpBody::Leave`] always fail, [`OpBody::End`] never. Messages of the lost peer are ignored.
    /// With the survivors, deltas, refreshes and main copies are still exchanged.
    PeerLost(NodeId),
    /// Part of a message of that peer has come, or parts of earlier messages to it stand before
    /// what it is to answer: the way is slow, the peer may not be. Of use where
    /// [`crate::config::NodeConfig::unresponsive_nanos`] is set, for drivers whose messages may
    /// take as long. Refused for this node itself and for nodes there are not.
    Heard(NodeId),
}

/// The name of an operation, chosen by the driver; unique among the unfinished ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// An operation of a worker (protocol, "Operations"). Ends in exactly one
/// [`crate::engine::Event::Done`] or `Failed`.
#[derive(Clone, Debug, PartialEq)]
pub struct Op<V> {
    /// Its name in the event that ends it.
    pub id: OpId,
    /// The worker that waits for it.
    pub worker: WorkerId,
    /// What to do.
    pub body: OpBody<V>,
}

/// What an operation does. Keys may repeat; values stand in the order of the keys.
#[derive(Clone, Debug, PartialEq)]
pub enum OpBody<V> {
    /// Reads; `Done` carries `[sum of value_len]`.
    Pull {
        /// The keys.
        keys: Vec<Key>,
    },
    /// Adds.
    Push {
        /// The keys.
        keys: Vec<Key>,
        /// `[sum of value_len]`.
        updates: Vec<V>,
    },
    /// Overwrites.
    Set {
        /// The keys.
        keys: Vec<Key>,
        /// `[sum of value_len]`.
        values: Vec<V>,
    },
    /// Brings the main copies here, or replicas where others hold replicas (Lapse §3.2). Such a
    /// replica is given up once the call has returned and this node has had no other intent for the
    /// key for 1,024 of its rounds; a node that is idle has no rounds and keeps it.
    Localize {
        /// The keys.
        keys: Vec<Key>,
    },
    /// Done when every earlier push of this node is in the main copies and every replica here was
    /// refreshed since. What workers do after the call is not waited for.
    WaitSync,
    /// Done when every live worker of every node has called it. Channel 0 only.
    Barrier,
    /// Done when, after every live worker of every node has called it, every operation that had
    /// begun is done and every push made is in the main copy and all replicas. What workers do
    /// after the calls is not waited for.
    Quiesce,
    /// The worker has ended: barriers and quiesces no longer wait for it. Done at once.
    ///
    /// Its clock is [`Clock::INFINITY`] from here on, in every timeout: else its intents never
    /// expire, and no node can leave.
    End,
    /// No operation follows on this node. Done when all nodes leave, all intents have expired, and
    /// everything is applied.
    Leave,
}

/// The name of a signal among those of its worker with the same window, chosen by the driver: what
/// is to be taken back is found by it. Signals that are never taken back may share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalId(pub u64);

/// A signal: `worker` will access `keys` while its clock is in `clocks` (AdaPM §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The worker.
    pub worker: WorkerId,
    /// Its name.
    pub id: SignalId,
    /// The keys, all of this engine's channel; may repeat.
    pub keys: Vec<Key>,
    /// First clock of the window, and the clock behind it.
    pub clocks: Range<Clock>,
}
