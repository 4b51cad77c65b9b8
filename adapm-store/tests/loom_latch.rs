//! Loom: the latch of the dense store lets one thread in at a time, and the next sees the previous
//! one's writes.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-store --test
//! 'loom_*'`
#![cfg(adapm_loom)]

use adapm_core::slot::{PackedState, Pushed};
use adapm_core::store::Store;
use adapm_core::{Key, Layout, Version};
use adapm_store::DenseStore;
use adapm_store::model::Mistake;
use loom::sync::Arc;
use loom::thread;

const KEY: Key = Key(0);

fn two_pushes() {
    loom::model(|| {
        let store =
            Arc::new(DenseStore::<i64>::new(&Layout::dense(&[(1, 2)]).expect("a legal layout")));
        store.reserve(KEY, false);
        store.with_slot(KEY, |mut slot| slot.create_main_copy());
        let push = |store: &DenseStore<i64>| store.with_slot(KEY, |mut slot| slot.push(&[1, 1]));
        let other = {
            let store = Arc::clone(&store);
            thread::spawn(move || assert_eq!(push(&store), Pushed::Done))
        };
        assert_eq!(push(&store), Pushed::Done);
        other.join().expect("the push is done");
        store.with_slot(KEY, |slot| {
            assert_eq!((&*slot.value, *slot.version), (&[2, 2][..], Version(2)))
        });
    });
}

#[test]
fn two_pushes_of_a_held_key_add_up() {
    two_pushes();
}

#[test]
#[should_panic(expected = "Causality violation")]
fn planted_a_latch_that_does_not_acquire_is_found() {
    Mistake::LatchRelaxed.planted_in(two_pushes);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn planted_a_latch_that_does_not_release_is_found() {
    Mistake::UnlatchRelaxed.planted_in(two_pushes);
}

#[test]
fn two_changes_of_an_absent_keys_word_both_count() {
    loom::model(|| {
        let store =
            Arc::new(DenseStore::<i64>::new(&Layout::dense(&[(1, 2)]).expect("a legal layout")));
        let count = |store: &DenseStore<i64>| {
            store.with_slot(KEY, |slot| {
                *slot.packed = PackedState::from_bits(slot.packed.bits() + 1)
            });
        };
        let other = {
            let store = Arc::clone(&store);
            thread::spawn(move || count(&store))
        };
        count(&store);
        other.join().expect("the packed state is changed");
        store.with_slot(KEY, |slot| assert_eq!(slot.packed.bits(), 2));
    });
}
