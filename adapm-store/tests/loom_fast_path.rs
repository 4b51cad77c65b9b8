//! Loom: a worker's push against concurrent transitions of the engine: it is counted once, or
//! refused. And steps of two workers.
//!
//! The worker runs what `Worker::push` runs under the latch, the engine what `Engine` runs, with
//! memory before or after the transition.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-store --test
//! 'loom_*'`
#![cfg(adapm_loom)]

use std::sync::Arc as Seen;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use adapm_core::slot::{Location, Pushed, State};
use adapm_core::store::Store;
use adapm_core::update::UpdateRule;
use adapm_core::{Counter, Key, Layout, NodeId, Version};
use adapm_store::model::Mistake;
use adapm_store::{DenseStore, SparseStore};
use loom::sync::Arc;
use loom::thread;

const KEY: Key = Key(0);
const OWNER: Location = Location { node: NodeId(1), counter: Counter(1) };
const THERE: Location = Location { node: NodeId(1), counter: Counter(2) };
const HERE: Location = Location { node: NodeId(0), counter: Counter(2) };

/// The outcome of a worker's pushes.
#[derive(Default)]
struct Pushes {
    applied: i64,
    dirtied: usize,
}

trait Model: Store<Value = i64> + Send + Sync + Sized + 'static {
    fn empty() -> Self;

    /// Creates a key that this node owns.
    fn with_main() -> Arc<Self> {
        let store = Self::empty();
        store.reserve(KEY, false);
        store.with_slot(KEY, |mut slot| slot.create_main_copy());
        Arc::new(store)
    }

    /// Creates a key that this node holds a replica of.
    fn with_replica() -> Arc<Self> {
        let store = Self::empty();
        store.with_slot(KEY, |mut slot| slot.request());
        store.reserve(KEY, true);
        store.with_slot(KEY, |mut slot| slot.install(Version(3), &[10, 10], OWNER));
        Arc::new(store)
    }

    /// Pushes ones `times` times, as far as the key is here.
    fn push_ones(&self, times: usize) -> Pushes {
        let mut pushes = Pushes::default();
        for _ in 0..times {
            match self.push(KEY, &[1, 1]) {
                Pushed::Refused => {}
                Pushed::Done => pushes.applied += 1,
                Pushed::Dirtied => {
                    pushes.applied += 1;
                    pushes.dirtied += 1;
                }
            }
        }
        pushes
    }
}

impl Model for DenseStore<i64> {
    fn empty() -> Self {
        let store = Self::new(&Layout::dense(&[(2, 2)]).expect("a legal layout"));
        // Keeps the chunk: a copy's freed memory goes to the next copy, not to the allocator.
        store.reserve(Key(1), false);
        store.reserve(Key(1), true);
        store
    }
}

impl Model for SparseStore<i64> {
    fn empty() -> Self {
        Self::new(&Layout::sparse(&[(2, 2)]).expect("a legal layout"))
    }
}

/// Hands a main copy over while a worker pushes: applied pushes have left with it.
fn hands_over<S: Model>() {
    let outcomes = Seen::new([const { AtomicUsize::new(0) }; 3]);
    let seen = Seen::clone(&outcomes);
    loom::model(move || {
        let store = S::with_main();
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.push_ones(2).applied)
        };
        let taken = store.with_slot(KEY, |mut slot| {
            let taken = [slot.value[0], slot.value[1]];
            slot.hand_over(THERE);
            taken
        });
        store.release(KEY);
        let applied = worker.join().expect("the worker is done");
        assert_eq!(taken, [applied; 2], "a push was lost, or torn, or made after the key had left");
        store.with_slot(KEY, |slot| {
            assert_eq!((slot.value.len(), slot.packed.location()), (0, Some(THERE)))
        });
        seen[applied as usize].fetch_add(1, Relaxed);
    });
    assert!(
        outcomes.iter().all(|times| times.load(Relaxed) > 0),
        "refused, one and two: {outcomes:?}"
    );
}

/// Releases a replica while a worker pushes: its last delta holds the applied pushes.
fn releases<S: Model>() {
    loom::model(|| {
        let store = S::with_replica();
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.push_ones(2).applied)
        };
        let mut delta = [0; 2];
        store.with_slot(KEY, |mut slot| {
            slot.take_delta(&mut delta);
            slot.release();
        });
        store.release(KEY);
        assert_eq!(delta, [worker.join().expect("the worker is done"); 2]);
        store.with_slot(KEY, |slot| {
            assert_eq!((slot.value.len(), slot.packed.state()), (0, State::Releasing))
        });
    });
}

/// Makes a replica the main copy, which moves it to memory without a delta: all pushes stay.
fn promotes<S: Model>() {
    loom::model(|| {
        let store = S::with_replica();
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.push_ones(2).applied)
        };
        store.with_slot(KEY, |mut slot| slot.arrive(Version(5), Some(&[20, 20]), HERE));
        store.reserve(KEY, false);
        assert_eq!(worker.join().expect("the worker is done"), 2, "the key was here all the time");
        store.with_slot(KEY, |slot| {
            assert_eq!((&*slot.value, slot.delta.len()), (&[22, 22][..], 0));
            assert!(*slot.version > Version(5), "a version says that there were changes");
        });
    });
}

/// Takes the delta between pushes: each is taken once, and a remainder has a flag that was
/// reported.
fn takes_deltas<S: Model>() {
    loom::model(|| {
        let store = S::with_replica();
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.push_ones(2))
        };
        let take = |store: &S| {
            store.with_slot(KEY, |mut slot| {
                let (dirty, mut delta) = (slot.packed.is_dirty(), [0; 2]);
                slot.take_delta(&mut delta);
                assert_eq!(dirty, delta != [0; 2], "a delta has a mark, and a mark a delta");
                (delta, usize::from(dirty))
            })
        };
        let (first, marks) = take(&store);
        let pushes = worker.join().expect("the worker is done");
        let (rest, more) = take(&store);
        assert_eq!([first[0] + rest[0], first[1] + rest[1]], [2, 2]);
        assert_eq!(pushes.dirtied, marks + more, "each mark is told once");
    });
}

/// Counts its steps, and moves by one more in each.
struct Counting;

impl UpdateRule<i64> for Counting {
    fn state_len(&self, _dim: usize) -> usize {
        1
    }

    fn step(&self, value: &[i64], gradient: &[i64], update: &mut [i64]) -> bool {
        update.copy_from_slice(&[gradient[0] * (1 + value[1]), 1]);
        true
    }
}

/// Takes steps of two workers on one copy: the later one sees the earlier one.
fn takes_steps<S: Model>() {
    loom::model(|| {
        let store = S::with_main();
        let step =
            |store: &S| store.with_slot(KEY, |mut slot| slot.step(&Counting, &[10], &mut [0; 2]));
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || step(&store))
        };
        assert_eq!(step(&store), Some(Pushed::Done));
        assert_eq!(worker.join().expect("the worker is done"), Some(Pushed::Done));
        store.with_slot(KEY, |slot| assert_eq!(slot.value, [10 + 20, 2]));
    });
}

/// Installs a copy while a worker pulls: the worker reads the whole value or none.
fn installs<S: Model>() {
    loom::model(|| {
        let store = Arc::new(S::empty());
        store.with_slot(KEY, |mut slot| slot.request());
        let worker = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let mut value = [0; 2];
                let local = store.with_slot(KEY, |slot| slot.pull(&mut value));
                (local, value)
            })
        };
        store.reserve(KEY, true);
        store.with_slot(KEY, |mut slot| slot.install(Version(3), &[10, 10], OWNER));
        let (local, value) = worker.join().expect("the worker is done");
        assert_eq!(value, if local { [10, 10] } else { [0, 0] });
    });
}

/// Hands a main copy over while two workers push.
fn hands_over_before_two_workers<S: Model>() {
    loom::model(|| {
        let store = S::with_main();
        let workers = [(); 2].map(|()| {
            let store = Arc::clone(&store);
            thread::spawn(move || store.push_ones(1).applied)
        });
        let taken = store.with_slot(KEY, |mut slot| {
            let taken = slot.value[0];
            slot.hand_over(THERE);
            taken
        });
        store.release(KEY);
        let applied: i64 =
            workers.into_iter().map(|worker| worker.join().expect("it is done")).sum();
        assert_eq!(taken, applied);
    });
}

macro_rules! models {
    ($($store:ident: $type:ty),*) => {$(
        mod $store {
            use super::*;

            #[test]
            fn a_main_copy_leaves_with_every_push() {
                hands_over::<$type>();
            }

            #[test]
            fn a_replica_is_released_with_every_push() {
                releases::<$type>();
            }

            #[test]
            fn a_replica_becomes_the_main_copy_with_every_push() {
                promotes::<$type>();
            }

            #[test]
            fn a_delta_is_taken_once_and_its_mark_told_once() {
                takes_deltas::<$type>();
            }

            #[test]
            fn steps_of_two_workers_are_taken_one_after_the_other() {
                takes_steps::<$type>();
            }

            #[test]
            fn a_replica_that_arrives_is_read_whole_or_not() {
                installs::<$type>();
            }
        }
    )*};
}

models!(dense: DenseStore<i64>, sparse: SparseStore<i64>);

/// Not for the dense store: two threads that spin for a third's latch make no progress under loom.
#[test]
fn a_main_copy_leaves_with_the_pushes_of_two_workers() {
    hands_over_before_two_workers::<SparseStore<i64>>();
}

/// Each model finds its mistake.
mod planted {
    use super::*;

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_latch_that_does_not_acquire() {
        Mistake::LatchRelaxed.planted_in(hands_over::<DenseStore<i64>>);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_latch_that_does_not_release() {
        Mistake::UnlatchRelaxed.planted_in(takes_deltas::<DenseStore<i64>>);
    }

    #[test]
    #[should_panic]
    fn a_slot_looked_up_before_its_latch() {
        Mistake::LookUpEarly.planted_in(promotes::<DenseStore<i64>>);
    }
}
