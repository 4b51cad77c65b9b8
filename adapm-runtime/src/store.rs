//! The store that fits a layout, so that most users never name a store.

use std::fmt;
use std::ops::Range;

use adapm_core::layout::{Kind, Layout};
use adapm_core::slot::{Pushed, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::{Key, Value};
use adapm_store::{DenseStore, SparseStore};

macro_rules! each {
    ($self:ident, $store:ident => $call:expr) => {
        match &$self.0 {
            Inner::Dense($store) => $call,
            Inner::Sparse($store) => $call,
        }
    };
}

/// A [`DenseStore`] or a [`SparseStore`], depending on the layout; the default of
/// [`crate::Builder`].
///
/// Costs one predicted branch per access.
pub struct LayoutStore<V: Value>(Inner<V>);

enum Inner<V: Value> {
    Dense(DenseStore<V>),
    Sparse(SparseStore<V>),
}

impl<V: Value> LayoutStore<V> {
    /// Creates the store for `layout`, without keys.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self(match layout.kind() {
            Kind::Dense => Inner::Dense(DenseStore::new(layout)),
            Kind::Sparse => Inner::Sparse(SparseStore::new(layout)),
        })
    }

    /// Returns the bytes that the store has allocated, for directory, copies and spare room; see
    /// [`DenseStore::memory`] and [`SparseStore::memory`].
    #[must_use]
    pub fn memory(&self) -> usize {
        each!(self, store => store.memory())
    }
}

impl<V: Value> fmt::Debug for LayoutStore<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, store => store.fmt(f))
    }
}

impl<V: Value> Store for LayoutStore<V> {
    type Value = V;

    #[inline]
    fn value_len(&self, key: Key) -> usize {
        each!(self, store => store.value_len(key))
    }

    #[inline(always)]
    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, V>) -> R) -> R {
        each!(self, store => store.with_slot(key, f))
    }

    #[inline(always)]
    fn push(&self, key: Key, update: &[V]) -> Pushed {
        each!(self, store => store.push(key, update))
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        each!(self, store => store.reserve(key, with_delta));
    }

    fn release(&self, key: Key) {
        each!(self, store => store.release(key));
    }

    fn reserve_each(&self, keys: &[Key], f: impl FnMut(Key, Slot<'_, V>)) {
        each!(self, store => store.reserve_each(keys, f));
    }

    fn visit(&self, keys: Range<Key>, f: impl FnMut(Key, Slot<'_, V>)) {
        each!(self, store => store.visit(keys, f));
    }

    #[inline]
    fn look(&self, key: Key) -> Look {
        each!(self, store => store.look(key))
    }

    #[inline]
    fn is_held(&self, key: Key) -> bool {
        each!(self, store => store.is_held(key))
    }

    #[inline]
    fn prefetch(&self, key: Key) {
        each!(self, store => store.prefetch(key));
    }

    #[inline]
    fn prefetch_entry(&self, key: Key) {
        each!(self, store => store.prefetch_entry(key));
    }

    #[inline]
    fn prefetch_guess(&self, key: Key) {
        each!(self, store => store.prefetch_guess(key));
    }
}
