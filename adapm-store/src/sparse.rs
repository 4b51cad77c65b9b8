//! The store for sparse layouts: any `u64` may be a key, and only held or known keys take memory.
//!
//! Not here: layouts of few keys, all known beforehand; see [`crate::DenseStore`].

#![forbid(unsafe_code)]

use core::fmt;
use core::ops::Range;
use std::sync::PoisonError;

use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::Store;
use adapm_core::{Key, Layout, Value, Version};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::sync::{Mutex, MutexGuard};

/// A store that keeps copies in hash maps, for ranges in which few keys exist.
///
/// Keys are spread over 64 parts; the latch of a key is the mutex of its part. [`Store::visit`]
/// first lists the held keys of the range: it takes 8 B for each and time for all held keys (or for
/// the range, if that is shorter).
///
/// # Memory
/// An absent key takes nothing, and 16 B in a map as long as its packed state is not empty: its
/// location is known. A copy takes 40 B in a map besides its value and delta. A map has between 1.1
/// and 2.3 times the room its content needs; it shrinks when copies leave. See
/// [`SparseStore::memory`].
///
/// ```
/// use adapm_core::store::Store;
/// use adapm_core::{Key, Layout};
/// use adapm_store::SparseStore;
///
/// let store = SparseStore::<f32>::new(&Layout::sparse(&[(u64::MAX, 8)])?);
/// store.reserve(Key(1 << 60), true);
/// store.with_slot(Key(1 << 60), |slot| assert_eq!(slot.delta, [0.0; 8]));
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
pub struct SparseStore<V> {
    layout: Layout,
    parts: Box<[Part<V>]>,
}

/// Aligned to lines of its own, as workers take different parts at the same time.
#[repr(align(128))]
struct Part<V>(Mutex<Maps<V>>);

struct Maps<V> {
    held: HashMap<Key, LocalCopy<V>, FixedState>,
    /// The packed states of absent keys that are not empty.
    packed: HashMap<Key, PackedState, FixedState>,
    /// Elements of all values and deltas.
    elements: usize,
}

struct LocalCopy<V> {
    packed: PackedState,
    version: Version,
    /// The value, and as many again if there is a delta.
    elements: Box<[V]>,
}

impl<V: Value> SparseStore<V> {
    /// Creates an empty store for the keys of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            parts: (0..PARTS).map(|_| Part(Mutex::new(Maps::new()))).collect(),
        }
    }

    /// Returns the bytes allocated: the parts, their maps, values and deltas.
    ///
    /// Takes the mutex of each part; meant for statistics.
    #[must_use]
    pub fn memory(&self) -> usize {
        let maps = self.parts.iter().map(|part| {
            let maps = part.maps();
            maps.held.allocation_size()
                + maps.packed.allocation_size()
                + maps.elements * size_of::<V>()
        });
        size_of_val(&*self.parts) + maps.sum::<usize>()
    }

    fn maps(&self, key: Key) -> MutexGuard<'_, Maps<V>> {
        // The upper bits of a multiplicative hash; the maps use a hash of another kind.
        self.parts[(key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PARTS.ilog2())) as usize]
            .maps()
    }

    fn len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or_else(|| panic!("{key} is no key of the layout"))
    }

    /// Returns the held keys in `keys` or, if there are more of them than keys in the range, the
    /// whole range.
    fn candidates(&self, keys: &Range<Key>) -> Vec<Key> {
        let held: usize = self.parts.iter().map(|part| part.maps().held.len()).sum();
        let span = keys.end.0.saturating_sub(keys.start.0);
        if span <= held as u64 {
            return (keys.start.0..keys.end.0).map(Key).collect();
        }
        let mut candidates = Vec::new();
        for part in &self.parts {
            candidates.extend(part.maps().held.keys().filter(|key| keys.contains(key)));
        }
        candidates.sort_unstable();
        candidates
    }
}

impl<V: Value> Store for SparseStore<V> {
    type Value = V;

    #[inline]
    fn value_len(&self, key: Key) -> usize {
        self.layout.value_len(key).unwrap_or(0)
    }

    // Kept out of callers that choose between stores: there a dense one takes few instructions.
    #[inline(never)]
    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        let value_len = self.len(key);
        let mut maps = self.maps(key);
        if let Some(copy) = maps.held.get_mut(&key) {
            return f(copy.slot(value_len));
        }
        let before = maps.packed.get(&key).copied().unwrap_or(PackedState::EMPTY);
        let mut packed = before;
        let result = f(Slot {
            packed: &mut packed,
            version: &mut Version(0),
            value: &mut [],
            delta: &mut [],
        });
        if packed != before {
            maps.set_word(key, packed);
        }
        result
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        let value_len = self.len(key);
        let elements_len = if with_delta { 2 * value_len } else { value_len };
        let mut maps = self.maps(key);
        let Maps { held, packed, elements } = &mut *maps;
        let copy = held.entry(key).or_insert_with(|| {
            let packed = packed.remove(&key).unwrap_or(PackedState::EMPTY);
            LocalCopy { packed, version: Version(0), elements: Box::default() }
        });
        if copy.elements.len() != elements_len {
            *elements = *elements - copy.elements.len() + elements_len;
            let mut fresh = vec![V::default(); elements_len];
            let kept = copy.elements.len().min(value_len);
            fresh[..kept].copy_from_slice(&copy.elements[..kept]);
            copy.elements = fresh.into();
        }
    }

    fn release(&self, key: Key) {
        let mut maps = self.maps(key);
        if let Some(copy) = maps.held.remove(&key) {
            maps.elements -= copy.elements.len();
            shrink(&mut maps.held);
            maps.set_word(key, copy.packed);
        }
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, V>)) {
        let keys = keys.start..keys.end.min(self.layout.keys().end);
        for key in self.candidates(&keys) {
            if let Some(copy) = self.maps(key).held.get_mut(&key) {
                f(key, copy.slot(self.len(key)));
            }
        }
    }
}

impl<V: Value> fmt::Debug for SparseStore<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SparseStore({} bytes)", self.memory())
    }
}

impl<V> Part<V> {
    fn maps(&self) -> MutexGuard<'_, Maps<V>> {
        // A panic of `f` leaves the maps whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Maps<V> {
    fn new() -> Self {
        Self {
            held: HashMap::with_hasher(FixedState::default()),
            packed: HashMap::with_hasher(FixedState::default()),
            elements: 0,
        }
    }

    /// Sets the packed state of an absent key.
    fn set_word(&mut self, key: Key, packed: PackedState) {
        if packed == PackedState::EMPTY {
            self.packed.remove(&key);
            shrink(&mut self.packed);
        } else {
            self.packed.insert(key, packed);
        }
    }
}

impl<V> LocalCopy<V> {
    fn slot(&mut self, value_len: usize) -> Slot<'_, V> {
        let (value, delta) = self.elements.split_at_mut(value_len);
        Slot { packed: &mut self.packed, version: &mut self.version, value, delta }
    }
}

/// Returns memory once a map is an eighth full, down to a quarter full, so that it does not grow
/// and shrink alternately.
fn shrink<T>(map: &mut HashMap<Key, T, FixedState>) {
    if map.is_empty() || map.capacity() / 8 > map.len() {
        map.shrink_to(4 * map.len());
    }
}

/// Enough that some 16 threads rarely meet; a power of two.
const PARTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> SparseStore<f32> {
        SparseStore::new(&Layout::sparse(&[(1 << 63, 4), (1 << 62, 9)]).expect("a legal layout"))
    }

    /// Returns keys all over the range, by a bijection, in no order.
    fn far_apart(n: u64) -> impl Iterator<Item = Key> {
        (0..n).map(|i| Key(i.wrapping_mul(0xd134_2543_de82_ef95) >> 1))
    }

    #[test]
    fn keys_far_apart_are_visited_in_order() {
        let store = store();
        let keys = if cfg!(miri) { 100 } else { 1_000 };
        far_apart(keys).for_each(|key| store.reserve(key, false));
        let mut expected: Vec<Key> = far_apart(keys).collect();
        expected.sort();
        let mut seen = Vec::new();
        store.visit(Key(0)..Key(u64::MAX), |key, _| seen.push(key));
        assert_eq!(seen, expected);

        let some = expected[10]..expected[20];
        let mut seen = Vec::new();
        store.visit(some, |key, _| seen.push(key));
        assert_eq!(seen, expected[10..20]);
        assert_eq!(store.value_len(Key(1 << 63)), 9);
    }

    #[test]
    fn memory_is_freed_when_copies_leave_and_words_are_forgotten() {
        let store = store();
        let empty = store.memory();
        for key in far_apart(10_000) {
            store.reserve(key, true);
            store.with_slot(key, |slot| *slot.packed = PackedState::MAIN_AT_HOME);
        }
        let held = store.memory() - empty;
        assert!(held >= 10_000 * (40 + 32), "{held} bytes for 10,000 replicas of 4 elements");

        far_apart(10_000).for_each(|key| store.release(key));
        let known = store.memory() - empty;
        assert!((10_000 * 16..10_000 * 48).contains(&known), "{known} bytes for 10,000 words");

        far_apart(10_000)
            .for_each(|key| store.with_slot(key, |slot| *slot.packed = PackedState::EMPTY));
        assert_eq!(store.memory(), empty);
    }

    #[test]
    fn looking_at_absent_keys_takes_no_memory() {
        let store = store();
        let empty = store.memory();
        far_apart(1_000)
            .for_each(|key| store.with_slot(key, |slot| assert!(slot.value.is_empty())));
        assert_eq!(store.memory(), empty);
    }
}
