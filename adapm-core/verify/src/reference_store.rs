//! The simplest store that keeps the contract: one map behind one mutex. Every other store is
//! compared with it.
//!
//! Not here: speed. One thread at a time is inside the store, for any key.

use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use adapm_core::id::{Key, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::value::Value;

/// A [`Store`] for tests: a map from key to copy behind a mutex.
///
/// ```
/// use adapm_core::slot::PackedState;
/// use adapm_core::store::Store;
/// use adapm_verify::ReferenceStore;
/// use adapm_core::{Key, Layout};
///
/// let store = ReferenceStore::<f32>::new(&Layout::dense(&[(10, 2)])?);
/// store.with_slot(Key(3), |slot| assert!(slot.value.is_empty() && *slot.packed == PackedState::EMPTY));
/// store.reserve(Key(3), false);
/// store.with_slot(Key(3), |slot| assert_eq!(slot.value, [0.0, 0.0]));
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct ReferenceStore<V> {
    layout: Layout,
    copies: Mutex<BTreeMap<Key, LocalCopy<V>>>,
}

#[derive(Debug)]
struct LocalCopy<V> {
    packed: PackedState,
    version: Version,
    value: Vec<V>,
    delta: Vec<V>,
}

impl<V: Value> ReferenceStore<V> {
    /// Creates an empty store for the keys of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self { layout: layout.clone(), copies: Mutex::new(BTreeMap::new()) }
    }

    fn copies(&self) -> MutexGuard<'_, BTreeMap<Key, LocalCopy<V>>> {
        // A check that failed inside `f` has left a copy with any content, but the map whole.
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Value> Store for ReferenceStore<V> {
    type Value = V;

    fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or(0)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        assert!(self.value_len(key) > 0, "{key} is no key of the layout");
        let mut copies = self.copies();
        let Some(copy) = copies.get_mut(&key) else {
            let mut copy = LocalCopy::absent();
            let result = f(copy.slot());
            if !copy.is_forgettable() {
                copies.insert(key, copy);
            }
            return result;
        };
        let result = f(copy.slot());
        if copy.is_forgettable() {
            copies.remove(&key);
        }
        result
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let len = self.value_len(key);
        assert!(len > 0, "{key} is no key of the layout");
        let mut copies = self.copies();
        let copy = copies.entry(key).or_insert_with(LocalCopy::absent);
        copy.value.resize(len, V::default());
        if with_delta {
            copy.delta.resize(len, V::default());
        } else {
            copy.delta = Vec::new();
        }
    }

    fn release(&self, key: Key) {
        let mut copies = self.copies();
        if let Some(copy) = copies.get_mut(&key) {
            *copy = LocalCopy { packed: copy.packed, ..LocalCopy::absent() };
            if copy.is_forgettable() {
                copies.remove(&key);
            }
        }
    }

    fn look(&self, key: Key) -> Look {
        let Ok(copies) = self.copies.try_lock() else { return Look::Unknown };
        match copies.get(&key) {
            None => Look::Absent(PackedState::EMPTY),
            Some(copy) if copy.is_held() => Look::Held { with_delta: !copy.delta.is_empty() },
            Some(copy) => Look::Absent(copy.packed),
        }
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, V>)) {
        if keys.start < keys.end {
            for (key, copy) in self.copies().range_mut(keys).filter(|(_, copy)| copy.is_held()) {
                f(*key, copy.slot());
            }
        }
    }
}

impl<V: Value> LocalCopy<V> {
    fn absent() -> Self {
        Self { packed: PackedState::EMPTY, version: Version(0), value: vec![], delta: vec![] }
    }

    /// Returns the copy as a slot; changes of the version of an absent key are lost.
    fn slot(&mut self) -> Slot<'_, V> {
        if !self.is_held() {
            self.version = Version(0);
        }
        Slot {
            packed: &mut self.packed,
            version: &mut self.version,
            value: &mut self.value,
            delta: &mut self.delta,
        }
    }

    fn is_held(&self) -> bool {
        !self.value.is_empty()
    }

    /// Returns true if an absent key would look the same.
    fn is_forgettable(&self) -> bool {
        !self.is_held() && self.packed == PackedState::EMPTY
    }
}
