//! Workers that outlive a closure, in processes that use theirs in different ways.

use std::thread;

use adapm_core::transport::CloseReason;
use adapm_core::{NodeId, WorkerId};
use adapm_runtime::{RunError, System};

use super::{KEYS, builder, each, keys};

/// One process runs a closure, one has a worker of its own in two phases, one takes none and
/// finishes, one only ends.
#[test]
fn processes_that_use_their_workers_in_different_ways_work_together() {
    for system in [System::Adapm, System::Full] {
        let sums = each(4, |group| {
            let cluster = builder().system(system).nodes(&group).build().expect("a valid cluster");
            let (node, update) = (group.node(), [1; KEYS as usize]);
            match node {
                NodeId(0) => drop(
                    cluster
                        .try_run(|mut worker| worker.push(&keys(), &update))
                        .expect("no failure"),
                ),
                NodeId(1) => {
                    let mut worker = cluster.worker(node, WorkerId(0)).expect("it is free");
                    for _ in 0..2 {
                        let phase = thread::spawn(move || {
                            worker.push(&keys(), &update).expect("no failure");
                            worker.quiesce().expect("no failure");
                            worker
                        });
                        worker = phase.join().expect("no panic");
                    }
                    let other = RunError::UnknownWorker { node: NodeId(0), worker: WorkerId(0) };
                    assert_eq!(cluster.worker(NodeId(0), WorkerId(0)).map(drop), Err(other));
                    drop(worker);
                    cluster.finish().expect("no failure");
                }
                NodeId(2) => cluster.finish().expect("no failure"),
                _ => {
                    cluster.shutdown().expect("no failure");
                    group.leave(CloseReason::Finished);
                    return Vec::new();
                }
            }
            let mut here = Vec::new();
            let mut values = vec![0; KEYS as usize];
            let elsewhere = cluster.read(&keys(), &mut values).expect("no failure");
            for (key, value) in keys().into_iter().zip(values) {
                if elsewhere.contains(&key) {
                    assert_eq!(value, 0, "its place is as it was");
                } else {
                    here.push((key, value));
                }
            }
            cluster.shutdown().expect("no failure");
            group.leave(CloseReason::Finished);
            here
        });
        let mut all: Vec<_> = sums.into_iter().flatten().collect();
        all.sort();
        assert!(all.len() < KEYS as usize, "the last process has some");
        assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "each key is in one process");
        assert!(all.iter().all(|(_, value)| *value == 3), "{system}: {all:?}");
    }
}
