//! The claims of the store suite that need several threads: latches exclude, nothing is torn or
//! lost.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Barrier;
use std::thread;

use adapm_core::id::{Key, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Pushed};
use adapm_core::store::Store;
use adapm_core::value::{Value, accumulate};

use super::form::Form;
use super::seen::{Seen, agree, agree_on, fill, look, scribble, zero};
use crate::rng::mix;

/// Checks two threads on one key: each sees the other's writes as a whole, and no push is lost.
pub fn latches_exclude_and_sums_are_exact<S: Store<Value: From<i16>> + Sync>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let (elements, [key, _]) = (bed.elements, bed.long());
    let len = bed.value_len(key);
    store.reserve(key, false);
    store.with_slot(key, |mut slot| slot.create_main_copy());
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for at in 0..PUSHES {
                    let update = vec![elements.step(at); len];
                    let mut pushed = Pushed::Done;
                    store.with_slot(key, |mut slot| {
                        assert_whole(slot.value);
                        if at / 2 % 2 == 0 {
                            pushed = slot.push(&update);
                        }
                    });
                    if at / 2 % 2 == 1 {
                        pushed = store.push(key, &update);
                    }
                    assert!(pushed == Pushed::Done, "{key}: a push to a main copy is {pushed:?}");
                }
            });
        }
    });
    let expected = Seen {
        version: Version(2 * u64::from(PUSHES)),
        value: vec![elements.sum(2 * PUSHES); len],
        ..Seen::absent(PackedState::MAIN_AT_HOME)
    };
    let when = format_args!("{key}, to which two threads have pushed {PUSHES} times each");
    agree(&look(&store, key), &expected, when);
}

/// Checks pushes of one thread while another repeatedly creates the copy and hands it over: values
/// are whole, sums exact.
pub fn copies_come_and_go_under_a_working_thread<S: Store<Value: From<i16>> + Sync>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let (elements, [key, neighbour]) = (bed.elements, bed.long());
    let len = bed.value_len(key);
    let start = Barrier::new(2);
    let mut handed_over = vec![zero(); len];
    let accepted = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            start.wait();
            let mut accepted = 0;
            for _ in 0..PUSHES {
                let update = vec![elements.step(accepted); len];
                let pushed = store.with_slot(key, |mut slot| {
                    assert_whole(slot.value);
                    slot.push(&update)
                });
                accepted += u32::from(pushed == Pushed::Done);
            }
            accepted
        });
        start.wait();
        let mut rounds = 0;
        // At least often enough that both see it, and as long as there is a worker.
        while rounds < RELOCATIONS || !worker.is_finished() {
            store.reserve(key, false);
            store.with_slot(key, |mut slot| slot.create_main_copy());
            store.with_slot(key, |slot| {
                accumulate(&mut handed_over, slot.value);
                *slot.packed = PackedState::EMPTY;
            });
            store.release(key);
            // The freed slot goes to another key, with other elements.
            store.reserve(neighbour, rounds % 2 == 0);
            store.with_slot(neighbour, |slot| scribble(slot, rounds, elements));
            store.release(neighbour);
            rounds += 1;
        }
        worker.join().expect("the worker sees whole values")
    });
    let expected = vec![elements.sum(accepted); len];
    let when =
        format_args!("{key}, of which {accepted} pushes were accepted, in all it handed over");
    agree_on("value", &handed_over, &expected, when);
}

/// Checks several threads that reserve, fill and release different keys at the same time.
pub fn threads_reserve_and_release_different_keys<S: Store<Value: From<i16>> + Sync>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let start = Barrier::new(3);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (store, bed, start) = (&store, &bed, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..TURNS {
                    let own = || bed.keys().filter(|key| bed.place(*key) as u64 % 3 == thread);
                    own().for_each(|key| store.reserve(key, (key.0 + round) % 2 == 0));
                    let filled: Vec<_> = own().map(|key| fill(bed, store, key, round)).collect();
                    for (key, filled) in own().zip(filled) {
                        agree(&look(store, key), &filled, format_args!("{key} in round {round}"));
                        if (key.0 + round) % 4 < 2 {
                            store.release(key);
                        }
                    }
                }
            });
        }
    });
}

/// Checks that while `f` runs in a slot, by `with_slot` or `visit`, all other accesses of the key
/// wait.
pub fn nobody_enters_a_slot_in_use<S: Store + Sync>(form: &Form<impl Fn(&Layout) -> S>) {
    let (bed, store) = form.built();
    let [key, _] = bed.long();
    let only = key..Key(key.0 + 1);
    store.reserve(key, true);
    let zeros = vec![zero(); store.value_len(key)];
    for (name, intrude) in [
        ("with_slot", &(|| store.with_slot(key, |_| ())) as &(dyn Fn() + Sync)),
        ("push", &|| assert!(store.push(key, &zeros) != Pushed::Done, "{key} is not local")),
        ("visit", &|| store.visit(only.clone(), |_, _| ())),
        ("reserve", &|| store.reserve(key, false)),
        ("release", &|| store.release(key)),
    ] {
        let meeting = Meeting::default();
        let intruded = thread::scope(|scope| {
            let _over = Over(&meeting.over);
            scope.spawn(|| {
                let _over = Over(&meeting.over);
                (1..=ROUNDS).all(|round| meeting.intrude(round, intrude))
            });
            let mut intruded = None;
            for round in 1..=ROUNDS {
                store.reserve(key, true);
                let mut entered = false;
                if round % 2 == 0 {
                    store.with_slot(key, |_| entered = meeting.is_intruded(round));
                } else {
                    store.visit(only.clone(), |_, _| entered = meeting.is_intruded(round));
                }
                meeting.left.store(round, Ordering::SeqCst);
                intruded = intruded.or(entered.then_some(if round % 2 == 0 {
                    "with_slot"
                } else {
                    "visit"
                }));
                meeting.wait(|| meeting.done.load(Ordering::SeqCst) == round);
            }
            intruded
        });
        if let Some(intruded) = intruded {
            panic!("{name} of {key} did not wait for the end of a {intruded} of another thread");
        }
    }
}

/// Two threads that try to be in one slot at the same time; each number is the last round that got
/// to that point.
#[derive(Default)]
struct Meeting {
    inside: AtomicU32,
    coming: AtomicU32,
    done: AtomicU32,
    left: AtomicU32,
    over: AtomicBool,
}

/// A guard that releases the other thread when this one has ended, even by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Meeting {
    /// Lets the other thread come, from within the slot. Returns true if its call returned
    /// meanwhile.
    fn is_intruded(&self, round: u32) -> bool {
        self.inside.store(round, Ordering::SeqCst);
        self.wait(|| self.coming.load(Ordering::SeqCst) == round);
        (0..ROOM_TO_INTRUDE).any(|_| {
            thread::yield_now();
            self.done.load(Ordering::SeqCst) == round
        })
    }

    /// Makes the other thread's call. Returns false once the trial is over.
    fn intrude(&self, round: u32, call: &(dyn Fn() + Sync)) -> bool {
        self.wait(|| {
            self.inside.load(Ordering::SeqCst) == round || self.left.load(Ordering::SeqCst) >= round
        });
        self.coming.store(round, Ordering::SeqCst);
        call();
        self.done.store(round, Ordering::SeqCst);
        !self.over.load(Ordering::SeqCst)
    }

    fn wait(&self, until: impl Fn() -> bool) {
        while !until() && !self.over.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    }
}

/// Checks writes of packed states and values by one thread while another reserves and releases: the
/// last writes are kept.
pub fn reserve_and_release_lose_nothing_written_meanwhile<S: Store<Value: From<i16>> + Sync>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let (elements, [held, leaving]) = (bed.elements, bed.long());
    let len = bed.value_len(held);
    store.reserve(held, false);
    store.with_slot(held, |mut slot| slot.create_main_copy());
    let pace = Pace::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            pace.keep(0, |step| {
                let pushed = store.push(held, &vec![elements.step(step); len]);
                assert!(pushed == Pushed::Done, "{held}: a push to a main copy is {pushed:?}");
                store.with_slot(leaving, |slot| {
                    *slot.packed = PackedState::from_bits(slot.packed.bits() + 1)
                });
            });
        });
        pace.keep(1, |step| {
            store.reserve(held, step % 2 == 0);
            store.reserve(leaving, step % 2 == 0);
            store.release(leaving);
        });
    });
    let expected = vec![elements.sum(STEPS); len];
    let when = format_args!("{held}, reserved again while {STEPS} pushes were made");
    agree_on("value", &look(&store, held).value, &expected, when);
    let expected = Seen::absent(PackedState::from_bits(u64::from(STEPS)));
    let when = format_args!(
        "{leaving}, released while 1 was added {STEPS} times to the bits of its packed state"
    );
    agree(&look(&store, leaving), &expected, when);
}

/// Checks that a visit shows a copy that comes and goes whole or not at all.
pub fn visits_show_no_key_that_has_left<S: Store<Value: From<i16>> + Sync>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let [key, next] = bed.long();
    let (len, pace) = (bed.value_len(key), Pace::default());
    let wrong = thread::scope(|scope| {
        let visitor = scope.spawn(|| {
            let mut wrong = None;
            pace.keep(0, |_| {
                store.visit(key..next, |shown, slot| {
                    if shown != key || slot.value.len() != len {
                        wrong.get_or_insert((shown, slot.value.len()));
                    }
                });
            });
            wrong
        });
        pace.keep(1, |step| {
            // Threads that took turns evenly would meet at the same point each time.
            let turns = mix(u64::from(step));
            store.reserve(key, turns & 8 != 0);
            (0..turns & 3).for_each(|_| thread::yield_now());
            store.release(key);
            (0..turns >> 4 & 3).for_each(|_| thread::yield_now());
        });
        visitor.join().expect("the visitor notes what is wrong")
    });
    if let Some((shown, found)) = wrong {
        panic!(
            "a visit of {key} beside its release shows {shown} with {found} elements, it must have \
             {len}: looked for under one latch, shown under the next?"
        );
    }
}

/// The progress of two threads that keep pace: neither is done before the other has begun, however
/// busy the machine.
#[derive(Default)]
struct Pace {
    done: [AtomicU32; 2],
    over: AtomicBool,
}

impl Pace {
    /// Takes all steps of the thread `own`, each at most [`LEAD_MAX`] ahead of the other thread's.
    fn keep(&self, own: usize, mut step: impl FnMut(u32)) {
        let _over = Over(&self.over);
        let other = &self.done[1 - own];
        for number in 0..STEPS {
            while number > other.load(Ordering::SeqCst) + LEAD_MAX
                && !self.over.load(Ordering::SeqCst)
            {
                thread::yield_now();
            }
            step(number);
            self.done[own].store(number + 1, Ordering::SeqCst);
        }
    }
}

fn assert_whole<V: Value>(value: &[V]) {
    assert!(value.windows(2).all(|two| two[0] == two[1]), "a torn or foreign value");
}

/// Number of times that two threads try to be in one slot, for each call.
const ROUNDS: u32 = if cfg!(miri) { 2 } else { 20 };
/// Number of turns that a thread in a slot gives another one to enter.
const ROOM_TO_INTRUDE: usize = if cfg!(miri) { 5 } else { 50 };
/// Number of steps of each of two threads that keep pace.
const STEPS: u32 = if cfg!(miri) { 10 } else { 1_000 };
/// Number of steps by which one of them may be ahead.
const LEAD_MAX: u32 = if cfg!(miri) { 2 } else { 8 };
/// Number of pushes of one thread; twice that is an `i16`.
const PUSHES: u32 = if cfg!(miri) { 12 } else { 10_000 };
/// Number of turns of a thread on keys of its own.
const TURNS: u64 = if cfg!(miri) { 2 } else { 40 };
/// Least number of comings and goings of a copy.
const RELOCATIONS: u64 = if cfg!(miri) { 5 } else { 100 };
