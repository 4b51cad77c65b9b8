//! Plausible messages of a peer: a few keys, low counters, answers to requests. Random messages
//! alone are refused at their first unfitting key, and never get past it.

use adapm_core::wire::Message;
use adapm_core::wire::message::{
    Answer, Asked, Body, Forward, GrantKind, Grants, Keys, Mark, Operation, Owners, Residence,
    Retry, SyncRequest, SyncResponse,
};
use adapm_core::{Counter, Key, NodeId, Ticket, Version};
use adapm_verify::arb::{Choices, Space};

/// Maximum number of keys in one list.
const KEYS_MAX: usize = 2;

/// Chooses a message that answers nothing; its value block is still empty.
pub(crate) fn unasked(space: &Space<'_>, choices: &mut Choices<'_>) -> Message {
    let body = match choices.below(8) {
        0..3 => Body::SyncRequest(request(space, choices)),
        3 => Body::Operation(operation(space, choices)),
        4..6 => Body::Forward(forward(space, choices)),
        6 => {
            let (intents, operations) = (few(space, choices), few(space, choices));
            Body::Retry(Retry { intents, operations, ..Retry::default() })
        }
        _ => {
            let at = asked(space, choices);
            let owners = at.keys.iter().map(|_| space.node(choices)).collect();
            Body::Residence(Residence { at, owners })
        }
    };
    Message::bare(body)
}

/// Chooses the answer to `message`, each entry by choice; `None` if it wants none. The value block
/// is still empty.
pub(crate) fn answer(
    message: Message,
    space: &Space<'_>,
    choices: &mut Choices<'_>,
) -> Option<Message> {
    let body = match *message.body {
        Body::SyncRequest(request) => Body::SyncResponse(response(&request, space, choices)),
        Body::Operation(operation) => Body::Answer(done(operation)),
        Body::Forward(forward) => Body::Grant(proven(&forward, choices)),
        _ => return None,
    };
    Some(Message::bare(body))
}

fn request(space: &Space<'_>, choices: &mut Choices<'_>) -> SyncRequest {
    let mark = match choices.below(3) {
        0 => Mark::None,
        1 => Mark::Check,
        _ => Mark::Sync,
    };
    let mut request = SyncRequest { mark, ..SyncRequest::default() };
    match choices.below(5) {
        0 => request.intents = asked(space, choices),
        1 => request.localizes = asked(space, choices),
        2 => request.releases = few(space, choices),
        3 => request.renews = few(space, choices),
        _ => request.sets = few(space, choices),
    }
    request.deltas = if choices.flag() { few(space, choices) } else { request.releases.clone() };
    if choices.below(4) == 0 {
        request.intents = asked(space, choices);
    }
    request
}

/// Chooses grants for all requests, and refreshes or hand-overs of keys that the receiver may hold.
fn response(request: &SyncRequest, space: &Space<'_>, choices: &mut Choices<'_>) -> SyncResponse {
    let grants = grants(&[&request.intents, &request.localizes], choices);
    let mut response =
        SyncResponse { grants, more: choices.below(4) == 3, ..SyncResponse::default() };
    let free = |key: &Key| response.grants.at.keys.binary_search(key).is_err();
    let held: Vec<Key> = few(space, choices).iter().copied().filter(free).collect();
    if choices.flag() {
        response.versions = held.iter().map(|_| Version(choices.below(8))).collect();
        response.refreshes = Keys(held);
    } else {
        for key in held {
            hand_over(&mut response.hand_overs, key, choices);
        }
    }
    response
}

fn hand_over(owners: &mut Owners, key: Key, choices: &mut Choices<'_>) {
    owners.at.push(key, Counter(choices.below(4)));
    owners.versions.push(Version(choices.below(8)));
    owners.with_value.push(choices.flag());
}

fn grants(lists: &[&Asked], choices: &mut Choices<'_>) -> Grants {
    let mut asked: Vec<_> = lists.iter().flat_map(|list| list.iter()).collect();
    asked.sort_unstable();
    asked.dedup_by_key(|(key, _)| *key);
    let mut grants = Grants::default();
    for (key, counter) in asked {
        let kind =
            [GrantKind::Replica, GrantKind::Owner, GrantKind::Remote][choices.below(3) as usize];
        grants.at.push(key, Counter(counter.0 + choices.below(3)));
        grants.kinds.push(kind);
        grants.versions.push(Version(choices.below(8)));
    }
    grants
}

/// Chooses grants for all forwarded entries, with their tickets.
fn proven(forward: &Forward, choices: &mut Choices<'_>) -> Grants {
    let mut grants = grants(&[&forward.intents, &forward.localizes], choices);
    let asked =
        || forward.intents.keys.iter().chain(forward.localizes.keys.iter()).zip(&forward.tickets);
    let of = |key: &Key| {
        asked().find(|(each, _)| *each == key).map_or(Ticket::NONE, |(_, ticket)| *ticket)
    };
    grants.tickets = grants.at.keys.iter().map(of).collect();
    grants
}

fn done(operation: Operation) -> Answer {
    let mut answer = Answer { pulls: operation.pulls, ..Answer::default() };
    let mut done: Vec<_> = operation.pushes.iter().chain(operation.sets.iter()).collect();
    done.sort_unstable();
    done.dedup_by_key(|(key, _)| *key);
    done.into_iter().for_each(|(key, counter)| answer.done.push(key, counter));
    answer
}

fn forward(space: &Space<'_>, choices: &mut Choices<'_>) -> Forward {
    let (mut intents, mut localizes) = (Asked::default(), Asked::default());
    match choices.below(3) {
        0 => intents = asked(space, choices),
        1 => localizes = asked(space, choices),
        _ => {}
    }
    let operation = if choices.flag() { operation(space, choices) } else { Operation::default() };
    let (origin, hops) = (NodeId(choices.below(3) as u16), choices.below(4) as u32);
    let mut forward = Forward { origin, hops, intents, localizes, operation, tickets: Vec::new() };
    forward.tickets = (0..forward.len()).map(|_| Ticket(1)).collect();
    forward
}

fn operation(space: &Space<'_>, choices: &mut Choices<'_>) -> Operation {
    let mut operation = Operation::default();
    match choices.below(3) {
        0 => operation.pulls = asked(space, choices),
        1 => operation.pushes = asked(space, choices),
        _ => operation.sets = asked(space, choices),
    }
    operation
}

fn asked(space: &Space<'_>, choices: &mut Choices<'_>) -> Asked {
    let mut asked = Asked::default();
    for key in few(space, choices).iter() {
        asked.push(*key, Counter(choices.below(4)));
    }
    asked
}

/// Chooses up to [`KEYS_MAX`] keys, rarely none.
fn few(space: &Space<'_>, choices: &mut Choices<'_>) -> Keys {
    let end = space.layout.keys().end.0;
    let mut keys: Vec<Key> = (0..KEYS_MAX).map(|_| Key(choices.below(end))).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.truncate(1 + choices.below(8) as usize / 7);
    if choices.below(16) == 15 {
        keys.clear();
    }
    Keys(keys)
}
