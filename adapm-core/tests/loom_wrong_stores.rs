//! Loom: proof that a green run means something. A store with a latch that is too weak, or missing
//! in one call, fails the model about it; a store whose latch loom cannot see fails at once instead
//! of hanging.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-core --test
//! 'loom_*'`
#![cfg(adapm_loom)]

use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout, Version};
use adapm_verify::ReferenceStore;
use adapm_verify::store_suite::models;
use adapm_verify::store_suite_loom;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// The mistake of a [`Spinning`] store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    TakesTheLatchRelaxed,
    LeavesTheLatchRelaxed,
    AccessesWithoutLatch,
    VisitsWithoutLatch,
    VisitsUnderAnotherLatch,
    ReservesWithoutLatch,
    ReleasesWithoutLatch,
}

/// A spin latch for each key, made of loom's primitives. The entry is in a mutex of std, which only
/// lends it and is never held at a point where loom may switch threads: only the latch excludes.
struct Spinning {
    layout: Layout,
    entries: Vec<(AtomicBool, Mutex<Entry>)>,
    mistake: Option<Mistake>,
}

#[derive(Clone, Default)]
struct Entry {
    packed: PackedState,
    version: Version,
    value: Vec<i64>,
    delta: Vec<i64>,
}

impl Spinning {
    fn new(layout: &Layout, mistake: Option<Mistake>) -> Self {
        let entry = |_| (AtomicBool::new(false), Mutex::default());
        Self {
            layout: layout.clone(),
            entries: (0..layout.keys().end.0).map(entry).collect(),
            mistake,
        }
    }

    fn latched<R>(&self, key: Key, without: Mistake, f: impl FnOnce(&mut Entry) -> R) -> R {
        let (latch, entry) = &self.entries[key.0 as usize];
        let is_latched = self.mistake != Some(without);
        let take = self.order(Mistake::TakesTheLatchRelaxed, Ordering::Acquire);
        while is_latched && latch.compare_exchange(false, true, take, Ordering::Relaxed).is_err() {
            thread::yield_now();
        }
        let mut copy = entry.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let result = f(&mut copy);
        *entry.lock().unwrap_or_else(PoisonError::into_inner) = copy;
        if is_latched {
            latch.store(false, self.order(Mistake::LeavesTheLatchRelaxed, Ordering::Release));
        }
        result
    }

    fn order(&self, mistake: Mistake, right: Ordering) -> Ordering {
        if self.mistake == Some(mistake) { Ordering::Relaxed } else { right }
    }
}

impl Store for Spinning {
    type Value = i64;

    fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or(0)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, i64>) -> R) -> R {
        self.latched(key, Mistake::AccessesWithoutLatch, |entry| f(entry.slot()))
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let len = self.value_len(key);
        self.latched(key, Mistake::ReservesWithoutLatch, |entry| {
            // Room for another thread, as an allocation would give.
            if self.mistake == Some(Mistake::ReservesWithoutLatch) {
                thread::yield_now();
            }
            entry.value.resize(len, 0);
            entry.delta.resize(if with_delta { len } else { 0 }, 0);
        });
    }

    fn release(&self, key: Key) {
        self.latched(key, Mistake::ReleasesWithoutLatch, |entry| {
            if self.mistake == Some(Mistake::ReleasesWithoutLatch) {
                thread::yield_now();
            }
            *entry = Entry { packed: entry.packed, ..Entry::default() };
        });
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, i64>)) {
        for key in (keys.start.0..keys.end.0).map(Key) {
            let looked = self.mistake == Some(Mistake::VisitsUnderAnotherLatch)
                && self.with_slot(key, |slot| !slot.value.is_empty());
            self.latched(key, Mistake::VisitsWithoutLatch, |entry| {
                if looked || !entry.value.is_empty() {
                    f(key, entry.slot());
                }
            });
        }
    }
}

impl Entry {
    fn slot(&mut self) -> Slot<'_, i64> {
        Slot {
            packed: &mut self.packed,
            version: &mut self.version,
            value: &mut self.value,
            delta: &mut self.delta,
        }
    }
}

store_suite_loom!(a_sound_latch_passes, |layout| Spinning::new(layout, None));

/// Evaluates to true if the claim fails on a store with the mistake.
macro_rules! fails {
    ($claim:ident, $mistake:expr) => {
        panic::catch_unwind(AssertUnwindSafe(|| {
            models::$claim(move |layout: &Layout| Spinning::new(layout, Some($mistake)));
        }))
        .is_err()
    };
}

#[test]
fn a_latch_that_is_too_weak_is_found() {
    for mistake in [Mistake::TakesTheLatchRelaxed, Mistake::LeavesTheLatchRelaxed] {
        assert!(
            fails!(what_is_written_under_a_latch_is_seen_under_the_next, mistake),
            "{mistake:?}"
        );
    }
}

#[test]
fn a_call_without_latch_is_found() {
    assert!(fails!(two_accesses_exclude_each_other, Mistake::AccessesWithoutLatch));
    assert!(fails!(words_of_absent_keys_are_latched_too, Mistake::AccessesWithoutLatch));
    assert!(fails!(visits_and_accesses_exclude_each_other, Mistake::VisitsWithoutLatch));
    assert!(fails!(a_visit_beside_a_release_shows_what_is_held, Mistake::VisitsUnderAnotherLatch));
    assert!(fails!(a_delta_comes_and_goes_beside_a_push, Mistake::ReservesWithoutLatch));
    assert!(fails!(words_outlive_copies_that_come_and_go, Mistake::ReservesWithoutLatch));
    assert!(fails!(words_outlive_copies_that_come_and_go, Mistake::ReleasesWithoutLatch));
    assert!(fails!(a_copy_leaves_whole_or_not_at_all, Mistake::AccessesWithoutLatch));
}

#[test]
#[should_panic(expected = "not made of loom's primitives")]
fn a_latch_that_loom_cannot_see_is_named() {
    models::two_accesses_exclude_each_other(ReferenceStore::<i64>::new);
}
