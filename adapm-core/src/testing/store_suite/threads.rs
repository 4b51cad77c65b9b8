//! The claims of the store suite that need several threads: latches exclude, nothing is torn or lost.

use alloc::vec;
use alloc::vec::Vec;
use std::sync::Barrier;
use std::thread;

use super::{built, fill, keys, look, scribble, zero};
use crate::id::{Key, Version};
use crate::layout::Layout;
use crate::slot::{Pushed, Word};
use crate::store::Store;
use crate::value::{Value, accumulate};

/// Two threads on one key: each sees whole what the other wrote, and no push is lost.
pub fn latches_exclude_and_sums_are_exact<S: Store<Value: From<i16>> + Sync>(make: &impl Fn(&Layout) -> S) {
    let (_, store) = built(make);
    let key = LONG;
    let ones = vec![S::Value::from(1); store.value_len(key)];
    store.reserve(key, false);
    store.with_slot(key, |mut slot| slot.found());
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..PUSHES {
                    let pushed = store.with_slot(key, |mut slot| {
                        assert_whole(slot.value);
                        slot.push(&ones)
                    });
                    assert_eq!(pushed, Pushed::Done);
                }
            });
        }
    });
    let seen = look(&store, key);
    assert_eq!(seen.version, Version(2 * PUSHES as u64));
    assert_eq!(seen.value, vec![S::Value::from(2 * PUSHES); ones.len()]);
}

/// One thread pushes while another founds the copy and hands it over, again and again: values are whole, sums exact.
pub fn copies_come_and_go_under_a_working_thread<S: Store<Value: From<i16>> + Sync>(
    make: &impl Fn(&Layout) -> S,
) {
    let (_, store) = built(make);
    let (key, neighbour) = (LONG, Key(LONG.0 + 1));
    let ones = vec![S::Value::from(1); store.value_len(key)];
    let start = Barrier::new(2);
    let mut handed_over = vec![zero(); ones.len()];
    let accepted = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            start.wait();
            let mut accepted = 0;
            for _ in 0..PUSHES {
                let pushed = store.with_slot(key, |mut slot| {
                    assert_whole(slot.value);
                    slot.push(&ones)
                });
                accepted += i16::from(pushed == Pushed::Done);
            }
            accepted
        });
        start.wait();
        let mut rounds = 0;
        // At least so often that both see it, and as long as there is a worker.
        while rounds < 100 || !worker.is_finished() {
            store.reserve(key, false);
            store.with_slot(key, |mut slot| slot.found());
            store.with_slot(key, |slot| {
                accumulate(&mut handed_over, slot.value);
                *slot.word = Word::EMPTY;
            });
            store.release(key);
            // The slot that was free goes to another key, with other elements.
            store.reserve(neighbour, rounds % 2 == 0);
            store.with_slot(neighbour, |slot| scribble(slot, rounds));
            store.release(neighbour);
            rounds += 1;
        }
        worker.join().expect("the worker sees whole values")
    });
    assert_eq!(handed_over, vec![S::Value::from(accepted); ones.len()]);
}

/// Several threads reserve, fill and release keys of their own at the same time.
pub fn threads_reserve_and_release_different_keys<S: Store<Value: From<i16>> + Sync>(
    make: &impl Fn(&Layout) -> S,
) {
    let (layout, store) = built(make);
    let start = Barrier::new(3);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (store, layout, start) = (&store, &layout, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..40 {
                    let own = || keys(layout).filter(|key| key.0 % 3 == thread);
                    own().for_each(|key| store.reserve(key, (key.0 + round) % 2 == 0));
                    let filled: Vec<_> = own().map(|key| fill(store, key, round)).collect();
                    for (key, filled) in own().zip(filled) {
                        assert_eq!(look(store, key), filled, "{key} in round {round}");
                        if (key.0 + round) % 4 < 2 {
                            store.release(key);
                        }
                    }
                }
            });
        }
    });
}

fn assert_whole<V: Value>(value: &[V]) {
    assert!(value.windows(2).all(|two| two[0] == two[1]), "a torn or foreign value");
}

/// The first key of 131 elements.
const LONG: Key = Key(67);
/// Pushes of one thread; two times that is an `i16`.
const PUSHES: i16 = 10_000;
