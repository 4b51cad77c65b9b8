//! Clusters end in order: whatever workers do or fail to do, nobody waits in vain and nothing sent is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, NodeId, WorkerId};
use adapm_runtime::{Builder, Cluster, LayoutStore, RunError, System};

#[path = "support/channels.rs"]
mod channels;

fn cluster(system: System, nodes: usize, workers: usize) -> Cluster<LayoutStore<i64>> {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder = Builder::<i64>::new(layout).nodes(nodes).workers(workers).channels(channels::draw());
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
        assert_eq!(cluster.read(&keys, &mut values), Ok(()));
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
    assert_eq!(cluster.run(|worker| worker.node()), Err(RunError::AlreadyRun));
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

#[test]
fn a_worker_that_panics_ends_and_its_panic_is_told() {
    let cluster = cluster(System::Adapm, 2, 2);
    let ended = Mutex::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        cluster.run(|mut worker| {
            worker.push(&[Key(5)], &[1]).expect("a known key");
            if worker.node() == NodeId(1) && worker.id() == WorkerId(0) {
                std::panic::resume_unwind(Box::new("planned"));
            }
            worker.barrier().expect("the panic is another's");
            worker.quiesce().expect("the panic is another's");
            *ended.lock().expect("no panic while it is held") += 1;
        })
    }));
    let payload = outcome.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"planned"));
    assert_eq!(*ended.lock().expect("not poisoned"), 3);
    let mut value = [0];
    assert_eq!(cluster.read(&[Key(5)], &mut value), Ok(()));
    assert_eq!(value, [4], "nothing is lost");
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
    for mut worker in workers {
        let [here, there] = [worker.node(), NodeId(1 - worker.node().0)].map(|node| {
            (0..).map(Key).find(|key| Layout::home(*key, 2) == node).expect("every node has keys")
        });
        assert_eq!(worker.pull(&[here], &mut [0]), Ok(()), "what is here can be read");
        assert_eq!(worker.pull(&[there, here], &mut [0, 0]), Err(OpError::Ended));
        assert_eq!(worker.push(&[there], &[0]), Err(OpError::Ended));
        assert_eq!(worker.set(&[here], &[0]), Err(OpError::Ended));
        assert_eq!(worker.localize(&[there]), Err(OpError::Ended));
        assert_eq!(worker.intent(&[there], Clock(0)..Clock(9)), Err(OpError::Ended));
        assert_eq!([worker.barrier(), worker.wait_sync()], [Err(OpError::Ended), Err(OpError::Ended)]);
        assert_eq!(worker.pull_async(&[there]).expect("told by the ticket").wait(), Err(OpError::Ended));
        assert_eq!(worker.wait_all(), Err(OpError::Ended));
        assert_eq!(worker.wait_all(), Ok(()));
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
        .policy(|_, _| Refuses)
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
    assert_eq!(*errors.lock().expect("no panic"), [Err(OpError::Ended), Err(OpError::Ended)]);
    assert!(matches!(cluster.read(&[Key(0)], &mut [0]), Err(RunError::ChannelPanicked { .. })));
    assert!(matches!(cluster.shutdown(), Err(RunError::ChannelPanicked { .. })));
}

#[test]
fn a_panic_in_the_initial_values_is_told_by_build() {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder = Builder::<i64>::new(layout).nodes(2).channels(channels::draw()).initial(|key, _| {
        if key == Key(50) {
            std::panic::resume_unwind(Box::new("planned"));
        }
    });
    let payload =
        catch_unwind(AssertUnwindSafe(|| builder.build())).map(drop).expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"planned"));
}
