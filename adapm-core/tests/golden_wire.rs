//! Frozen bytes of one frame of every kind: nodes of the same protocol version understand each
//! other.
//!
//! A change of the wire means new golden frames *and* a raised `PROTOCOL_VERSION`, in one commit.
//! Rewrite the frames with `ADAPM_GOLDEN=write cargo test -p adapm-core --test golden_wire`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use adapm_core::clock::Tick;
use adapm_core::error::DecodeError;
use adapm_core::transport::Frame;
use adapm_core::wire::message::{
    Answer, Asked, Barrier, Body, Forward, GrantKind, Grants, Keys, Mark, Operation, Owners,
    Quiesce, Residence, Retry, SyncRequest, SyncResponse,
};
use adapm_core::wire::{self, Message, PROTOCOL_VERSION};
use adapm_core::{Counter, Key, NodeId, Ticket, Version};

const GOLDEN: &str = include_str!("golden/frames.txt");

#[test]
fn frames_have_their_golden_bytes() {
    let mut written = format!("version {PROTOCOL_VERSION}\n");
    for message in messages() {
        let name = name(&message.body);
        let mut frame = Frame::default();
        wire::encode(message, &mut frame);
        writeln!(written, "{name} {} | {}", hex(&frame.head), hex(frame.values.bytes()))
            .expect("a string grows");
    }
    if std::env::var_os("ADAPM_GOLDEN").is_some_and(|mode| mode == "write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/frames.txt");
        std::fs::write(path, &written).expect("the golden file is writable");
        return;
    }
    for (golden, now) in GOLDEN.lines().zip(written.lines()) {
        assert_eq!(golden, now, "wire change => new golden frames and a raised PROTOCOL_VERSION");
    }
    assert_eq!(
        GOLDEN.lines().count(),
        written.lines().count(),
        "a kind has no golden frame: write them anew"
    );
}

#[test]
fn golden_bytes_have_their_messages() {
    let mut messages = messages().into_iter();
    for line in GOLDEN.lines().skip(1) {
        let (name_of, bytes) = line.split_once(' ').expect("a name, a space, bytes");
        let (head, values) = bytes.split_once('|').expect("head | values");
        let mut frame = Frame { head: unhex(head), ..Frame::default() };
        let values = unhex(values);
        frame.values.resize(values.len());
        frame.values.bytes_mut().copy_from_slice(&values);
        let message = messages.next().expect("as many messages as lines");
        assert_eq!(name(&message.body), name_of);
        assert_eq!(wire::decode(&mut frame).as_ref(), Ok(&message), "{name_of}");
    }
    assert_eq!(messages.next(), None);
}

/// Kinds are numbered from 0 without a gap, so the first invalid number is the number of kinds.
#[test]
fn every_kind_of_message_has_a_golden_frame() {
    let kind_of = |message| {
        let mut frame = Frame::default();
        wire::encode(message, &mut frame);
        frame.head[1]
    };
    let golden: BTreeSet<u8> = messages().into_iter().map(kind_of).collect();
    let is_kind = |kind: &u8| {
        let mut head = vec![PROTOCOL_VERSION, *kind];
        head.extend([0; 40]);
        // Trailing bytes give another error than an unknown kind.
        let mut frame = Frame { head, ..Frame::default() };
        wire::decode(&mut frame) != Err(DecodeError::Head)
    };
    let kinds: BTreeSet<u8> = (0..=u8::MAX).take_while(is_kind).collect();
    assert_eq!(golden, kinds);
}

/// Returns the kind of a message. Exhaustive: a new kind does not compile before it has a name
/// here.
fn name(body: &Body) -> &'static str {
    match body {
        Body::SyncRequest(_) => "sync_request",
        Body::SyncResponse(_) => "sync_response",
        Body::Grant(_) => "grant",
        Body::News => "news",
        Body::Forward(_) => "forward",
        Body::Operation(_) => "operation",
        Body::Answer(_) => "answer",
        Body::Retry(_) => "retry",
        Body::Residence(_) => "residence",
        Body::Barrier(Barrier::Arrived { .. }) => "barrier_arrived",
        Body::Barrier(Barrier::Ended) => "barrier_ended",
        Body::Barrier(Barrier::Passed { .. }) => "barrier_passed",
        Body::Barrier(Barrier::Missing { .. }) => "barrier_missing",
        Body::Barrier(Barrier::Clock { .. }) => "barrier_clock",
        Body::Barrier(Barrier::Least { .. }) => "barrier_least",
        Body::Quiesce(Quiesce::Arrived { .. }) => "quiesce_arrived",
        Body::Quiesce(Quiesce::Leaving) => "quiesce_leaving",
        Body::Quiesce(Quiesce::Probe { .. }) => "quiesce_probe",
        Body::Quiesce(Quiesce::Report { .. }) => "quiesce_report",
        Body::Quiesce(Quiesce::Done { .. }) => "quiesce_done",
        Body::Quiesce(Quiesce::Left) => "quiesce_left",
    }
}

/// Returns one message of every kind, in which every list has another content.
fn messages() -> Vec<Message> {
    let mut messages = entries();
    for barrier in [
        Barrier::Arrived { number: 3 },
        Barrier::Ended,
        Barrier::Passed { number: 300 },
        Barrier::Missing { number: 4, nodes: vec![NodeId(1), NodeId(200)] },
        Barrier::Clock { tick: Tick::new(2, 5) },
        Barrier::Least { tick: Tick::INFINITY },
    ] {
        messages.push(Message::bare(Body::Barrier(barrier)));
    }
    for quiesce in [
        Quiesce::Arrived { number: 1 },
        Quiesce::Leaving,
        Quiesce::Probe { wave: 5, settle: true },
        Quiesce::Report { wave: 5, busy: true, sent: 1_000, applied: 999 },
        Quiesce::Done { number: 1 },
        Quiesce::Left,
    ] {
        messages.push(Message::bare(Body::Quiesce(quiesce)));
    }
    messages
}

fn entries() -> Vec<Message> {
    let request = SyncRequest {
        deltas: keys(&[3, 4, 200]),
        sets: keys(&[4]),
        releases: keys(&[3]),
        renews: keys(&[5, 201]),
        intents: asked(&[(0, 0), (u64::MAX, 1)]),
        localizes: asked(&[(1 << 32, Counter::MAX.0)]),
        mark: Mark::Sync,
        ticket: Ticket(1 << 63),
    };
    let grants = Grants {
        at: asked(&[(7, 2), (8, 130), (9, 0)]),
        kinds: vec![GrantKind::Replica, GrantKind::Owner, GrantKind::Remote],
        versions: vec![Version(17), Version(1 << 20), Version(0)],
        tickets: vec![Ticket(4), Ticket(5), Ticket(300)],
    };
    let response = SyncResponse {
        grants: Grants { tickets: Vec::new(), ..grants.clone() },
        refreshes: keys(&[12, 14]),
        versions: vec![Version(5), Version(6)],
        hand_overs: Owners {
            at: asked(&[(20, 1), (21, 2)]),
            versions: vec![Version(8), Version(9)],
            with_value: vec![true, false],
        },
        more: true,
        synced: true,
    };
    let operation = Operation {
        pulls: asked(&[(5, 1)]),
        pushes: asked(&[(6, 0)]),
        sets: asked(&[(7, 3)]),
        ticket: Ticket(77),
    };
    let forward = Forward {
        origin: NodeId(513),
        hops: 2,
        intents: asked(&[(1, 4)]),
        localizes: asked(&[(2, 5)]),
        operation: Operation { ticket: Ticket::NONE, ..operation.clone() },
        tickets: (1..=5).map(Ticket).collect(),
    };
    let tickets = vec![Ticket(9), Ticket(8), Ticket(7)];
    let answer = Answer {
        pulls: asked(&[(5, 2), (9, 2)]),
        done: asked(&[(6, 1)]),
        tickets: tickets.clone(),
    };
    let retry = Retry { intents: keys(&[1, 2]), operations: keys(&[3]), tickets };
    let residence = Residence { at: asked(&[(4, 6), (5, 7)]), owners: vec![NodeId(2), NodeId(0)] };
    vec![
        with_values(Body::SyncRequest(request), &[1.0, -2.5]),
        with_values(Body::SyncResponse(response), &[0.5, 1.5, 2.5]),
        with_values(Body::Grant(grants), &[4.0, 8.0]),
        Message::bare(Body::News),
        with_values(Body::Forward(forward), &[1.0]),
        with_values(Body::Operation(operation), &[-1.0]),
        with_values(Body::Answer(answer), &[0.0, f32::MAX]),
        Message::bare(Body::Retry(retry)),
        Message::bare(Body::Residence(residence)),
    ]
}

fn with_values(body: Body, values: &[f32]) -> Message {
    let mut message = Message::bare(body);
    message.values.push(values);
    message
}

fn keys(keys: &[u64]) -> Keys {
    Keys(keys.iter().copied().map(Key).collect())
}

fn asked(entries: &[(u64, u64)]) -> Asked {
    let mut asked = Asked::default();
    for &(key, counter) in entries {
        asked.push(Key(key), Counter(counter));
    }
    asked
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim().as_bytes().chunks(2);
    let byte = |pair| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16)
            .expect("hexadecimal digits")
    };
    digits.map(byte).collect()
}
