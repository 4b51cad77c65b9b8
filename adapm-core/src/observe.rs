//! What a node tells about its decisions while it makes them: for traces, scenarios and checks.
//!
//! Totals are in [`crate::stats::Stats`]; an observer sees single events.

use crate::id::{Counter, Key, NodeId};
use crate::time::Instant;

/// Receives single events of one engine. Every method does nothing unless overridden.
pub trait Observe {
    /// The main copy of `key` left this node for `to`, which owns it under `counter`.
    fn on_relocation(&mut self, now: Instant, key: Key, to: NodeId, counter: Counter) {
        let _ = (now, key, to, counter);
    }

    /// This owner let `holder` have a replica of `key`.
    fn on_replica_set_up(&mut self, now: Instant, key: Key, holder: NodeId) {
        let _ = (now, key, holder);
    }

    /// `holder` gave up its replica of `key`, owned here.
    fn on_replica_dropped(&mut self, now: Instant, key: Key, holder: NodeId) {
        let _ = (now, key, holder);
    }

    /// This owner served an intent, localize or operation of `origin` on `key` after `hops` forwards.
    fn on_served(&mut self, now: Instant, key: Key, origin: NodeId, hops: u32) {
        let _ = (now, key, origin, hops);
    }

    /// Intent for `key` became active here (`true`) or the last one expired (`false`).
    fn on_intent(&mut self, now: Instant, key: Key, active: bool) {
        let _ = (now, key, active);
    }
}
