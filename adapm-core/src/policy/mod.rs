//! Taste, not safety: which technique a key gets, and when to act on a signal (AdaPM §4.1, AdaPM
//! §4.2).
//!
//! A bad policy may be slow, never incorrect: the mechanism relocates only where that is safe
//! (protocol, "Decisions"), and a random policy keeps every invariant.

mod adaptive;
mod fixed;
pub mod poisson;
mod system;
pub mod timing;

use alloc::boxed::Box;

use crate::clock::Clock;
use crate::id::{Key, NodeId, WorkerId};
use crate::node_set::NodeSet;

pub use adaptive::{Adaptive, Immediate, NoRelocation, NoReplication};
pub use fixed::{Classic, Full, Lapse};
pub use system::{System, SystemPolicy, UnknownSystem};

/// What an owner knows when an intent for one of its keys reaches it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The key.
    pub key: Key,
    /// The node that has active intent; never the owner.
    pub requester: NodeId,
    /// Nodes with a replica, the requester not among them.
    pub holders: &'a NodeSet,
    /// Whether the owner has active intent itself.
    pub owner_has_intent: bool,
}

/// What becomes of a key for the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// The main copy stays, and the requester gets no copy.
    Keep,
    /// The main copy moves to the requester. Turned into `Replicate` where that is not safe.
    Relocate,
    /// The requester gets a replica, or keeps the one it has.
    Replicate,
}

/// What brings copies to the nodes that use them. Whoever drives an engine does what belongs to it;
/// `adapm-runtime` does.
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
    /// Nothing: accesses of absent keys go to their owners; intent is not signalled (AdaPM §A.2).
    Nothing,
}

/// Decides technique and timing for one engine.
pub trait Policy {
    /// Decides for an intent that reached the owner, and again for the single remaining holder once
    /// the owner has no active intent (`Relocate` is then a hand-over). No effect outside the
    /// policy.
    fn place(&mut self, view: &View<'_>) -> Placement;

    /// Called once per round and worker with the worker's clock: intents that start before the
    /// returned clock are acted on (AdaPM Alg. 1).
    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock;

    /// Whether a key may leave an owner that has active intent for it. True only without
    /// replication: nodes with intent then take turns, one for each signal. A node whose key has
    /// left accesses it remotely until a worker signals again.
    fn relocates_under_intent(&self) -> bool {
        false
    }

    /// What brings copies to the nodes that use them. The same for all engines of a cluster, for
    /// the whole run.
    fn supply(&self) -> Supply {
        Supply::Intent
    }

    /// Returns true if two copies of a key may exist while no worker localizes: local keys are then
    /// no sign of what was used last.
    fn replicates(&self) -> bool {
        true
    }
}

/// Every method is passed on, those with a default too: a [`SystemPolicy`] is such a box.
impl<P: Policy + ?Sized> Policy for Box<P> {
    fn place(&mut self, view: &View<'_>) -> Placement {
        (**self).place(view)
    }

    fn act_before(&mut self, worker: WorkerId, clock: Clock) -> Clock {
        (**self).act_before(worker, clock)
    }

    fn relocates_under_intent(&self) -> bool {
        (**self).relocates_under_intent()
    }

    fn supply(&self) -> Supply {
        (**self).supply()
    }

    fn replicates(&self) -> bool {
        (**self).replicates()
    }
}
