//! A node of the cluster that sends what no honest node sends, in frames that arrive whole: the
//! cluster ends, names the node, and reports its fault. Nothing panics, and no worker waits
//! forever.
//!
//! Faults below frames (connections, handshakes, links) are tested with the transports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adapm_core::id::Counter;
use adapm_core::transport::{CloseReason, Frame, Received, SendError, Transport};
use adapm_core::wire::message::{
    Asked, Barrier, Body, Forward, GrantKind, Grants, Keys, Operation, SyncRequest,
};
use adapm_core::wire::{self, Message};
use adapm_core::{Key, Layout, NodeId, Ticket, Version};
use adapm_runtime::{Builder, Nodes, RunError, System};
use adapm_transport::net::{Net, NetError, NetWaker, network_with};
use adapm_verify::rng::Rng;

const LIAR: NodeId = NodeId(2);
const KEYS: u64 = 60;

/// Replaces the next frame that the liar would send.
type Lie = Arc<dyn Fn(NodeId, &mut Frame) + Send + Sync>;

/// An endpoint that replaces one frame by a lie, once it is time.
struct Lying {
    inner: Net,
    is_time: Arc<AtomicBool>,
    lie: Lie,
}

impl Transport for Lying {
    type Error = NetError;
    type Waker = NetWaker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<NetError>> {
        if self.inner.node() == LIAR && self.is_time.swap(false, Ordering::SeqCst) {
            (self.lie)(to, frame);
        }
        self.inner.send(to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, NetError> {
        self.inner.recv(wait, frame)
    }

    fn waker(&self) -> NetWaker {
        self.inner.waker()
    }

    fn leave(&mut self, reason: CloseReason) {
        self.inner.leave(reason);
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        Transport::address(&self.inner, node)
    }
}

/// Runs a cluster over TCP in which node 2 sends `lie`, until every worker has failed. Returns the
/// error of the run.
fn ends_with(lie: impl Fn(NodeId, &mut Frame) + Send + Sync + 'static) -> RunError {
    let (lie, is_time): (Lie, _) = (Arc::new(lie), Arc::new(AtomicBool::new(false)));
    let (for_ends, timer) = (Arc::clone(&is_time), Arc::clone(&is_time));
    let layout = Layout::dense(&[(KEYS, 1)]).expect("a valid layout");
    let nodes = Nodes::over(3, move |_, nodes| {
        let ends = network_with(nodes, |_| {}).expect("loopback has free ports").into_iter();
        let wrap = |inner| Lying { inner, is_time: Arc::clone(&for_ends), lie: Arc::clone(&lie) };
        ends.map(wrap).collect::<Vec<_>>()
    });
    let builder =
        Builder::<i64>::new(layout).nodes(nodes).workers(1).channels(1).system(System::Classic);
    let cluster = builder.build().expect("a valid cluster");
    let ran = cluster.run(|mut worker| {
        let keys: Vec<Key> = (0..KEYS).map(Key).collect();
        for step in 0_u64.. {
            if step == 20 && worker.node() == LIAR {
                timer.store(true, Ordering::SeqCst);
            }
            if worker.push(&keys, &[1; KEYS as usize]).is_err() {
                return;
            }
        }
    });
    ran.expect_err("a lie ends the run")
}

/// Returns a lie that is a sound frame with this message.
fn message(body: Body) -> impl Fn(&mut Frame) + Send + Sync + 'static {
    move |frame| wire::encode(Message::bare(body.clone()), frame)
}

/// Checks that the run fails because of the liar, with `words` in the message.
#[track_caller]
fn is_blamed(lie: impl Fn(&mut Frame) + Send + Sync + 'static, words: &str) {
    is_blamed_for(move |_, frame| lie(frame), words);
}

/// Like [`is_blamed`], for a lie that depends on its receiver.
#[track_caller]
fn is_blamed_for(lie: impl Fn(NodeId, &mut Frame) + Send + Sync + 'static, words: &str) {
    let error = ends_with(lie);
    let from = match &error {
        RunError::Frame { from, .. } => *from,
        RunError::Protocol { error, .. } => error.peer,
        other => panic!("nobody is to blame: {other}"),
    };
    let text = error.to_string();
    assert_eq!(from, LIAR, "{text}");
    assert!(text.contains("n2") && text.contains(words) && !text.contains('\n'), "{text}");
}

fn asked(keys: &[u64]) -> Asked {
    Asked {
        keys: Keys(keys.iter().copied().map(Key).collect()),
        counters: vec![Counter(0); keys.len()],
    }
}

#[test]
fn garbage_in_a_sound_frame() {
    let mut rng = Rng::new(3);
    let bytes: Vec<u8> = (0..300).map(|_| rng.bits() as u8 | 0x80).collect();
    is_blamed(
        move |frame| {
            frame.clear();
            frame.head.extend_from_slice(&bytes);
        },
        "frame",
    );
}

#[test]
fn an_empty_frame() {
    is_blamed(Frame::clear, "frame head is cut short or holds no message");
}

#[test]
fn a_message_cut_short() {
    is_blamed(
        |frame| {
            wire::encode(
                Message::bare(Body::Barrier(Barrier::Missing { number: 7, nodes: vec![LIAR] })),
                frame,
            );
            frame.head.pop();
        },
        "frame head is cut short or holds no message",
    );
}

#[test]
fn a_message_with_something_behind_it() {
    is_blamed(
        |frame| {
            wire::encode(Message::bare(Body::News), frame);
            frame.head.push(0);
        },
        "frame head has bytes after its message",
    );
}

#[test]
fn values_that_no_key_needs() {
    is_blamed(
        |frame| {
            wire::encode(Message::bare(Body::Operation(Operation::default())), frame);
            frame.values.resize(800);
        },
        "n2",
    );
}

#[test]
fn keys_that_the_layout_does_not_have() {
    let operation = Operation { pulls: asked(&[1_000_000_007]), ..Operation::default() };
    is_blamed(
        message(Body::Operation(operation)),
        "it names key 1000000007, which is not of this layout",
    );
}

#[test]
fn keys_out_of_order() {
    let keys = Keys(vec![Key(9), Key(3)]);
    // Ascending lists are encoded as differences: any other order cannot even be decoded.
    let request = SyncRequest { releases: keys, ..SyncRequest::default() };
    is_blamed(message(Body::SyncRequest(request)), "frame head is cut short or holds no message");
}

#[test]
fn a_grant_of_what_another_node_owns() {
    // A key that was never relocated is owned by its home.
    let lie = |to, frame: &mut Frame| {
        let is_foreign = |key: &u64| Layout::home(Key(*key), 3) == to;
        let key = (0..KEYS).find(is_foreign).expect("each node is home of keys");
        let (kinds, versions) = (vec![GrantKind::Remote], vec![Version(0)]);
        let grants = Grants { at: asked(&[key]), kinds, versions, tickets: Vec::new() };
        wire::encode(Message::bare(Body::Grant(grants)), frame);
    };
    is_blamed_for(lie, "broke the protocol");
}

#[test]
fn a_message_in_the_name_of_a_node_that_does_not_exist() {
    let operation = Operation { pulls: asked(&[0]), ..Operation::default() };
    let (intents, localizes, tickets) = (asked(&[]), asked(&[]), vec![Ticket(1)]);
    let forward = Forward { origin: NodeId(77), hops: 1, intents, localizes, operation, tickets };
    is_blamed(message(Body::Forward(forward)), "it names node n77, which is not valid here");
}

#[test]
fn a_message_in_the_name_of_another_without_proof_that_it_has_asked() {
    let lie = |to: NodeId, frame: &mut Frame| {
        let operation = Operation { pulls: asked(&[0]), ..Operation::default() };
        let (intents, localizes, tickets) = (asked(&[]), asked(&[]), Vec::new());
        let origin = NodeId(1 - to.0);
        let forward = Forward { origin, hops: 1, intents, localizes, operation, tickets };
        wire::encode(Message::bare(Body::Forward(forward)), frame);
    };
    is_blamed_for(lie, "node n2 broke the protocol");
}

#[test]
fn a_barrier_that_only_node_0_may_open() {
    is_blamed(message(Body::Barrier(Barrier::Passed { number: 3 })), "broke the protocol");
}
