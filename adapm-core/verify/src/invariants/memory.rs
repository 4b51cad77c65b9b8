//! Invariant 10: a node's memory for protocol state is bounded by its own intents, operations and
//! copies, and a constant per peer; what it sends at a time is bounded in bytes.

use adapm_core::config::NodeConfig;
use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;
use adapm_core::wire::message::Body;
use adapm_core::wire::{self, Message};

use crate::flight;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Entries that a node may keep for each of its intents, operations and copies at the same time.
const PER_ITEM: usize = 4;
/// Entries that a node may keep per peer whatever it does itself.
const PER_PEER: usize = 8;

pub(super) fn check(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    let operations = picture.calls.open_keys().count() + picture.calls.open().count();
    // What is parked here for a peer is an unanswered entry of the peer, of which it has at most
    // one per key.
    let parked = picture.keys().count() * (picture.setup.nodes - 1);
    let localized = picture.localized.iter().filter(|(localizer, _)| *localizer == node).count();
    let items = signalled(picture, node) + operations + localized;
    let bound =
        PER_ITEM * items + 2 * copies(picture, node) + parked + PER_PEER * picture.setup.nodes;
    let entries = picture.member(node).node.engine().side_entries();
    hold!(picture.setup.checks => EntriesBounded, entries <= bound, "{node} keeps {entries} entries where {bound} are allowed");
    let overfull = |key: &Key| {
        let view = &picture.row(node, *key).view;
        view.stale.len() > view.holders.len()
    };
    let again = picture.keys().find(overfull);
    hold!(picture.setup.checks => EntriesBounded, again.is_none(), "{node} notes a stale holder of {again:?} twice");
    let has_copy = |key: &Key| matches!(picture.state(node, *key), State::Main | State::Replica);
    let stray =
        picture.keys().find(|key| !has_copy(key) && !picture.row(node, *key).value.is_empty());
    if let Some(key) = stray {
        hold!(picture.setup.checks => NoStrayValue, false, "{node} keeps a value of {key}, of which it holds no copy");
    }
    Ok(())
}

/// Whatever is sent keeps within the configuration of its sender, at the most bytes that its
/// entries may need.
pub(crate) fn check_bytes(
    picture: &Picture,
    node: NodeId,
    message: &Message,
) -> Result<(), Violation> {
    if !picture.setup.checks.contains(10) {
        return Ok(());
    }
    let entries = flight::entries(message, |key| picture.setup.value_len(key)).len();
    let head = wire::head_bytes(&message.body);
    let head_max = NodeConfig::head_bytes_max(entries);
    let bytes_max =
        picture.member(node).node.engine().config().frame_bytes_max::<i64>(&picture.setup.layout);
    let says_who_is_missing = matches!(*message.body, Body::Barrier(_));
    hold!(
        picture.setup.checks => MessagesBounded,
        says_who_is_missing || (head <= head_max && head_max + message.values.len() <= bytes_max),
        "{node} sends a head of {head} bytes, where {entries} entries need at most {head_max}, and {} of values: more than {bytes_max} in all",
        message.values.len()
    );
    Ok(())
}

/// At rest nothing is kept but for live intents and for copies that have company.
pub(super) fn check_at_rest(picture: &Picture) -> Result<(), Violation> {
    for node in picture.living() {
        let is_replica = |key: &Key| picture.state(node, *key) == State::Replica;
        let unwanted = picture
            .keys()
            .find(|key| is_replica(key) && picture.row(node, *key).view.intent_count == 0);
        if let Some(key) = unwanted {
            hold!(picture.setup.checks => NoUnwantedReplica, false, "{node} is at rest and keeps a replica of {key} without intent");
        }
        // A localize that ended in a replica counts as intent.
        let localized = picture
            .keys()
            .filter(|key| is_replica(key) && picture.localized.contains(&(node, *key)));
        let bound =
            PER_ITEM * (signalled(picture, node) + localized.count()) + copies(picture, node);
        let entries = picture.member(node).node.engine().side_entries();
        hold!(
            picture.setup.checks => EntriesAtRest,
            entries <= bound,
            "{node} is at rest and keeps {entries} entries where {bound} are allowed"
        );
    }
    Ok(())
}

/// Keys in the intents that the node may remember.
fn signalled(picture: &Picture, node: NodeId) -> usize {
    let of_node = picture.signalled.iter().filter(|(signaller, _)| *signaller == node);
    of_node.map(|(_, intent)| intent.keys.len()).sum()
}

/// A main copy with company: itself, each holder, and each holder once more if it is stale. A
/// replica: itself.
fn copies(picture: &Picture, node: NodeId) -> usize {
    let rows = picture.keys().map(|key| picture.row(node, key));
    rows.map(|row| match row.state() {
        State::Main if row.view.holders.is_empty() => 0,
        State::Main => {
            1 + row.view.holders.len() + row.view.stale.len().min(row.view.holders.len())
        }
        State::None => 0,
        State::Requested | State::Replica | State::Releasing => 1,
    })
    .sum()
}
