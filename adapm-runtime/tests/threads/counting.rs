//! Pushes to one key are counted once each: asynchronous, with intents, with localizes, with moves
//! of every kind.

use adapm_core::Key;
use adapm_runtime::{Random, System};

use crate::{IntWorker, Size, builder, cluster, seed};

const HOT: Key = Key(9);

/// Pushes (1, 2) to one key `times` times, running `besides` in between, and reads the total when
/// all are quiet.
fn count(
    worker: &mut IntWorker,
    times: u64,
    mut besides: impl FnMut(&mut IntWorker, u64),
) -> [i64; 2] {
    let mut value = [0; 2];
    for time in 0..times {
        drop(worker.push_async(&[HOT], &[1, 2]).expect("a known key"));
        let before = value;
        worker.pull(&[HOT], &mut value).expect("a known key");
        assert!(value[0] > before[0], "a worker missed its own push: {before:?}, then {value:?}");
        besides(worker, time);
        worker.advance_clock();
    }
    worker.quiesce().expect("no failure");
    worker.pull(&[HOT], &mut value).expect("a known key");
    value
}

#[test]
fn pushes_to_one_key_all_arrive_under_every_system() {
    for system in System::ALL {
        for size in [Size(1, 2), Size(3, 2), Size(4, 1)] {
            for location_caches in [true, false] {
                let builder = builder(system, size, 36, 2).location_caches(location_caches);
                let cluster = builder.build().expect("a valid cluster");
                let read = cluster.run(|mut worker| {
                    let mut random = Random::new(seed(&worker));
                    count(&mut worker, 300, |worker, _| {
                        if random.below(50) == 0 {
                            let clock = worker.clock();
                            worker.intent(&[HOT], clock + 10..clock + 40).expect("a window");
                        }
                    })
                });
                let all = 300 * (size.0 * size.1) as i64;
                let expected = vec![[all, 2 * all]; size.0 * size.1];
                assert_eq!(
                    read,
                    Ok(expected),
                    "{system}, {size:?}, location caches {location_caches}"
                );
            }
        }
    }
}

#[test]
fn pushes_to_one_key_all_arrive_while_workers_localize_it() {
    for system in [System::Lapse, System::Adapm] {
        let cluster = cluster(system, Size(3, 2), 36, 2);
        let read = cluster.run(|mut worker| {
            count(&mut worker, 400, |worker, time| {
                if time % 40 == 0 {
                    worker.localize(&[HOT]).expect("a known key");
                }
            })
        });
        assert_eq!(read, Ok(vec![[2_400, 4_800]; 6]), "{system}");
        let mut value = [0; 2];
        cluster.read(&[HOT], &mut value).expect("the cluster is quiet");
        assert_eq!(value, [2_400, 4_800]);
        assert!(system != System::Lapse || cluster.stats().relocations > 0);
    }
}

#[test]
fn opposite_pushes_by_workers_that_localize_the_same_keys_cancel() {
    let keys: Vec<Key> = (0..8).map(Key).collect();
    let cluster = cluster(System::Lapse, Size(2, 1), 16, 1);
    let outcome = cluster.run(|mut worker| {
        for round in 0..300_i64 {
            let ticket = worker.localize_async(&keys).expect("known keys");
            worker.push(&keys, &[round; 8]).expect("known keys");
            worker.push(&keys, &[-round; 8]).expect("known keys");
            ticket.wait().expect("no failure");
        }
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
    let mut sum = 0;
    cluster.visit_main(|_, value| sum += value[0].abs()).expect("the cluster is quiet");
    assert_eq!(sum, 0);
}

#[test]
fn asynchronous_pushes_that_nobody_waits_for_all_arrive() {
    let cluster = cluster(System::Classic, Size(2, 1), 4, 1);
    let outcome = cluster.run(|mut worker| {
        for _ in 0..20_000 {
            for key in 0..4 {
                drop(worker.push_async(&[Key(key)], &[1]).expect("a known key"));
            }
        }
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
    let mut values = Vec::new();
    cluster.visit_main(|key, value| values.push((key, value[0]))).expect("the cluster is quiet");
    assert_eq!(values, (0..4).map(|key| (Key(key), 40_000)).collect::<Vec<_>>());
}

#[test]
fn repeated_pushes_of_one_value_add_up_in_floats() {
    let layout = adapm_core::Layout::dense(&[(1_000, 1)]).expect("a valid layout");
    let keys: Vec<Key> = (0..1_000).map(Key).collect();
    let updates: Vec<f32> = (0..1_000).map(|key| (key % 97) as f32).collect();
    let cluster = adapm_runtime::Builder::<f32>::new(layout)
        .nodes(2)
        .workers(2)
        .channels(crate::channels::draw())
        .build()
        .expect("valid");
    let read = cluster.run(|mut worker| {
        for _ in 0..50 {
            worker.push(&keys, &updates).expect("known keys");
        }
        worker.quiesce().expect("no failure");
        let mut values = vec![0.0; 1_000];
        worker.pull(&keys, &mut values).expect("known keys");
        values
    });
    let expected: Vec<f32> = updates.iter().map(|update| 200.0 * update).collect();
    assert_eq!(read, Ok(vec![expected; 4]));
}
