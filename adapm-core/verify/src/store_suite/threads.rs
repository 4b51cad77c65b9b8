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

use super::{built, fill, keys, look, scribble, zero};

/// Two threads on one key: each sees whole what the other wrote, and no push is lost.
pub fn latches_exclude_and_sums_are_exact<S: Store<Value: From<i16>> + Sync>(
    make: &impl Fn(&Layout) -> S,
) {
    let (_, store) = built(make);
    let key = LONG;
    let ones = vec![S::Value::from(1); store.value_len(key)];
    store.reserve(key, false);
    store.with_slot(key, |mut slot| slot.create_main_copy());
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for at in 0..PUSHES {
                    let mut pushed = Pushed::Done;
                    store.with_slot(key, |mut slot| {
                        assert_whole(slot.value);
                        if at % 2 == 0 {
                            pushed = slot.push(&ones);
                        }
                    });
                    if at % 2 == 1 {
                        pushed = store.push(key, &ones);
                    }
                    assert_eq!(pushed, Pushed::Done);
                }
            });
        }
    });
    let seen = look(&store, key);
    assert_eq!(seen.version, Version(2 * PUSHES as u64));
    assert_eq!(seen.value, vec![S::Value::from(2 * PUSHES); ones.len()]);
}

/// One thread pushes while another founds the copy and hands it over, again and again: values are
/// whole, sums exact.
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
        while rounds < RELOCATIONS || !worker.is_finished() {
            store.reserve(key, false);
            store.with_slot(key, |mut slot| slot.create_main_copy());
            store.with_slot(key, |slot| {
                accumulate(&mut handed_over, slot.value);
                *slot.packed = PackedState::EMPTY;
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
                for round in 0..TURNS {
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

/// While `f` runs in a slot, by `with_slot` or by `visit`, whatever another thread wants of the key
/// waits.
pub fn nobody_enters_a_slot_in_use<S: Store + Sync>(make: &impl Fn(&Layout) -> S) {
    let (_, store) = built(make);
    let key = LONG;
    let only = key..Key(key.0 + 1);
    store.reserve(key, true);
    let zeros = vec![zero(); store.value_len(key)];
    for (name, intrude) in [
        ("with_slot", &(|| store.with_slot(key, |_| ())) as &(dyn Fn() + Sync)),
        ("push", &|| assert_ne!(store.push(key, &zeros), Pushed::Done)),
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
        assert_eq!(intruded, None, "{name} did not wait for the end of this");
    }
}

/// Two threads that try to be in one slot at the same time; each number is the last round that got
/// so far.
#[derive(Default)]
struct Meeting {
    inside: AtomicU32,
    coming: AtomicU32,
    done: AtomicU32,
    left: AtomicU32,
    over: AtomicBool,
}

/// Lets the other thread go on when this one has ended, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Meeting {
    /// In the slot: lets the other thread come, and tells whether its call returned meanwhile.
    fn is_intruded(&self, round: u32) -> bool {
        self.inside.store(round, Ordering::SeqCst);
        self.wait(|| self.coming.load(Ordering::SeqCst) == round);
        (0..ROOM_TO_INTRUDE).any(|_| {
            thread::yield_now();
            self.done.load(Ordering::SeqCst) == round
        })
    }

    /// The other thread: false once the meeting is over.
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

/// One thread writes packed states and values while another reserves and releases: what is kept is
/// what was written last.
pub fn reserve_and_release_lose_nothing_written_meanwhile<S: Store<Value: From<i16>> + Sync>(
    make: &impl Fn(&Layout) -> S,
) {
    let (_, store) = built(make);
    let (held, leaving) = (LONG, Key(LONG.0 + 1));
    let ones = vec![S::Value::from(1); store.value_len(held)];
    store.reserve(held, false);
    store.with_slot(held, |mut slot| slot.create_main_copy());
    let pace = Pace::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            pace.keep(0, |_| {
                assert_eq!(store.push(held, &ones), Pushed::Done);
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
    assert_eq!(
        look(&store, held).value,
        vec![S::Value::from(STEPS); ones.len()],
        "pushes were lost"
    );
    assert_eq!(
        look(&store, leaving).packed.bits(),
        STEPS as u64,
        "changes of the packed state were lost"
    );
}

/// Two threads that keep pace, so that neither is done before the other has begun, however busy the
/// machine.
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
        for number in 0..STEPS as u32 {
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

/// The first key of the longest values.
const LONG: Key = Key(67);
/// Meetings of two threads in one slot, for each call.
const ROUNDS: u32 = if cfg!(miri) { 2 } else { 20 };
/// Turns that a thread in a slot gives another one to come in.
const ROOM_TO_INTRUDE: usize = if cfg!(miri) { 5 } else { 50 };
/// Steps of each of two threads that keep pace.
const STEPS: i16 = if cfg!(miri) { 10 } else { 1_000 };
/// Steps that one of them may be ahead.
const LEAD_MAX: u32 = if cfg!(miri) { 2 } else { 8 };
/// Pushes of one thread; two times that is an `i16`.
const PUSHES: i16 = if cfg!(miri) { 10 } else { 10_000 };
/// Turns of a thread on keys of its own.
const TURNS: u64 = if cfg!(miri) { 2 } else { 40 };
/// Comings and goings of a copy at least.
const RELOCATIONS: u64 = if cfg!(miri) { 5 } else { 100 };
