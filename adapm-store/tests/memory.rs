//! The memory of a dense store: bytes per key, measured with [`DenseStore::memory`] over 10,000
//! keys of one length; freed memory is returned and reused.
//!
//! `memory` counts the store's requests to allocator and system: directory, whole chunks, used or
//! not, and their records. It does not count the allocator's own overhead.

use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_store::DenseStore;

const KEYS: u64 = 10_000;
const LENS: [usize; 6] = [1, 7, 25, 100, 500, 1_001];

fn store(len: usize) -> DenseStore<f32> {
    DenseStore::new(&Layout::dense(&[(KEYS, len)]).expect("a legal layout"))
}

fn keys() -> impl DoubleEndedIterator<Item = Key> {
    (0..KEYS).map(Key)
}

#[test]
fn an_absent_key_takes_8_bytes() {
    for len in LENS {
        let memory = store(len).memory() as u64;
        assert!(
            (8 * KEYS..8 * KEYS + 512).contains(&memory),
            "len {len}: {memory} bytes for {KEYS} absent keys"
        );
    }
}

/// Half a byte beyond the budget of `4 len + 24` (8 of directory, 16 of header) is for the records
/// of chunks.
#[test]
fn a_main_copy_takes_its_value_and_24_bytes() {
    for len in LENS {
        let store = store(len);
        keys().for_each(|key| store.reserve(key, false));
        let (memory, budget) = (store.memory() as f64 / KEYS as f64, (4 * len + 24) as f64);
        assert!(
            memory <= budget + 0.5,
            "len {len}: {memory:.2} bytes a main copy, {budget} allowed"
        );
    }
}

#[test]
fn a_replica_takes_twice_its_value_and_48_bytes() {
    for len in LENS {
        let store = store(len);
        keys().for_each(|key| store.reserve(key, true));
        let (memory, budget) = (store.memory() as f64 / KEYS as f64, (8 * len + 48) as f64);
        assert!(memory <= budget, "len {len}: {memory:.2} bytes a replica, {budget} allowed");
    }
}

/// This also holds if keys with a value, a replica or no copy are among them.
#[test]
fn values_reserved_at_once_take_what_they_take_one_by_one() {
    for len in LENS {
        let [at_once, one_by_one] = [store(len), store(len)];
        for store in [&at_once, &one_by_one] {
            keys().filter(|key| key.0 % 3 > 0).for_each(|key| store.reserve(key, key.0 % 3 == 1));
        }
        let all: Vec<Key> = keys().collect();
        at_once.reserve_each(&all, |_, _| ());
        all.iter().for_each(|key| one_by_one.reserve(*key, false));
        assert_eq!(at_once.memory(), one_by_one.memory(), "len {len}");
        all.chunks(100).for_each(|keys| at_once.reserve_each(keys, |_, _| ()));
        assert_eq!(at_once.memory(), one_by_one.memory(), "len {len}, again");
    }
}

#[test]
fn memory_is_freed_when_copies_leave() {
    for len in LENS {
        let store = store(len);
        let empty = store.memory();
        keys().for_each(|key| store.reserve(key, key.0 % 2 == 0));
        let full = store.memory();
        // In another order than they came; the last ones must not keep the chunks of the others.
        keys().rev().filter(|key| key.0 >= KEYS / 10).for_each(|key| store.release(key));
        let tenth = store.memory();
        // Two kinds of slots, and for each up to one and a half chunks with room.
        let limit = (full - empty) / 5 + 3 * (64 << 10);
        assert!(tenth - empty < limit, "len {len}: {tenth} bytes for a tenth of {full}");
        keys().for_each(|key| store.release(key));
        assert_eq!(store.memory(), empty, "len {len}");
    }
}

#[test]
fn slots_that_copies_left_are_used_again() {
    let store = store(100);
    let resident = |round: u64| keys().filter(move |key| (key.0 + round).is_multiple_of(4));
    resident(0).for_each(|key| store.reserve(key, false));
    let quarter = store.memory();
    for round in 0..16 {
        resident(round).for_each(|key| store.release(key));
        resident(round + 1).for_each(|key| store.reserve(key, false));
        assert_eq!(store.memory(), quarter, "a quarter of the keys is held, in round {round}");
    }
}
