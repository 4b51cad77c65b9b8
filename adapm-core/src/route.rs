//! The next hop of a key (Lapse §3.3, Lapse §3.5; AdaPM §B.2.3; protocol, "Routing").
//!
//! A node's knowledge of a key's location is the location in its [`PackedState`], initially (home,
//! 0). The home's residence record, the location cache and the memory of own hand-overs are all
//! this one fact, in which the higher counter wins.

use crate::home::HomeMap;
use crate::id::{Counter, Key, NodeId};
use crate::slot::{Location, PackedState, State};

/// The next step of an entry that reached a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// This node owns the key.
    Here,
    /// Another node is closer to the owner.
    Next(Location),
    /// The grant that makes this node the owner is in flight: wait for it.
    Park,
}

/// Returns the initial location of `key`, with counter 0.
#[must_use]
pub fn home(key: Key, homes: &HomeMap) -> Location {
    Location { node: homes.home(key), counter: Counter(0) }
}

/// Returns the location of `key` as a node with this packed state believes it; exact for a
/// replica's owner.
#[must_use]
pub fn believed(packed: PackedState, key: Key, homes: &HomeMap) -> Location {
    packed.location().unwrap_or_else(|| home(key, homes))
}

/// Returns the location to which a node sends an entry of its own: the known location, otherwise
/// the home.
///
/// Without location caches only the home uses its knowledge; other nodes ask the home, with counter
/// 0.
#[must_use]
pub fn first_hop(
    packed: PackedState,
    key: Key,
    me: NodeId,
    homes: &HomeMap,
    location_caches: bool,
) -> Location {
    let home = home(key, homes);
    match packed.location() {
        Some(location) if location_caches || home.node == me => location,
        _ => home,
    }
}

/// Returns the next hop of an entry from node `me`, which received it with `counter`, the counter
/// of the fact "`me` owns the key".
///
/// Every forward follows a fact with a counter at least as high, so entries travel along a chain of
/// owners and never in a circle.
#[must_use]
pub fn next_hop(
    packed: PackedState,
    key: Key,
    counter: Counter,
    me: NodeId,
    homes: &HomeMap,
) -> Hop {
    if packed.state() == State::Main {
        return Hop::Here;
    }
    let known = believed(packed, key, homes);
    if known.counter >= counter && known.node != me { Hop::Next(known) } else { Hop::Park }
}
