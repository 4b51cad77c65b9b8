//! Signals that are taken back: forgotten, and nothing else with them (AdaPM §3).

use adapm_core::engine::{Engine, Input, Intent, SignalId};
use adapm_core::error::{InputError, OpError};
use adapm_core::policy::{Adaptive, System};
use adapm_core::slot::State::{Main, Replica};
use adapm_core::{Clock, Instant, Key, Layout, NodeId, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::{Cluster, ReferenceStore, Setup, Violation};

type Case = Result<(), Violation>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const ANY: SignalId = SignalId(0);

fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

/// Creates two nodes with two workers each, and three keys whose home is node 0, which has intent
/// for them: any other node with intent for one gets a replica.
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
    cluster.take_back(of(N1), ANY, &[b, a], 1_000..1_005)?;
    cluster.settle()?;
    assert!(
        ![a, b, c].into_iter().any(|key| is_local(&cluster, key)),
        "far ahead nothing is acted on"
    );
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
    cluster.take_back(of(N1), ANY, &[a, c], 0..50)?;
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
    cluster.take_back(of(N1), ANY, &[a, b, c], 0..50)?;
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
    cluster.take_back(of(N1), ANY, &[a], 0..50)?;
    cluster.intent(of(N1), &[a, b], 0..50)?;
    cluster.settle()?;
    cluster.take_back(of(N1), ANY, &[a, b], 0..49)?;
    cluster.take_back((N1, WorkerId(1)), ANY, &[a, b], 0..50)?;
    cluster.take_back(of(N1), ANY, &[c], 0..50)?;
    cluster.settle()?;
    assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [true, true, false]);
    cluster.advance_clock(of(N1), 60);
    cluster.take_back(of(N1), ANY, &[a, b], 0..50)?;
    cluster.settle()?;
    assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [false; 3], "expired, and once only");
    Ok(())
}

#[test]
fn what_has_another_name_stays() -> Case {
    let (mut cluster, [a, b, c]) = replicating()?;
    let [first, second] = [1, 2].map(SignalId);
    for start in [0, 1_000] {
        let window = start..start + 1_000;
        cluster.intent_as(of(N1), first, &[a, b], window.clone())?;
        cluster.intent_as(of(N1), second, &[b, c], window.clone())?;
        cluster.settle()?;
        assert_eq!(is_local(&cluster, a), start == 0, "far ahead nothing is acted on");
        for id in [SignalId(3), first] {
            cluster.take_back(of(N1), id, &[a, b, c], window.clone())?;
        }
        cluster.advance_clock(of(N1), start);
        cluster.settle()?;
        assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [false, true, true]);
        cluster.take_back(of(N1), second, &[a, b, c], window)?;
        cluster.settle()?;
        assert_eq!([a, b, c].map(|key| is_local(&cluster, key)), [false; 3]);
    }
    Ok(())
}

/// Even if many signals begin, end or are taken back at once, a round examines a bounded number of
/// keys, and the next one continues.
#[test]
fn rounds_stay_short_when_many_signals_begin_and_end() -> Case {
    const MANY: usize = 12;
    let mut cluster =
        Cluster::new(Setup { requests_max: 3, ..Setup::new(System::Adapm, 2, 1, 64) });
    let home = |key: &Key| cluster.setup().home(*key) == N0;
    let keys: Vec<Key> = cluster.keys().filter(home).take(MANY).collect();
    cluster.intent(of(N0), &keys, 0..100)?;
    cluster.settle()?;
    let count = |cluster: &Cluster| keys.iter().filter(|key| is_local(cluster, **key)).count();
    for takes_back in [true, false] {
        let clock = cluster.member(N1).workers[0].clock.0;
        for (id, key) in (1..).map(SignalId).zip(&keys) {
            cluster.intent_as(of(N1), id, &[*key], clock..clock + 9)?;
        }
        for round in 0..=MANY / 3 {
            assert_eq!(count(&cluster), 3 * round, "began in {round} rounds");
            cluster.round(N1)?;
            cluster.deliver_all()?;
        }
        if !takes_back {
            cluster.advance_clock(of(N1), 9);
        }
        for (id, key) in (1..).map(SignalId).zip(&keys).filter(|_| takes_back) {
            cluster.take_back(of(N1), id, &[*key], clock..clock + 9)?;
        }
        for round in 0..=MANY / 3 {
            assert_eq!(count(&cluster), MANY - 3 * round, "ended in {round} rounds");
            cluster.round(N1)?;
            cluster.deliver_all()?;
        }
        assert_eq!(count(&cluster), 0);
        cluster.settle()?;
    }
    Ok(())
}

/// Samples that are prepared far ahead and dropped: the cost of each does not depend on the number
/// of open ones.
#[test]
fn a_take_back_looks_at_no_signal_but_its_own() {
    const MANY: u64 = 100_000;
    let layout = Layout::dense(&[(8, 1)]).expect("valid");
    let config = adapm_core::config::NodeConfig::new(N0, 2, 1);
    let initial: adapm_core::engine::Initial<f32> = std::sync::Arc::new(|_, _| {});
    let store = ReferenceStore::new(&layout);
    let mut node = Engine::new(config, layout, store, Adaptive::new(1), initial).expect("valid");
    node.populate();
    let before = node.side_entries();
    let mut feed = |now, input| {
        node.handle_input(now, input).expect("known keys");
        while !matches!(node.poll_output(), adapm_core::engine::Output::Wait { .. }) {}
    };
    let intent = |id| Intent {
        worker: WorkerId(0),
        id: SignalId(id),
        keys: vec![Key(id % 8)],
        clocks: Clock(5)..Clock::INFINITY,
    };
    (0..MANY).for_each(|id| feed(Instant::ZERO, Input::Intent(intent(id))));
    // With 100,000 looks each it would take minutes.
    (0..MANY).for_each(|id| feed(Instant::ZERO, Input::TakeBack(intent(id))));
    (1..4).for_each(|round| {
        feed(Instant::from_nanos(1_000_000_000 * round), Input::Timeout(&[Clock(0)]))
    });
    assert_eq!(node.side_entries(), before);
}

#[test]
fn a_caller_that_errs_is_told() {
    let layout = Layout::dense(&[(8, 2)]).expect("valid");
    let config = adapm_core::config::NodeConfig::new(N0, 2, 1);
    let initial: adapm_core::engine::Initial<f32> = std::sync::Arc::new(|_, _| {});
    let store = ReferenceStore::new(&layout);
    let mut node = Engine::new(config, layout, store, Adaptive::new(1), initial).expect("valid");
    node.populate();
    for (worker, key, error) in [
        (0, 8, OpError::UnknownKey { key: Key(8), end: Key(8) }),
        (1, 0, OpError::UnknownWorker { worker: WorkerId(1) }),
    ] {
        let intent = Intent {
            worker: WorkerId(worker),
            id: SignalId::default(),
            keys: vec![Key(key)],
            clocks: Clock(0)..Clock(5),
        };
        let fed = node.handle_input(Instant::ZERO, Input::TakeBack(intent));
        assert_eq!(fed, Err(InputError::Caller(error)));
        assert_eq!(node.side_entries(), 0);
    }
}
