//! Places of keys: their home first, the node with intent while it lasts, the node they were moved
//! to after that.

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, NodeId};
use adapm_runtime::System;

use crate::{Size, builder, cluster, eventually, is_local, keys_at};

#[test]
fn keys_start_at_home() {
    for _ in 0..4 {
        let cluster = cluster(System::Adapm, Size(3, 2), 36, 1);
        let outcome = cluster.run(|mut worker| {
            for key in (0..36).map(Key) {
                assert_eq!(
                    is_local(&mut worker, key),
                    Layout::home(key, 3) == worker.node(),
                    "{key}"
                );
            }
        });
        assert_eq!(outcome, Ok(vec![(); 6]));
    }
}

/// Under every system, with a node that is the home of nothing: values, updates and moves are those
/// of any other cluster.
#[test]
fn keys_start_where_a_table_says_and_go_from_there() {
    let homes: Vec<u16> = (0..36).map(|key| [2, 0, 0, 2, 2][key % 5]).collect();
    for system in System::ALL {
        let builder = builder(system, Size(3, 2), 36, 1).homes(homes.clone());
        let builder = builder.initial(|key, value| value.fill(key.0 as i64));
        let cluster = builder.build().expect("a valid cluster");
        let outcome = cluster.run(|mut worker| {
            let keys: Vec<Key> = (0..36).map(Key).collect();
            let own = |key: &Key| homes[key.0 as usize] == worker.node().0;
            if system == System::Classic {
                let owned: Vec<bool> = keys.iter().map(own).collect();
                let local: Vec<bool> = keys.iter().map(|key| is_local(&mut worker, *key)).collect();
                assert_eq!(local, owned, "{system}");
            }
            worker.barrier().expect("no failure");
            if system.localizes() {
                worker.localize(&keys[..9]).expect("no failure");
            }
            worker.intent(&keys, Clock(0)..Clock(2)).expect("a window");
            for _ in 0..5 {
                worker.push(&keys, &[1; 36]).expect("no failure");
            }
            worker.quiesce().expect("no failure");
            let mut values = [0; 36];
            worker.pull(&keys, &mut values).expect("no failure");
            assert!(
                values.iter().enumerate().all(|(key, value)| *value == key as i64 + 30),
                "{system}"
            );
            worker.quiesce().expect("no failure");
        });
        assert_eq!(outcome, Ok(vec![(); 6]), "{system}");
    }
}

#[test]
fn intent_brings_keys_and_its_end_lets_replicas_go() {
    let cluster = cluster(System::Adapm, Size(3, 1), 64, 1);
    let [shared, moved, stays] = keys_at(0, 3);
    let [alone] = keys_at(1, 3);
    let window = Clock(1)..Clock(2);
    let outcome = cluster.run(|mut worker| {
        let node = worker.node();
        // The owner first, so that it has intent when the others ask.
        if node == NodeId(0) {
            worker.intent(&[shared, alone], window.clone()).expect("a window");
            eventually(&mut worker, "intent moves a key that nobody else wants", |w| {
                is_local(w, alone)
            });
        }
        worker.barrier().expect("no failure");
        if node == NodeId(2) {
            worker.intent(&[shared, moved], window.clone()).expect("a window");
            eventually(&mut worker, "intent replicates and moves", |w| {
                is_local(w, shared) && is_local(w, moved)
            });
        }
        worker.barrier().expect("no failure");
        assert_eq!(is_local(&mut worker, shared), node != NodeId(1));
        assert_eq!(is_local(&mut worker, moved), node == NodeId(2));
        assert_eq!(is_local(&mut worker, stays), node == NodeId(0));
        assert_eq!(is_local(&mut worker, alone), node == NodeId(0));
        let status = cluster.status(node).expect("is here");
        let homed = (0..64).filter(|key| Layout::home(Key(*key), 3) == node).count() as u64;
        // Node 0 has given one key and got one.
        let expected = [(homed, 0), (homed - 1, 0), (homed + 1, 1)][node.index()];
        assert_eq!((status.main_copies, status.replicas), expected);
        assert_eq!(status.owned.iter().sum::<u64>(), status.main_copies);
        worker.barrier().expect("no failure");
        worker.advance_clock();
        worker.barrier().expect("no failure");
        if node == NodeId(2) {
            worker.advance_clock();
            eventually(&mut worker, "a replica without intent goes", |w| !is_local(w, shared));
        }
        worker.barrier().expect("no failure");
        worker.advance_clock();
        worker.quiesce().expect("no failure");
        assert_eq!(is_local(&mut worker, shared), node == NodeId(0), "the main copy stays");
        assert_eq!(is_local(&mut worker, moved), node == NodeId(2), "a moved key stays");
    });
    assert_eq!(outcome, Ok(vec![(); 3]));
    let stats = cluster.stats();
    assert_eq!((stats.relocations, stats.replicas, stats.releases), (2, 1, 1));
}

#[test]
fn localize_moves_keys_to_the_caller() {
    let cluster = cluster(System::Lapse, Size(2, 1), 64, 1);
    let keys: [Key; 3] = keys_at(0, 2);
    let outcome = cluster.run(|mut worker| {
        if worker.node() == NodeId(1) {
            worker.localize(&keys).expect("known keys");
            assert!(keys.iter().all(|key| is_local(&mut worker, *key)));
        }
        worker.barrier().expect("no failure");
        assert!(keys.iter().all(|key| is_local(&mut worker, *key) == (worker.node() == NodeId(1))));
        worker.barrier().expect("no failure");
        if worker.node() == NodeId(0) {
            let mut handle = worker.intent_handle();
            let loader = std::thread::spawn(move || handle.localize(&keys[..1]));
            assert_eq!(loader.join().expect("no panic"), Ok(()));
            assert!(is_local(&mut worker, keys[0]) && !is_local(&mut worker, keys[1]));
        }
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
    assert_eq!(cluster.stats().relocations, 4);
}

#[test]
fn a_ticket_tells_when_it_is_done() {
    let cluster = cluster(System::Classic, Size(2, 1), 64, 1);
    let outcome = cluster.run(|mut worker| {
        let ([own], [other]) = (keys_at(worker.node().0, 2), keys_at(1 - worker.node().0, 2));
        let local = worker.pull_async(&[own]).expect("a known key");
        assert!(local.is_done(), "a local pull is served at once");
        assert_eq!(local.wait(), Ok(vec![0]));
        let remote = worker.pull_async(&[other, own]).expect("known keys");
        worker.wait_all().expect("no failure");
        assert!(remote.is_done(), "all calls are done");
        assert_eq!(remote.wait(), Ok(vec![0, 0]));
        let empty = worker.push_async(&[], &[]).expect("nothing to do");
        assert!(empty.is_done());
        assert_eq!(empty.wait(), Ok(()));
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
    let stats = cluster.stats();
    assert_eq!((stats.local, stats.waited, stats.remote), (4, 0, 2));
}

#[test]
fn a_loader_thread_signals_ahead_of_its_worker() {
    let cluster = cluster(System::Adapm, Size(2, 1), 64, 1);
    let outcome = cluster.run(|mut worker| {
        let foreign: [Key; 8] = keys_at(1 - worker.node().0, 2);
        let half = &foreign[4 * usize::from(worker.node().0)..][..4];
        let mut handle = worker.intent_handle();
        std::thread::scope(|scope| {
            scope.spawn(move || handle.intent(half, handle.clock()..Clock(9)).expect("a window"));
        });
        eventually(&mut worker, "intent brings keys", |w| half.iter().all(|key| is_local(w, *key)));
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
}

#[test]
fn a_single_node_sends_nothing() {
    for system in System::ALL {
        let cluster = cluster(system, Size(1, 2), 36, 1);
        let outcome = cluster.run(|mut worker| {
            let keys: Vec<Key> = (0..36).map(Key).collect();
            let mut values = [0; 36];
            worker.intent(&keys, Clock(0)..Clock(9)).expect("a window");
            worker.push(&keys, &[1; 36]).expect("known keys");
            worker.pull(&keys, &mut values).expect("known keys");
            let moves = match system {
                System::Lapse | System::Nups | System::Full => true,
                system => system.name().starts_with("adapm"),
            };
            let expected = if moves { Ok(()) } else { Err(OpError::Immovable) };
            assert_eq!(worker.localize(&keys), expected, "{system}");
            worker.quiesce().expect("no failure");
        });
        assert_eq!(outcome, Ok(vec![(); 2]));
        let stats = cluster.stats();
        assert_eq!((stats.messages_sent, stats.bytes_sent), (0, 0), "{system}");
        assert_eq!((stats.local, stats.local_share()), (144, 1.0), "{system}");
    }
}

#[test]
fn full_replicates_everything_before_the_workers_start() {
    let cluster = cluster(System::Full, Size(3, 2), 300, 1);
    let outcome = cluster.run(|mut worker| {
        let keys: Vec<Key> = (0..300).map(Key).collect();
        assert!(keys.iter().all(|key| is_local(&mut worker, *key)));
        worker.push(&keys, &[1; 300]).expect("known keys");
        worker.advance_clock();
        worker.quiesce().expect("no failure");
        let mut values = [0; 300];
        worker.pull(&keys, &mut values).expect("known keys");
        assert_eq!(values, [6; 300]);
        assert!(keys.iter().all(|key| is_local(&mut worker, *key)), "for the whole run");
    });
    assert_eq!(outcome, Ok(vec![(); 6]));
    let stats = cluster.stats();
    assert_eq!((stats.local_share(), stats.replicas, stats.relocations), (1.0, 600, 0));
}

#[test]
fn classic_is_local_for_the_share_of_keys_at_home() {
    let cluster = cluster(System::Classic, Size(4, 1), 4_000, 1);
    let outcome = cluster.run(|mut worker| {
        let keys: Vec<Key> = (0..4_000).map(Key).collect();
        worker.intent(&keys, Clock(0)..Clock(9)).expect("a window");
        let mut values = vec![0; 4_000];
        worker.pull(&keys, &mut values).expect("known keys");
    });
    assert_eq!(outcome, Ok(vec![(); 4]));
    let stats = cluster.stats();
    // Each key is at home on one of four nodes.
    assert_eq!((stats.local, stats.waited, stats.remote), (4_000, 0, 12_000));
    assert_eq!((stats.relocations, stats.replicas, stats.releases), (0, 0, 0));
    let sent: u64 = stats.peers.iter().map(|peer| peer.bytes).sum();
    assert_eq!(sent, stats.bytes_sent);
}
