//! One test per fault: each starts from a message that passes and changes one thing.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::id::{Ticket, Version};
use crate::value::Block;
use crate::wire::message::{Keys, Mark, Quiesce};

const NODES: usize = 3;

/// Returns a layout in which keys 0 to 9 have 2 elements, keys 10 to 12 have 5.
fn layout() -> Layout {
    Layout::dense(&[(10, 2), (3, 5)]).expect("valid")
}

fn verdict(body: Body, elements: usize) -> Result<(), Fault> {
    let mut values = Block::new();
    values.push(&vec![1.0_f32; elements]);
    check::<f32>(&Message { body: Box::new(body), values }, &layout(), NODES, ChannelId(0), 1)
}

fn keys(keys: &[u64]) -> Keys {
    Keys(keys.iter().copied().map(Key).collect())
}

fn asked(list: &[u64]) -> Asked {
    Asked { keys: keys(list), counters: list.iter().map(|key| Counter(key + 1)).collect() }
}

fn versions(count: usize) -> Vec<Version> {
    vec![Version(7); count]
}

fn grants() -> Grants {
    let kinds = vec![GrantKind::Replica, GrantKind::Owner, GrantKind::Remote];
    Grants { at: asked(&[1, 10, 11]), kinds, versions: versions(3), tickets: Vec::new() }
}

fn owners() -> Owners {
    Owners { at: asked(&[2, 12]), versions: versions(2), with_value: vec![true, false] }
}

fn request() -> SyncRequest {
    SyncRequest {
        deltas: keys(&[0, 10]),
        sets: keys(&[0]),
        releases: keys(&[0, 2]),
        renews: keys(&[10]),
        intents: asked(&[3, 5]),
        localizes: asked(&[4, 12]),
        mark: Mark::Sync,
        ticket: Ticket(4),
    }
}

fn response() -> SyncResponse {
    SyncResponse {
        grants: grants(),
        refreshes: keys(&[3]),
        versions: versions(1),
        hand_overs: owners(),
        more: false,
        synced: false,
    }
}

fn operation() -> Operation {
    Operation {
        pulls: asked(&[0, 1, 2]),
        pushes: asked(&[3]),
        sets: asked(&[12]),
        ticket: Ticket(5),
    }
}

fn forward() -> Forward {
    Forward {
        origin: NodeId(2),
        hops: 1,
        intents: asked(&[1]),
        localizes: asked(&[2]),
        operation: Operation { ticket: Ticket::NONE, ..operation() },
        tickets: (1..=7).map(Ticket).collect(),
    }
}

fn answer() -> Answer {
    Answer { pulls: asked(&[0, 11]), done: asked(&[0, 5]), tickets: Vec::new() }
}

fn residence() -> Residence {
    Residence { at: asked(&[1, 2]), owners: vec![NodeId(0), NodeId(2)] }
}

#[test]
fn passes_well_formed_messages_of_every_kind() {
    let retry = Retry { intents: keys(&[1]), operations: keys(&[1, 2]), tickets: Vec::new() };
    let missing = Barrier::Missing { number: 3, nodes: vec![NodeId(0), NodeId(2)] };
    for (body, elements) in [
        (Body::SyncRequest(request()), 9),
        (Body::SyncResponse(response()), 11),
        (Body::Grant(grants()), 7),
        (Body::News, 0),
        (Body::Forward(forward()), 7),
        (Body::Operation(operation()), 7),
        (Body::Answer(answer()), 7),
        (Body::Retry(retry), 0),
        (Body::Residence(residence()), 0),
        (Body::Barrier(Barrier::Ended), 0),
        (Body::Barrier(missing), 0),
        (Body::Quiesce(Quiesce::Left), 0),
    ] {
        assert_eq!(verdict(body.clone(), elements), Ok(()), "{body:?}");
        let expected = elements * 4;
        let fault = Fault::BlockLen { expected, given: expected + 4 };
        assert_eq!(verdict(body, elements + 1), Err(fault), "one element too many");
    }
}

#[test]
fn refuses_a_block_that_is_too_short_or_no_multiple_of_the_element() {
    let short = Fault::BlockLen { expected: 36, given: 32 };
    assert_eq!(verdict(Body::SyncRequest(request()), 8), Err(short));
    let mut message = Message::bare(Body::SyncRequest(request()));
    message.values.resize(35);
    let odd = Fault::BlockLen { expected: 36, given: 35 };
    assert_eq!(check::<f32>(&message, &layout(), NODES, ChannelId(0), 1), Err(odd));
}

#[test]
fn measures_the_block_in_elements_of_the_run() {
    let mut message = Message::bare(Body::Operation(operation()));
    message.values.push(&[1.0_f64; 7]);
    assert_eq!(check::<f64>(&message, &layout(), NODES, ChannelId(0), 1), Ok(()));
    assert_eq!(check::<i64>(&message, &layout(), NODES, ChannelId(0), 1), Ok(()));
    let fault = Fault::BlockLen { expected: 28, given: 56 };
    assert_eq!(check::<f32>(&message, &layout(), NODES, ChannelId(0), 1), Err(fault));
}

#[test]
fn refuses_keys_outside_of_the_layout_in_every_list() {
    let unknown = Err(Fault::UnknownKey(Key(13)));
    let bad = || keys(&[13]);
    let bad_asked = || asked(&[13]);
    let mut requests = [request(), request(), request(), request(), request(), request()];
    requests[0].deltas = bad();
    requests[1].sets = bad();
    requests[2].releases = bad();
    requests[3].intents = bad_asked();
    requests[4].localizes = bad_asked();
    requests[5].renews = bad();
    for request in requests {
        assert_eq!(verdict(Body::SyncRequest(request), 9), unknown);
    }
    let mut responses = [response(), response(), response()];
    responses[0].grants.at = bad_asked();
    responses[1].refreshes = bad();
    responses[2].hand_overs.at = bad_asked();
    for response in responses {
        assert_eq!(verdict(Body::SyncResponse(response), 11), unknown);
    }
    let mut operations = [operation(), operation(), operation()];
    operations[0].pulls = bad_asked();
    operations[1].pushes = bad_asked();
    operations[2].sets = bad_asked();
    for operation in operations {
        assert_eq!(verdict(Body::Operation(operation.clone()), 7), unknown);
        let operation = Operation { ticket: Ticket::NONE, ..operation };
        assert_eq!(verdict(Body::Forward(Forward { operation, ..forward() }), 7), unknown);
    }
    for body in [
        Body::Forward(Forward { intents: bad_asked(), ..forward() }),
        Body::Forward(Forward { localizes: bad_asked(), ..forward() }),
        Body::Answer(Answer { pulls: bad_asked(), ..answer() }),
        Body::Answer(Answer { done: bad_asked(), ..answer() }),
        Body::Retry(Retry { intents: bad(), operations: keys(&[]), tickets: Vec::new() }),
        Body::Retry(Retry { intents: keys(&[]), operations: bad(), tickets: Vec::new() }),
        Body::Residence(Residence { at: bad_asked(), ..residence() }),
    ] {
        assert_eq!(verdict(body, 7), unknown);
    }
}

#[test]
fn refuses_keys_of_another_channel() {
    let key = (0..10)
        .map(Key)
        .find(|key| Layout::channel(*key, 2) == ChannelId(1))
        .expect("two channels");
    let message = Message::bare(Body::Retry(Retry {
        intents: Keys(vec![key]),
        operations: keys(&[]),
        tickets: Vec::new(),
    }));
    assert_eq!(check::<f32>(&message, &layout(), NODES, ChannelId(1), 2), Ok(()));
    let fault = Err(Fault::UnknownKey(key));
    assert_eq!(check::<f32>(&message, &layout(), NODES, ChannelId(0), 2), fault);
}

#[test]
fn refuses_lists_that_do_not_ascend() {
    for list in [&[2, 1][..], &[1, 1], &[0, 5, 4, 9]] {
        let body = Body::SyncRequest(SyncRequest { deltas: keys(list), ..SyncRequest::default() });
        assert_eq!(verdict(body, 2 * list.len()), Err(Fault::Malformed), "{list:?}");
    }
}

#[test]
fn refuses_lists_of_different_lengths() {
    let mut requests = [request(), request(), request()];
    requests[0].intents.counters.pop();
    requests[1].localizes.counters.push(Counter(0));
    requests[2].intents.keys = keys(&[]);
    for request in requests {
        assert_eq!(verdict(Body::SyncRequest(request), 9), Err(Fault::Malformed));
    }
    let mut responses = [response(), response(), response(), response(), response(), response()];
    responses[0].grants.kinds.pop();
    responses[1].grants.versions.push(Version(0));
    responses[2].versions.clear();
    responses[3].hand_overs.versions.pop();
    responses[4].hand_overs.with_value.pop();
    responses[5].hand_overs.at.counters.pop();
    for response in responses {
        assert_eq!(verdict(Body::SyncResponse(response), 11), Err(Fault::Malformed));
    }
    let residence = Residence { owners: vec![NodeId(0)], ..residence() };
    assert_eq!(verdict(Body::Residence(residence), 0), Err(Fault::Malformed));
}

/// A forward has a ticket for each of its entries; grants, answers and retries have all tickets or
/// none.
#[test]
fn refuses_tickets_that_do_not_fit_their_entries() {
    let some = |count: u64| (1..=count).map(Ticket).collect::<Vec<_>>();
    let fitting = [
        (Body::Forward(forward()), 7),
        (Body::Grant(Grants { tickets: some(3), ..grants() }), 4),
        (Body::Answer(Answer { tickets: some(4), ..answer() }), 4),
    ];
    for (body, elements) in fitting {
        assert_ne!(verdict(body.clone(), elements), Err(Fault::Malformed), "{body:?}");
    }
    let retry = Retry { intents: keys(&[1]), operations: keys(&[1, 2]), tickets: some(2) };
    let mut blank = some(7);
    blank[3] = Ticket::NONE;
    for body in [
        Body::Forward(Forward { tickets: some(6), ..forward() }),
        Body::Forward(Forward { tickets: Vec::new(), ..forward() }),
        Body::Forward(Forward { tickets: blank, ..forward() }),
        Body::Forward(Forward { operation: operation(), ..forward() }),
        Body::Grant(Grants { tickets: some(2), ..grants() }),
        Body::SyncResponse(SyncResponse {
            grants: Grants { tickets: some(3), ..grants() },
            ..response()
        }),
        Body::Answer(Answer { tickets: some(3), ..answer() }),
        Body::Retry(retry),
    ] {
        assert_eq!(verdict(body.clone(), 7), Err(Fault::Malformed), "{body:?}");
    }
}

#[test]
fn refuses_a_key_in_lists_that_exclude_each_other() {
    let twice = [
        Body::SyncRequest(SyncRequest { releases: keys(&[3]), ..request() }),
        Body::SyncRequest(SyncRequest { releases: keys(&[12]), ..request() }),
        Body::SyncRequest(SyncRequest { renews: keys(&[2]), ..request() }),
        Body::SyncRequest(SyncRequest { intents: asked(&[3, 12]), ..request() }),
        Body::SyncResponse(SyncResponse {
            hand_overs: Owners { at: asked(&[10, 12]), ..owners() },
            ..response()
        }),
        Body::Forward(Forward { localizes: asked(&[1]), ..forward() }),
    ];
    for body in twice {
        assert_eq!(verdict(body, 9), Err(Fault::Malformed));
    }
}

#[test]
fn refuses_counters_above_their_bound() {
    let mut request = request();
    request.intents.counters[1] = Counter::MAX;
    assert_eq!(verdict(Body::SyncRequest(request.clone()), 9), Ok(()));
    request.intents.counters[1] = Counter(Counter::MAX.0 + 1);
    assert_eq!(verdict(Body::SyncRequest(request), 9), Err(Fault::Counter(Key(5))));
    let mut residence = residence();
    residence.at.counters[0] = Counter(u64::MAX);
    assert_eq!(verdict(Body::Residence(residence), 0), Err(Fault::Counter(Key(1))));
}

#[test]
fn refuses_nodes_that_the_cluster_does_not_have() {
    let unknown = Err(Fault::UnknownNode(NodeId(3)));
    assert_eq!(verdict(Body::Forward(Forward { origin: NodeId(3), ..forward() }), 7), unknown);
    let owners = vec![NodeId(2), NodeId(3)];
    assert_eq!(verdict(Body::Residence(Residence { owners, ..residence() }), 0), unknown);
    let nodes = vec![NodeId(1), NodeId(3)];
    assert_eq!(verdict(Body::Barrier(Barrier::Missing { number: 0, nodes }), 0), unknown);
    let nodes = vec![NodeId(1), NodeId(1)];
    let repeated = Body::Barrier(Barrier::Missing { number: 0, nodes });
    assert_eq!(verdict(repeated, 0), Err(Fault::Malformed));
}

#[test]
fn survives_lengths_that_overflow() {
    let layout = Layout::sparse(&[(u64::MAX, Layout::VALUE_LEN_MAX)]).expect("valid");
    let deltas = Keys((0..20_000).map(Key).collect());
    let message =
        Message::bare(Body::SyncRequest(SyncRequest { deltas, ..SyncRequest::default() }));
    let verdict = check::<f64>(&message, &layout, NODES, ChannelId(0), 1);
    assert!(matches!(verdict, Err(Fault::BlockLen { given: 0, .. })));
}
