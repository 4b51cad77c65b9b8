//! Grants of a node that cannot own the key are refused, and change nothing (protocol, "What a
//! message is checked against").

use std::sync::Arc;

use adapm_core::clock::Clock;
use adapm_core::config::NodeConfig;
use adapm_core::engine::{Engine, Initial, Input, Intent, Output, SignalId};
use adapm_core::error::{Fault, InputError, ProtocolError};
use adapm_core::policy::Adaptive;
use adapm_core::slot::State;
use adapm_core::value::Block;
use adapm_core::wire::Message;
use adapm_core::wire::message::{Asked, Body, GrantKind, Grants, Keys};
use adapm_core::{Counter, Instant, Key, Layout, NodeId, Version, WorkerId};
use adapm_verify::ReferenceStore;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);

/// Returns a grant of a replica, or a refusal, of `key` with this counter.
fn grant(key: Key, kind: GrantKind, counter: u64) -> Message {
    let at = Asked { keys: Keys(vec![key]), counters: vec![Counter(counter)] };
    let mut values = Block::new();
    if kind == GrantKind::Replica {
        values.push(&[1.0_f32; 2]);
    }
    let grants = Grants { at, kinds: vec![kind], versions: vec![Version(0)], tickets: Vec::new() };
    Message { body: Box::new(Body::Grant(grants)), values }
}

/// A key that was never relocated is owned by its home. A node that believed another one would
/// record the home as the owner of its replica, and release it to a node that does not know of it.
#[test]
fn only_the_home_grants_what_was_never_relocated() {
    let layout = Layout::dense(&[(40, 2)]).expect("a legal layout");
    let initial: Initial<f32> = Arc::new(|_, value| value.fill(1.0));
    let store = ReferenceStore::new(&layout);
    let key =
        (0..40).map(Key).find(|key| Layout::home(*key, 3) == N2).expect("every node has keys");
    let mut node = Engine::new(NodeConfig::new(N0, 3, 1), layout, store, Adaptive::new(1), initial)
        .expect("valid");
    node.populate();
    let feed =
        |node: &mut Engine<ReferenceStore<f32>, Adaptive>, millis: u64, input: Input<'_, f32>| {
            let verdict = node.handle_input(Instant::from_nanos(millis * 1_000_000), input);
            while !matches!(node.poll_output(), Output::Wait { .. }) {}
            verdict
        };
    let intent = Intent {
        worker: WorkerId(0),
        id: SignalId::default(),
        keys: vec![key],
        clocks: Clock(0)..Clock(5),
    };
    feed(&mut node, 1, Input::Intent(intent)).expect("a sound signal");
    feed(&mut node, 2, Input::Timeout(&[Clock(0)])).expect("one worker");
    assert_eq!(node.inspect(key).packed.state(), State::Requested);

    for kind in [GrantKind::Replica, GrantKind::Remote] {
        let refused = feed(&mut node, 3, Input::Message(N1, grant(key, kind, 0)));
        let Err(InputError::Peer(ProtocolError { peer: N1, fault, .. })) = refused else {
            panic!("{kind:?} is refused, but {refused:?}");
        };
        assert_eq!(fault, Fault::Impossible(key), "{kind:?}");
        assert_eq!(node.inspect(key).packed.state(), State::Requested, "{kind:?}");
    }

    feed(&mut node, 4, Input::Message(N2, grant(key, GrantKind::Replica, 0)))
        .expect("the home may");
    assert_eq!(node.inspect(key).packed.state(), State::Replica);
}
