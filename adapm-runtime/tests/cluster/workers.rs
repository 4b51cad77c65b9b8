//! Workers that outlive a closure: handed out once, moved to any thread, used in one phase after
//! another, ended in order.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::thread;
use std::time::Instant;

use adapm_core::error::OpError;
use adapm_core::{Clock, Key, Layout, NodeId, WorkerId};
use adapm_runtime::{Builder, Cluster, IntentHandle, RunError, System, TryRunError, Worker};

use crate::channels;

const W0: WorkerId = WorkerId(0);

fn cluster(system: System, nodes: usize, workers: usize) -> Cluster<i64> {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder =
        Builder::<i64>::new(layout).nodes(nodes).workers(workers).channels(channels::draw());
    builder.system(system).build().expect("a valid cluster")
}

/// Returns all workers, by (node, worker).
fn all(cluster: &Cluster<i64>) -> Vec<Worker<i64>> {
    let nodes = (0..cluster.nodes() as u16).map(NodeId);
    let places = nodes.flat_map(|node| {
        (0..cluster.workers().of(node) as u16).map(move |id| (node, WorkerId(id)))
    });
    places.map(|(node, id)| cluster.worker(node, id).expect("it is free")).collect()
}

fn keys() -> Vec<Key> {
    (0..100).map(Key).collect()
}

fn values(cluster: &Cluster<i64>) -> Vec<i64> {
    let mut values = vec![0; 100];
    assert_eq!(cluster.read(&keys(), &mut values), Ok(vec![]));
    values
}

#[test]
fn workers_and_handles_move_to_any_thread() {
    fn moves<T: Send + 'static>() {}
    moves::<Worker<f32>>();
    moves::<IntentHandle<f32>>();
    moves::<Cluster<f32>>();
}

/// Each phase has threads of its own; shards are moved in, and come back with the worker.
#[test]
fn one_phase_follows_another_with_the_same_workers() {
    for system in System::ALL {
        let cluster = cluster(system, 2, 2);
        let shards = (1..=4).map(|update| vec![update; 100]);
        let mut shards: Vec<(Worker<i64>, Vec<i64>)> =
            all(&cluster).into_iter().zip(shards).collect();
        for phase in 1..=3 {
            let threads = shards.into_iter().map(|(mut worker, shard)| {
                thread::spawn(move || {
                    assert_eq!(worker.clock(), Clock(10 * (phase - 1)), "it goes on where it was");
                    let clock = worker.advance_clock_by(10);
                    assert_eq!(clock, Clock(10 * phase));
                    worker.intent(&keys(), clock..clock + 10)?;
                    worker.push(&keys(), &shard)?;
                    worker.quiesce()?;
                    let mut seen = vec![0; 100];
                    worker.pull(&keys(), &mut seen)?;
                    assert_eq!(seen, [10 * phase as i64; 100]);
                    worker.barrier()?;
                    Ok::<_, OpError>((worker, shard))
                })
            });
            // All are started before the first is waited for.
            let threads: Vec<_> = threads.collect();
            let done = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            shards = done.collect::<Result<_, _>>().expect("no failure");
        }
        drop(shards);
        assert_eq!(cluster.finish(), Ok(()), "{system}");
        assert_eq!(values(&cluster), [30; 100], "{system}");
        assert_eq!((cluster.finish(), cluster.shutdown()), (Ok(()), Ok(())));
    }
}

#[test]
fn a_worker_exists_once() {
    let cluster = cluster(System::Adapm, 2, 1);
    let (n0, n1, n2) = (NodeId(0), NodeId(1), NodeId(2));
    let worker = cluster.worker(n1, W0).expect("it is free");
    assert_eq!((worker.node(), worker.id()), (n1, W0));
    let taken = RunError::Taken { node: n1, worker: W0 };
    assert_eq!(cluster.worker(n1, W0).map(drop), Err(taken.clone()));
    assert_eq!(cluster.run(|_| ()), Err(taken), "some are out");
    for (node, worker) in [(n2, W0), (n0, WorkerId(1))] {
        assert_eq!(
            cluster.worker(node, worker).map(drop),
            Err(RunError::UnknownWorker { node, worker })
        );
    }
    drop(worker);
    assert_eq!(cluster.finish(), Ok(()), "the one that nobody took ends, too");
    assert_eq!(cluster.worker(n0, W0).map(drop), Err(RunError::Finished));
    assert_eq!(cluster.run(|_| ()), Err(RunError::Finished));
}

#[test]
fn a_cluster_does_not_finish_before_its_workers() {
    let cluster = cluster(System::Adapm, 2, 1);
    assert_eq!(values(&cluster), [0; 100], "it is at rest before the first worker");
    let mut worker = cluster.worker(NodeId(1), W0).expect("it is free");
    let in_use = RunError::InUse { node: NodeId(1), worker: W0 };
    assert_eq!(cluster.finish(), Err(in_use.clone()));
    assert_eq!(
        in_use.to_string(),
        "worker w0 of node n1 is in use: drop it before the cluster finishes"
    );
    assert_eq!(worker.push(&keys(), &[3; 100]), Ok(()), "nothing has changed");
    assert_eq!(cluster.read(&keys(), &mut [0; 100]), Err(RunError::Running));
    drop(worker);
    assert_eq!(cluster.read(&keys(), &mut [0; 100]), Err(RunError::Running));
    assert_eq!(cluster.finish(), Ok(()));
    assert_eq!(values(&cluster), [3; 100]);
}

#[test]
fn a_cluster_that_nobody_finishes_ends_all_the_same() {
    for drops_first in [true, false] {
        let cluster = cluster(System::Adapm, 2, 2);
        let mut workers = all(&cluster);
        for worker in &mut workers {
            drop(worker.push_async(&keys(), &[1; 100]).expect("known keys"));
        }
        if drops_first {
            workers.clear();
        }
        assert_eq!(cluster.shutdown(), Ok(()));
        for worker in &mut workers {
            assert_eq!(worker.pull(&keys(), &mut [0; 100]), Err(OpError::Ended));
        }
    }
}

#[test]
fn a_worker_that_is_dropped_by_a_panic_fails_the_cluster() {
    let cluster = cluster(System::Adapm, 2, 1);
    let mut workers = all(&cluster);
    let (doomed, mut other) = (workers.remove(1), workers.remove(0));
    let thread = thread::spawn(move || {
        let _doomed = doomed;
        std::panic::resume_unwind(Box::new("planned"));
    });
    thread.join().expect_err("it panics");
    let error = loop {
        if let Err(error) = other.wait_sync() {
            break error;
        }
    };
    assert_eq!(error, OpError::Ended);
    let text = "worker w0 of node n1 panicked: see its message above";
    assert_eq!(cluster.finish().expect_err("a worker is missing").to_string(), text);
    assert_eq!(cluster.worker(NodeId(0), W0).expect_err("it has failed").to_string(), text);
}

/// A user-defined error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Diverged(u64);

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} diverged", self.0)
    }
}

impl Error for Diverged {}

/// The other workers loop forever: they end, and their later errors are not reported.
#[test]
fn the_first_error_ends_the_work_and_names_node_and_worker() {
    let cluster = cluster(System::Adapm, 2, 2);
    let outcome = cluster.try_run(|mut worker| {
        worker.barrier().expect("all are there");
        if (worker.node(), worker.id()) == (NodeId(1), WorkerId(1)) {
            return Err(Diverged(17));
        }
        while worker.wait_sync().is_ok() {}
        if worker.id() == W0 { Err(Diverged(99)) } else { Ok(()) }
    });
    let (node, worker) = (NodeId(1), WorkerId(1));
    let error = outcome.expect_err("a worker has failed");
    assert_eq!(error, TryRunError::Worker { node, worker, error: Diverged(17) });
    assert_eq!(error.to_string(), "worker w1 of node n1: step 17 diverged");
    let source = error.source().and_then(|source| source.downcast_ref::<Diverged>());
    assert_eq!(source, Some(&Diverged(17)));
    let failed = RunError::WorkerFailed { node, worker, message: "step 17 diverged".to_owned() };
    assert_eq!(failed.to_string(), "worker w1 of node n1 failed: step 17 diverged");
    assert_eq!(cluster.read(&keys(), &mut [0; 100]), Err(failed.clone()));
    assert_eq!(cluster.shutdown(), Err(failed));
}

#[test]
fn work_that_can_fail_and_does_not_returns_its_results_in_order() {
    let cluster = cluster(System::Adapm, 2, 2);
    let results = cluster.try_run(|mut worker| {
        worker.push(&keys(), &[1; 100])?;
        Ok::<_, OpError>((worker.node().0, worker.id().0))
    });
    assert_eq!(results, Ok(vec![(0, 0), (0, 1), (1, 0), (1, 1)]));
    assert_eq!(values(&cluster), [4; 100]);
}

#[test]
fn a_panic_names_node_and_worker() {
    let cluster = cluster(System::Adapm, 2, 1);
    let outcome = cluster.try_run(|worker| {
        if worker.node() == NodeId(1) {
            std::panic::resume_unwind(Box::new("planned"));
        }
        Ok::<(), OpError>(())
    });
    let error = outcome.expect_err("a worker panics");
    let panicked =
        RunError::WorkerPanicked { node: NodeId(1), worker: W0, message: "planned".to_owned() };
    assert_eq!(error, TryRunError::Cluster(panicked.clone()));
    assert_eq!(error.to_string(), "worker w0 of node n1 panicked: planned");
    assert_eq!(error.source().and_then(|source| source.downcast_ref()), Some(&panicked));
}

#[test]
fn a_visit_ends_at_its_first_error() {
    let cluster = cluster(System::Adapm, 2, 1);
    let mut visited = Vec::new();
    let outcome = cluster.try_visit_main(|key, _| -> Result<(), Box<dyn Error>> {
        visited.push(key);
        if key == Key(5) { Err(Diverged(key.0).into()) } else { Ok(()) }
    });
    assert_eq!(outcome.expect_err("the sixth fails").to_string(), "step 5 diverged");
    assert_eq!(visited, (0..=5).map(Key).collect::<Vec<_>>());
    let _worker = cluster.worker(NodeId(0), W0).expect("it is free");
    let running = cluster.try_visit_main(|_, _| Ok::<(), RunError>(()));
    assert_eq!(running, Err(RunError::Running));
}

#[test]
fn a_read_tells_which_keys_are_not_here() {
    let layout = Layout::sparse(&[(1 << 40, 1)]).expect("a valid layout");
    let cluster = Builder::<i64>::new(layout).nodes(2).build().expect("a valid cluster");
    cluster
        .try_run(|mut worker| worker.push(&[Key(7), Key(1 << 39)], &[1, 2]))
        .expect("no failure");
    let mut values = [-1; 5];
    let asked = [Key(7), Key(8), Key(1 << 39), Key(9), Key(8)];
    assert_eq!(cluster.read(&asked, &mut values), Ok(vec![Key(8), Key(9), Key(8)]));
    assert_eq!(values, [2, -1, 4, -1, -1], "the others' places are as they were");
}

/// Machines that differ (AdaPM §4.2): no engine knows how many workers other nodes have.
#[test]
fn nodes_may_have_unequal_numbers_of_workers() {
    for system in System::ALL {
        let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
        let builder = Builder::<i64>::new(layout).nodes(3).workers([2, 1, 3]).system(system);
        let cluster = builder.channels(channels::draw()).build().expect("a valid cluster");
        let numbers = cluster.try_run(|mut worker| {
            assert_eq!(worker.all_workers(), 6);
            assert_eq!(worker.workers(), [2, 1, 3][worker.node().index()]);
            for _ in 0..20 {
                let clock = worker.clock();
                worker.intent(&keys(), clock..Clock(clock.0 + 1))?;
                worker.push(&keys(), &[1; 100])?;
                worker.advance_clock();
            }
            worker.barrier()?;
            worker.quiesce()?;
            let mut seen = [0];
            worker.pull(&[Key(42)], &mut seen)?;
            assert_eq!(seen, [6 * 20], "{system}");
            Ok::<_, OpError>(worker.number())
        });
        assert_eq!(numbers.expect("it runs"), [0, 1, 2, 3, 4, 5], "{system}");
        assert_eq!(values(&cluster), [6 * 20; 100], "{system}");
    }
}

/// A call that is served at once is no wait, nor is one whose result nobody waits for in the call.
#[test]
fn waits_are_counted_one_by_one() {
    let counts = |work: fn(&mut Worker<i64>, Key) -> Result<(), OpError>| {
        let cluster = cluster(System::Classic, 2, 1);
        let run = cluster.try_run(|mut worker| {
            keys().into_iter().try_for_each(|key| work(&mut worker, key))?;
            worker.wait_all()
        });
        run.expect("the cluster lives");
        let stats = cluster.stats();
        assert!(stats.remote > 0 && stats.local > 0, "{stats:?}");
        stats
    };
    let stats = counts(|worker, key| {
        worker.pull(&[key], &mut [0])?;
        worker.push(&[key], &[1])
    });
    assert_eq!((stats.accesses(), stats.blocked.count()), (2 * 2 * 100, stats.remote));
    assert!(stats.blocked_seconds() > 0.0);
    let stats = counts(|worker, key| worker.push_async(&[key], &[1]).map(drop));
    assert_eq!((stats.accesses(), stats.blocked.count()), (2 * 100, 0));
}

#[test]
fn rounds_are_no_more_than_allowed() {
    let layout = Layout::dense(&[(100, 1)]).expect("a valid layout");
    let builder = Builder::<i64>::new(layout).nodes(2).channels(1);
    let most = NonZeroU32::new(50).expect("it is not 0");
    let cluster = builder.rounds_per_second(most).build().expect("a valid cluster");
    let begun = Instant::now();
    cluster
        .try_run(|mut worker| {
            worker.intent(&keys(), Clock(0)..Clock::INFINITY)?;
            // Replicas that both sides write have something to report in every round.
            while cluster.stats().rounds < 12 {
                worker.push(&keys(), &[1; 100])?;
            }
            worker.barrier()?;
            if worker.number() == 0 {
                let rounds = cluster.stats().rounds;
                let allowed = begun.elapsed().as_secs_f64() * f64::from(most.get());
                assert!(rounds as f64 <= 2.0 * (allowed + 1.0), "{rounds} rounds of {allowed}");
            }
            worker.barrier()
        })
        .expect("it runs");
    assert_eq!(values(&cluster)[0], values(&cluster)[99]);
}
