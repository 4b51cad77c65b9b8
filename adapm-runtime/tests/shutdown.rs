//! Clusters end in order: whatever workers do or fail to do, no wait hangs and nothing sent is
//! lost.

use std::sync::{Arc, Mutex, mpsc};

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, NodeId, WorkerId};
use adapm_runtime::{Builder, Cluster, Notice, RunError, System};

#[path = "support/channels.rs"]
mod channels;

fn cluster(system: System, nodes: usize, workers: usize) -> Cluster<i64> {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder =
        Builder::<i64>::new(layout).nodes(nodes).workers(workers).channels(channels::draw());
    builder.system(system).build().expect("a valid cluster")
}

#[test]
fn a_cluster_that_never_ran_ends() {
    for system in System::ALL {
        drop(cluster(system, 3, 2));
        assert_eq!(cluster(system, 1, 1).shutdown(), Ok(()));
    }
}

#[test]
fn run_returns_when_everything_is_applied_everywhere() {
    for system in System::ALL {
        let cluster = cluster(system, 3, 2);
        let outcome = cluster.run(|mut worker| {
            let keys: Vec<Key> = (0..100).map(Key).collect();
            worker.intent(&keys, Clock(0)..Clock(1_000)).expect("a window");
            for _ in 0..50 {
                drop(worker.push_async(&keys, &[1; 100]).expect("known keys"));
            }
        });
        assert_eq!(outcome, Ok(vec![(); 6]), "{system}");
        let mut values = vec![0; 100];
        let keys: Vec<Key> = (0..100).map(Key).collect();
        assert_eq!(cluster.read(&keys, &mut values), Ok(vec![]));
        assert_eq!(values, [300; 100], "{system}");
        let before = cluster.stats();
        assert_eq!(cluster.stats(), before, "a cluster at rest changes nothing");
        // A replica ends by a release, or because its node becomes the owner.
        let ended = before.releases + before.relocations;
        assert!(before.replicas <= ended, "{system}: ended workers hold no replicas");
        assert_eq!(cluster.shutdown(), Ok(()));
    }
}

#[test]
fn workers_exist_once() {
    let cluster = cluster(System::Adapm, 2, 1);
    assert_eq!(cluster.run(|worker| worker.node()), Ok(vec![NodeId(0), NodeId(1)]));
    assert_eq!(cluster.run(|worker| worker.node()), Err(RunError::Finished));
    assert_eq!(cluster.shutdown(), Ok(()));
}

#[test]
fn a_running_cluster_cannot_be_read_but_tells_its_totals() {
    let cluster = cluster(System::Classic, 2, 1);
    let outcome = cluster.run(|mut worker| {
        let mut value = [0];
        assert_eq!(cluster.read(&[Key(0)], &mut value), Err(RunError::Running));
        assert_eq!(cluster.visit_main(|_, _| ()), Err(RunError::Running));
        let before = cluster.node_stats(worker.node()).expect("a node").accesses();
        worker.pull(&[Key(0)], &mut value).expect("a known key");
        assert_eq!(cluster.node_stats(worker.node()).expect("a node").accesses(), before + 1);
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
    assert_eq!(cluster.stats().accesses(), 2);
    assert_eq!(cluster.node_stats(NodeId(2)), None);
}

#[test]
fn nobody_waits_for_a_worker_that_ended() {
    let cluster = cluster(System::Adapm, 3, 2);
    let outcome = cluster.run(|mut worker| {
        if worker.node() == NodeId(1) || worker.id() == WorkerId(1) {
            return;
        }
        worker.barrier().expect("no failure");
        worker.quiesce().expect("no failure");
        worker.wait_sync().expect("no failure");
    });
    assert_eq!(outcome, Ok(vec![(); 6]));
}

/// The other workers loop forever: they end with their next wait.
#[test]
fn the_panic_of_a_worker_ends_the_run_and_names_it() {
    for payload in ["planned", "in two\nlines"] {
        let cluster = cluster(System::Adapm, 2, 2);
        let errors = Mutex::new(Vec::new());
        let outcome = cluster.run(|mut worker| {
            worker.push(&[Key(5)], &[1]).expect("a known key");
            worker.barrier().expect("all are there");
            if worker.node() == NodeId(1) && worker.id() == WorkerId(0) {
                std::panic::resume_unwind(Box::new(payload));
            }
            let error = loop {
                if let Err(error) = worker.wait_sync() {
                    break error;
                }
            };
            errors.lock().expect("no panic while it is held").push(error);
        });
        let (node, worker) = (NodeId(1), WorkerId(0));
        let panicked = RunError::WorkerPanicked { node, worker, message: payload.to_owned() };
        assert_eq!(outcome, Err(panicked.clone()));
        let line = format!("worker w0 of node n1 panicked: {}", payload.replace('\n', "\\n"));
        assert_eq!(panicked.to_string(), line);
        assert_eq!(*errors.lock().expect("not poisoned"), vec![OpError::Ended; 3]);
        assert_eq!(cluster.read(&[Key(5)], &mut [0]), Err(panicked.clone()));
        assert_eq!(cluster.shutdown(), Err(panicked));
    }
}

/// They would wait for each other in silence. The third ends them once it has seen which workers
/// are missing from which call.
#[test]
fn workers_that_mix_barrier_and_quiesce_are_told_of_each_other() {
    let (sender, notices) = mpsc::channel();
    let notices = Mutex::new(notices);
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder = Builder::<i64>::new(layout).workers(3).channels(channels::draw());
    let told = move |notice: Notice| sender.send(notice.to_string()).expect("the test listens");
    let cluster = builder.report(told).build().expect("a valid cluster");
    let outcome = cluster.run(|mut worker| match worker.id() {
        WorkerId(0) => assert_eq!(worker.barrier(), Err(OpError::Ended)),
        WorkerId(1) => assert_eq!(worker.quiesce(), Err(OpError::Ended)),
        _ => {
            let notices = notices.lock().expect("one worker listens");
            let mut texts: Vec<String> = notices.iter().take(2).collect();
            texts.sort_unstable();
            let same = "all workers must make the same calls in the same order";
            let barrier = "barrier has waited for 5 s for w1 of n0 (in quiesce), w2 of n0";
            let quiesce = "quiesce has waited for 5 s for w0 of n0 (in barrier), w2 of n0";
            assert_eq!(texts, [barrier, quiesce].map(|text| format!("{text}: {same}")));
            std::panic::resume_unwind(Box::new("seen"));
        }
    });
    let (node, worker) = (NodeId(0), WorkerId(2));
    assert_eq!(outcome, Err(RunError::WorkerPanicked { node, worker, message: "seen".to_owned() }));
}

#[test]
fn what_outlives_its_worker_answers_that_it_has_ended() {
    let cluster = cluster(System::Adapm, 2, 1);
    let handles = cluster.run(|worker| worker.intent_handle()).expect("no failure");
    for mut handle in handles {
        assert!(handle.clock().is_ended());
        assert_eq!(handle.intent(&[Key(1)], Clock(0)..Clock(1)), Err(OpError::Ended));
        assert_eq!(handle.localize(&[Key(1)]), Err(OpError::Ended));
    }
    let cluster = self::cluster(System::Adapm, 2, 1);
    let workers = cluster.run(|worker| worker).expect("no failure");
    let keys: Vec<Key> = (0..100).map(Key).collect();
    for mut worker in workers {
        let [here, there] = [worker.node(), NodeId(1 - worker.node().0)].map(|node| {
            (0..).map(Key).find(|key| Layout::home(*key, 2) == node).expect("every node has keys")
        });
        for keys in [vec![here], vec![there], vec![here, there], vec![here, here]] {
            let mut values = vec![0; keys.len()];
            assert_eq!(worker.pull(&keys, &mut values), Err(OpError::Ended), "{keys:?}");
            assert_eq!(worker.push(&keys, &vec![1; keys.len()]), Err(OpError::Ended), "{keys:?}");
            let ticket =
                worker.push_async(&keys, &vec![1; keys.len()]).expect("told by the ticket");
            assert_eq!(ticket.wait(), Err(OpError::Ended), "{keys:?}");
        }
        assert_eq!(worker.pull_if_local(here, &mut [0]), Err(OpError::Ended));
        assert_eq!(worker.set(&[here], &[0]), Err(OpError::Ended));
        assert_eq!(worker.localize(&[there]), Err(OpError::Ended));
        assert_eq!(worker.intent(&[there], Clock(0)..Clock(9)), Err(OpError::Ended));
        assert_eq!(
            [worker.barrier(), worker.wait_sync()],
            [Err(OpError::Ended), Err(OpError::Ended)]
        );
        assert_eq!(
            worker.pull_async(&[there]).expect("told by the ticket").wait(),
            Err(OpError::Ended)
        );
        assert_eq!(worker.wait_all(), Err(OpError::Ended));
        assert_eq!(worker.wait_all(), Ok(()));
        let mut values = [7; 100];
        assert_eq!(cluster.read(&keys, &mut values), Ok(vec![]));
        assert_eq!(values, [0; 100], "a worker that has ended writes nothing");
    }
}

#[test]
fn a_channel_thread_that_panics_ends_the_cluster() {
    struct Refuses;
    impl adapm_core::policy::Policy for Refuses {
        fn place(&mut self, _: &adapm_core::policy::View<'_>) -> adapm_core::policy::Placement {
            std::panic::resume_unwind(Box::new("planned"))
        }

        fn act_before(&mut self, _: WorkerId, _: Clock) -> Clock {
            Clock::INFINITY
        }
    }
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let cluster = Builder::<i64>::new(layout)
        .nodes(2)
        .channels(channels::draw())
        .policy(|_| Refuses)
        .build()
        .expect("valid");
    let errors = Arc::new(Mutex::new(Vec::new()));
    let outcome = cluster.run(|mut worker| {
        let keys: Vec<Key> = (0..100).map(Key).collect();
        let signaled = worker.intent(&keys, Clock(0)..Clock(9));
        // Sooner or later a round acts on the intent.
        let waited = (0..100_000).try_fold((), |(), _| worker.wait_sync());
        let waited = signaled.and(waited).and_then(|()| worker.barrier());
        errors.lock().expect("no panic").push(waited);
    });
    assert!(matches!(outcome, Err(RunError::ChannelPanicked { .. })), "{outcome:?}");
    // A worker whose thread begins when the cluster has ended does not run.
    let errors = errors.lock().expect("no panic");
    assert!(
        !errors.is_empty() && errors.iter().all(|error| *error == Err(OpError::Ended)),
        "{errors:?}"
    );
    assert!(matches!(cluster.read(&[Key(0)], &mut [0]), Err(RunError::ChannelPanicked { .. })));
    assert!(matches!(cluster.shutdown(), Err(RunError::ChannelPanicked { .. })));
}

#[test]
fn a_panic_in_the_initial_values_is_an_error_of_build() {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder =
        Builder::<i64>::new(layout).nodes(2).channels(channels::draw()).initial(|key, _| {
            if key == Key(50) {
                std::panic::resume_unwind(Box::new("planned"));
            }
        });
    let error = builder.build().map(drop).expect_err("half of the keys have no value");
    assert_eq!(error.to_string(), "the function of initial values panicked: planned");
}
