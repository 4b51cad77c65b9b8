//! Invariant 11: messages that cannot be, for [`Cluster::feed_bad`] to be refused.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::{Counter, Key, NodeId, Version};
use crate::slot::State;
use crate::testing::cluster::Cluster;
use crate::testing::rng::Rng;
use crate::value::Block;
use crate::wire::Message;
use crate::wire::message::{
    Answer, Asked, Body, Forward, GrantKind, Grants, Keys, Operation, Residence, SyncRequest, SyncResponse,
};

/// A message that `from` cannot have sent to `to` in the present state of the cluster.
pub fn bad_message(cluster: &Cluster, rng: &mut Rng, from: NodeId, to: NodeId) -> Message {
    let keys: Vec<Key> = cluster.keys().collect();
    let key = rng.choose(&keys);
    let known = cluster.setup().value_len(key);
    let layout = &cluster.setup().layout;
    let beyond = layout.keys().end;
    let mut all = (0..beyond.0).map(Key);
    let foreign = all.find(|key| keys.binary_search(key).is_err()).unwrap_or(beyond);
    let unknown = if rng.chance(50) { foreign } else { beyond };
    match rng.within(0..10) {
        0 => message(
            Body::SyncRequest(SyncRequest { intents: asked(&[unknown]), ..SyncRequest::default() }),
            0,
        ),
        1 => foreign_delta(cluster, from, to),
        2 => message(Body::Operation(Operation { pushes: asked(&[key]), ..Operation::default() }), known + 1),
        3 => message(
            Body::Operation(Operation { pulls: asked(&[keys[1], keys[0]]), ..Operation::default() }),
            0,
        ),
        4 => unasked_grant(cluster, from, to, key),
        5 => unasked_answer(cluster, to, key),
        6 => foreign_node(cluster, key),
        7 => message(
            Body::Residence(Residence {
                at: Asked { keys: Keys(alloc::vec![key]), counters: alloc::vec![Counter(1 << 41)] },
                owners: alloc::vec![from],
            }),
            0,
        ),
        8 => false_answer(cluster, rng, from, to),
        _ => unasked_response(cluster, from, to),
    }
}

fn message(body: Body, elements: usize) -> Message {
    let mut values = Block::new();
    values.push::<i64>(&alloc::vec![1; elements]);
    Message { body: Box::new(body), values }
}

fn asked(keys: &[Key]) -> Asked {
    Asked { keys: Keys(keys.to_vec()), counters: alloc::vec![Counter(0); keys.len()] }
}

/// A delta of a node that holds no replica, or for a key that the receiver does not own.
fn foreign_delta(cluster: &Cluster, from: NodeId, to: NodeId) -> Message {
    let impossible = |key: &Key| {
        cluster.state(to, *key) != State::Main || !cluster.row(to, *key).view.holders.contains(&from)
    };
    let Some(key) = cluster.keys().find(impossible) else { return foreign_node(cluster, Key(0)) };
    let deltas = Keys(alloc::vec![key]);
    message(
        Body::SyncRequest(SyncRequest { deltas, ..SyncRequest::default() }),
        cluster.setup().value_len(key),
    )
}

fn unasked_grant(cluster: &Cluster, from: NodeId, to: NodeId, key: Key) -> Message {
    if cluster.state(to, key) == State::Requested {
        return foreign_delta(cluster, from, to);
    }
    let grants = Grants {
        at: asked(&[key]),
        kinds: alloc::vec![GrantKind::Replica],
        versions: alloc::vec![Version(1)],
    };
    message(Body::Grant(grants), cluster.setup().value_len(key))
}

fn unasked_answer(cluster: &Cluster, to: NodeId, key: Key) -> Message {
    if cluster.row(to, key).view.unanswered.is_some() {
        return foreign_node(cluster, key);
    }
    message(Body::Answer(Answer { done: asked(&[key]), ..Answer::default() }), 0)
}

/// An answer that is awaited, from a node that the question cannot have reached: by the fact that led it elsewhere.
fn false_answer(cluster: &Cluster, rng: &mut Rng, from: NodeId, to: NodeId) -> Message {
    let asked_elsewhere = |key: Key| {
        let asked = cluster.row(to, key).view.unanswered.filter(|asked| asked.node != from)?;
        Some((key, asked.counter))
    };
    let Some((key, counter)) = cluster.keys().find_map(asked_elsewhere) else {
        return unasked_response(cluster, from, to);
    };
    let asked = Asked { keys: Keys(alloc::vec![key]), counters: alloc::vec![counter] };
    if rng.chance(50) {
        return message(Body::Answer(Answer { done: asked, ..Answer::default() }), 0);
    }
    message(Body::Answer(Answer { pulls: asked, ..Answer::default() }), cluster.setup().value_len(key))
}

/// A response without a question.
fn unasked_response(cluster: &Cluster, from: NodeId, to: NodeId) -> Message {
    if cluster.air().unanswered(to, from) > 0 {
        return foreign_delta(cluster, from, to);
    }
    message(Body::SyncResponse(SyncResponse::default()), 0)
}

fn foreign_node(cluster: &Cluster, key: Key) -> Message {
    let origin = NodeId(cluster.setup().nodes as u16);
    let intents = asked(&[key]);
    let forward =
        Forward { origin, hops: 1, intents, localizes: Asked::default(), operation: Operation::default() };
    message(Body::Forward(forward), 0)
}
