//! A store of your own: a mutex for each key, and a copy behind it only while the node holds one.
//!
//! The contract is that of [`Store`]: a key's latch is held while its slot is used, a packed state
//! outlives its value, and newly reserved memory is zero. Not here: sparse layouts, whose keys are
//! too many for a list.

use std::ops::Range;
use std::sync::PoisonError;

use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout, Value, Version};

// The only lines about loom: its models run this very code with loom's primitives.
#[cfg(adapm_loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(adapm_loom))]
use std::sync::{Mutex, MutexGuard};

/// A [`Store`] for dense layouts: a list of mutexes.
pub struct MutexStore<V> {
    layout: Layout,
    entries: Vec<Mutex<Entry<V>>>,
}

/// The store's entry of one key.
struct Entry<V> {
    /// Kept when the copy goes.
    packed: PackedState,
    version: Version,
    /// Empty while no copy is held.
    value: Vec<V>,
    delta: Vec<V>,
}

impl<V: Value> MutexStore<V> {
    /// Creates a store for the keys of `layout` without copies.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let entries = (layout.keys().start.0..layout.keys().end.0)
            .map(|_| Mutex::new(Entry::absent(PackedState::EMPTY)));
        Self { layout: layout.clone(), entries: entries.collect() }
    }

    fn latch(&self, key: Key) -> MutexGuard<'_, Entry<V>> {
        // A panic in the closure of an access is the caller's: the entry itself is consistent.
        self.entries[key.0 as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Value> Store for MutexStore<V> {
    type Value = V;

    fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or(0)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        f(self.latch(key).slot())
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let len = self.value_len(key);
        let mut entry = self.latch(key);
        // Held elements are kept, new ones are zero.
        entry.value.resize(len, V::default());
        if with_delta {
            entry.delta.resize(len, V::default());
        } else {
            entry.delta = Vec::new();
        }
    }

    fn release(&self, key: Key) {
        let mut entry = self.latch(key);
        *entry = Entry::absent(entry.packed);
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, V>)) {
        let end = keys.end.min(self.layout.keys().end);
        for key in (keys.start.0..end.0).map(Key) {
            let mut entry = self.latch(key);
            if !entry.value.is_empty() {
                f(key, entry.slot());
            }
        }
    }
}

impl<V: Value> Entry<V> {
    fn absent(packed: PackedState) -> Self {
        Self { packed, version: Version(0), value: Vec::new(), delta: Vec::new() }
    }

    fn slot(&mut self) -> Slot<'_, V> {
        if self.value.is_empty() {
            // A version is kept only while a copy is held.
            self.version = Version(0);
        }
        Slot {
            packed: &mut self.packed,
            version: &mut self.version,
            value: &mut self.value,
            delta: &mut self.delta,
        }
    }
}
