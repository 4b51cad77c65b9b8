//! Keys that a sample gives back when it is finished or dropped, and keys that stay.

use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use adapm_core::{Clock, Key, NodeId, WorkerId};
use adapm_runtime::{Sampling, Scheme, System};

use crate::{Ints, KEYS, WINDOW, at, cluster, eventually, home, is_local, pull};

const ANNOUNCING: [Scheme; 2] = [Scheme::Preloc, Scheme::Pool { size: 40, reuse: 2 }];

/// Samples keys whose home is node 1, without replacement.
fn foreign(scheme: Scheme) -> Sampling {
    Sampling::weighted(scheme, Key(0)..Key(KEYS), &at(1), 4).expect("weights").without_replacement()
}

fn all_foreign() -> Vec<Key> {
    (0..KEYS).filter(|key| home(*key, 2) == NodeId(1)).map(Key).collect()
}

/// Runs `work` on node 0 while node 1 has intent for its own keys, so that node 0 gets replicas,
/// which go with its intent.
fn contended(cluster: &Ints, work: impl Fn(&mut crate::IntWorker) + Sync) {
    let outcome = cluster.run(|mut worker| {
        if worker.node() == NodeId(1) {
            worker.intent(&all_foreign(), Clock(0)..Clock(9)).expect("a window");
            worker.wait_sync().expect("no failure");
        }
        worker.barrier().expect("no failure");
        if worker.node() == NodeId(0) {
            work(&mut worker);
        }
        worker.barrier().expect("no failure");
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
}

fn local(worker: &mut crate::IntWorker) -> Vec<Key> {
    all_foreign().into_iter().filter(|key| is_local(worker, *key)).collect()
}

#[test]
fn a_finished_sample_lets_go_of_what_was_not_pulled_and_of_nothing_else() {
    for scheme in ANNOUNCING {
        let cluster = cluster(System::Adapm, 2, 1, foreign(scheme));
        contended(&cluster, |worker| {
            let mut sample =
                worker.prepare_sample(30, Clock(0)..Clock(50)).expect("sampling is configured");
            let other =
                worker.prepare_sample(10, Clock(0)..Clock(50)).expect("sampling is configured");
            eventually(worker, "drawn keys come", |worker| local(worker).len() >= 30);
            let pulled = pull(worker, &mut sample, 12);
            drop(other);
            assert_eq!(sample.finish(), 18);
            eventually(worker, "the others go", |worker| local(worker).len() <= 12);
            let mut expected = pulled;
            expected.sort_unstable();
            assert_eq!(local(worker), expected, "{scheme}: pulled keys stay until the window ends");
        });
        let stats = cluster.stats();
        assert_eq!((stats.sampled, stats.sample_unpulled), (12, 28), "{scheme}");
    }
}

/// Samples that were prepared far ahead and are not needed after all: nothing is brought for them.
#[test]
fn a_sample_that_is_dropped_before_its_window_costs_nothing() {
    for scheme in ANNOUNCING {
        for keeps in [false, true] {
            let cluster = cluster(System::Adapm, 2, 1, foreign(scheme));
            contended(&cluster, |worker| {
                let mut handle = worker.intent_handle();
                let window = Clock(10_000)..Clock(10_050);
                let sample = Mutex::new(Some(
                    handle.prepare_sample(30, window).expect("sampling is configured"),
                ));
                if !keeps {
                    // On any thread.
                    std::thread::scope(|scope| {
                        scope.spawn(|| drop(sample.lock().expect("one thread").take()));
                    });
                }
                worker.wait_sync().expect("no failure");
                (0..10_000).for_each(|_| {
                    worker.advance_clock();
                });
                if keeps {
                    eventually(worker, "kept samples bring their keys", |worker| {
                        local(worker).len() == 30
                    });
                }
                (0..20).for_each(|_| worker.wait_sync().expect("no failure"));
                assert_eq!(local(worker).len(), if keeps { 30 } else { 0 }, "{scheme}");
            });
            assert_eq!(
                (cluster.stats().replicas, cluster.stats().sample_unpulled),
                (if keeps { 30 } else { 0 }, 30)
            );
        }
    }
}

/// Keys that a pull under `local` finds here stay for the push, even if another worker brought them
/// and no longer needs them; not where steps are so short that the engines would learn of it too
/// late.
#[test]
fn pulled_keys_stay_until_the_clock_is_raised_where_steps_are_long() {
    for (raises, pause) in [(1, Duration::from_millis(2)), (20_000, Duration::ZERO)] {
        let own = Sampling::uniform(Scheme::Local, Key(0)..Key(KEYS), 4);
        let cluster = cluster(System::Adapm, 2, 2, own);
        let outcome = cluster.run(|mut worker| {
            let (is_here, first) = (worker.node() == NodeId(0), worker.id() == WorkerId(0));
            if !is_here {
                worker.intent(&all_foreign(), Clock(0)..Clock(9)).expect("a window");
                worker.wait_sync().expect("no failure");
            }
            worker.barrier().expect("no failure");
            if is_here && !first {
                worker.intent(&all_foreign(), Clock(0)..Clock(1)).expect("a window");
                eventually(&mut worker, "intent brings keys", |worker| {
                    local(worker) == all_foreign()
                });
            }
            worker.barrier().expect("no failure");
            let mut pulled = Vec::new();
            if is_here && first {
                let all = Clock(0)..Clock::INFINITY;
                let mut sample = worker.prepare_sample(90, all).expect("sampling is configured");
                for _ in 0..3 {
                    let begun = Instant::now();
                    while begun.elapsed() < pause {
                        worker.wait_sync().expect("no failure");
                    }
                    (0..raises).for_each(|_| {
                        worker.advance_clock();
                    });
                    pulled = pull(&mut worker, &mut sample, 30);
                }
            }
            worker.barrier().expect("no failure");
            if is_here && !first {
                worker.advance_clock();
            }
            if is_here && first {
                pulled.retain(|key| home(key.0, 2) == NodeId(1));
                pulled.sort_unstable();
                pulled.dedup();
                let stay = if raises == 1 { pulled } else { Vec::new() };
                eventually(&mut worker, "the others go", |worker| {
                    local(worker).len() <= stay.len()
                });
                (0..20).for_each(|_| worker.wait_sync().expect("no failure"));
                assert_eq!(local(&mut worker), stay);
                worker.advance_clock();
                eventually(&mut worker, "then all go", |worker| local(worker).is_empty());
            }
            worker.barrier().expect("no failure");
        });
        assert_eq!(outcome, Ok(vec![(); 4]));
    }
}

/// Keys that `local` has chosen for a next step that never comes.
#[test]
fn chosen_keys_that_are_not_pulled_are_let_go() {
    let own = Sampling::uniform(Scheme::Local, Key(0)..Key(KEYS), 4);
    let cluster = cluster(System::Adapm, 2, 1, own);
    contended(&cluster, |worker| {
        worker.intent(&all_foreign(), Clock(0)..Clock(2)).expect("a window");
        eventually(worker, "intent brings keys", |worker| {
            local(worker).len() == all_foreign().len()
        });
        let mut sample =
            worker.prepare_sample(400, Clock(0)..Clock(50)).expect("sampling is configured");
        worker.choose_sample(&mut sample).expect("no failure");
        let pulled = pull(worker, &mut sample, 5);
        (0..2).for_each(|_| {
            worker.advance_clock();
        });
        (0..20).for_each(|_| worker.wait_sync().expect("no failure"));
        assert!(local(worker).len() > 50, "chosen keys stay while they may be pulled");
        drop(sample);
        let mut stay: Vec<Key> =
            pulled.into_iter().filter(|key| home(key.0, 2) == NodeId(1)).collect();
        stay.sort_unstable();
        stay.dedup();
        eventually(worker, "then they go, but for those pulled", |worker| local(worker) == stay);
    });
    assert_eq!((cluster.stats().sampled, cluster.stats().sample_unpulled), (5, 395));
}

#[test]
fn what_was_not_pulled_is_counted_under_every_scheme_and_for_every_window() {
    for scheme in Scheme::ALL {
        for window in [WINDOW, Clock(5)..Clock(9), Clock(0)..Clock::INFINITY] {
            let cluster = cluster(System::Adapm, 2, 1, foreign(scheme));
            let work = |worker: &mut crate::IntWorker, window: Range<Clock>| {
                let mut sample = worker.prepare_sample(10, window).expect("sampling is configured");
                assert_eq!(sample.left(), 10);
                pull(worker, &mut sample, 7);
                assert_eq!(sample.finish(), 3);
            };
            let outcome = cluster.run(|mut worker| work(&mut worker, window.clone()));
            assert_eq!(outcome, Ok(vec![(); 2]));
            assert_eq!(
                (cluster.stats().sampled, cluster.stats().sample_unpulled),
                (14, 6),
                "{scheme} {window:?}"
            );
        }
    }
}

/// The cost of dropping a sample does not depend on how many others are open: else engines would be
/// busy for minutes, and their peers would take them for lost.
#[test]
fn many_prepared_samples_are_dropped_while_others_work() {
    const MANY: usize = 20_000;
    for scheme in ANNOUNCING {
        let cluster = cluster(System::Adapm, 2, 1, foreign(scheme));
        contended(&cluster, |worker| {
            let whole = Clock(0)..Clock::INFINITY;
            let mut prepare =
                || worker.prepare_sample(30, whole.clone()).expect("sampling is configured");
            let samples: Vec<_> = (0..MANY).map(|_| prepare()).collect();
            eventually(worker, "drawn keys come", |worker| local(worker) == all_foreign());
            for sample in samples {
                drop(sample);
            }
            eventually(worker, "all go", |worker| local(worker).is_empty());
        });
        assert_eq!(cluster.stats().sample_unpulled, 30 * MANY as u64, "{scheme}");
    }
}

#[test]
fn a_sample_may_outlive_its_cluster() {
    for scheme in Scheme::ALL {
        let kept = {
            let cluster = cluster(System::Adapm, 2, 1, foreign(scheme));
            let prepare =
                |mut worker: crate::IntWorker| worker.prepare_sample(10, Clock(0)..Clock(9));
            let kept = cluster.run(prepare).expect("no failure");
            cluster.shutdown().expect("no failure");
            kept
        };
        let left: Vec<usize> = kept
            .into_iter()
            .map(|sample| sample.expect("sampling is configured").finish())
            .collect();
        assert_eq!(left, [10, 10], "{scheme}");
    }
}
