//! Choices, not safety: the technique for a key, and the time to act on a signal (AdaPM §4.1,
//! AdaPM §4.2).
//!
//! A bad policy may be slow, never incorrect: the mechanism relocates only where that is safe
//! (protocol, "Decisions"), and a random policy keeps every invariant.

mod adaptive;
mod fixed;
pub mod poisson;
mod stale;
mod system;
pub mod timing;

use alloc::boxed::Box;

use crate::clock::{Clock, Tick};
use crate::config::NodeConfig;
use crate::id::{ChannelId, Key, NodeId, WorkerId};
use crate::node_set::NodeSet;
use crate::observe::Observe;
use crate::time::Instant;

pub use adaptive::{Adaptive, Immediate, NoRelocation, NoReplication};
pub use fixed::{Classic, Full, Lapse, Nups, Parallax};
pub use stale::{Bounded, HetGmp, Ssp};
pub use system::{InvalidSystem, System, SystemPolicy};

/// The owner's knowledge when an intent for one of its keys reaches it.
///
/// ```
/// use adapm_core::node_set::NodeSet;
/// use adapm_core::policy::{Adaptive, Placement, Policy, View};
/// use adapm_core::{Key, NodeId};
///
/// let (mut policy, view) = (Adaptive::new(1), View::new(Key(7), NodeId(1)));
/// assert_eq!(policy.place(&view), Placement::Relocate);
/// let holders: NodeSet = [NodeId(2)].into_iter().collect();
/// assert_eq!(policy.place(&view.with_holders(&holders)), Placement::Replicate);
/// assert_eq!(policy.place(&view.with_owner_intent(true)), Placement::Replicate);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct View<'a> {
    /// The key.
    pub key: Key,
    /// The node that has active intent; never the owner.
    pub requester: NodeId,
    /// Nodes with a replica, without the requester.
    pub holders: &'a NodeSet,
    /// True if the owner itself has active intent.
    pub owner_has_intent: bool,
}

impl<'a> View<'a> {
    /// Returns the view of a key that only `requester` wants.
    #[must_use]
    pub const fn new(key: Key, requester: NodeId) -> Self {
        static NOBODY: NodeSet = NodeSet::new();
        Self { key, requester, holders: &NOBODY, owner_has_intent: false }
    }

    /// Returns the same view with these other nodes that have a replica.
    #[must_use]
    pub const fn with_holders(self, holders: &'a NodeSet) -> Self {
        Self { holders, ..self }
    }

    /// Returns the same view with or without active intent of the owner.
    #[must_use]
    pub const fn with_owner_intent(self, owner_has_intent: bool) -> Self {
        Self { owner_has_intent, ..self }
    }
}

/// Moments at which changes may be due, in the time for which one waits at most.
const STEPS: u64 = 8;

/// The engine that a policy decides for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Its node.
    pub node: NodeId,
    /// Its channel.
    pub channel: ChannelId,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Workers of the node.
    pub workers: usize,
}

/// ```
/// use adapm_core::config::NodeConfig;
/// use adapm_core::policy::{Adaptive, Place};
/// use adapm_core::NodeId;
///
/// // The second of four nodes, with three workers.
/// let place = Place::from(&NodeConfig::new(NodeId(1), 4, 3));
/// let policy = Adaptive::new(place.workers);
/// ```
impl From<&NodeConfig> for Place {
    fn from(config: &NodeConfig) -> Self {
        let NodeConfig { node, channel, nodes, workers, .. } = *config;
        Self { node, channel, nodes, workers }
    }
}

/// The decision about a key for the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// The main copy stays, and the requester gets no copy.
    Keep,
    /// The main copy moves to the requester. Turned into `Replicate` where that is not safe.
    Relocate,
    /// The requester gets a replica, or keeps the one it has.
    Replicate,
}

/// The mechanism that brings copies to the nodes that use them, implemented by the driver
/// (`adapm-runtime` does).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Supply {
    /// Workers signal intent for what they will access (AdaPM §3).
    #[default]
    Intent,
    /// Workers localize what they will access; intent is not signalled (Lapse §3.2).
    Localize,
    /// Each node signals intent for every key and the whole run, before its workers begin; they
    /// signal none (AdaPM §A.1).
    Everything,
    /// Each node signals intent for the hot keys, chosen before the run, and the whole run, before
    /// its workers begin; workers localize the other keys that they will access, and signal none
    /// (AdaPM §A.5).
    HotAndLocalize,
    /// As [`Supply::HotAndLocalize`], but the other keys stay where they are (AdaPM Table 1).
    Hot,
    /// As [`Supply::Hot`], but each node has hot keys of its own: of the keys whose homes are
    /// elsewhere those that it accesses most (HET-GMP §5.2).
    Partition,
    /// Nothing: accesses of absent keys go to their owners; intent is not signalled (AdaPM §A.2).
    Nothing,
    /// A pull of an absent key sets up a replica ([`Policy::keep`]); intent is not signalled
    /// (AdaPM §A.3).
    Access,
}

/// A bound on how far workers are apart, in ticks ([`Tick`]): a worker passes tick `t` once no
/// worker is behind `t.before(ticks)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Ticks by which a worker may be ahead of the slowest. 0: workers go on together.
    pub ticks: u64,
    /// The way in which the copies of a node get the updates that its workers must see.
    pub by: By,
}

/// The way in which replicas become fresh enough for the tick of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Replicas set up by a pull end in time ([`Policy::keep`]); they are not refreshed.
    Expiry,
    /// Replicas are refreshed.
    Refresh,
}

/// How long a change of a replicated key may wait at the holder that made it before it goes to the
/// owner: until so many updates wait, or the oldest has waited for so long. An owner tells other
/// holders by the same rule, with an eighth of the time.
///
/// Staleness hurts by the updates that a copy has not seen; the age is for keys that change rarely.
/// A `wait_sync`, a quiesce, a barrier, the end of a worker, and whatever carries the value anyway
/// take all changes along.
///
/// # Departure
/// In AdaPM every change goes with the next round (AdaPM §B.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Patience {
    /// Updates, pushes of workers, that wait on all nodes together: each waits for its share.
    pub updates: u32,
    /// Nanoseconds; at most a hundredth of the time since the first change.
    pub nanos: u64,
}

impl Patience {
    /// That of `adapm`: 16 updates, 20 ms.
    pub const USUAL: Self = Self { updates: 16, nanos: 20_000_000 };

    /// Returns that at `nanos` nanoseconds behind the first change: none waits for longer than a
    /// hundredth of them. Early updates matter most, and short runs notice small delays.
    pub(crate) fn after(self, nanos: u64) -> Self {
        Self { nanos: self.nanos.min(nanos / 100), ..self }
    }

    /// Returns the time at which holders are told of a change that has been at its owner since
    /// then: sooner than it comes from where it was made, as changes of several holders come
    /// together.
    pub(crate) fn due_at_owner(self, since: Instant) -> Instant {
        self.step_at(since.plus_nanos(self.nanos / STEPS))
    }

    /// Returns the earliest moment, not before `time`, at which changes may be due: they are
    /// together, as a round costs as much as some hundred of them.
    pub(crate) fn step_at(self, time: Instant) -> Instant {
        let nanos = time.nanos().checked_next_multiple_of((self.nanos / STEPS).max(1));
        Instant::from_nanos(nanos.unwrap_or(u64::MAX))
    }

    /// Returns the updates that wait on one of `nodes`.
    pub(crate) fn share(self, nodes: usize) -> u32 {
        (self.updates / u32::try_from(nodes).unwrap_or(u32::MAX)).max(1)
    }
}

impl Supply {
    /// Returns true if workers and loaders localize keys before access.
    #[must_use]
    pub const fn localizes(self) -> bool {
        matches!(self, Self::Localize | Self::HotAndLocalize)
    }

    /// Returns true if hot keys are chosen before the run, the same for all nodes.
    #[must_use]
    pub const fn has_hot_keys(self) -> bool {
        matches!(self, Self::HotAndLocalize | Self::Hot)
    }

    /// Returns true if each node signals the intents of the whole run, all of them, before its
    /// workers begin.
    #[must_use]
    pub const fn lasts_the_run(self) -> bool {
        matches!(self, Self::Everything | Self::HotAndLocalize | Self::Hot | Self::Partition)
    }
}

/// A policy: decides technique and timing for one engine.
pub trait Policy {
    /// Decides for an intent that reached the owner, and again for the single remaining holder once
    /// the owner has no active intent (`Relocate` is then a hand-over). No effect outside the
    /// policy. Answers from the calls that were made alone: no clock, no entropy, no hash map, so
    /// that a run can be repeated.
    fn place(&mut self, view: &View<'_>) -> Placement;

    /// Called once per round and worker with the worker's clock: intents that start before the
    /// returned clock are acted on (AdaPM Alg. 1).
    ///
    /// Not called in a round that begins before all nodes have answered what was sent until the
    /// last call: the last bound then moves along with the clock. To whoever counts clocks from
    /// call to call, rounds are thus as long as the slowest node takes.
    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock;

    /// Returns true if `key` may leave an owner that has active intent for it, where
    /// [`Policy::place`] says so. Nodes with intent then take turns, one for each signal: a node
    /// whose key has left accesses it remotely until a worker signals again. A key with replicas
    /// never leaves, so turns exist only while `place` gives none. Called at a decision, and when a
    /// key has left. Defaults to false.
    fn relocates_under_intent(&self, key: Key) -> bool {
        let _ = key;
        false
    }

    /// Returns the policy's observer of the engine's events, if it has one: for decisions that
    /// depend on more than the intents that arrive, such as how often other nodes access a key
    /// ([`Observe::on_served`]).
    ///
    /// It receives each event before any other observer ([`Engine::set_observer`]), in the engine's
    /// thread, and may change the policy as [`Policy::place`] may. At its construction, the engine
    /// checks whether there is one, and calls this for each event only then. Defaults to none.
    ///
    /// [`Engine::set_observer`]: crate::engine::Engine::set_observer
    fn observer(&mut self) -> Option<&mut dyn Observe> {
        None
    }

    /// Returns the mechanism that brings copies to the nodes that use them. The same for all
    /// engines of a cluster, for the whole run.
    fn supply(&self) -> Supply {
        Supply::Intent
    }

    /// Returns true if two copies of a key may exist while no worker localizes: a local key was
    /// then not necessarily used last.
    fn replicates(&self) -> bool {
        true
    }

    /// Returns how far workers may be apart. `None`: as far as they like, and ticks cost nothing.
    /// The same for all engines of a cluster, for the whole run; asked once.
    fn bound(&self) -> Option<Bound> {
        None
    }

    /// Returns the tick from which workers of this node must not read the replica that a pull of an
    /// absent key sets up now; [`Tick::INFINITY`] for one that stays. `None`: the pull goes to the
    /// owner and sets up nothing.
    ///
    /// Every update made before `least` is in the main copies.
    fn keep(&self, least: Tick) -> Option<Tick> {
        let _ = least;
        None
    }

    /// Returns the number of changes of `key` that a replica may lack before its owner refreshes
    /// it. 0: it is refreshed after each. `u32::MAX`: only a `wait_sync` or a quiesce refreshes it.
    /// What one round brings from one node is one change, each push of a node without a replica is
    /// one, and a node's own is none. The same for the whole run.
    fn lag(&self, key: Key) -> u32 {
        let _ = key;
        0
    }

    /// Returns how long changes may wait for more; [`Policy::lag`] counts for nothing then. `None`,
    /// or under a bound: they go with the next round. The same for the whole run; asked once.
    fn patience(&self) -> Option<Patience> {
        None
    }
}

/// Delegates every method, including those with a default: a [`SystemPolicy`] is such a box.
impl<P: Policy + ?Sized> Policy for Box<P> {
    fn place(&mut self, view: &View<'_>) -> Placement {
        (**self).place(view)
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        (**self).act_before(worker, clock)
    }

    fn relocates_under_intent(&self, key: Key) -> bool {
        (**self).relocates_under_intent(key)
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        (**self).observer()
    }

    fn supply(&self) -> Supply {
        (**self).supply()
    }

    fn replicates(&self) -> bool {
        (**self).replicates()
    }

    fn bound(&self) -> Option<Bound> {
        (**self).bound()
    }

    fn keep(&self, least: Tick) -> Option<Tick> {
        (**self).keep(least)
    }

    fn lag(&self, key: Key) -> u32 {
        (**self).lag(key)
    }

    fn patience(&self) -> Option<Patience> {
        (**self).patience()
    }
}
