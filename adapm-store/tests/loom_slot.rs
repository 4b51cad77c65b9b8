//! Loom: a slot's memory changes hands only while it is unused, so no value is torn or another
//! key's.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-store --test
//! 'loom_*'`
#![cfg(adapm_loom)]

use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_store::DenseStore;
use adapm_store::model::Mistake;
use loom::sync::Arc;
use loom::thread;

const KEY: Key = Key(0);
const NEIGHBOUR: Key = Key(1);
const THIRD: Key = Key(2);

/// Creates a store whose only chunk stays, as a third key holds a slot of it: memory freed by one
/// key goes to the other.
fn store() -> Arc<DenseStore<i64>> {
    let store = DenseStore::new(&Layout::dense(&[(3, 2)]).expect("a legal layout"));
    store.reserve(THIRD, false);
    Arc::new(store)
}

fn write(store: &DenseStore<i64>, key: Key, element: i64) {
    store.with_slot(key, |slot| {
        slot.value.fill(element);
        *slot.packed = PackedState::from_bits(element as u64);
    });
}

/// Checks that a value is absent, zero as reserved, or `element` throughout.
fn assert_own(slot: Slot<'_, i64>, element: i64) {
    let whole = [&[][..], &[0, 0], &[element, element]].contains(&&*slot.value);
    assert!(whole && slot.delta.is_empty(), "{:?} {:?}", slot.value, slot.delta);
}

#[test]
fn a_reader_meets_no_slot_that_was_released_and_reserved_again() {
    released_and_reserved_again();
}

#[test]
#[should_panic]
fn planted_a_slot_looked_up_before_its_latch_is_found() {
    Mistake::LookUpEarly.planted_in(released_and_reserved_again);
}

fn released_and_reserved_again() {
    loom::model(|| {
        let store = store();
        store.reserve(KEY, false);
        write(&store, KEY, 1);
        let reader = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                store.prefetch(KEY);
                store.with_slot(KEY, |slot| assert_own(slot, 1));
            })
        };
        // The other key gets the memory of this one.
        store.release(KEY);
        store.reserve(NEIGHBOUR, false);
        write(&store, NEIGHBOUR, 2);
        reader.join().expect("the reader saw its own key or none");
        store.with_slot(NEIGHBOUR, |slot| assert_own(slot, 2));
        store.with_slot(KEY, |slot| assert_eq!((slot.value.len(), slot.packed.bits()), (0, 1)));
    });
}

#[test]
fn a_slot_moves_between_threads_with_all_that_was_written() {
    loom::model(|| {
        let store = store();
        store.reserve(KEY, false);
        write(&store, KEY, 1);
        let other = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                // Takes the freed memory, if the other thread is ahead.
                store.reserve(NEIGHBOUR, false);
                write(&store, NEIGHBOUR, 2);
                store.with_slot(NEIGHBOUR, |slot| assert_own(slot, 2));
            })
        };
        store.release(KEY);
        other.join().expect("the key has its own value");
    });
}

#[test]
fn a_delta_that_comes_keeps_what_a_worker_pushes_meanwhile() {
    loom::model(|| {
        let store = store();
        store.reserve(KEY, false);
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.with_slot(KEY, |slot| slot.value.fill(7)))
        };
        store.reserve(KEY, true);
        worker.join().expect("the value is written");
        store.with_slot(KEY, |slot| {
            assert_eq!((&*slot.value, &*slot.delta), (&[7, 7][..], &[0, 0][..]))
        });
    });
}
