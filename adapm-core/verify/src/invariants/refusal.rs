//! Invariant 11: impossible messages, for [`crate::cluster::Cluster::feed_bad`] to be refused.

use adapm_core::id::{Counter, Key, NodeId, Ticket, Version};
use adapm_core::slot::State;
use adapm_core::value::Block;
use adapm_core::wire::Message;
use adapm_core::wire::message::{
    Asked, Body, Forward, GrantKind, Grants, Keys, Operation, Residence, SyncRequest, SyncResponse,
};

use crate::picture::Picture;
use crate::rng::Rng;

/// Returns a message that `from` cannot have sent to `to` in the present state of the picture.
pub fn bad_message(picture: &Picture, rng: &mut Rng, from: NodeId, to: NodeId) -> Message {
    let keys: Vec<Key> = picture.keys().collect();
    let key = rng.choose(&keys);
    let known = picture.setup().value_len(key);
    let layout = &picture.setup().layout;
    let beyond = layout.keys().end;
    let mut all = (0..beyond.0).map(Key);
    let foreign = all.find(|key| keys.binary_search(key).is_err()).unwrap_or(beyond);
    let unknown = if rng.chance(50) { foreign } else { beyond };
    match rng.within(0..9) {
        0 => message(
            Body::SyncRequest(SyncRequest { intents: asked(&[unknown]), ..SyncRequest::default() }),
            0,
        ),
        1 => foreign_delta(picture, from, to),
        2 => message(
            Body::Operation(Operation { pushes: asked(&[key]), ..Operation::default() }),
            known + 1,
        ),
        3 => message(
            Body::Operation(Operation {
                pulls: asked(&[keys[1], keys[0]]),
                ..Operation::default()
            }),
            0,
        ),
        4 => unasked_grant(picture, from, to, key),
        5 => foreign_node(picture, key),
        6 => message(
            Body::Residence(Residence {
                at: Asked { keys: Keys(vec![key]), counters: vec![Counter(1 << 41)] },
                owners: vec![from],
            }),
            0,
        ),
        7 => unproven_forward(key),
        _ => unasked_response(picture, from, to),
    }
}

fn message(body: Body, elements: usize) -> Message {
    let mut values = Block::new();
    values.push::<i64>(&vec![1; elements]);
    Message { body: Box::new(body), values }
}

fn asked(keys: &[Key]) -> Asked {
    Asked { keys: Keys(keys.to_vec()), counters: vec![Counter(0); keys.len()] }
}

/// Returns a delta of a node that holds no replica, or for a key that the receiver does not own.
fn foreign_delta(picture: &Picture, from: NodeId, to: NodeId) -> Message {
    let impossible = |key: &Key| {
        picture.state(to, *key) != State::Main
            || !picture.row(to, *key).view.holders.contains(&from)
    };
    let Some(key) = picture.keys().find(impossible) else { return foreign_node(picture, Key(0)) };
    let deltas = Keys(vec![key]);
    message(
        Body::SyncRequest(SyncRequest { deltas, ..SyncRequest::default() }),
        picture.setup().value_len(key),
    )
}

/// Returns a grant of a replica, with the counter of a key that was never relocated, from a node
/// that is not its home.
fn unasked_grant(picture: &Picture, from: NodeId, to: NodeId, key: Key) -> Message {
    if picture.setup().home(key) == from {
        return foreign_delta(picture, from, to);
    }
    let grants = Grants {
        at: asked(&[key]),
        kinds: vec![GrantKind::Replica],
        versions: vec![Version(1)],
        ..Grants::default()
    };
    message(Body::Grant(grants), picture.setup().value_len(key))
}

/// Returns a response without a request.
fn unasked_response(picture: &Picture, from: NodeId, to: NodeId) -> Message {
    if picture.network().unanswered(to, from) > 0 {
        return foreign_delta(picture, from, to);
    }
    message(Body::SyncResponse(SyncResponse::default()), 0)
}

fn foreign_node(picture: &Picture, key: Key) -> Message {
    let origin = NodeId(picture.setup().nodes as u16);
    message(Body::Forward(Forward { origin, ..forward(key) }), 0)
}

/// Returns a forwarded entry without the proof that its origin has sent it.
fn unproven_forward(key: Key) -> Message {
    message(Body::Forward(Forward { tickets: Vec::new(), ..forward(key) }), 0)
}

fn forward(key: Key) -> Forward {
    Forward {
        origin: NodeId(0),
        hops: 1,
        intents: asked(&[key]),
        localizes: Asked::default(),
        operation: Operation::default(),
        tickets: vec![Ticket(1)],
    }
}
