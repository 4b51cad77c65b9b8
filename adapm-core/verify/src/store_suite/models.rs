//! The claims of the store suite that only a model checker can decide: loom runs two threads in all
//! orders, and with all the values that the memory model allows.
//!
//! The store must take its primitives from `loom` where it is built with `--cfg adapm_loom`. A
//! latch of `std` is invisible to loom; [`what_is_written_under_a_latch_is_seen_under_the_next`]
//! reports that, and every other model checks it first, as they would wait for such a latch
//! forever. Not here: more than two threads, and the order in which they enter.

use std::sync::Arc;

use adapm_core::id::Key;
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Pushed, Slot};
use adapm_core::store::Store;
use adapm_core::value::{Value, accumulate};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::seen::{Seen, agree, agree_on, look};

/// The part of one of the two threads of a model.
type Part<S> = fn(&S, &Witness);

/// Checks that writes before a latch is released are seen by its next holder, in the store's memory
/// and the caller's alike.
pub fn what_is_written_under_a_latch_is_seen_under_the_next<S, M>(make: M)
where
    S: Store + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    check(move || {
        let store = Arc::new(make(&layout()));
        let [written, done] = [(); 2].map(|()| loom::sync::Arc::new(AtomicU32::new(0)));
        let writer = {
            let (store, written, done) = (Arc::clone(&store), written.clone(), done.clone());
            thread::spawn(move || {
                written.store(1, Ordering::Relaxed);
                store.with_slot(KEY, |slot| *slot.packed = PackedState::MAIN_AT_HOME);
                done.store(1, Ordering::Relaxed);
            })
        };
        // Loom tries both orders of these two, and so both of the accesses of the slot, even if it
        // cannot see the latch. A relaxed load publishes nothing.
        done.load(Ordering::Relaxed);
        if store.with_slot(KEY, |slot| *slot.packed) == PackedState::MAIN_AT_HOME {
            assert_eq!(
                written.load(Ordering::Relaxed),
                1,
                "the latch does not make visible what was written before: \
                 it is weaker than acquire and release, or not made of loom's primitives"
            );
        }
        writer.join().expect("the writer does not fail");
    });
}

/// Checks that two accesses of one key exclude each other, and no push is lost.
pub fn two_accesses_exclude_each_other<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let push: Part<S> = |store, witness| push_done(store, witness);
    model(make, found, [push, push], |store, witness| {
        agree_on("value", &value(store, KEY), &elements(2), "after two pushes of 1");
        witness.were(2);
    });
}

/// Checks the same for a key that holds only a packed state.
pub fn words_of_absent_keys_are_latched_too<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let count: Part<S> = |store, witness| store.with_slot(KEY, |slot| witness.count(slot));
    model(
        make,
        |_| (),
        [count, count],
        |store, witness| {
            let counted = look(store, KEY).packed.bits();
            assert!(counted == 2, "two threads added 1 to the packed state: it is {counted}");
            witness.were(2);
        },
    );
}

/// Checks that `visit` takes the latch of each key that it shows.
pub fn visits_and_accesses_exclude_each_other<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let worker: Part<S> = |store, witness| push_done(store, witness);
    let visitor: Part<S> = |store, witness| {
        store.visit(KEY..NEIGHBOUR, |_, mut slot| {
            witness.enter(slot.value);
            let pushed = slot.push(&elements(1));
            assert!(pushed == Pushed::Done, "a push in a visit of a main copy is {pushed:?}");
        });
    };
    model(make, found, [worker, visitor], |store, witness| {
        let when = "after a push of 1 beside a visit that pushes 1";
        agree_on("value", &value(store, KEY), &elements(2), when);
        witness.were(2);
    });
}

/// Checks that `visit` beside a release shows the key whole, or not at all: it looks for the key
/// and shows it under one latch.
pub fn a_visit_beside_a_release_shows_what_is_held<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let visitor: Part<S> = |store, _| {
        store.visit(KEY..NEIGHBOUR, |key, slot| {
            let found = slot.value.len();
            assert!(
                found == LEN,
                "a visit shows {key} with {found} elements, it must have {LEN}: it was released \
                 after it had been looked for, under another latch"
            );
        });
    };
    let owner: Part<S> = |store, _| store.release(KEY);
    model(
        make,
        |store| store.reserve(KEY, false),
        [visitor, owner],
        |store, _| {
            let expected = Seen::absent(PackedState::EMPTY);
            agree(&look(store, KEY), &expected, "released beside a visit");
        },
    );
}

/// Checks that a worker sees a copy that is read and released as a whole or not at all, and never
/// elements of the key that gets its memory next.
pub fn a_copy_leaves_whole_or_not_at_all<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let worker: Part<S> = |store, witness| witness.accept(push(store, witness));
    let owner: Part<S> = |store, witness| {
        let mut taken = elements::<S::Value>(0);
        store.with_slot(KEY, |slot| {
            witness.enter(slot.value);
            accumulate(&mut taken, slot.value);
            *slot.packed = PackedState::EMPTY;
        });
        store.release(KEY);
        store.reserve(NEIGHBOUR, true);
        store.with_slot(NEIGHBOUR, |slot| slot.value.copy_from_slice(&elements(7)));
        witness.take(taken == elements(1));
    };
    model(make, found, [worker, owner], |store, witness| {
        let (accepted, taken) = (witness.accepted(), witness.taken());
        assert!(
            accepted == taken,
            "{accepted} pushes were accepted, {taken} are in the copy that left: one was lost, or \
             counted twice"
        );
        let when = "the key that was reserved after another one's release, and filled with 7";
        agree_on("value", &value(store, NEIGHBOUR), &elements(7), when);
        agree(&look(store, KEY), &Seen::absent(PackedState::EMPTY), "the key that was released");
    });
}

/// Checks that a delta that comes or goes keeps a worker's concurrent pushes.
pub fn a_delta_comes_and_goes_beside_a_push<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let worker: Part<S> = |store, witness| push_done(store, witness);
    let owner: Part<S> = |store, _| {
        store.reserve(KEY, true);
        store.reserve(KEY, false);
    };
    model(make, found, [worker, owner], |store, _| {
        let seen = look(store, KEY);
        let when = "after a push of 1, while a delta came and went";
        agree_on("value", &seen.value, &elements(1), when);
        agree_on("delta", &seen.delta, &[], when);
    });
}

/// Checks that `reserve` and `release` keep a concurrently written packed state.
pub fn words_outlive_copies_that_come_and_go<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let writer: Part<S> = |store, witness| store.with_slot(KEY, |slot| witness.count(slot));
    let owner: Part<S> = |store, _| {
        store.reserve(KEY, false);
        store.release(KEY);
    };
    model(
        make,
        |_| (),
        [writer, owner],
        |store, _| {
            let expected = Seen::absent(PackedState::from_bits(1));
            let when = "1 was added to the packed state while a copy came and went";
            agree(&look(store, KEY), &expected, when);
        },
    );
}

/// Checks two threads that reserve, fill and release different keys.
pub fn different_keys_come_and_go_at_once<S, M>(make: M)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let first: Part<S> = |store, _| {
        store.reserve(KEY, false);
        store.with_slot(KEY, |slot| slot.value.copy_from_slice(&elements(1)));
        store.release(KEY);
    };
    let second: Part<S> = |store, _| {
        store.reserve(NEIGHBOUR, false);
        store.with_slot(NEIGHBOUR, |slot| slot.value.copy_from_slice(&elements(2)));
    };
    model(
        make,
        |_| (),
        [first, second],
        |store, _| {
            agree_on("value", &value(store, KEY), &[], "the key that was released");
            let when = "the key that another thread has reserved and filled with 2";
            agree_on("value", &value(store, NEIGHBOUR), &elements(2), when);
        },
    );
}

/// Runs both parts in all orders, on a prepared store, and checks the end.
fn model<S, M>(make: M, prepare: fn(&S), parts: [Part<S>; 2], end: Part<S>)
where
    S: Store<Value: From<i16>> + Send + Sync + 'static,
    M: Fn(&Layout) -> S + Send + Sync + 'static,
{
    let make = Arc::new(make);
    let first = Arc::clone(&make);
    what_is_written_under_a_latch_is_seen_under_the_next(move |layout| first(layout));
    check(move || {
        let shared = Arc::new((make(&layout()), Witness::default()));
        prepare(&shared.0);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || parts[1](&shared.0, &shared.1))
        };
        parts[0](&shared.0, &shared.1);
        other.join().expect("the other thread does not fail");
        end(&shared.0, &shared.1);
    });
}

/// Runs `loom::model`, with a bound of two preemptions unless `LOOM_MAX_PREEMPTIONS` sets another.
fn check(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    builder.check(body);
}

/// A detector of two threads in a slot at once, or of one that does not see the other's writes:
/// then a count is lost.
#[derive(Default)]
struct Witness {
    entered: AtomicU32,
    accepted: AtomicU32,
    taken: AtomicU32,
}

impl Witness {
    /// Stays in the slot, with room for another thread to enter, while `value` must not change.
    fn enter<V: Value>(&self, value: &[V]) {
        let before = value.to_vec();
        let seen = self.entered.load(Ordering::Relaxed);
        self.entered.store(seen + 1, Ordering::Relaxed);
        let when = "a slot in use, whose value nobody else may change meanwhile";
        agree_on("value", value, &before, when);
    }

    /// Adds one to the packed state.
    fn count<V: Value>(&self, slot: Slot<'_, V>) {
        let bits = slot.packed.bits();
        self.enter(slot.value);
        *slot.packed = PackedState::from_bits(bits + 1);
    }

    fn accept(&self, accepted: bool) {
        self.accepted.store(u32::from(accepted), Ordering::Relaxed);
    }

    fn take(&self, taken: bool) {
        self.taken.store(u32::from(taken), Ordering::Relaxed);
    }

    /// Fails if fewer stays are counted than there were.
    fn were(&self, expected: u32) {
        let entered = self.entered.load(Ordering::Relaxed);
        assert!(
            entered == expected,
            "{expected} stays in the slot, one of which did not see {} other: the latch does not \
             exclude, or does not publish",
            expected - entered
        );
    }

    fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Relaxed)
    }

    fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// Makes the key a main copy of zeros.
fn found<S: Store>(store: &S) {
    store.reserve(KEY, false);
    store.with_slot(KEY, |mut slot| slot.create_main_copy());
}

/// Pushes ones as a worker does. Returns true if they were accepted.
fn push<S: Store<Value: From<i16>>>(store: &S, witness: &Witness) -> bool {
    store.with_slot(KEY, |mut slot| {
        witness.enter(slot.value);
        slot.push(&elements(1)) == Pushed::Done
    })
}

/// As [`push`], to a key that is local.
fn push_done<S: Store<Value: From<i16>>>(store: &S, witness: &Witness) {
    assert!(push(store, witness), "a push to a main copy is refused");
}

fn value<S: Store>(store: &S, key: Key) -> Vec<S::Value> {
    look(store, key).value
}

fn elements<V: Value + From<i16>>(element: i16) -> Vec<V> {
    vec![V::from(element); LEN]
}

fn layout() -> Layout {
    Layout::dense(&[(3, LEN)]).expect("a legal layout")
}

const LEN: usize = 2;
const KEY: Key = Key(0);
const NEIGHBOUR: Key = Key(1);
const PREEMPTIONS: usize = 2;
