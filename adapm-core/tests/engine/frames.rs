//! The messages that an engine sends at a time are bounded in bytes, heads included, however much
//! is pending (protocol, "Messages").
//!
//! Random schedules check the same of every message (`MessagesBounded`); these tests have many
//! keys, and values of the longest kind.

use std::mem;
use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::engine::{Engine, Input, Intent, Op, OpBody, OpId, SignalId};
use adapm_core::error::ConfigError;
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::slot::{Pushed, State};
use adapm_core::store::Store;
use adapm_core::transport::Frame;
use adapm_core::wire::message::Body;
use adapm_core::wire::{self, FRAME_BYTES_MAX};
use adapm_core::{Clock, Instant, Key, Layout, NodeId, Value, WorkerId};
use adapm_verify::{Recorder, ReferenceStore};

type Driver<V> = adapm_core::driver::Driver<ReferenceStore<V>, SystemPolicy>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);

/// Two engines whose messages travel as frames.
struct Pair<V: Value> {
    engines: [Driver<V>; 2],
    dirty: [Vec<Key>; 2],
    now: Instant,
    clocks: [Clock; 2],
    /// The frames so far: receiver, control part, bytes.
    sent: Vec<(NodeId, Body, usize)>,
    ops: u64,
}

impl<V: Value> Pair<V> {
    fn new(layout: &Layout, block_bytes_max: usize) -> Self {
        let engine = |node| {
            let mut config = NodeConfig::new(node, 2, 1);
            config.block_bytes_max = block_bytes_max;
            let store = ReferenceStore::new(layout);
            let zero = Arc::new(|_: Key, _: &mut [V]| {});
            let engine = Engine::new(config, layout.clone(), store, System::Adapm.policy(1), zero)
                .expect("valid");
            engine.populate();
            engine
        };
        Self {
            engines: [engine(N0), engine(N1)].map(Driver::new),
            dirty: [Vec::new(), Vec::new()],
            now: Instant::ZERO,
            clocks: [Clock(0); 2],
            sent: Vec::new(),
            ops: 0,
        }
    }

    fn feed(&mut self, node: NodeId, input: Input<'_, V>) {
        let mut said =
            Recorder { dirty: mem::take(&mut self.dirty[node.index()]), ..Recorder::default() };
        self.engines[node.index()].feed(self.now, input, &mut said).expect("a sound input");
        self.dirty[node.index()] = said.dirty;
        for (to, message) in said.sent {
            let mut frame = Frame::default();
            wire::encode(message, &mut frame);
            let bytes = frame.len();
            let message = wire::decode(&mut frame).expect("a frame within the bound");
            self.sent.push((to, (*message.body).clone(), bytes));
            self.feed(to, Input::Message(node, message));
        }
    }

    fn intent(&mut self, node: NodeId, keys: &[Key], end: u64) {
        let intent = Intent {
            worker: WorkerId(0),
            id: SignalId(0),
            keys: keys.to_vec(),
            clocks: Clock(0)..Clock(end),
        };
        self.feed(node, Input::Intent(intent));
    }

    fn push(&mut self, node: NodeId, key: Key, update: &[V]) {
        let pushed = self.engines[node.index()]
            .engine()
            .store()
            .with_slot(key, |mut slot| slot.push(update));
        assert_eq!(pushed, Pushed::Dirtied);
        self.dirty[node.index()].push(key);
    }

    fn operate(&mut self, node: NodeId, body: OpBody<V>) {
        self.ops += 1;
        self.feed(node, Input::Op(Op { id: OpId(self.ops), worker: WorkerId(0), body }));
    }

    fn round(&mut self, node: NodeId) {
        self.now = self.now.plus_nanos(4 * NodeConfig::ROUND_NANOS);
        let clock = self.clocks[node.index()];
        self.feed(node, Input::Timeout(&[clock]));
    }

    /// Runs rounds of both nodes, two at least, until neither has anything to send.
    fn settle(&mut self) {
        for round in 0.. {
            if round > 1 && self.engines.iter().all(|driver| driver.engine().is_at_rest()) {
                break;
            }
            self.round(N0);
            self.round(N1);
        }
    }

    fn assert_frames_fit(&self, layout: &Layout) {
        let bytes_max = self.engines[0].engine().config().frame_bytes_max::<V>(layout);
        assert!(bytes_max <= FRAME_BYTES_MAX);
        let longest =
            self.sent.iter().max_by_key(|(.., bytes)| *bytes).expect("something was sent");
        assert!(longest.2 <= bytes_max, "{} bytes where {bytes_max} are allowed", longest.2);
    }

    fn state(&self, node: NodeId, key: Key) -> State {
        self.engines[node.index()].engine().inspect(key).packed.state()
    }
}

fn keys_of(layout: &Layout, home: NodeId) -> Vec<Key> {
    (0..layout.keys().end.0).map(Key).filter(|key| Layout::home(*key, 2) == home).collect()
}

/// Both nodes have intent for all keys, and one ends: the owner's hand-overs have no values, but
/// heads.
#[test]
fn hand_overs_without_values_are_cut() {
    const BLOCK: usize = 1_024;
    let layout = Layout::dense(&[(6_000, 1)]).expect("valid");
    let mut pair = Pair::<i64>::new(&layout, BLOCK);
    let keys = keys_of(&layout, N0);
    pair.intent(N0, &keys, 1);
    pair.intent(N1, &keys, 1_000);
    pair.settle();
    assert!(keys.iter().all(|key| pair.state(N1, *key) == State::Replica), "both want them");
    mem::take(&mut pair.sent);
    pair.clocks[0] = Clock(1);
    pair.settle();
    assert!(keys.iter().all(|key| pair.state(N1, *key) == State::Main), "only n1 wants them");
    pair.assert_frames_fit(&layout);
    let responses = pair.sent.iter().filter_map(|(_, body, bytes)| match body {
        Body::SyncResponse(response) => Some((response.hand_overs.versions.len(), *bytes)),
        _ => None,
    });
    let handing: Vec<_> = responses.filter(|(keys, _)| *keys > 0).collect();
    assert_eq!(handing.iter().map(|(keys, _)| keys).sum::<usize>(), keys.len());
    assert!(handing.iter().all(|(_, bytes)| *bytes <= BLOCK), "no values, one part: {handing:?}");
}

/// Messages to a home about keys that left are bounded too, as are entries forwarded by way of it.
#[test]
fn residences_are_cut() {
    const BLOCK: usize = 256;
    let layout = Layout::dense(&[(2_000, 1)]).expect("valid");
    let mut pair = Pair::<i64>::new(&layout, BLOCK);
    let keys = keys_of(&layout, N1);
    for node in [N0, N1, N0] {
        pair.operate(node, OpBody::Localize { keys: keys.clone() });
        pair.settle();
    }
    pair.operate(N1, OpBody::Pull { keys: keys.iter().rev().chain(&keys).copied().collect() });
    pair.settle();
    pair.assert_frames_fit(&layout);
    assert!(keys.iter().all(|key| pair.state(N0, *key) == State::Main));
}

/// However many keys come up at once, one part of a message has so few entries that its receiver
/// accepts it.
#[test]
fn small_entries_are_cut_by_their_number() {
    const ENTRIES_MAX: usize = 30_000;
    let layout = Layout::dense(&[(100_000, 1)]).expect("valid");
    let mut pair = Pair::<i64>::new(&layout, NodeConfig::new(N0, 2, 1).block_bytes_max);
    let keys = keys_of(&layout, N0);
    assert!(keys.len() > ENTRIES_MAX + 10_000);
    pair.intent(N1, &keys, 1);
    pair.settle();
    pair.clocks[1] = Clock(1);
    pair.intent(N0, &keys, 1_000);
    pair.settle();
    assert!(keys.iter().all(|key| pair.state(N0, *key) == State::Main), "only n0 wants them");
    let asked = pair.sent.iter().filter_map(|(_, body, _)| match body {
        Body::SyncRequest(request) => Some(request.intents.len()),
        _ => None,
    });
    assert_eq!(asked.max(), Some(ENTRIES_MAX), "the keys of a round do not fit one request");
    pair.assert_frames_fit(&layout);
}

/// Real sizes: values of 8 MiB, several of which come up for one message.
#[test]
fn the_longest_values_travel() {
    let layout = Layout::dense(&[(8, Layout::VALUE_LEN_MAX)]).expect("valid");
    let mut pair = Pair::<f64>::new(&layout, NodeConfig::new(N0, 2, 1).block_bytes_max);
    let keys = keys_of(&layout, N0);
    let [both, stale, asked] = keys[..3] else { panic!("{keys:?}: n0 is home of some") };
    let ones = vec![1.0; Layout::VALUE_LEN_MAX];
    pair.intent(N0, &[both, stale, asked], 1_000);
    pair.intent(N1, &[both, stale], 1_000);
    pair.settle();
    // A delta and a set of one key, while the owner has a refresh for another, and a third is asked
    // for.
    pair.push(N1, both, &ones);
    pair.push(N0, stale, &ones);
    pair.operate(
        N1,
        OpBody::Set { keys: vec![both], values: ones.iter().map(|one| one + 4.0).collect() },
    );
    pair.intent(N1, &[asked], 1_000);
    mem::take(&mut pair.sent);
    pair.settle();
    pair.assert_frames_fit(&layout);
    let two_values = 2 * 8 * Layout::VALUE_LEN_MAX;
    let mut receivers: Vec<NodeId> =
        pair.sent.iter().filter(|(.., bytes)| *bytes > two_values).map(|(to, ..)| *to).collect();
    receivers.sort_unstable();
    assert_eq!(receivers, [N0, N1], "one request and one response with two values each");
    for (key, expected) in [(both, 5.0), (stale, 1.0), (asked, 0.0)] {
        for node in [N0, N1] {
            let value = pair.engines[node.index()]
                .engine()
                .store()
                .with_slot(key, |slot| slot.value.to_vec());
            assert!(
                value.iter().all(|element| *element == expected),
                "{key} at {node}: {}",
                value[0]
            );
        }
    }
}

#[test]
fn a_configuration_whose_messages_may_exceed_a_frame_is_refused() {
    let layout = Layout::dense(&[(2, 4)]).expect("valid");
    let mut config = NodeConfig::new(N0, 2, 1);
    config.block_bytes_max = FRAME_BYTES_MAX / 2;
    let bytes = config.frame_bytes_max::<i64>(&layout);
    assert!(bytes > FRAME_BYTES_MAX);
    let zero = Arc::new(|_: Key, _: &mut [i64]| {});
    let store = ReferenceStore::<i64>::new(&layout);
    let refused = Engine::new(config, layout, store, System::Adapm.policy(1), zero);
    assert_eq!(refused.err(), Some(ConfigError::FrameBytes { bytes }));
    let message = ConfigError::FrameBytes { bytes }.to_string();
    assert!(message.contains("block_bytes_max"), "{message}");
}
