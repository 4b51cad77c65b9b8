//! Mistakes of a node that believes any sender: messages are given the proof, or the sender, that
//! would be believed.

use std::collections::BTreeMap;

use adapm_core::engine::Input;
use adapm_core::id::{Key, NodeId, Ticket};
use adapm_core::slot::{Location, State};
use adapm_core::store::Store;
use adapm_core::time::Instant;
use adapm_core::wire::message::{Answer, Body, Operation, Retry, SyncRequest};

use super::Bug;
use super::mistake::{Engine, Mistake};
use crate::Recorder;

pub(super) fn mistake(bug: Bug) -> Option<Box<dyn Mistake>> {
    Some(match bug {
        Bug::BelieveAnyForward => Box::new(BelieveAnyForward),
        Bug::BelieveAnyGrant => Box::new(BelieveAny::of(|body| matches!(body, Body::Grant(_)))),
        Bug::BelieveAnyRetry => Box::new(BelieveAny::of(|body| matches!(body, Body::Retry(_)))),
        Bug::BelieveAnyAnswer => Box::new(BelieveAny::of(|body| matches!(body, Body::Answer(_)))),
        Bug::BelieveAnyResidence => Box::new(BelieveAnyResidence),
        Bug::HeedLost => Box::new(HeedLost::default()),
        _ => return None,
    })
}

/// Forwarded entries count as sent by their origin.
struct BelieveAnyForward;

impl Mistake for BelieveAnyForward {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match input {
            Input::Message(from, message) => {
                let origin = match &*message.body {
                    Body::Forward(forward) => forward.origin,
                    _ => from,
                };
                let by = if origin == engine.config().node { from } else { origin };
                vec![Input::Message(by, message)]
            }
            input => vec![input],
        }
    }
}

/// Replies about unanswered entries get their tickets, from any sender. Has the kinds of messages
/// that are believed, and the secrets of this node's last requests and operations on each key.
struct BelieveAny {
    believes: fn(&Body) -> bool,
    requests: BTreeMap<Key, Ticket>,
    operations: BTreeMap<Key, Ticket>,
}

impl BelieveAny {
    fn of(believes: fn(&Body) -> bool) -> Self {
        Self { believes, requests: BTreeMap::new(), operations: BTreeMap::new() }
    }
}

/// Returns the tickets of `keys`; [`Ticket::NONE`] where this node has asked for nothing.
fn proofs<'a>(
    secrets: &'a BTreeMap<Key, Ticket>,
    keys: impl Iterator<Item = Key> + 'a,
) -> impl Iterator<Item = Ticket> + 'a {
    keys.map(|key| secrets.get(&key).map_or(Ticket::NONE, |secret| secret.of_key(key)))
}

impl Mistake for BelieveAny {
    fn enter<'a>(
        &mut self,
        _engine: &Engine,
        _now: Instant,
        mut input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        let Input::Message(_, message) = &mut input else { return vec![input] };
        if !(self.believes)(&message.body) {
            return vec![input];
        }
        match &mut *message.body {
            Body::Grant(grants) => {
                grants.tickets = proofs(&self.requests, grants.at.keys.iter().copied()).collect();
            }
            Body::Answer(Answer { pulls, done, tickets }) => {
                let keys = pulls.keys.iter().chain(done.keys.iter()).copied();
                *tickets = proofs(&self.operations, keys).collect();
            }
            Body::Retry(Retry { intents, operations, tickets }) => {
                tickets.resize(intents.len(), Ticket::NONE);
                tickets.extend(proofs(&self.operations, operations.iter().copied()));
            }
            _ => {}
        }
        vec![input]
    }

    fn leave(&mut self, _engine: &Engine, said: &mut Recorder<i64>) {
        for (_, message) in &said.sent {
            match &*message.body {
                Body::SyncRequest(SyncRequest { intents, localizes, ticket, .. }) => {
                    let keys = intents.keys.iter().chain(localizes.keys.iter());
                    self.requests.extend(keys.map(|key| (*key, *ticket)));
                }
                Body::Operation(Operation { pulls, pushes, sets, ticket }) => {
                    let keys = [pulls, pushes, sets].into_iter().flat_map(|list| list.keys.iter());
                    self.operations.extend(keys.map(|key| (*key, *ticket)));
                }
                _ => {}
            }
        }
    }
}

struct BelieveAnyResidence;

impl Mistake for BelieveAnyResidence {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        if let Input::Message(_, message) = &input
            && let Body::Residence(residence) = &*message.body
        {
            for ((key, counter), &node) in residence.at.iter().zip(&residence.owners) {
                engine.store().with_slot(key, |mut slot| {
                    if matches!(slot.packed.state(), State::None | State::Requested) {
                        slot.learn(Location { node, counter });
                    }
                });
            }
        }
        vec![input]
    }
}

/// Messages of a lost peer count as sent by a survivor.
#[derive(Default)]
struct HeedLost {
    lost: Vec<NodeId>,
}

impl Mistake for HeedLost {
    fn enter<'a>(
        &mut self,
        engine: &Engine,
        _now: Instant,
        input: Input<'a, i64>,
    ) -> Vec<Input<'a, i64>> {
        match input {
            Input::PeerLost(node) => {
                self.lost.push(node);
                vec![input]
            }
            Input::Message(from, message) if self.lost.contains(&from) => {
                let mut nodes = (0..engine.config().nodes).map(|node| NodeId(node as u16));
                let is_left =
                    |node: &NodeId| *node != engine.config().node && !self.lost.contains(node);
                vec![Input::Message(nodes.find(is_left).unwrap_or(from), message)]
            }
            input => vec![input],
        }
    }
}
