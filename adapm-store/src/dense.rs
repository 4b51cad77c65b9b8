//! The store for dense layouts: a directory with an entry for every key, values in slabs.
//!
//! Not here: how memory is handled ([`crate::arena`], [`crate::slab`]).

#![forbid(unsafe_code)]

use core::fmt;
use core::ops::Range;

use adapm_core::slot::{Pushed, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::{Key, Layout, Value};

use crate::arena::Arena;

/// A store with an 8-byte entry for every key of the layout, and values in slabs.
///
/// A pull or push of a held key costs one atomic swap and touches the key's directory entry and its
/// slot, nothing else: no allocation, no counter, no cache line shared by all workers.
/// [`Store::reserve`] and [`Store::release`] also take a mutex, one per value length; freed slots
/// are reused and, by the chunk, returned.
///
/// # Memory
/// An absent key has its directory entry, 8 B. A main copy adds 16 B and the value, `4 len + 24` B
/// in all for `f32`. A replica adds 16 B, value and delta, rounded up to 16 B: at most `8 len + 36`
/// B in all. The records of chunks add less than half a byte per copy, and one and a half chunks
/// per value length may have room; a chunk is a 32nd of all slots, at most 64 MiB. See
/// [`DenseStore::memory`].
///
/// On Linux, directory and chunks of 2 MiB or more come straight from the system, not from the
/// allocator, and are mapped in huge pages where these are allowed on request
/// (`/sys/kernel/mm/transparent_hugepage/enabled` says `madvise` or `always`): with a million keys,
/// random accesses otherwise wait for the page table more than for the value.
///
/// Where main copies of successive keys are made at once and stay, as on a single node,
/// [`Store::prefetch_guess`] computes the place of a value from the key, so that a single access
/// waits for directory and value together.
///
/// # Departure
/// The top bits of a packed state stay unused: packed states are shifted by three bits instead,
/// which leaves room for tags in the low bits of packed states and of addresses alike.
///
/// ```
/// use adapm_core::store::Store;
/// use adapm_core::{Key, Layout};
/// use adapm_store::DenseStore;
///
/// let store = DenseStore::<f32>::new(&Layout::dense(&[(1_000, 64)])?);
/// store.reserve(Key(7), false);
/// store.with_slot(Key(7), |mut slot| slot.create_main_copy());
/// let pushed = store.with_slot(Key(7), |mut slot| slot.push(&[0.5; 64]));
/// assert_eq!(pushed, adapm_core::slot::Pushed::Done);
/// let mut value = [0.0; 64];
/// assert!(store.with_slot(Key(7), |slot| slot.pull(&mut value)));
/// assert_eq!(value, [0.5; 64]);
/// # Ok::<(), adapm_core::error::ConfigError>(())
/// ```
pub struct DenseStore<V> {
    arena: Arena<V>,
}

impl<V: Value> DenseStore<V> {
    /// Creates an empty store for the keys of `layout`.
    ///
    /// # Panics
    /// If memory has no room for the directory of 8 B per key.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self { arena: Arena::new(layout) }
    }

    /// Returns the bytes allocated: the directory, all chunks of slots, and the records of chunks.
    ///
    /// Takes the mutex of each value length; meant for statistics.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.arena.memory()
    }
}

impl<V: Value> Store for DenseStore<V> {
    type Value = V;

    #[inline]
    fn value_len(&self, key: Key) -> usize {
        self.arena.value_len(key).unwrap_or(0)
    }

    #[inline(always)]
    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        self.arena.with_slot(key, f)
    }

    #[inline(always)]
    fn push(&self, key: Key, update: &[V]) -> Pushed {
        self.arena.push(key, update)
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        self.arena.reserve(key, with_delta);
    }

    fn release(&self, key: Key) {
        self.arena.release(key);
    }

    fn reserve_each(&self, keys: &[Key], f: impl FnMut(Key, Slot<'_, V>)) {
        self.arena.reserve_each(keys, f);
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, V>)) {
        for key in (keys.start.0..keys.end.0.min(self.arena.keys())).map(Key) {
            if !matches!(self.arena.look(key), Look::Absent(_)) {
                self.arena.with_slot(key, |slot| {
                    if !slot.value.is_empty() {
                        f(key, slot);
                    }
                });
            }
        }
    }

    #[inline]
    fn look(&self, key: Key) -> Look {
        self.arena.look(key)
    }

    #[inline]
    fn is_held(&self, key: Key) -> bool {
        self.arena.is_held(key)
    }

    #[inline]
    fn prefetch(&self, key: Key) {
        self.arena.prefetch(key);
    }

    #[inline]
    fn prefetch_guess(&self, key: Key) {
        self.arena.prefetch_guess(key);
    }

    #[inline]
    fn prefetch_entry(&self, key: Key) {
        self.arena.prefetch_entry(key);
    }
}

impl<V: Value> fmt::Debug for DenseStore<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DenseStore({} keys, {} bytes)", self.arena.keys(), self.memory())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use adapm_core::Version;
    use adapm_core::slot::PackedState;

    use super::*;

    #[test]
    fn a_panic_lets_go_of_the_latch_and_keeps_what_was_written() {
        let store = DenseStore::<i64>::new(&Layout::dense(&[(2, 3)]).expect("a legal layout"));
        store.reserve(Key(1), false);
        for key in [Key(0), Key(1)] {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                store.with_slot(key, |slot| {
                    *slot.packed = PackedState::MAIN_AT_HOME;
                    *slot.version = Version(5);
                    slot.value.fill(9);
                    panic!("in the middle of a transition");
                })
            }));
            assert!(panicked.is_err());
        }
        store.with_slot(Key(0), |slot| {
            assert_eq!((*slot.packed, *slot.version), (PackedState::MAIN_AT_HOME, Version(0)))
        });
        store.with_slot(Key(1), |slot| {
            assert_eq!((*slot.packed, *slot.version), (PackedState::MAIN_AT_HOME, Version(5)));
            assert_eq!(slot.value, [9; 3]);
        });
    }

    #[test]
    fn values_of_whole_16_byte_units_are_aligned_to_16_bytes() {
        let store =
            DenseStore::<f32>::new(&Layout::dense(&[(100, 4), (100, 25)]).expect("a legal layout"));
        (0..100).for_each(|key| store.reserve(Key(key), false));
        (100..200).for_each(|key| store.reserve(Key(key), true));
        store.visit(Key(0)..Key(200), |_, slot| {
            assert!(slot.value.as_ptr().addr().is_multiple_of(16))
        });
    }

    #[test]
    fn many_extents_have_their_lengths() {
        let extents: Vec<_> = (1..=40).map(|len| (len as u64, len % 5 + 1)).collect();
        let layout = Layout::dense(&extents).expect("a legal layout");
        let store = DenseStore::<f32>::new(&layout);
        for key in (0..layout.keys().end.0 + 3).map(Key) {
            assert_eq!(store.value_len(key), layout.value_len(key).unwrap_or(0), "{key}");
        }
    }
}
