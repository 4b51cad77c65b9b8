//! Events of a node's decisions: for traces, scenarios and checks.
//!
//! Totals are in [`crate::stats::Stats`]; an observer sees single events. Events about a copy come
//! from the node that has it, so that each node's events alone show what it held and when; an owner
//! additionally reports the holders that it knows.
//!
//! | at | a main copy | a replica |
//! | --- | --- | --- |
//! | the node that has it | [`on_arrival`](Observe::on_arrival), [`on_relocation`](Observe::on_relocation) | [`on_replica_installed`](Observe::on_replica_installed), [`on_replica_released`](Observe::on_replica_released) |
//! | its owner | | [`on_replica_set_up`](Observe::on_replica_set_up), [`on_replica_dropped`](Observe::on_replica_dropped) |

use crate::id::{Counter, Key, NodeId};
use crate::time::Instant;

/// An observer of single events of one engine. Every method does nothing unless overridden.
pub trait Observe {
    /// Reports that the main copy of `key` left this node for `to`, which owns it under `counter`.
    fn on_relocation(&mut self, now: Instant, key: Key, to: NodeId, counter: Counter) {
        let _ = (now, key, to, counter);
    }

    /// Reports that the main copy of `key` arrived here, owned under `counter`; a local replica has
    /// become part of it.
    fn on_arrival(&mut self, now: Instant, key: Key, counter: Counter) {
        let _ = (now, key, counter);
    }

    /// Reports that a replica of `key`, owned by `owner`, became usable here.
    fn on_replica_installed(&mut self, now: Instant, key: Key, owner: NodeId) {
        let _ = (now, key, owner);
    }

    /// Reports that the replica of `key` here was released, or lost with its owner.
    fn on_replica_released(&mut self, now: Instant, key: Key) {
        let _ = (now, key);
    }

    /// Reports that this owner granted `holder` a replica of `key`.
    fn on_replica_set_up(&mut self, now: Instant, key: Key, holder: NodeId) {
        let _ = (now, key, holder);
    }

    /// Reports that `holder` released its replica of `key`, owned here.
    fn on_replica_dropped(&mut self, now: Instant, key: Key, holder: NodeId) {
        let _ = (now, key, holder);
    }

    /// Reports that this owner served an intent, localize or operation of `origin` on `key` after
    /// `hops` forwards.
    fn on_served(&mut self, now: Instant, key: Key, origin: NodeId, hops: u32) {
        let _ = (now, key, origin, hops);
    }

    /// Reports that intent for `key` became active here (`true`) or the last one expired (`false`).
    fn on_intent(&mut self, now: Instant, key: Key, active: bool) {
        let _ = (now, key, active);
    }
}
