//! Workers that wait for each other at clocks, under the systems that bound how far they are apart
//! (AdaPM §A.3, OSDI'14 §3.5), by real threads.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::{BuildError, Builder, Cluster, System, Worker};

use crate::channels;

const KEYS: u64 = 24;

fn builder(system: System) -> Builder<i64> {
    let layout = Layout::dense(&[(KEYS, 1)]).expect("a valid layout");
    let builder = Builder::new(layout).system(system).nodes(3).workers([2, 1, 2]);
    let builder = builder.channels(channels::draw());
    match system {
        System::HetGmp { .. } => builder.hot_keys_by_node(replicas()),
        _ => builder,
    }
}

/// The keys of which each node has replicas under HET-GMP.
fn replicas() -> [Vec<Key>; 3] {
    [0, 1, 3].map(|parts| (0..KEYS).filter(|key| key % 3 < parts).map(Key).collect())
}

fn bounded(system: System, bound: Option<u32>) -> Cluster<i64> {
    bound.into_iter().fold(builder(system), Builder::bound).build().expect("valid")
}

/// The systems in which workers advance together.
fn lockstep() -> [(System, Option<u32>); 6] {
    [
        (System::Bsp, None),
        (System::Ssp { staleness: 0 }, None),
        (System::Essp { staleness: 0 }, None),
        (System::HetGmp { staleness: 0 }, None),
        (System::Adapm, Some(0)),
        (System::Full, Some(0)),
    ]
}

/// Returns what a worker adds to a key in a superstep that begins with these values.
fn update(worker: u64, key: u64, values: &[i64]) -> i64 {
    let other = values[(key as usize * 7 + 3) % values.len()];
    (other % 1_000) * (1 + worker as i64) + key as i64 + 1
}

/// Steps in which all read, then all write, are those of one worker that does it all, bit for bit.
#[test]
fn supersteps_are_those_of_one_worker() {
    const STEPS: usize = 12;
    let mut expected = vec![0_i64; KEYS as usize];
    for _ in 0..STEPS {
        let before = expected.clone();
        for worker in 0..5 {
            for key in 0..KEYS {
                expected[key as usize] += update(worker, key, &before);
            }
        }
    }
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    for (system, bound) in lockstep() {
        let cluster = bounded(system, bound);
        let run = cluster.try_run(|mut worker| {
            let mut values = vec![0; KEYS as usize];
            for _ in 0..STEPS {
                let clock = worker.clock();
                worker.intent(&keys, clock..clock + 2)?;
                worker.pull(&keys, &mut values)?;
                worker.advance_clock();
                let number = worker.number() as u64;
                let updates: Vec<i64> = (0..KEYS).map(|key| update(number, key, &values)).collect();
                worker.push(&keys, &updates)?;
                worker.advance_clock();
            }
            worker.pull(&keys, &mut values)?;
            Ok::<Vec<i64>, OpError>(values)
        });
        for values in run.expect("the cluster lives") {
            assert_eq!(values, expected, "{system} {bound:?}");
        }
        cluster.shutdown().expect("all have ended");
    }
}

/// Passes clocks at a pace of its own; reads at each what all have pushed early enough.
fn run_apart(worker: &mut Worker<i64>, ticks: u64, reached: &[AtomicU64]) -> Result<(), OpError> {
    let number = worker.number();
    for clock in 1..=40_u64 {
        worker.push(&[Key(clock % KEYS)], &[1])?;
        if clock % 5 == number as u64 {
            (0..200).for_each(|_| std::thread::yield_now());
        }
        reached[number].store(clock, Ordering::SeqCst);
        worker.advance_clock();
        let least = reached.iter().map(|reached| reached.load(Ordering::SeqCst)).min();
        assert!(least >= Some(clock.saturating_sub(ticks)), "{number} at {clock}: {least:?}");
        // The key that all have pushed to in the clock that must be seen.
        let Some(seen) = clock.checked_sub(ticks).filter(|seen| *seen > 0) else { continue };
        let mut value = [0];
        worker.pull(&[Key(seen % KEYS)], &mut value)?;
        let pushes = seen.div_ceil(KEYS) as i64;
        assert!(value[0] >= 5 * pushes, "{number} at {clock} reads {value:?} of clock {seen}");
    }
    Ok(())
}

#[test]
fn nobody_is_further_ahead_than_the_bound_and_no_read_is_older() {
    let systems = [
        (System::Ssp { staleness: 2 }, None, 2),
        (System::Essp { staleness: 1 }, None, 1),
        (System::BoundedDelay { delay: 3 }, None, 3),
        (System::Adapm, Some(1), 1),
        (System::Lapse, Some(0), 0),
    ];
    for (system, bound, ticks) in systems {
        let cluster = bounded(system, bound);
        let reached: Vec<AtomicU64> = (0..5).map(|_| AtomicU64::new(0)).collect();
        let run = cluster.try_run(|mut worker| run_apart(&mut worker, ticks, &reached));
        run.unwrap_or_else(|error| panic!("{system}: {error}"));
        assert!(cluster.stats().gated_nanos > 0, "{system}: somebody is slow");
        cluster.shutdown().expect("all have ended");
    }
}

/// Workers with unequal numbers of clocks meet at barriers, and one ends early: nobody waits for
/// who waits or has ended, and behind a barrier all is seen.
#[test]
fn who_waits_at_a_barrier_or_has_ended_holds_nobody_up() {
    for (system, bound) in lockstep().into_iter().chain([(System::Ssp { staleness: 3 }, None)]) {
        let cluster = bounded(system, bound);
        let run = cluster.try_run(|mut worker| {
            let number = worker.number() as u64;
            for round in 1..=4_u64 {
                for _ in 0..number * round {
                    worker.push(&[Key(number)], &[1])?;
                    worker.advance_clock();
                }
                if round % 2 == 0 {
                    worker.quiesce()?
                } else {
                    worker.barrier()?
                }
                let mut values = [0; 5];
                worker.pull(&[0, 1, 2, 3, 4].map(Key), &mut values)?;
                let expected =
                    [0, 1, 2, 3, 4].map(|number| number * (round * (round + 1) / 2) as i64);
                assert_eq!(values, expected, "{system} {number} behind {round}");
                // Nobody pushes before all have read.
                worker.barrier()?;
                if number == 4 && round == 3 {
                    return Ok(());
                }
                // What the one that has ended would have pushed.
                if number == 0 && round == 3 {
                    worker.push(&[Key(4)], &[16])?;
                }
            }
            Ok::<(), OpError>(())
        });
        run.unwrap_or_else(|error| panic!("{system}: {error}"));
        cluster.shutdown().expect("all have ended");
    }
}

/// Eager SSP sets up a copy once for each node and key, however often it is read (B5).
#[test]
fn eager_copies_are_set_up_once() {
    let cluster = bounded(System::Essp { staleness: 1 }, None);
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    let run = cluster.try_run(|mut worker| {
        for _ in 0..30 {
            worker.pull(&keys, &mut [0; KEYS as usize])?;
            worker.push(&keys, &[1; KEYS as usize])?;
            worker.advance_clock();
        }
        Ok::<(), OpError>(())
    });
    run.expect("the cluster lives");
    let replicas = cluster.stats().replicas;
    assert!(replicas > 0 && replicas <= 3 * KEYS, "{replicas} replicas were set up");
    cluster.shutdown().expect("all have ended");
}

/// Only once in so many clocks does a worker wait.
#[test]
fn clocks_may_count_together() {
    let every = NonZeroU32::new(10).expect("positive");
    let cluster = builder(System::Bsp).clocks_per_tick(every).build().expect("valid");
    let run = cluster.try_run(|mut worker| {
        // The first worker stands still at clock 9: all others may reach that, and nobody passes.
        for _ in 0..9 {
            worker.advance_clock();
        }
        worker.push(&[Key(0)], &[1])?;
        worker.advance_clock();
        let mut value = [0];
        worker.pull(&[Key(0)], &mut value)?;
        Ok::<i64, OpError>(value[0])
    });
    assert_eq!(run.expect("the cluster lives"), [5; 5]);
    cluster.shutdown().expect("all have ended");
}

#[test]
fn a_second_bound_and_a_localize_of_fixed_keys_are_refused() {
    let two = builder(System::Ssp { staleness: 4 }).bound(1).build().map(drop);
    let two = two.expect_err("it has a bound");
    assert_eq!(two.to_string(), "system ssp:4 has a bound of its own: leave out the other");
    assert!(matches!(two, BuildError::TwoBounds { .. }));
    let fixed = [
        System::Essp { staleness: 0 },
        System::Ssp { staleness: 1 },
        System::HetGmp { staleness: 0 },
        System::Bsp,
        System::BoundedDelay { delay: 1 },
        System::Eventual,
        System::Classic,
        System::Parallax,
    ];
    for system in fixed {
        let cluster = builder(system).build().expect("valid");
        let run = cluster.run(|mut worker| {
            assert_eq!(worker.localize(&[Key(1)]), Err(OpError::Immovable), "{system}");
            assert_eq!(worker.intent_handle().localize(&[Key(1)]), Err(OpError::Immovable));
            // What does not exist is said first.
            assert!(matches!(worker.localize(&[Key(KEYS)]), Err(OpError::UnknownKey { .. })));
        });
        run.expect("no worker panics");
        cluster.shutdown().expect("all have ended");
    }
}

/// HET-GMP §5.3: what a worker reads in a clock lacks no more changes than the bound, and those of
/// dense layers none. One worker changes both keys once a clock.
#[test]
fn a_replica_lacks_as_many_changes_as_het_gmp_allows() {
    const STALENESS: u32 = 2;
    let (sparse, dense) = (Key(0), Key(1));
    let cluster = builder(System::HetGmp { staleness: STALENESS })
        .homes(vec![0; KEYS as usize])
        .hot_keys_by_node([vec![], vec![sparse, dense], vec![sparse, dense]])
        .dense_keys(dense..Key(2))
        .build()
        .expect("valid");
    let lags = cluster.try_run(|mut worker| {
        let (mut values, mut lag) = ([0; 2], 0);
        for clock in 1..=40 {
            if worker.number() == 0 {
                worker.push(&[sparse, dense], &[1, 1])?;
            }
            worker.advance_clock();
            worker.pull(&[sparse, dense], &mut values)?;
            assert!(values[1] >= clock, "{values:?} at {clock}");
            lag = lag.max(clock - values[0]);
        }
        worker.quiesce()?;
        worker.pull(&[sparse, dense], &mut values)?;
        assert_eq!(values, [40, 40]);
        Ok::<i64, OpError>(lag)
    });
    let lags = lags.expect("the cluster lives");
    assert!(lags.iter().all(|lag| *lag <= STALENESS.into()), "{lags:?}");
    assert!(lags.iter().any(|lag| *lag > 0), "nothing lags that may: {lags:?}");
    cluster.shutdown().expect("all have ended");
}

/// HET-GMP §5.3, the inter-embedding bound: a worker knows of how many changes a copy here is made,
/// and has those refreshed that it chooses. One worker changes both keys once a clock.
#[test]
fn a_renewed_replica_lacks_nothing() {
    let both = [Key(0), Key(1)];
    let replicas = [vec![], both.to_vec(), both.to_vec()];
    let builder = builder(System::HetGmp { staleness: 1_000 }).homes(vec![0; KEYS as usize]);
    let cluster = builder.hot_keys_by_node(replicas).build().expect("valid");
    let lags = cluster.try_run(|mut worker| {
        let (mut values, mut versions, mut lag) = ([0; 2], [None; 2], 0);
        for clock in 1..=20 {
            if worker.number() == 0 {
                worker.push(&both, &[1, 1])?;
            }
            worker.advance_clock();
            worker.renew(&[both[0], Key(5)])?;
            worker.pull(&both, &mut values)?;
            worker.versions(&both, &mut versions)?;
            assert!(values[0] >= clock, "{values:?} at {clock}");
            // Each push is a change of the main copy; its worker may be a clock ahead. A copy that
            // is not here yet has no version.
            for (value, version) in values.into_iter().zip(&versions) {
                let version = version.map_or(value, |version| version.0 as i64);
                assert!(
                    (value..=clock + 1).contains(&version),
                    "{values:?} {versions:?} at {clock}"
                );
            }
            lag = lag.max(clock - values[1]);
        }
        let unknown = Err(OpError::UnknownKey { key: Key(KEYS), end: Key(KEYS) });
        assert_eq!(worker.renew(&[Key(KEYS)]), unknown);
        assert_eq!(worker.versions(&[Key(KEYS)], &mut [None]), unknown);
        let short = Err(OpError::ValueLen { expected: 2, given: 1 });
        assert_eq!(worker.versions(&both, &mut [None]), short);
        Ok::<i64, OpError>(lag)
    });
    let lags = lags.expect("the cluster lives");
    assert!(lags.iter().any(|lag| *lag > 0), "nothing lags that may: {lags:?}");
    assert!(cluster.stats().renews > 0);
    cluster.shutdown().expect("all have ended");
}
