//! An engine in a dense layout refuses inputs before its main copies exist; a policy's observer
//! receives the same events as others.

use std::sync::{Arc, Mutex, PoisonError};

use adapm_core::config::NodeConfig;
use adapm_core::engine::{Engine, Initial, Input, Op, OpBody, OpId, Output};
use adapm_core::error::InputError;
use adapm_core::observe::Observe;
use adapm_core::policy::{Placement, Policy, View};
use adapm_core::{ChannelId, Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_verify::ReferenceStore;

const N0: NodeId = NodeId(0);

/// Records events, and the receiver.
#[derive(Clone)]
struct Listener(&'static str, Arc<Mutex<Vec<(&'static str, Key)>>>);

impl Observe for Listener {
    fn on_intent(&mut self, _now: Instant, key: Key, _active: bool) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push((self.0, key));
    }
}

struct Listening(Option<Listener>);

impl Policy for Listening {
    fn place(&mut self, _view: &View<'_>) -> Placement {
        Placement::Keep
    }

    fn act_before(&mut self, _worker: WorkerId, _clock: Clock) -> Clock {
        Clock::INFINITY
    }

    fn observer(&mut self) -> Option<&mut dyn Observe> {
        self.0.as_mut().map(|listener| listener as &mut dyn Observe)
    }
}

type TestEngine = Engine<ReferenceStore<i64>, Listening>;

/// Returns an engine of the first of two nodes, with an empty store.
fn engine(layout: Layout, channel: u16, policy: Listening) -> TestEngine {
    let initial: Initial<i64> = Arc::new(|key, value| value.fill(key.0 as i64));
    let store = ReferenceStore::new(&layout);
    let config = NodeConfig::new(N0, 2, 1).on_channel(ChannelId(channel), 2);
    Engine::new(config, layout, store, policy, initial).expect("a sound configuration")
}

fn homes(channel: u16) -> Vec<Key> {
    let is_own =
        |key: &Key| Layout::home(*key, 2) == N0 && Layout::channel(*key, 2) == ChannelId(channel);
    (0..40).map(Key).filter(is_own).collect()
}

#[test]
fn an_engine_without_main_copies_refuses_whatever_comes_first() {
    let layout = Layout::dense(&[(40, 3)]).expect("a legal layout");
    for channel in 0..2 {
        let mut engine = engine(layout.clone(), channel, Listening(None));
        let key = homes(channel)[0];
        let pull =
            Op { id: OpId(1), worker: WorkerId(0), body: OpBody::Pull { keys: homes(channel) } };
        let later = Instant::from_nanos(5);
        for input in [Input::Timeout(&[Clock(3)]), Input::Op(pull.clone()), Input::Heard(NodeId(1))]
        {
            let refused = engine.handle_input(later, input);
            assert_eq!(refused, Err(InputError::NotPopulated { key }));
            let text = InputError::NotPopulated { key }.to_string();
            assert!(text.contains("call Engine::populate before the first input"), "{text}");
            assert!(matches!(engine.poll_output(), Output::Wait { until: None, .. }));
        }
        engine.populate();
        assert_eq!(engine.handle_input(Instant::ZERO, Input::Op(pull)), Ok(()));
        let expected: Vec<i64> = homes(channel).iter().flat_map(|key| [key.0 as i64; 3]).collect();
        let Output::Event(event) = engine.poll_output() else { panic!("the pull is done") };
        assert_eq!(event, adapm_core::engine::Event::Done { op: OpId(1), values: expected });
    }
}

#[test]
fn a_sparse_layout_needs_no_main_copies() {
    let layout = Layout::sparse(&[(u64::MAX, 3)]).expect("a legal layout");
    let mut engine = engine(layout, 0, Listening(None));
    assert_eq!(engine.handle_input(Instant::ZERO, Input::Timeout(&[Clock(0)])), Ok(()));
}

#[test]
fn the_observer_of_a_policy_is_told_before_the_other_one() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let layout = Layout::dense(&[(40, 3)]).expect("a legal layout");
    let policy = Listening(Some(Listener("policy", Arc::clone(&told))));
    let mut engine = engine(layout, 0, policy);
    engine.populate();
    engine.set_observer(Box::new(Listener("other", Arc::clone(&told))));
    let key = homes(0)[1];
    let intent = adapm_core::engine::Intent {
        worker: WorkerId(0),
        id: Default::default(),
        keys: vec![key],
        clocks: Clock(0)..Clock(9),
    };
    for input in [Input::Intent(intent), Input::Timeout(&[Clock(1)])] {
        engine.handle_input(Instant::ZERO, input).expect("a sound input");
        while !matches!(engine.poll_output(), Output::Wait { .. }) {}
    }
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*told, [("policy", key), ("other", key)]);
}
