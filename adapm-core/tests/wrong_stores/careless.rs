//! A store with a mutex for each key, and every mistake that an author might make.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use adapm_core::slot::{PackedState, Pushed, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::{Key, Layout, Version};

/// The mistake of a [`Careless`] store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    VersionOfAnAbsentKeyStays,
    WordLosesItsTopBit,
    ReserveClearsTheWord,
    ReserveStartsAnew,
    ReserveForgetsTheDelta,
    DeltaIsNeverFreed,
    ReleaseClearsTheWord,
    ReleasedElementsComeBack,
    ReserveEachStartsAnew,
    ReserveEachGoesBackwards,
    NeighboursShareElements,
    VisitGoesBackwards,
    VisitShowsAbsentKeys,
    VisitIncludesTheEnd,
    VisitShowsCopies,
    PrefetchWantsAKey,
    LookOverlooksTheDelta,
    LookForgetsTheWord,
    HeldOverlooksReplicas,
    PushOverlooksTheDelta,
    AccessWithoutLatch,
    PushWithoutLatch,
    VisitWithoutLatch,
    VisitLooksUnderAnotherLatch,
    ReleaseWithoutLatch,
    RoomForHalfOfTheDeltas,
    PanicKeepsTheLatch,
}

pub(crate) struct Careless {
    layout: Layout,
    entries: Vec<Mutex<Entry>>,
    /// Number of deltas.
    deltas: AtomicUsize,
    mistake: Option<Mistake>,
}

#[derive(Clone, Default)]
struct Entry {
    packed: PackedState,
    version: Version,
    value: Vec<f32>,
    delta: Vec<f32>,
    /// Elements that were freed, for [`Mistake::ReleasedElementsComeBack`].
    freed: Vec<f32>,
}

impl Careless {
    pub(crate) fn new(layout: &Layout, mistake: Option<Mistake>) -> Self {
        let keys = layout.keys().end.0;
        Self {
            layout: layout.clone(),
            entries: (0..keys).map(|_| Mutex::default()).collect(),
            deltas: AtomicUsize::new(0),
            mistake,
        }
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn entry(&self, key: Key) -> MutexGuard<'_, Entry> {
        // Keys of one length share the entry of the lower one.
        let shared = self.has(Mistake::NeighboursShareElements) && key.0 % 2 == 1;
        let below = Key(key.0.saturating_sub(1));
        let at = if shared && self.value_len(below) == self.value_len(key) { below } else { key };
        self.entries[at.0 as usize].lock().unwrap_or_else(|poisoned| {
            assert!(!self.has(Mistake::PanicKeepsTheLatch), "nobody lets go of the latch of {key}");
            PoisonError::into_inner(poisoned)
        })
    }

    /// Returns true if there is room for another delta.
    fn has_room(&self) -> bool {
        !self.has(Mistake::RoomForHalfOfTheDeltas)
            || self.deltas.load(Ordering::Relaxed) <= self.entries.len() / 2
    }

    fn account(&self, had_delta: bool, has_delta: bool) {
        match (had_delta, has_delta) {
            (false, true) => self.deltas.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.deltas.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// Runs `f` on the entry, latched or, as a mistake, on a copy that is written back.
    fn enter<R>(&self, key: Key, latched: bool, f: impl FnOnce(&mut Entry) -> R) -> R {
        if latched {
            return f(&mut self.entry(key));
        }
        let mut copy = self.entry(key).clone();
        let result = f(&mut copy);
        thread::yield_now();
        *self.entry(key) = copy;
        result
    }
}

impl Store for Careless {
    type Value = f32;

    fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or(0)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, f32>) -> R) -> R {
        self.enter(key, !self.has(Mistake::AccessWithoutLatch), |entry| {
            let result = f(entry.slot());
            if entry.value.is_empty() && !self.has(Mistake::VersionOfAnAbsentKeyStays) {
                entry.version = Version(0);
            }
            if self.has(Mistake::WordLosesItsTopBit) {
                entry.packed = PackedState::from_bits(entry.packed.bits() & (u64::MAX >> 4));
            }
            result
        })
    }

    fn push(&self, key: Key, update: &[f32]) -> Pushed {
        self.enter(key, !self.has(Mistake::PushWithoutLatch), |entry| {
            let before = entry.delta.clone();
            let pushed = entry.slot().push(update);
            if self.has(Mistake::PushOverlooksTheDelta) {
                entry.delta = before;
            }
            pushed
        })
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let len = self.value_len(key);
        let mut entry = self.entry(key);
        if self.has(Mistake::ReserveStartsAnew) {
            entry.value.clear();
        }
        if entry.value.is_empty() && self.has(Mistake::ReserveClearsTheWord) {
            entry.packed = PackedState::EMPTY;
        }
        if entry.value.is_empty() && entry.freed.len() == len {
            entry.value = entry.freed.clone();
        }
        entry.value.resize(len, 0.0);
        let had_delta = !entry.delta.is_empty();
        let forgets = self.has(Mistake::ReserveForgetsTheDelta) && had_delta;
        if with_delta && !forgets && (had_delta || self.has_room()) {
            entry.delta.resize(len, 0.0);
        } else if !self.has(Mistake::DeltaIsNeverFreed) {
            entry.delta.clear();
        }
        self.account(had_delta, !entry.delta.is_empty());
    }

    fn release(&self, key: Key) {
        self.enter(key, !self.has(Mistake::ReleaseWithoutLatch), |entry| {
            let packed = if self.has(Mistake::ReleaseClearsTheWord) {
                PackedState::EMPTY
            } else {
                entry.packed
            };
            self.account(!entry.delta.is_empty(), false);
            let mut freed = std::mem::take(&mut entry.freed);
            if self.has(Mistake::ReleasedElementsComeBack) && !entry.value.is_empty() {
                freed = std::mem::take(&mut entry.value);
            }
            *entry = Entry { packed, freed, ..Entry::default() };
        });
    }

    fn reserve_each(&self, keys: &[Key], mut f: impl FnMut(Key, Slot<'_, f32>)) {
        let mut keys = keys.to_vec();
        if self.has(Mistake::ReserveEachGoesBackwards) {
            keys.reverse();
        }
        for key in keys {
            if self.has(Mistake::ReserveEachStartsAnew) {
                self.release(key);
            }
            self.reserve(key, false);
            self.with_slot(key, |slot| f(key, slot));
        }
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, f32>)) {
        let past = u64::from(self.has(Mistake::VisitIncludesTheEnd));
        let end = keys.end.0.saturating_add(past).min(self.entries.len() as u64);
        let mut keys: Vec<Key> = (keys.start.0..end).map(Key).collect();
        if self.has(Mistake::VisitGoesBackwards) {
            keys.reverse();
        }
        for key in keys {
            if self.has(Mistake::VisitLooksUnderAnotherLatch) {
                let is_held = !self.entry(key).value.is_empty();
                thread::yield_now();
                if is_held {
                    f(key, self.entry(key).slot());
                }
                continue;
            }
            self.enter(key, !self.has(Mistake::VisitWithoutLatch), |entry| {
                if entry.value.is_empty() && !self.has(Mistake::VisitShowsAbsentKeys) {
                    return;
                }
                let mut copy = entry.clone();
                let shown = if self.has(Mistake::VisitShowsCopies) { &mut copy } else { entry };
                f(key, shown.slot());
            });
        }
    }

    fn look(&self, key: Key) -> Look {
        let entry = self.entry(key);
        if !entry.value.is_empty() {
            let overlooks = self.has(Mistake::LookOverlooksTheDelta);
            return Look::Held { with_delta: !overlooks && !entry.delta.is_empty() };
        }
        Look::Absent(if self.has(Mistake::LookForgetsTheWord) {
            PackedState::EMPTY
        } else {
            entry.packed
        })
    }

    fn is_held(&self, key: Key) -> bool {
        let entry = self.entry(key);
        !entry.value.is_empty()
            && (entry.delta.is_empty() || !self.has(Mistake::HeldOverlooksReplicas))
    }

    fn prefetch_entry(&self, key: Key) {
        self.prefetch(key);
    }

    fn prefetch(&self, key: Key) {
        assert!(
            !self.has(Mistake::PrefetchWantsAKey) || self.value_len(key) > 0,
            "{key} is no key"
        );
    }
}

impl Entry {
    fn slot(&mut self) -> Slot<'_, f32> {
        Slot {
            packed: &mut self.packed,
            version: &mut self.version,
            value: &mut self.value,
            delta: &mut self.delta,
        }
    }
}
