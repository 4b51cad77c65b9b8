//! Many keys at once: reads are exact while copies move, updates cancel exactly, values land at
//! their places.

use std::collections::VecDeque;

use adapm_core::error::OpError;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Pull, Random, System};

use crate::{IntWorker, Size, builder, channels, cluster, seed};

const KEYS: u64 = 100;
const LEN: usize = 10;

fn initial(key: Key, value: &mut [i64]) {
    let mut random = Random::new(key.0 ^ 7);
    value.fill_with(|| random.below(10_000_000) as i64 - 5_000_000);
}

fn initial_of(keys: &[Key]) -> Vec<i64> {
    let mut values = vec![0; keys.len() * LEN];
    keys.iter().zip(values.chunks_mut(LEN)).for_each(|(key, value)| initial(*key, value));
    values
}

fn random_keys(random: &mut Random, most: u64) -> Vec<Key> {
    let mut keys: Vec<Key> = (0..1 + random.below(most)).map(|_| Key(random.below(KEYS))).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Pulls and pushes at random with up to 10 calls outstanding, then undoes its pushes.
fn mix(worker: &mut IntWorker, times: u64, pushes: bool) {
    let mut random = Random::new(seed(worker));
    let mut pushed = vec![0_i64; KEYS as usize * LEN];
    let mut outstanding: VecDeque<(Vec<Key>, Pull<i64>)> = VecDeque::new();
    let check = |(keys, ticket): (Vec<Key>, Pull<i64>)| {
        let values = ticket.wait().expect("no failure");
        if !pushes {
            assert_eq!(values, initial_of(&keys), "nobody pushes");
        }
    };
    for _ in 0..times {
        let keys = random_keys(&mut random, 20);
        let ahead = random_keys(&mut random, 20);
        let clock = worker.clock();
        worker.intent(&ahead, clock + random.below(30)..clock + 40).expect("a window");
        let ticket = worker.pull_async(&keys).expect("known keys");
        outstanding.push_back((keys.clone(), ticket));
        if pushes {
            let updates: Vec<i64> =
                (0..keys.len() * LEN).map(|_| random.below(2_001) as i64 - 1_000).collect();
            for (key, update) in keys.iter().zip(updates.chunks(LEN)) {
                let sums = &mut pushed[key.0 as usize * LEN..][..LEN];
                sums.iter_mut().zip(update).for_each(|(sum, update)| *sum += update);
            }
            drop(worker.push_async(&keys, &updates).expect("known keys"));
        }
        if outstanding.len() > 10 {
            let oldest = outstanding.pop_front().expect("just checked");
            check(oldest);
        }
        worker.advance_clock();
    }
    outstanding.into_iter().for_each(check);
    if pushes {
        pushed.iter_mut().for_each(|sum| *sum = -*sum);
        let keys: Vec<Key> = (0..KEYS).map(Key).collect();
        worker.push(&keys, &pushed).expect("known keys");
    }
    worker.quiesce().expect("no failure");
    let keys: Vec<Key> = (0..KEYS).map(Key).collect();
    let mut values = vec![0; keys.len() * LEN];
    worker.pull(&keys, &mut values).expect("known keys");
    assert_eq!(values, initial_of(&keys));
}

#[test]
fn reads_are_exact_while_intents_move_keys() {
    for system in [
        System::Adapm,
        System::AdapmNoRelocation,
        System::AdapmNoReplication,
        System::AdapmImmediate,
    ] {
        for location_caches in [true, false] {
            let builder = builder(system, Size(4, 2), KEYS, LEN).location_caches(location_caches);
            let cluster = builder.initial(initial).build().expect("a valid cluster");
            let outcome = cluster.run(|mut worker| mix(&mut worker, 100, false));
            assert_eq!(outcome, Ok(vec![(); 8]), "{system}, location caches {location_caches}");
        }
    }
}

#[test]
fn updates_taken_back_leave_the_initial_values() {
    for system in System::ALL {
        for (size, location_caches) in [(Size(4, 2), true), (Size(3, 1), false)] {
            let builder = builder(system, size, KEYS, LEN).location_caches(location_caches);
            let cluster = builder.initial(initial).build().expect("a valid cluster");
            let outcome = cluster.run(|mut worker| mix(&mut worker, 100, true));
            assert_eq!(outcome, Ok(vec![(); size.0 * size.1]), "{system}, {size:?}");
            let mut keys = Vec::new();
            let mut values = Vec::new();
            let visited = cluster.visit_main(|key, value| {
                keys.push(key);
                values.extend_from_slice(value);
            });
            assert_eq!(visited, Ok(()));
            assert_eq!(
                keys,
                (0..KEYS).map(Key).collect::<Vec<_>>(),
                "every main copy, in key order"
            );
            assert_eq!(values, initial_of(&keys));
        }
    }
}

#[test]
fn values_of_several_lengths_land_at_their_places() {
    let extents = [(1, 2), (2, 1), (2, 3), (27, 1), (1, 3), (1, 1), (1, 3), (115, 1)];
    let layout = Layout::dense(&extents).expect("a valid layout");
    for nodes in [1, 2, 3, 3] {
        let builder = Builder::<i64>::new(layout.clone()).nodes(nodes).channels(channels::draw());
        let cluster = builder
            .initial(|key, value| {
                value.iter_mut().enumerate().for_each(|(i, v)| *v = key.0 as i64 * 10 + i as i64)
            })
            .build()
            .expect("a valid cluster");
        let outcome = cluster.run(|mut worker| {
            let mut four = [0; 4];
            worker.pull(&[Key(3), Key(40)], &mut four).expect("known keys");
            assert_eq!(four, [30, 31, 32, 400]);
            let mut values = [0; 8];
            worker.pull(&[Key(0), Key(34), Key(32)], &mut values).expect("known keys");
            assert_eq!(values, [0, 1, 340, 341, 342, 320, 321, 322]);
            let twice = worker.pull_async(&[Key(34), Key(0), Key(34)]).expect("known keys");
            assert_eq!(twice.wait(), Ok(vec![340, 341, 342, 0, 1, 340, 341, 342]));
            worker.barrier().expect("no failure");
            worker.push(&[Key(41), Key(0), Key(41)], &[1, 10, 20, 1]).expect("known keys");
            worker.quiesce().expect("no failure");
            let mut three = [0; 3];
            worker.pull(&[Key(0), Key(41)], &mut three).expect("known keys");
            let nodes = worker.nodes() as i64;
            assert_eq!(three, [10 * nodes, 1 + 20 * nodes, 410 + 2 * nodes]);
        });
        assert_eq!(outcome, Ok(vec![(); nodes]));
    }
}

#[test]
fn keys_of_a_sparse_layout_come_into_being_on_access() {
    let layout = Layout::sparse(&[(u64::MAX, 2)]).expect("a valid layout");
    for system in [System::Adapm, System::Classic, System::Lapse] {
        let builder =
            Builder::<i64>::new(layout.clone()).nodes(3).channels(channels::draw()).system(system);
        let cluster =
            builder.initial(|key, value| value[0] = (key.0 >> 40) as i64).build().expect("valid");
        let keys: Vec<Key> = (0..50).map(|i: u64| Key(i * (u64::MAX / 50))).collect();
        let outcome = cluster.run(|mut worker| {
            let clock = worker.advance_clock();
            worker.intent(&keys[20..], clock..clock + 2).expect("a window");
            worker.push(&keys, &[1; 100]).expect("known keys");
            let expected = if system == System::Classic { Err(OpError::Immovable) } else { Ok(()) };
            assert_eq!(worker.localize(&keys[..3]), expected);
        });
        assert_eq!(outcome, Ok(vec![(); 3]));
        let mut seen = Vec::new();
        let visited = cluster.visit_main(|key, value| {
            assert_eq!(value, [(key.0 >> 40) as i64 + 3, 3], "{system}");
            seen.push(key);
        });
        assert_eq!((visited, seen), (Ok(()), keys));
    }
}

#[test]
fn calls_without_keys_are_done_at_once() {
    let cluster = cluster(System::Adapm, Size(2, 1), 4, 1);
    let outcome = cluster.run(|mut worker| {
        worker.pull(&[], &mut []).expect("nothing to do");
        worker.push(&[], &[]).expect("nothing to do");
        worker.set(&[], &[]).expect("nothing to do");
        worker.localize(&[]).expect("nothing to do");
        assert!(worker.pull_async(&[]).expect("nothing to do").is_done());
        worker.wait_all().expect("no failure");
    });
    assert_eq!(outcome, Ok(vec![(); 2]));
    assert_eq!(cluster.stats().accesses(), 0);
}

#[test]
fn fused_pushes_and_pulls_see_their_own_pushes() {
    let cluster = cluster(System::Adapm, Size(3, 1), 300, 1);
    let outcome = cluster.run(|mut worker| {
        let keys: Vec<Key> =
            (0..300).map(Key).filter(|key| key.0 % 3 == u64::from(worker.node().0)).collect();
        let mut values = vec![0; keys.len()];
        for time in 1..=50 {
            drop(worker.push_async(&keys, &vec![2; keys.len()]).expect("known keys"));
            worker.pull(&keys, &mut values).expect("known keys");
            assert!(
                values.iter().all(|value| *value == 2 * time),
                "nobody else pushes to these keys"
            );
        }
    });
    assert_eq!(outcome, Ok(vec![(); 3]));
}
