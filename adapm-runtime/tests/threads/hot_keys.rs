//! Keys that every node holds for the whole run, and the others beside them (NuPS §3, AdaPM §A.5).

use adapm_core::{Clock, Key};
use adapm_runtime::System;

use crate::{Size, builder, is_local};

const KEYS: u64 = 120;

fn hot() -> Vec<Key> {
    (0..KEYS).step_by(10).map(Key).collect()
}

fn cold() -> Vec<Key> {
    (0..KEYS).map(Key).filter(|key| key.0 % 10 != 0).collect()
}

/// A1: from the first access on, to the end of the last worker.
#[test]
fn no_access_of_a_hot_key_waits_or_is_remote() {
    for system in [System::Nups, System::Parallax] {
        let builder = builder(system, Size(3, 2), KEYS, 1).hot_keys(hot());
        let cluster = builder.build().expect("a valid cluster");
        let outcome = cluster.try_run(|mut worker| {
            let (hot, mut values) = (hot(), vec![0; hot().len()]);
            // They stay where they are, whatever is asked for.
            if system == System::Nups {
                worker.localize(&hot)?;
            }
            worker.intent(&hot, Clock(0)..Clock(2))?;
            for _ in 0..50 {
                worker.pull(&hot, &mut values)?;
                worker.push(&hot, &vec![1; hot.len()])?;
                worker.advance_clock();
            }
            worker.quiesce()?;
            worker.pull(&hot, &mut values)?;
            // Some workers are there longer than others.
            let rounds = 5 * u64::from(worker.id().0);
            for _ in 0..rounds {
                worker.wait_sync()?;
                worker.pull(&hot, &mut values)?;
            }
            Ok::<_, adapm_core::error::OpError>(values)
        });
        let values = outcome.expect("no failure");
        assert_eq!(values, vec![vec![300; hot().len()]; 6], "{system}");
        let stats = cluster.stats();
        assert_eq!((stats.waited, stats.remote, stats.relocations), (0, 0, 0), "{system}");
        assert!(stats.local > 0 && stats.local_share() == 1.0, "{system}: {stats:?}");
        assert_eq!(stats.replicas, 2 * hot().len() as u64, "on each node that is not its home");
    }
}

/// A2: the main copy of any other key is its only one. It moves by localize under NuPS; Parallax
/// signals and localizes nothing, and leaves it where it is.
#[test]
fn other_keys_have_one_copy() {
    for (system, hot) in [(System::Nups, hot()), (System::Parallax, hot()), (System::Nups, vec![])]
    {
        let replicas = 3 * hot.len() as u64;
        let builder = builder(system, Size(4, 1), KEYS, 1).hot_keys(hot);
        let cluster = builder.build().expect("a valid cluster");
        let outcome = cluster.try_run(|mut worker| {
            let (all, cold) = ((0..KEYS).map(Key).collect::<Vec<_>>(), cold());
            for turn in 0..4 {
                worker.intent(&cold, worker.clock()..worker.clock() + 9)?;
                if worker.node().0 == turn && system == System::Nups {
                    worker.localize(&all)?;
                    assert!(cold.iter().all(|key| is_local(&mut worker, *key)));
                }
                worker.quiesce()?;
                let expected = worker.node().0 == turn || system == System::Parallax;
                let local = cold.iter().filter(|key| is_local(&mut worker, **key)).count();
                if system == System::Nups {
                    assert_eq!(local, if expected { cold.len() } else { 0 });
                }
                worker.push(&cold, &vec![1; cold.len()])?;
                worker.quiesce()?;
            }
            Ok::<_, adapm_core::error::OpError>(())
        });
        outcome.expect("no failure");
        let mut values = vec![0; cold().len()];
        cluster.read(&cold(), &mut values).expect("the cluster is quiet");
        assert_eq!(values, vec![16; cold().len()], "{system}");
        let stats = cluster.stats();
        assert_eq!(stats.replicas, replicas, "{system}: of hot keys alone");
        assert_eq!(stats.relocations > 0, system == System::Nups, "{system}");
    }
}
