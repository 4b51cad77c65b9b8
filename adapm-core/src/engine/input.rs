//! Inputs of an engine: the one door in.

use alloc::vec::Vec;
use core::ops::Range;

use crate::clock::{Clock, Tick};
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
    /// Withdraws a signal of a worker of this node: forgets, as often as a key is listed, one
    /// unexpired signal for it with the same worker, id and window. Keys without such a signal are
    /// ignored.
    ///
    /// A signal that was not acted on leaves no trace on other nodes. One that was acted on ends in
    /// one of the next rounds, as if its window had ended; other signals for the key are
    /// unaffected. Costs a look at each signal of the worker with that id and window: one, if ids
    /// are unique.
    TakeBack(Intent),
    /// The wait is over, or workers have advanced; carries the clocks of all workers, in order.
    /// Begins a round if one is due.
    Timeout(&'a [Clock]),
    /// A peer is gone for good. Idempotent; refused for this node itself and for unknown nodes.
    ///
    /// All unfinished operations fail and name it. Afterwards, an operation is done at once if all
    /// its keys are local, and fails at once otherwise; barriers, quiesces, `wait_sync` and
    /// [`OpBody::Leave`] always fail, [`OpBody::End`] never. Messages of the lost peer are ignored.
    /// Deltas, refreshes and main copies are still exchanged with survivors.
    PeerLost(NodeId),
    /// Part of a message of that peer has arrived, or parts of earlier messages to it are still
    /// ahead of the request that it owes an answer to: the link is slow, the peer may not be.
    /// Useful with [`crate::config::NodeConfig::unresponsive_nanos`], for drivers whose messages
    /// may take that long. Refused for this node itself and for unknown nodes.
    Heard(NodeId),
}

/// The id of an operation, chosen by the driver; unique among the unfinished ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// An operation of a worker (protocol, "Operations"). Ends in exactly one
/// [`crate::engine::Event::Done`] or `Failed`.
#[derive(Clone, Debug, PartialEq)]
pub struct Op<V> {
    /// The id in the event that ends it.
    pub id: OpId,
    /// The worker that waits for it.
    pub worker: WorkerId,
    /// The kind of operation, with its data.
    pub body: OpBody<V>,
}

/// The kind of an operation, with its data. Keys may repeat; values are in the order of the keys.
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
    /// replica is released once the call has returned and this node has had no other intent for the
    /// key for 1,024 of its rounds; an idle node has no rounds and keeps it.
    Localize {
        /// The keys.
        keys: Vec<Key>,
    },
    /// Refreshes the replicas of these keys, whatever the policy refreshes: done when each contains
    /// every change that was in its main copy when this was called (HET-GMP §5.3). Keys without a
    /// replica here are nothing to do.
    Renew {
        /// The keys.
        keys: Vec<Key>,
    },
    /// Done when every earlier push of this node is in the main copies and every replica here has
    /// been refreshed since. Does not wait for operations after the call.
    WaitSync,
    /// Done when every live worker of every node has called it. Channel 0 only.
    Barrier,
    /// Done when every live worker of every node has called it, every operation begun before is
    /// done, and every push made before is in the main copy and all replicas. Does not wait for
    /// operations after the calls.
    Quiesce,
    /// The worker has reached `tick`, under a system that bounds how far workers are apart
    /// ([`Policy::bound`](crate::policy::Policy::bound)); done at once under all others. On every
    /// channel: each knows only the updates of its own keys.
    ///
    /// If it `waits`, done when no worker is more than the bound behind: accesses after that see
    /// every update that any worker has made before the tick that is the bound earlier. Otherwise
    /// done at once. Ticks of a worker never fall ([`OpError::TickBack`](crate::error::OpError)).
    Tick {
        /// The tick.
        tick: Tick,
        /// True if the worker goes on only when the others have come near enough.
        waits: bool,
    },
    /// From here on this node begins no round on this channel, asks for no key, and hands no main
    /// copy over that was not asked for, until each worker that has called this calls
    /// [`OpBody::Thaw`] or ends, or a peer is lost. Done when nothing that it has asked for is
    /// unanswered. Whatever needs rounds, such as `wait_sync`, waits for the thaw.
    ///
    /// When all nodes have called it, have met in a barrier, and have called it once more, each
    /// main copy is on a node and stays there until the first of them thaws. Behind a quiesce, and
    /// if nobody writes meanwhile, that is a consistent cut. A node whose workers have ended calls
    /// nothing, and may hand its keys over.
    Freeze,
    /// Ends the worker's part in [`OpBody::Freeze`]. Done at once; fails behind a loss, as keys may
    /// have moved then.
    Thaw,
    /// The worker has ended: barriers, quiesces and ticks no longer wait for it. Done at once.
    ///
    /// From here on its clock must be [`Clock::INFINITY`] in every timeout; otherwise its intents
    /// never expire, and no node can leave.
    End,
    /// Ends this node's part in the run: no operation follows. Done when all nodes leave, all
    /// intents have expired, and everything is applied.
    Leave,
}

impl<V> OpBody<V> {
    /// Returns true if it fails behind a loss, whatever it is about.
    pub(super) fn fails_behind_a_loss(&self) -> bool {
        match self {
            Self::WaitSync | Self::Barrier | Self::Quiesce => true,
            Self::Freeze | Self::Thaw | Self::Leave => true,
            Self::Tick { waits, .. } => *waits,
            _ => false,
        }
    }
}

/// The id of a signal among those of its worker with the same window, chosen by the driver:
/// identifies the signal to take back. Signals that are never taken back may share an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalId(pub u64);

/// A signal: `worker` will access `keys` while its clock is in `clocks` (AdaPM §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The worker.
    pub worker: WorkerId,
    /// Its id.
    pub id: SignalId,
    /// The keys, all of this engine's channel; may repeat.
    pub keys: Vec<Key>,
    /// First clock of the window, and the clock after it.
    pub clocks: Range<Clock>,
}
