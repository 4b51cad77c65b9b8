//! The next hop of a key (Lapse §3.3, Lapse §3.5; AdaPM §B.2.3; protocol, "Routing").
//!
//! What a node knows of a key's place is its [`PackedState`]'s location, initially (home, 0). The
//! home's residence record, the location cache and the memory of own give-aways are this one fact,
//! in which the higher counter wins.

use crate::id::{Counter, Key, NodeId};
use crate::layout::Layout;
use crate::slot::{Location, PackedState, State};

/// What becomes of an entry that reached a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// This node owns the key.
    Here,
    /// Another node is closer to the owner.
    Next(Location),
    /// The grant that makes this node the owner is on its way here: wait for it.
    Park,
}

/// Where `key` starts, with counter 0.
#[must_use]
pub fn home(key: Key, nodes: usize) -> Location {
    Location { node: Layout::home(key, nodes), counter: Counter(0) }
}

/// Where a node with this packed state believes `key` to be; of a key with a replica, where it is.
#[must_use]
pub fn believed(packed: PackedState, key: Key, nodes: usize) -> Location {
    packed.location().unwrap_or_else(|| home(key, nodes))
}

/// Where a node sends an entry of its own: the location it knows, else the home.
///
/// Without location caches only the home uses what it knows; the others ask the home, with counter
/// 0.
#[must_use]
pub fn first_hop(
    packed: PackedState,
    key: Key,
    me: NodeId,
    nodes: usize,
    location_caches: bool,
) -> Location {
    let home = home(key, nodes);
    match packed.location() {
        Some(location) if location_caches || home.node == me => location,
        _ => home,
    }
}

/// Where an entry goes on from node `me`, which got it with `counter`, the counter of the fact
/// "`me` owns the key".
///
/// Every forward follows a fact with a counter at least as high, so entries travel along a chain of
/// owners and never in a circle.
#[must_use]
pub fn next_hop(packed: PackedState, key: Key, counter: Counter, me: NodeId, nodes: usize) -> Hop {
    if packed.state() == State::Main {
        return Hop::Here;
    }
    let known = believed(packed, key, nodes);
    if known.counter >= counter && known.node != me { Hop::Next(known) } else { Hop::Park }
}
