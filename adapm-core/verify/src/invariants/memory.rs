//! Invariant 10: a node's memory for protocol state is bounded by its own intents, operations and
//! copies, and a constant per peer; its messages are bounded in bytes.

use adapm_core::config::NodeConfig;
use adapm_core::id::{Key, NodeId};
use adapm_core::slot::State;
use adapm_core::wire::message::Body;
use adapm_core::wire::{self, Message};

use crate::flight;
use crate::picture::Picture;
use crate::violation::{Violation, hold};

/// Most entries that a node may keep for each of its intents, operations and copies.
const PER_ITEM: usize = 4;
/// Most entries that a node may keep per peer regardless of its own operations.
const PER_PEER: usize = 8;

pub(super) fn check(picture: &Picture, node: NodeId) -> Result<(), Violation> {
    let operations = picture.calls.open_keys().count() + picture.calls.open().count();
    // An entry parked here for a peer is an unanswered entry of the peer, which has at most one per
    // key.
    let parked = picture.keys().count() * (picture.setup.nodes - 1);
    let localized = picture.localized.iter().filter(|(localizer, _)| *localizer == node).count();
    let items = signalled(picture, node) + operations + localized + kept(picture);
    let bound =
        PER_ITEM * items + 2 * copies(picture, node) + parked + PER_PEER * picture.setup.nodes;
    let entries = picture.member(node).node.engine().side_entries();
    hold!(picture.setup.checks => EntriesBounded, entries <= bound, "{node} keeps {entries} entries where {bound} are allowed");
    let replicas =
        picture.all_keys().filter(|key| picture.state(node, *key) == State::Replica).count() as u64;
    let held = picture.member(node).node.engine().stats().held;
    hold!(picture.setup.checks => EntriesBounded, held.now == replicas && replicas <= held.max, "{node} counts {held:?} replicas where it holds {replicas}");
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

/// Checks that messages keep within the sender's configuration, with the largest size of each
/// entry.
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

/// Checks that at rest nothing is kept except for live intents and shared copies.
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
        let items = signalled(picture, node) + localized.count() + kept(picture);
        // Replicas that are not refreshed after each change may lack some at rest.
        let unrefreshed = usize::from(picture.setup.lag > 0);
        let bound = PER_ITEM * items + (1 + unrefreshed) * copies(picture, node);
        let entries = picture.member(node).node.engine().side_entries();
        hold!(
            picture.setup.checks => EntriesAtRest,
            entries <= bound,
            "{node} is at rest and keeps {entries} entries where {bound} are allowed"
        );
    }
    Ok(())
}

/// Returns the number of keys in the intents that the node may remember.
fn signalled(picture: &Picture, node: NodeId) -> usize {
    let of_node = picture.signalled.iter().filter(|(signaller, _)| *signaller == node);
    of_node.map(|(_, intent)| intent.keys.len()).sum()
}

/// Returns the number of keys that a node may remember because it has pulled them.
fn kept(picture: &Picture) -> usize {
    if picture.setup.keeps { picture.keys().count() } else { 0 }
}

/// Returns the number of entries for copies. A main copy with holders counts for itself, each
/// holder, and each stale holder again; a replica counts once.
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
