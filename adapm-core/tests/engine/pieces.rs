//! A request for many keys is answered in pieces: the requester processes one while the owner still
//! writes others.

use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::engine::{Initial, Input, Output};
use adapm_core::policy::{System, SystemPolicy};
use adapm_core::slot::State::{Main, None};
use adapm_core::wire::Message;
use adapm_core::wire::message::{Asked, Body, GrantKind, Keys, SyncRequest, SyncResponse};
use adapm_core::{Counter, Instant, Key, NodeId};
use adapm_verify::{ReferenceStore, Setup};

type Engine = adapm_core::engine::Engine<ReferenceStore<i64>, SystemPolicy>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const PIECE: usize = 3;

/// Creates the second of two nodes under Lapse, and eight keys that have their home there.
fn owner() -> (Engine, Vec<Key>) {
    let setup = Setup::new(System::Lapse, 2, 1, 40);
    let mut config = NodeConfig::new(N1, 2, 1);
    config.grants_max = PIECE;
    let initial: Initial<i64> = Arc::new(|key, value| value.fill(key.0 as i64));
    let store = ReferenceStore::new(&setup.layout);
    let engine = Engine::new(config, setup.layout.clone(), store, (setup.policy)(N1), initial)
        .expect("valid");
    engine.populate();
    let keys = setup.keys().filter(|key| setup.home(*key) == N1).take(8).collect();
    (engine, keys)
}

fn localizes(keys: &[Key]) -> Input<'static, i64> {
    let asked = Asked { keys: Keys(keys.to_vec()), counters: vec![Counter(0); keys.len()] };
    let request = SyncRequest { localizes: asked, ..SyncRequest::default() };
    Input::Message(N0, Message::bare(Body::SyncRequest(request)))
}

fn owned(engine: &Engine, keys: &[Key]) -> Vec<bool> {
    keys.iter().map(|key| engine.inspect(*key).packed.state() == Main).collect()
}

/// Returns the keys that an output grants, each with its value, and true if it is the response.
fn granted(output: Output<i64>) -> (Vec<Key>, bool) {
    let Output::Transmit(N0, Message { body, values }) = output else {
        panic!("{output:?} is no message to the requester")
    };
    let (grants, is_response) = match *body {
        Body::Grant(grants) => (grants, false),
        Body::SyncResponse(SyncResponse { grants, more: false, .. }) => (grants, true),
        other => panic!("{other:?} grants nothing"),
    };
    assert!(grants.kinds.iter().all(|kind| *kind == GrantKind::Owner));
    let expected: Vec<i64> = grants.at.keys.iter().flat_map(|key| [key.0 as i64; 2]).collect();
    assert_eq!(values.values::<i64>(), expected);
    (grants.at.keys.0, is_response)
}

#[test]
fn keys_leave_with_the_message_that_grants_them_and_not_before() {
    let (mut engine, keys) = owner();
    engine.handle_input(Instant::ZERO, localizes(&keys)).expect("a request of its peer");
    for (piece, is_last) in [(0..3, false), (3..6, false), (6..8, true)] {
        assert_eq!(granted(engine.poll_output()), (keys[piece.clone()].to_vec(), is_last));
        let left = owned(&engine, &keys);
        assert!(left[..piece.end].iter().all(|owned| !owned), "{piece:?}: {left:?}");
        assert!(left[piece.end..].iter().all(|owned| *owned), "{piece:?}: {left:?}");
    }
    assert!(matches!(engine.poll_output(), Output::Wait { .. }));
}

#[test]
fn a_request_that_fits_one_piece_is_answered_by_its_response() {
    let (mut engine, keys) = owner();
    engine.handle_input(Instant::ZERO, localizes(&keys[..PIECE])).expect("a request of its peer");
    assert_eq!(granted(engine.poll_output()), (keys[..PIECE].to_vec(), true));
    assert!(matches!(engine.poll_output(), Output::Wait { .. }));
}

/// A driver that does not drain is wrong, but nothing is lost or out of order.
#[test]
fn the_next_input_finds_the_last_request_answered() {
    let (mut engine, keys) = owner();
    engine.handle_input(Instant::ZERO, localizes(&keys)).expect("a request of its peer");
    engine.handle_input(Instant::ZERO, Input::Heard(N0)).expect("it is a peer");
    assert!(keys.iter().all(|key| engine.inspect(*key).packed.state() == None));
    let messages: Vec<_> = (0..3).map(|_| granted(engine.poll_output())).collect();
    assert_eq!(messages.iter().flat_map(|(keys, _)| keys.clone()).collect::<Vec<_>>(), keys);
    assert!(messages[2].1 && matches!(engine.poll_output(), Output::Wait { .. }));
}
