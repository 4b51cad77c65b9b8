//! Intents of `preloc` and `pool` ahead of the pull, under every kind of system, and the meaning of
//! windows.

use adapm_core::{Clock, Key, NodeId};
use adapm_runtime::{Sampling, Scheme, System};

use crate::{EXACT, KEYS, LEN, WINDOW, at, cluster, eventually, home, is_local, pull};

/// Samples keys whose home is node 1.
fn foreign(scheme: Scheme) -> Sampling {
    Sampling::weighted(scheme, Key(0)..Key(KEYS), &at(1), 4).expect("weights")
}

/// Returns the keys whose home is node 1.
fn all_foreign() -> Vec<Key> {
    (0..KEYS).filter(|key| home(*key, 2) == NodeId(1)).map(Key).collect()
}

#[test]
fn drawn_keys_are_brought_here_before_they_are_pulled() {
    for scheme in [Scheme::Preloc, Scheme::Pool { size: 10, reuse: 3 }] {
        for system in [
            System::Adapm,
            System::AdapmNoRelocation,
            System::AdapmNoReplication,
            System::AdapmImmediate,
            System::Lapse,
        ] {
            let cluster = cluster(system, 2, 1, foreign(scheme));
            let outcome = cluster.run(|mut worker| {
                if worker.node() == NodeId(1) {
                    return;
                }
                let mut sample = worker
                    .intent_handle()
                    .prepare_sample(30, Clock(0)..Clock(5))
                    .expect("sampling is configured");
                // The same draws twice: a sampler of the same stream number in another cluster
                // reveals its keys.
                let twin = crate::cluster(system, 1, 1, foreign(scheme)).run(|mut worker| {
                    let mut sample = worker
                        .intent_handle()
                        .prepare_sample(30, Clock(0)..Clock(5))
                        .expect("sampling is configured");
                    pull(&mut worker, &mut sample, 30)
                });
                let keys = twin.expect("no failure").remove(0);
                eventually(&mut worker, "drawn keys come", |worker| {
                    keys.iter().all(|key| is_local(worker, *key))
                });
                assert_eq!(pull(&mut worker, &mut sample, 30), keys);
            });
            assert_eq!(outcome, Ok(vec![(); 2]), "{scheme} under {system}");
            let stats = cluster.stats();
            assert_eq!((stats.sampled, stats.sampled_local), (30, 30), "{scheme} under {system}");
        }
    }
}

#[test]
fn naive_brings_nothing_here_and_neither_does_a_system_that_ignores_intent() {
    let cases = EXACT.map(|scheme| (System::Classic, scheme));
    for (system, scheme) in cases.into_iter().chain([(System::Adapm, Scheme::Naive)]) {
        let cluster = cluster(system, 2, 1, foreign(scheme));
        let outcome = cluster.run(|mut worker| {
            if worker.node() == NodeId(1) {
                return;
            }
            let mut sample =
                worker.prepare_sample(30, Clock(0)..Clock(5)).expect("sampling is configured");
            worker.wait_sync().expect("no failure");
            worker.choose_sample(&mut sample).expect("no failure");
            pull(&mut worker, &mut sample, 30);
        });
        assert_eq!(outcome, Ok(vec![(); 2]));
        let stats = cluster.stats();
        assert_eq!((stats.relocations, stats.replicas), (0, 0), "{scheme} under {system}");
        assert_eq!(
            (stats.sampled, stats.sampled_local, stats.remote),
            (30, 0, 30),
            "{scheme} under {system}"
        );
    }
}

#[test]
fn under_full_replication_every_scheme_samples_locally() {
    for scheme in Scheme::ALL {
        let cluster = cluster(System::Full, 2, 1, foreign(scheme));
        let outcome = cluster.run(|mut worker| {
            let mut sample = worker.prepare_sample(30, WINDOW).expect("sampling is configured");
            pull(&mut worker, &mut sample, 30);
        });
        assert_eq!(outcome, Ok(vec![(); 2]));
        let stats = cluster.stats();
        assert_eq!((stats.sampled, stats.sampled_local), (60, 60), "{scheme}");
    }
}

#[test]
fn a_window_that_has_passed_is_pulled_and_signals_nothing() {
    for scheme in Scheme::ALL {
        for system in [System::Adapm, System::Lapse] {
            let cluster = cluster(system, 2, 1, foreign(scheme));
            let outcome = cluster.run(|mut worker| {
                if worker.node() == NodeId(1) {
                    return;
                }
                let window = Clock(2)..Clock(3);
                (0..3).for_each(|_| {
                    worker.advance_clock();
                });
                let mut sample =
                    worker.prepare_sample(20, window.clone()).expect("sampling is configured");
                worker.choose_sample(&mut sample).expect("no failure");
                let mut loaders = worker
                    .intent_handle()
                    .prepare_sample(20, window)
                    .expect("sampling is configured");
                for sample in [&mut sample, &mut loaders] {
                    let keys = pull(&mut worker, sample, 20);
                    assert!(keys.iter().all(|key| all_foreign().contains(key)));
                }
                worker
                    .push(&all_foreign(), &vec![0; LEN * all_foreign().len()])
                    .expect("no failure");
            });
            assert_eq!(outcome, Ok(vec![(); 2]));
            let stats = cluster.stats();
            assert_eq!((stats.relocations, stats.replicas), (0, 0), "{scheme} under {system}");
            assert_eq!((stats.sampled, stats.sampled_local), (40, 0), "{scheme} under {system}");
        }
    }
}

/// The worker is still before the window: keys are where they are, and values are right.
#[test]
fn a_pull_before_the_window_is_right() {
    for scheme in Scheme::ALL {
        let sampling = Sampling::uniform(scheme, Key(0)..Key(KEYS), 4);
        let outcome = cluster(System::Adapm, 2, 1, sampling).run(|mut worker| {
            let mut sample = worker
                .prepare_sample(20, Clock(1_000)..Clock(1_001))
                .expect("sampling is configured");
            pull(&mut worker, &mut sample, 20);
        });
        assert_eq!(outcome, Ok(vec![(); 2]), "{scheme}");
    }
}
