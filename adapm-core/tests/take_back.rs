//! A signal that is not meant any more: forgotten, and nothing else with it (AdaPM §3).

use adapm_core::error::{InputError, OpError};
use adapm_core::node::{Input, Intent, Node};
use adapm_core::policy::{Adaptive, System};
use adapm_core::slot::State::{Main, Replica};
use adapm_core::testing::oracle::Who;
use adapm_core::testing::{Cluster, ReferenceStore, Setup, Violation};
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};

type Case = Result<(), Violation>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);

fn of(node: NodeId) -> Who {
    (node, WorkerId(0))
}

/// Two nodes with two workers each, and three keys whose home is node 0, which has intent for them: whoever else has intent
/// for one gets a replica.
fn replicating() -> Result<(Cluster, [Key; 3]), Violation> {
    let mut cluster = Cluster::new(Setup::new(System::Adapm, 2, 2, 36));
    let mut homed = cluster.keys().filter(|key| cluster.setup().home(*key) == N0);
    let keys = std::array::from_fn(|_| homed.next().expect("a node has many keys"));
    drop(homed);
    cluster.intent(of(N0), &keys, 0..100)?;
    cluster.settle()?;
    Ok((cluster, keys))
}

fn is_local(cluster: &Cluster, key: Key) -> bool {
    matches!(cluster.state(N1, key), Main | Replica)
}

#[test]
fn what_was_not_acted_on_is_as_never_signalled() -> Case {
    let (mut cluster, [a, b, c]) = replicating()?;
    cluster.intent(of(N1), &[a, b, c], 1_000..1_005)?;
    cluster.intent(of(N1), &[a], 1_000..1_005)?;
    cluster.take_back(of(N1), &[b, a], 1_000..1_005)?;
    cluster.settle()?;
    assert!(![a, b, c].into_iter().any(|key| is_local(&cluster, key)), "far ahead nothing is acted on");
    cluster.advance_clock(of(N1), 1_000);
    cluster.settle()?;
    assert_eq!(
        [a, b, c].map(|key| is_local(&cluster, key)),
        [true, false, true],
        "one of two signals of {a} is left"
    );
    Ok(())
}

#[test]
fn what_was_acted_on_ends_as_if_its_window_had() -> Case {
    let (mut cluster, [a, b, c]) = replicating()?;
    cluster.intent(of(N1), &[a, b, c], 0..50)?;
    cluster.settle()?;
    assert!([a, b, c].into_iter().all(|key| is_local(&cluster, key)));
    cluster.take_back(of(N1), &[a, c], 0..50)?;
    cluster.settle()?;
    assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [false, true, false]);
    Ok(())
}

#[test]
fn other_signals_for_the_key_last_as_long_as_they_did() -> Case {
    let (mut cluster, [a, b, c]) = replicating()?;
    cluster.intent(of(N1), &[a, b], 0..50)?;
    cluster.intent(of(N1), &[a], 0..3)?;
    cluster.intent((N1, WorkerId(1)), &[b], 0..4)?;
    cluster.intent(of(N1), &[c, c], 0..50)?;
    cluster.settle()?;
    cluster.take_back(of(N1), &[a, b, c], 0..50)?;
    cluster.settle()?;
    assert!([a, b, c].into_iter().all(|key| is_local(&cluster, key)), "another signal keeps each");
    cluster.advance_clock(of(N1), 3);
    cluster.settle()?;
    assert_eq!(
        [a, b, c].map(|key| is_local(&cluster, key)),
        [false, true, true],
        "the shorter window is over"
    );
    cluster.advance_clock((N1, WorkerId(1)), 4);
    cluster.settle()?;
    assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [false, false, true]);
    Ok(())
}

#[test]
fn what_was_never_signalled_is_ignored() -> Case {
    let (mut cluster, [a, b, c]) = replicating()?;
    cluster.take_back(of(N1), &[a], 0..50)?;
    cluster.intent(of(N1), &[a, b], 0..50)?;
    cluster.settle()?;
    cluster.take_back(of(N1), &[a, b], 0..49)?;
    cluster.take_back((N1, WorkerId(1)), &[a, b], 0..50)?;
    cluster.take_back(of(N1), &[c], 0..50)?;
    cluster.settle()?;
    assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [true, true, false]);
    cluster.advance_clock(of(N1), 60);
    cluster.take_back(of(N1), &[a, b], 0..50)?;
    cluster.settle()?;
    assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [false; 3], "expired, and once only");
    Ok(())
}

#[test]
fn a_caller_that_errs_is_told() {
    let layout = Layout::dense(&[(8, 2)]).expect("valid");
    let config = adapm_core::config::NodeConfig::new(N0, 2, 1);
    let initial: adapm_core::node::Initial<f32> = std::sync::Arc::new(|_, _| {});
    let store = ReferenceStore::new(&layout);
    let mut node = Node::new(config, layout, store, Adaptive::new(1), initial).expect("valid");
    for (worker, key, error) in [
        (0, 8, OpError::UnknownKey { key: Key(8), end: Key(8) }),
        (1, 0, OpError::UnknownWorker { worker: WorkerId(1) }),
    ] {
        let intent = Intent { worker: WorkerId(worker), keys: vec![Key(key)], clocks: Clock(0)..Clock(5) };
        let fed = node.handle_input(Instant::ZERO, Input::TakeBack(intent));
        assert_eq!(fed, Err(InputError::Caller(error)));
        assert_eq!(node.side_entries(), 0);
    }
}
