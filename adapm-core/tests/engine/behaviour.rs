//! Cases in which parameter managers are known to go wrong or to surprise, each a story of its own.
//!
//! Claims of the papers are in `tests/paper`, random orders in `tests/properties.rs`.

use std::sync::Arc;

use adapm_core::config::NodeConfig;
use adapm_core::engine::{
    Engine, Event, Initial, Input, Intent, Op, OpBody, OpId, Output, SignalId,
};
use adapm_core::error::{InputError, OpError};
use adapm_core::policy::{Adaptive, System};
use adapm_core::slot::State::{Main, None, Replica};
use adapm_core::slot::{Location, PackedState, Slot};
use adapm_core::{Clock, Counter, Instant, Key, Layout, NodeId, Version, WorkerId};
use adapm_verify::oracle::NodeWorker;
use adapm_verify::rng::Rng;
use adapm_verify::{Cluster, ReferenceStore, Setup, Violation};

type Case = Result<(), Violation>;

const N0: NodeId = NodeId(0);
const N1: NodeId = NodeId(1);
const N2: NodeId = NodeId(2);

fn of(node: NodeId) -> NodeWorker {
    (node, WorkerId(0))
}

fn cluster(system: System) -> Cluster {
    Cluster::new(Setup::new(system, 3, 2, 36))
}

/// Returns the keys whose home is `node`.
fn homed(cluster: &Cluster, node: NodeId) -> Vec<Key> {
    cluster.keys().filter(|key| cluster.setup().home(*key) == node).collect()
}

fn is_local(cluster: &Cluster, node: NodeId, key: Key) -> bool {
    matches!(cluster.state(node, key), Main | Replica)
}

/// Without intent exactly the keys at home are local; intent makes others local; a key stays where
/// it is until another node needs it.
#[test]
fn locality_follows_intent_and_outlives_it() -> Case {
    let mut cluster = cluster(System::Adapm);
    let (mine, theirs) = (homed(&cluster, N0), homed(&cluster, N2));
    let (moved, shared, fetched) = (mine[0], mine[1], theirs[0]);
    assert!(mine.iter().all(|key| is_local(&cluster, N0, *key) && !is_local(&cluster, N2, *key)));
    cluster.intent(of(N0), &[shared, fetched], 1..2)?;
    cluster.intent(of(N2), &[moved, shared], 1..2)?;
    for node in [N0, N2] {
        cluster.advance_clock(of(node), 1);
    }
    cluster.settle()?;
    let local =
        |cluster: &Cluster, node, keys: [Key; 3]| keys.map(|key| is_local(cluster, node, key));
    assert_eq!(local(&cluster, N0, [moved, shared, fetched]), [false, true, true]);
    assert_eq!(local(&cluster, N2, [moved, shared, fetched]), [true, true, false]);
    for node in [N0, N2] {
        cluster.advance_clock(of(node), 1);
    }
    cluster.settle()?;
    assert_eq!(
        local(&cluster, N0, [moved, shared, fetched]),
        [false, true, true],
        "they stay where they are"
    );
    assert_eq!(
        local(&cluster, N2, [moved, shared, fetched]),
        [true, false, false],
        "the replica is gone"
    );
    Ok(())
}

/// On a single node intents have no effect and every access is local, without messages.
#[test]
fn a_single_node_is_silent() -> Case {
    let mut cluster = Cluster::new(Setup::new(System::Adapm, 1, 2, 8));
    let keys: Vec<Key> = cluster.keys().collect();
    cluster.intent(of(N0), &keys, 0..5)?;
    for _ in 0..3 {
        let push = cluster.push(of(N0), &keys)?;
        let pull = cluster.pull((N0, WorkerId(1)), &keys)?;
        assert!(cluster.is_done(push) && cluster.is_done(pull));
    }
    let sync = cluster.wait_sync(of(N0))?;
    cluster.settle()?;
    assert!(cluster.is_done(sync));
    assert_eq!(cluster.network().sent(), 0);
    Ok(())
}

/// An operation without keys is done at once.
#[test]
fn an_empty_operation_is_done_at_once() -> Case {
    let mut cluster = cluster(System::Adapm);
    for call in [Cluster::pull, Cluster::push, Cluster::set, Cluster::localize] {
        let op = call(&mut cluster, of(N0), &[])?;
        assert!(cluster.is_done(op));
    }
    Ok(())
}

/// A key may occur several times in one operation: a push adds each, a pull reads each.
#[test]
fn a_key_may_repeat_in_one_operation() -> Case {
    for node in [N0, N1] {
        let mut cluster = cluster(System::Adapm);
        let key = homed(&cluster, N0)[0];
        let push = cluster.push(of(node), &[key, key, key])?;
        cluster.wait(push)?;
        let pull = cluster.pull(of(node), &[key, key])?;
        cluster.wait(pull)?;
        assert_eq!(
            cluster.read(pull).iter().map(|seen| seen.pushes).collect::<Vec<_>>(),
            [0b111, 0b111]
        );
    }
    Ok(())
}

/// Values of different lengths keep their positions, locally and remotely.
#[test]
fn values_of_different_lengths_keep_their_places() -> Case {
    let mut setup = Setup::new(System::Adapm, 3, 2, 36);
    setup.layout = Layout::dense(&[(5, 2), (4, 3), (6, 2), (5, 4)]).expect("valid");
    let mut cluster = Cluster::new(setup);
    let keys: Vec<Key> = cluster.keys().collect();
    for pair in keys.windows(2) {
        cluster.push(of(N1), &[pair[1], pair[0]])?;
    }
    cluster.settle()?;
    let pull = cluster.pull(of(N2), &keys)?;
    cluster.wait(pull)?;
    let pushes: Vec<u128> = cluster.read(pull).iter().map(|seen| seen.pushes).collect();
    assert_eq!((pushes[0], pushes[keys.len() - 1]), (1, 1));
    assert!(pushes[1..keys.len() - 1].iter().all(|pushes| *pushes == 0b11));
    Ok(())
}

/// All nodes push to one key while intents come and go: every push counts once, under every system.
#[test]
fn a_hot_key_counts_every_push() -> Case {
    for system in System::ALL {
        for location_caches in [true, false] {
            let mut setup = Setup { location_caches, ..Setup::new(system, 3, 2, 36) };
            setup.layout = Layout::dense(&[(36, 5)]).expect("valid");
            let mut cluster = Cluster::new(setup);
            let key = Key(9);
            let mut rng = Rng::new(9);
            for round in 0..20 {
                let workers: Vec<NodeWorker> = cluster.workers().collect();
                for who in workers {
                    cluster.push(who, &[key])?;
                    if rng.chance(20) {
                        cluster.intent(who, &[key], round + 3..round + 9)?;
                    }
                    cluster.advance_clock(who, 1);
                }
                for node in [N0, N1, N2] {
                    cluster.round(node)?;
                }
                cluster.deliver_all()?;
            }
            for who in cluster.workers().collect::<Vec<_>>() {
                cluster.advance_clock(who, 100);
            }
            cluster.settle()?;
            for node in [N0, N1, N2] {
                let pull = cluster.pull(of(node), &[key])?;
                cluster.wait(pull)?;
                assert_eq!(cluster.read(pull)[0].pushes, (1 << 120) - 1, "{system} at {node}");
            }
        }
    }
    Ok(())
}

/// A set is read back at once by its worker, wherever the key is; later pushes of all workers add
/// to it.
#[test]
fn a_set_is_read_back_and_added_to() -> Case {
    for system in System::ALL {
        let mut cluster = cluster(system);
        let key = homed(&cluster, N0)[0];
        for node in [N0, N1, N2] {
            cluster.intent(of(node), &[key], 0..50)?;
        }
        for _ in 0..4 {
            let set = cluster.set(of(N1), &[key])?;
            let pull = cluster.pull(of(N1), &[key])?;
            cluster.advance_clock(of(N0), 20);
            cluster.advance_clock(of(N2), 20);
            cluster.settle()?;
            assert!(cluster.is_done(set) && cluster.read(pull)[0].set > 0, "{system}");
            let pushes = [N0, N1, N2].map(|node| cluster.push(of(node), &[key]));
            cluster.settle()?;
            for push in pushes {
                assert!(cluster.is_done(push?));
            }
            bring_up_to_date(&mut cluster)?;
            let reads = [N0, N1, N2].map(|node| cluster.pull(of(node), &[key]));
            cluster.settle()?;
            for read in reads {
                let seen = cluster.read(read?)[0];
                assert_eq!(seen.pushes.count_ones(), 3, "{system}: {seen}");
            }
        }
    }
    Ok(())
}

/// Brings copies up to date that may lack changes at rest.
fn bring_up_to_date(cluster: &mut Cluster) -> Case {
    for who in cluster.workers().filter(|_| cluster.setup().lag > 0).collect::<Vec<_>>() {
        cluster.quiesce(who)?;
    }
    cluster.settle()
}

/// One of two concurrent sets wins, on all nodes.
#[test]
fn concurrent_sets_end_in_one() -> Case {
    for system in System::ALL {
        let mut cluster = cluster(system);
        let key = homed(&cluster, N0)[0];
        for node in [N1, N2] {
            cluster.intent(of(node), &[key], 0..50)?;
        }
        cluster.advance_clock(of(N1), 50);
        cluster.settle()?;
        cluster.set(of(N1), &[key])?;
        cluster.set(of(N2), &[key])?;
        cluster.settle()?;
        bring_up_to_date(&mut cluster)?;
        let reads = [N0, N1, N2].map(|node| cluster.pull(of(node), &[key]));
        cluster.settle()?;
        let mut seen = Vec::new();
        for read in reads {
            seen.push(cluster.read(read?)[0].set);
        }
        assert!(seen[0] > 0 && seen.iter().all(|set| *set == seen[0]), "{system}: {seen:?}");
    }
    Ok(())
}

/// A wrong location costs a hop and is corrected by the answer, repeatedly.
#[test]
fn a_wrong_location_is_corrected() -> Case {
    let mut cluster = Cluster::new(Setup::new(System::Lapse, 3, 2, 36));
    let key = homed(&cluster, N0)[0];
    for owner in [N1, N0, N1, N0, N1] {
        let localize = cluster.localize(of(owner), &[key])?;
        cluster.wait(localize)?;
        for hops in [1, 0] {
            let before = cluster.network().sent();
            let pull = cluster.pull(of(N2), &[key])?;
            cluster.wait(pull)?;
            assert!(cluster.network().sent() - before <= 2 + hops, "{owner}");
        }
    }
    Ok(())
}

/// Only the home can have passed the entry on, so the home is asked until there is an answer.
#[test]
fn what_was_turned_away_is_asked_of_the_home_though_a_request_has_no_room_for_it() -> Case {
    const N3: NodeId = NodeId(3);
    let setup = Setup { block_bytes_max: 16, ..Setup::new(System::Adapm, 4, 1, 36) };
    let mut cluster = Cluster::new(setup);
    let mut keys = homed(&cluster, N0);
    let key = keys.pop().expect("it is home of many");
    // n1 knows that it gave the key to n2; n2 knows of n3, which has it from n0, by a replica.
    for node in [N1, N2, N0, N3] {
        let localize = cluster.localize(of(node), &[key])?;
        cluster.wait(localize)?;
        cluster.settle()?;
    }
    cluster.intent(of(N3), &[key], 0..100)?;
    cluster.intent(of(N2), &[key], 0..100)?;
    cluster.settle()?;
    assert!(is_local(&cluster, N2, key) && cluster.owner(key) == Some(N3));
    cluster.localize(of(N1), &[key])?;
    cluster.round(N1)?;
    cluster.deliver(N1, N2)?;
    cluster.deliver(N2, N3)?;
    while cluster.deliver(N3, N1)? {}
    while cluster.deliver(N2, N1)? {}
    // All of these are asked of n0, and few fit into a request.
    cluster.intent(of(N1), &keys, 0..100)?;
    for _ in 0..keys.len() {
        cluster.round(N1)?;
        let asks_n2 =
            cluster.network().about(key).iter().any(|entry| (entry.from, entry.to) == (N1, N2));
        assert!(!asks_n2, "n3 turns away what n2 passes on");
        cluster.deliver_all()?;
    }
    cluster.settle()?;
    assert!(is_local(&cluster, N1, key));
    Ok(())
}

/// After a quiesce all replicas equal their main copies, every time.
#[test]
fn a_quiesce_brings_every_replica_up_to_date() -> Case {
    let mut setup = Setup::new(System::Full, 3, 2, 8);
    setup.layout = Layout::dense(&[(8, 5)]).expect("valid");
    let mut cluster = Cluster::new(setup);
    let keys: Vec<Key> = cluster.keys().collect();
    let workers: Vec<NodeWorker> = cluster.workers().collect();
    for who in &workers {
        cluster.intent(*who, &keys, 0..u64::MAX - 1)?;
    }
    cluster.settle()?;
    for _ in 0..15 {
        let mut quiesces = Vec::new();
        for who in &workers {
            cluster.push(*who, &keys)?;
            quiesces.push(cluster.quiesce(*who)?);
        }
        while quiesces.iter().any(|quiesce| !cluster.is_done(*quiesce)) {
            for node in [N0, N1, N2] {
                cluster.round(node)?;
            }
            cluster.deliver_all()?;
        }
        for who in &workers {
            let pull = cluster.pull(*who, &keys)?;
            assert!(cluster.is_done(pull));
            let all = (1 << cluster.oracle().pushes(keys[0])) - 1;
            assert!(cluster.read(pull).iter().all(|seen| seen.pushes == all));
        }
    }
    Ok(())
}

/// This also holds if the `wait_sync` needs another round, and the quiesce nothing.
#[test]
fn a_wait_sync_ends_before_a_quiesce_that_is_called_later() -> Case {
    let mut cluster = cluster(System::Adapm);
    let [pushed, wanted] = homed(&cluster, N0)[..2] else { unreachable!("it is home of many") };
    let push = cluster.push(of(N1), &[pushed])?;
    let sync = cluster.wait_sync(of(N1))?;
    cluster.intent(of(N1), &[wanted], 0..9)?;
    cluster.round(N1)?;
    // The answer finds a request on its way, so the call has to wait for a mark in a later one.
    while !cluster.is_done(push) {
        cluster.deliver(N1, N0)?;
        cluster.deliver(N0, N1)?;
    }
    while cluster.deliver(N1, N0)? {}
    while cluster.deliver(N0, N1)? {}
    assert_eq!((is_local(&cluster, N1, wanted), cluster.is_done(sync)), (true, false));
    let quiesces: Vec<OpId> = cluster
        .workers()
        .collect::<Vec<_>>()
        .into_iter()
        .map(|who| cluster.quiesce(who))
        .collect::<Result<_, _>>()?;
    // No node has a reason of its own for a round; each step checks that the quiesce is not the
    // first to end.
    cluster.deliver_all()?;
    cluster.settle()?;
    assert!(cluster.is_done(sync) && quiesces.iter().all(|op| cluster.is_done(*op)));
    Ok(())
}

/// A barrier holds all workers back until the last one comes; it does not wait for workers that
/// have ended.
#[test]
fn a_barrier_waits_for_all_that_live() -> Case {
    let mut cluster = cluster(System::Adapm);
    let workers: Vec<NodeWorker> = cluster.workers().collect();
    cluster.end(workers[1])?;
    let mut barriers = Vec::new();
    for who in workers.iter().filter(|who| **who != workers[1] && **who != workers[5]) {
        barriers.push(cluster.barrier(*who)?);
        cluster.deliver_all()?;
        assert!(
            barriers.iter().all(|barrier| !cluster.is_done(*barrier)),
            "{who:?} is not the last"
        );
    }
    barriers.push(cluster.barrier(workers[5])?);
    cluster.deliver_all()?;
    assert!(barriers.iter().all(|barrier| cluster.is_done(*barrier)));
    Ok(())
}

/// Creates an engine alone, for inputs that a cluster would not feed.
fn engine() -> Engine<ReferenceStore<f32>, Adaptive> {
    let layout = Layout::dense(&[(8, 2)]).expect("valid");
    let initial: Initial<f32> = Arc::new(|_, value| value.fill(1.0));
    let store = ReferenceStore::new(&layout);
    let config = NodeConfig::new(N0, 2, 1);
    let node = Engine::new(config, layout, store, Adaptive::new(1), initial).expect("valid");
    node.populate();
    node
}

/// Invalid keys, workers, lengths and windows are reported to the caller, and the engine goes on.
#[test]
fn a_caller_that_errs_is_told() {
    let mut node = engine();
    let op = |body| Input::Op(Op { id: OpId(0), worker: WorkerId(0), body });
    let beyond = vec![Key(8)];
    let unknown = OpError::UnknownKey { key: Key(8), end: Key(8) };
    let intent = |keys: &[Key], start, end| {
        Input::Intent(Intent {
            worker: WorkerId(0),
            id: SignalId::default(),
            keys: keys.to_vec(),
            clocks: Clock(start)..Clock(end),
        })
    };
    for (input, error) in [
        (op(OpBody::Pull { keys: beyond.clone() }), unknown.clone()),
        (op(OpBody::Push { keys: beyond.clone(), updates: vec![0.0; 2] }), unknown.clone()),
        (op(OpBody::Set { keys: beyond.clone(), values: vec![0.0; 2] }), unknown.clone()),
        (op(OpBody::Localize { keys: beyond.clone() }), unknown.clone()),
        (intent(&beyond, 0, 5), unknown),
        (intent(&[Key(0)], 5, 5), OpError::Window { start: Clock(5), end: Clock(5) }),
        (intent(&[Key(0)], 5, 4), OpError::Window { start: Clock(5), end: Clock(4) }),
        (
            op(OpBody::Push { keys: vec![Key(0)], updates: vec![0.0; 3] }),
            OpError::ValueLen { expected: 2, given: 3 },
        ),
        (
            Input::Op(Op { id: OpId(0), worker: WorkerId(1), body: OpBody::WaitSync }),
            OpError::UnknownWorker { worker: WorkerId(1) },
        ),
    ] {
        assert_eq!(node.handle_input(Instant::ZERO, input), Err(InputError::Caller(error)));
        assert!(matches!(node.poll_output(), Output::Wait { .. }));
        assert_eq!(node.side_entries(), 0);
    }
    let keys = (0..8).map(Key).filter(|key| Layout::home(*key, 2) == N0).take(1).collect();
    node.handle_input(Instant::ZERO, op(OpBody::Pull { keys }))
        .expect("a sound operation is still done");
    let done = Event::Done { op: OpId(0), values: vec![1.0, 1.0] };
    assert_eq!(node.poll_output(), Output::Event(done));
}

/// A replica that is refreshed over and over equals its owner bit for bit: nothing drifts.
#[test]
fn a_replica_does_not_drift() {
    let mut rng = Rng::new(56);
    let (mut packed, mut version) = (PackedState::EMPTY, Version(0));
    let (mut value, mut delta) = ([0.0_f32; 2], [0.0_f32; 2]);
    let mut slot =
        Slot { packed: &mut packed, version: &mut version, value: &mut value, delta: &mut delta };
    slot.request();
    slot.install(Version(0), &[0.0, 0.0], Location { node: N1, counter: Counter(1) });
    let mut owner = [0.0_f32; 2];
    for step in 0..1_000_000 {
        let random = f32::from_bits((rng.bits() as u32 & 0x007f_ffff) | 0x3f80_0000) - 1.5;
        owner[step % 2] += random * 1e-3;
        slot.refresh(Version(step as u64), &owner);
        let value = [slot.value[0], slot.value[1]];
        assert_eq!(value.map(f32::to_bits), owner.map(f32::to_bits), "after {step} refreshes");
    }
}

/// A replica of a key without intent leaves no trace at owner or holder.
#[test]
fn a_replica_leaves_no_trace() -> Case {
    let mut cluster = cluster(System::Adapm);
    let key = homed(&cluster, N0)[0];
    cluster.intent(of(N0), &[key], 0..9)?;
    cluster.intent(of(N1), &[key], 0..5)?;
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), Replica);
    cluster.advance_clock(of(N1), 5);
    cluster.settle()?;
    cluster.advance_clock(of(N0), 9);
    cluster.settle()?;
    assert_eq!(cluster.state(N1, key), None);
    assert_eq!([N0, N1].map(|node| cluster.member(node).node.engine().side_entries()), [0, 0]);
    Ok(())
}

/// A node's list for its next round grows with the keys that it wants, not with the number of
/// requests for them.
#[test]
fn a_key_that_is_localized_again_and_again_is_noted_once() -> Case {
    let mut cluster = cluster(System::Lapse);
    let key = homed(&cluster, N1)[0];
    cluster.localize(of(N0), &[key])?;
    cluster.round(N0)?;
    (0..100).try_for_each(|_| cluster.localize(of(N0), &[key]).map(drop))?;
    cluster.deliver_all()?;
    let entries = cluster.member(N0).node.engine().side_entries();
    assert!(cluster.state(N0, key) == Main && entries <= 4, "{entries} entries");
    Ok(())
}

/// Each value that is sent is counted once, as what it is for.
#[test]
fn bytes_of_values_are_counted_by_their_use() -> Case {
    let mut cluster = cluster(System::Adapm);
    let keys = homed(&cluster, N0);
    let (far, moved, shared) = (keys[0], keys[1], keys[2]);
    let size = |cluster: &Cluster, key| (cluster.setup().value_len(key) * size_of::<i64>()) as u64;
    let sizes = [far, moved, shared].map(|key| size(&cluster, key));
    let sent = |cluster: &Cluster, node: NodeId| {
        let stats = cluster.member(node).node.engine().stats();
        (stats.value_bytes, stats.held)
    };
    let pull = cluster.pull(of(N1), &[far])?;
    cluster.wait(pull)?;
    let push = cluster.push(of(N1), &[far])?;
    cluster.wait(push)?;
    cluster.intent(of(N0), &[shared], 0..2)?;
    cluster.intent(of(N1), &[moved, shared], 0..2)?;
    cluster.settle()?;
    let (owner, _) = sent(&cluster, N0);
    assert_eq!([owner.answers, owner.relocations, owner.replicas], sizes, "{owner:?}");
    assert_eq!(owner.sum(), sizes.iter().sum::<u64>(), "{owner:?}");
    let (asker, held) = sent(&cluster, N1);
    assert_eq!((asker.operations, asker.sum()), (sizes[0], sizes[0]), "{asker:?}");
    assert_eq!((held.now, held.max), (1, 1));

    cluster.push(of(N1), &[shared])?;
    cluster.settle()?;
    cluster.push(of(N0), &[shared])?;
    cluster.settle()?;
    assert_eq!(sent(&cluster, N1).0.deltas, sizes[2], "the replica brings its change");
    assert_eq!(sent(&cluster, N0).0.refreshes, sizes[2], "and is brought that of the owner");
    for node in [N0, N1] {
        cluster.advance_clock(of(node), 2);
    }
    cluster.settle()?;
    let (_, held) = sent(&cluster, N1);
    assert_eq!((held.now, held.max), (0, 1), "it is given up");
    let micros = cluster.member(N1).node.engine().stats().micros;
    assert!(0 < held.micros && held.micros < micros, "{held:?} in {micros}");
    Ok(())
}
