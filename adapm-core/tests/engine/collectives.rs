//! Claims of a peer in a barrier or quiesce are refused if they contradict this node's knowledge,
//! and change nothing (protocol, "What a message is checked against";
//! `engine/collective/quiesce.rs` lists claims that cannot be checked).

use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::engine::{Event, Initial, Input, Op, OpBody, OpId, Output};
use adapm_core::error::{Fault, InputError, ProtocolError};
use adapm_core::policy::Adaptive;
use adapm_core::wire::Message;
use adapm_core::wire::message::{Barrier, Body, Mark, Quiesce, SyncRequest, SyncResponse};
use adapm_core::{Instant, Layout, NodeId, WorkerId};
use adapm_verify::ReferenceStore;

type Engine = adapm_core::engine::Engine<ReferenceStore<f32>, Adaptive>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);

/// Creates one of three nodes, alone; messages of the others are invented.
fn engine(node: NodeId) -> Engine {
    let layout = Layout::dense(&[(8, 2)]).expect("valid");
    let initial: Initial<f32> = Arc::new(|_, value| value.fill(1.0));
    let store = ReferenceStore::new(&layout);
    let node = Engine::new(NodeConfig::new(node, 3, 1), layout, store, Adaptive::new(1), initial)
        .expect("valid");
    node.populate();
    node
}

fn call(node: &mut Engine, body: OpBody<f32>) {
    let op = Op { id: OpId(7), worker: WorkerId(0), body };
    node.handle_input(Instant::ZERO, Input::Op(op)).expect("a sound call");
}

fn say(node: &mut Engine, from: NodeId, body: Body) -> Result<(), InputError> {
    node.handle_input(Instant::ZERO, Input::Message(from, Message::bare(body)))
}

fn accepts(node: &mut Engine, from: NodeId, body: impl Into<Said>) {
    let Said(body) = body.into();
    say(node, from, body.clone()).unwrap_or_else(|error| panic!("{body:?} of {from}: {error}"));
}

/// Checks that a node without pending outputs refuses `body`: nothing may follow.
fn refuses(node: &mut Engine, from: NodeId, body: impl Into<Said>) {
    let Said(body) = body.into();
    drain(node);
    let Err(InputError::Peer(ProtocolError { peer, fault, .. })) = say(node, from, body.clone())
    else {
        panic!("{body:?} is refused");
    };
    assert_eq!((peer, fault), (from, Fault::Unexpected));
    assert!(matches!(node.poll_output(), Output::Wait { .. }), "{body:?} changes nothing");
}

struct Said(Body);

impl From<Barrier> for Said {
    fn from(step: Barrier) -> Self {
        Self(Body::Barrier(step))
    }
}

impl From<Quiesce> for Said {
    fn from(step: Quiesce) -> Self {
        Self(Body::Quiesce(step))
    }
}

/// Takes all outputs. Returns true if the call is done.
fn drain(node: &mut Engine) -> bool {
    let mut done = false;
    loop {
        match node.poll_output() {
            Output::Wait { .. } => return done,
            Output::Event(Event::Done { op: OpId(7), .. }) => done = true,
            _ => {}
        }
    }
}

fn report(wave: u64, sent: u64, applied: u64) -> Quiesce {
    Quiesce::Report { wave, busy: false, sent, applied }
}

/// Creates a coordinator whose first wave is in progress.
fn coordinator() -> Engine {
    let mut node = engine(N0);
    call(&mut node, OpBody::Quiesce);
    accepts(&mut node, N1, Quiesce::Arrived { number: 0 });
    accepts(&mut node, N2, Quiesce::Arrived { number: 0 });
    node
}

/// Equal and constant sums over nodes prove rest, so no node's totals may decrease to make them so.
#[test]
fn totals_that_shrink_are_refused() {
    let mut node = coordinator();
    accepts(&mut node, N1, report(1, 6, 5));
    accepts(&mut node, N2, report(1, 4, 5));
    for (sent, applied) in [(5, 5), (6, 4), (0, 0)] {
        refuses(&mut node, N1, report(2, sent, applied));
    }
    accepts(&mut node, N1, report(2, 6, 5));
    assert!(!drain(&mut node), "n2 has not reported");
    accepts(&mut node, N2, report(2, 4, 5));
    assert!(drain(&mut node));
}

/// Messages applied here were sent: two News, but the quiesce claims only one.
#[test]
fn totals_below_what_has_come_from_a_node_are_refused() {
    let mut node = engine(N0);
    say(&mut node, N1, Body::News).expect("a message");
    say(&mut node, N1, Body::News).expect("another");
    drain(&mut node);
    call(&mut node, OpBody::Quiesce);
    accepts(&mut node, N1, Quiesce::Arrived { number: 0 });
    accepts(&mut node, N2, Quiesce::Arrived { number: 0 });
    refuses(&mut node, N1, report(1, 1, 0));
    accepts(&mut node, N1, report(1, 2, 0));
}

/// Sums never pass their bound, where they would wrap to 0 and could be made to equal anything.
#[test]
fn totals_that_no_node_can_reach_are_refused() {
    let mut node = coordinator();
    for (sent, applied) in [(u64::MAX, 0), (0, u64::MAX), (1 << 48, 1 << 48)] {
        refuses(&mut node, N1, report(1, sent, applied));
    }
    accepts(&mut node, N1, report(1, (1 << 48) - 1, 0));
    accepts(&mut node, N2, report(1, (1 << 48) - 1, 0));
}

/// A node arrives once.
#[test]
fn a_second_arrival_is_refused() {
    let mut node = engine(N0);
    accepts(&mut node, N1, Barrier::Arrived { number: 0 });
    refuses(&mut node, N1, Barrier::Arrived { number: 0 });
    accepts(&mut node, N1, Quiesce::Arrived { number: 0 });
    refuses(&mut node, N1, Quiesce::Arrived { number: 0 });
    call(&mut node, OpBody::Barrier);
    assert!(!drain(&mut node), "n2 is missing");
    accepts(&mut node, N2, Barrier::Arrived { number: 0 });
    assert!(drain(&mut node));
}

/// The coordinator cannot end a quiesce for which this node's workers have not called.
#[test]
fn an_end_before_the_call_is_refused() {
    let mut node = engine(N1);
    refuses(&mut node, N0, Quiesce::Done { number: 0 });
    refuses(&mut node, N0, Barrier::Passed { number: 0 });
    call(&mut node, OpBody::Quiesce);
    refuses(&mut node, N0, Quiesce::Done { number: 1 });
    accepts(&mut node, N0, Quiesce::Done { number: 0 });
    assert!(drain(&mut node));
    refuses(&mut node, N0, Quiesce::Done { number: 1 });
    call(&mut node, OpBody::End);
    accepts(&mut node, N0, Quiesce::Done { number: 1 });
}

/// A node that waits at a barrier receives reports of other missing nodes; at other times it
/// refuses them.
#[test]
fn a_false_word_of_missing_nodes_is_refused() {
    let mut node = engine(N1);
    let missing = |number, nodes: &[NodeId]| Barrier::Missing { number, nodes: nodes.to_vec() };
    refuses(&mut node, N0, missing(0, &[N2]));
    call(&mut node, OpBody::Barrier);
    refuses(&mut node, N0, missing(1, &[N2]));
    refuses(&mut node, N0, missing(0, &[N1]));
    refuses(&mut node, N0, missing(0, &[]));
    drain(&mut node);
    accepts(&mut node, N0, missing(0, &[N2]));
    assert!(matches!(node.poll_output(), Output::Event(Event::Missing { .. })));
}

#[test]
fn an_answer_to_no_mark_is_refused() {
    let mut node = engine(N0);
    let answer = SyncResponse { synced: true, ..SyncResponse::default() };
    refuses(&mut node, N1, Said(Body::SyncResponse(answer)));
    let mark = SyncRequest { mark: Mark::Sync, ..SyncRequest::default() };
    for _ in 0..2 {
        // Nothing is due, so each is answered at once, and the next may come.
        accepts(&mut node, N1, Said(Body::SyncRequest(mark.clone())));
        let Output::Transmit(N1, message) = node.poll_output() else { panic!("it is answered") };
        assert!(matches!(
            *message.body,
            Body::SyncResponse(SyncResponse { synced: true, more: false, .. })
        ));
        drain(&mut node);
    }
}
