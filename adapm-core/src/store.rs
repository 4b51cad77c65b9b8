//! The store contract: latched slots, one per key. A store knows slots, not messages.
//!
//! A [`crate::engine::Engine`] and the workers of its node share one store (`&S`, `Arc<S>` and
//! `Rc<S>` are stores too). Check an implementation with `adapm_verify::store_suite!`; a store
//! around another one passes on what it does not do itself by [`crate::delegate_store!`].

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::ops::Range;

use crate::id::Key;
use crate::slot::{PackedState, Pushed, Slot};
use crate::value::Value;

/// The answer of [`Store::look`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Unknown: the latch is taken, or the store cannot tell without it.
    Unknown,
    /// No value is held; carries the packed state.
    Absent(PackedState),
    /// A value is held.
    Held {
        /// True if with a delta.
        with_delta: bool,
    },
}

/// Latched slots for every key of a layout.
///
/// # Obligations
/// - [`Store::with_slot`] runs `f` while it holds the key's latch: no other `with_slot`, `push`,
///   `visit`, `reserve` or `release` of that key runs at the same time, and the next one sees
///   everything that `f` wrote.
/// - A key that was never reserved has [`crate::slot::PackedState::EMPTY`], version 0 and empty
///   value and delta. A packed state written by `f` is kept whether or not a value is held; a
///   version only while one is.
/// - `f` is bounded and never calls the store. If it panics, the latch is released, and the slot
///   has what `f` wrote so far or what it had before.
/// - [`Store::reserve`] cannot refuse: a bounded store compares its bound with the layout at
///   construction. A node may hold values and deltas of all keys of the layout at once.
/// - [`Store::look`] is exact, if not `Unknown`, for the caller of `reserve` and `release`: the
///   engine takes a value without a delta for a main copy.
/// - Calls of `reserve`, `reserve_each` and `release` for one key come from one thread, or happen
///   after all calls of another; calls for different keys may be concurrent.
///
/// # Rounding
/// Elements are kept bit for bit. A store that keeps them in fewer bits, such as an `f32` in 16,
/// is *lossy*: pushes smaller than the last bit are lost, and sums are conserved up to rounding.
/// It may be used for values with [`Value::ROUNDS`], by all nodes of a cluster, if
///
/// - zero and all integers between -128 and 128 are exact,
/// - rounding depends on the element alone and is idempotent, so that a refreshed replica equals
///   its main copy,
/// - packed state and version are exact.
///
/// `adapm_verify::store_suite!(lossy ..)` checks such a store. A [`Value`] type of 16 bits saves
/// as much memory, and half of each message.
pub trait Store {
    /// The element type.
    type Value: Value;

    /// Returns the number of elements of the value of `key`, 0 for unknown keys. Waits for no
    /// latch: the engine calls it for each key of a message.
    fn value_len(&self, key: Key) -> usize;

    /// Runs `f` on the slot of `key`, which must be a key of the layout, under its latch.
    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, Self::Value>) -> R) -> R;

    /// Adds `update` `[value_len]` to the local copy of `key`, which must be a key of the layout,
    /// as [`Slot::push`] does, under the latch (AdaPM §B.1.2). Returns [`Pushed::Refused`] if there
    /// is no copy. Costs one `with_slot`, the default implementation; a store may add with other
    /// machine instructions, to the same bits except for the payload of a NaN.
    fn push(&self, key: Key, update: &[Self::Value]) -> Pushed {
        self.with_slot(key, |mut slot| slot.push(update))
    }

    /// Gives `key` a value and, exactly if `with_delta`, a delta. Idempotent.
    ///
    /// Held data is kept: a value keeps its elements, packed state and version stay; new data is
    /// zero. A delta that is no longer wanted is freed.
    fn reserve(&self, key: Key, with_delta: bool);

    /// Frees value and delta of `key`; the packed state stays. Idempotent.
    fn release(&self, key: Key);

    /// Gives each of `keys` a value, as [`Store::reserve`] without a delta does, and runs `f` on
    /// its slot, in order.
    ///
    /// Defaults to one after the other. A store may allocate many values at once: threads that fill
    /// it together then get separate memory, and do not wait for each other.
    fn reserve_each(&self, keys: &[Key], mut f: impl FnMut(Key, Slot<'_, Self::Value>)) {
        for key in keys {
            self.reserve(*key, false);
            self.with_slot(*key, |slot| f(*key, slot));
        }
    }

    /// Runs `f` on the held slots of `keys` in ascending order, each under its latch.
    ///
    /// `keys` may be empty or reversed, which shows nothing, and reach beyond the layout. Keys that
    /// come or go meanwhile are shown or not; what is shown is held: it is looked for and shown
    /// under one latch.
    fn visit(&self, keys: Range<Key>, f: impl FnMut(Key, Slot<'_, Self::Value>));

    /// Returns the content of `key`, which must be a key of the layout, as far as visible without
    /// the latch or any wait. Costs one look at the directory. Defaults to [`Look::Unknown`], which
    /// is always right.
    ///
    /// The answer may be outdated, except for the only thread that changes it: `reserve` and
    /// `release` are called, and the packed states of absent keys written, by one thread per key.
    fn look(&self, key: Key) -> Look {
        let _ = key;
        Look::Unknown
    }

    /// Returns true if `key`, which must be a key of the layout, has a value: exact without
    /// concurrent changes of the key, otherwise a hint for choosing among many keys (local
    /// sampling, AdaPM §A.5). Costs one look at the directory. Defaults to [`Store::look`], or the
    /// latch. For random keys no branch predictor can guess the answer: implement it without a
    /// branch, and without waiting for the latch.
    fn is_held(&self, key: Key) -> bool {
        match self.look(key) {
            Look::Held { .. } => true,
            Look::Absent(_) => false,
            Look::Unknown => self.with_slot(key, |slot| !slot.value.is_empty()),
        }
    }

    /// Prefetches the slot of `key` into the cache; a hint for multi-key operations.
    fn prefetch(&self, key: Key) {
        let _ = key;
    }

    /// Prefetches data that [`Store::prefetch`] of `key` itself reads, such as the directory: a
    /// hint some keys earlier, without which that would stall.
    fn prefetch_entry(&self, key: Key) {
        let _ = key;
    }

    /// Prefetches memory that an access of `key` will probably touch, as far as that follows from
    /// the key alone: a hint right before a single access, which may not stall.
    fn prefetch_guess(&self, key: Key) {
        let _ = key;
    }
}

/// Number of keys by which slots are prefetched ahead of their use.
pub const SLOT_AHEAD: usize = 16;

/// Number of keys by which the data that [`Store::prefetch`] reads is prefetched ahead of the use
/// of slots.
pub const ENTRY_AHEAD: usize = 40;

/// Prefetches the entry of the key [`ENTRY_AHEAD`] after number `at`; `key` returns keys by number,
/// `None` after the last. For passes over keys that only need [`Store::look`], not slots.
#[inline]
pub fn prefetch_entry_ahead<S: Store>(store: &S, at: usize, key: impl Fn(usize) -> Option<Key>) {
    if let Some(key) = key(at + ENTRY_AHEAD) {
        store.prefetch_entry(key);
    }
}

/// Like [`prefetch_entry_ahead`], and prefetches the slot of the key [`SLOT_AHEAD`] after number
/// `at`.
#[inline(always)] // A call costs as much as the prefetches.
pub fn prefetch_ahead<S: Store>(store: &S, at: usize, key: impl Fn(usize) -> Option<Key>) {
    prefetch_entry_ahead(store, at, &key);
    if let Some(key) = key(at + SLOT_AHEAD) {
        store.prefetch(key);
    }
}

macro_rules! delegate {
    ($($pointer:ty),*) => {$(
        impl<S: Store> Store for $pointer {
            type Value = S::Value;

            crate::delegate_store!(@all self [(**self)] []);
        }
    )*};
}

delegate!(&S, Arc<S>, Rc<S>);
