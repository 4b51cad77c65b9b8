//! A delegating store passes on all methods, except those that it writes itself.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use adapm_core::slot::{PackedState, Pushed, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::{Key, Version};
use adapm_verify::{ReferenceStore, store_suite};

/// Records the calls of its methods, and does nothing else.
#[derive(Default)]
struct Noting(Mutex<Vec<&'static str>>);

impl Noting {
    fn note(&self, method: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(method);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for Noting {
    type Value = f32;

    fn value_len(&self, _key: Key) -> usize {
        self.note("value_len");
        7
    }

    fn with_slot<R>(&self, _key: Key, f: impl FnOnce(Slot<'_, f32>) -> R) -> R {
        self.note("with_slot");
        f(Slot {
            packed: &mut PackedState::EMPTY.clone(),
            version: &mut Version(0),
            value: &mut [],
            delta: &mut [],
        })
    }

    fn push(&self, _key: Key, _update: &[f32]) -> Pushed {
        self.note("push");
        Pushed::Dirtied
    }

    fn reserve(&self, _key: Key, _with_delta: bool) {
        self.note("reserve");
    }

    fn release(&self, _key: Key) {
        self.note("release");
    }

    fn reserve_each(&self, _keys: &[Key], _f: impl FnMut(Key, Slot<'_, f32>)) {
        self.note("reserve_each");
    }

    fn visit(&self, _keys: Range<Key>, _f: impl FnMut(Key, Slot<'_, f32>)) {
        self.note("visit");
    }

    fn look(&self, _key: Key) -> Look {
        self.note("look");
        Look::Held { with_delta: true }
    }

    fn is_held(&self, _key: Key) -> bool {
        self.note("is_held");
        true
    }

    fn prefetch(&self, _key: Key) {
        self.note("prefetch");
    }

    fn prefetch_entry(&self, _key: Key) {
        self.note("prefetch_entry");
    }

    fn prefetch_guess(&self, _key: Key) {
        self.note("prefetch_guess");
    }
}

/// Calls each method once, and returns the recorded calls.
fn called<S: Store<Value = f32>>(store: &S, notes: &Noting) -> Vec<&'static str> {
    let key = Key(3);
    store.value_len(key);
    store.with_slot(key, |_| ());
    assert_eq!(store.push(key, &[1.0; 7]), Pushed::Dirtied);
    store.reserve(key, true);
    store.release(key);
    store.reserve_each(&[key], |_, _| ());
    store.visit(key..Key(9), |_, _| ());
    assert_eq!(store.look(key), Look::Held { with_delta: true });
    store.is_held(key);
    store.prefetch(key);
    store.prefetch_entry(key);
    store.prefetch_guess(key);
    notes.take()
}

struct Plain {
    parts: (Noting, u8),
}

impl Store for Plain {
    type Value = f32;

    adapm_core::delegate_store!(self.parts.0);
}

struct Partly(Noting);

impl Store for Partly {
    type Value = f32;

    fn reserve(&self, _key: Key, _with_delta: bool) {
        self.0.note("own reserve");
    }

    adapm_core::delegate_store!(self.0, all but reserve, prefetch_guess);
}

#[test]
fn every_method_is_passed_on() {
    let noting = Noting::default();
    let direct = called(&noting, &noting);
    assert_eq!(direct.len(), 12, "all methods, each once: {direct:?}");
    let plain = Plain { parts: (Noting::default(), 0) };
    assert_eq!(called(&plain, &plain.parts.0), direct);
    assert_eq!(called(&&&plain, &plain.parts.0), direct);
}

#[test]
fn what_a_wrapper_writes_itself_is_its_own() {
    let partly = Partly(Noting::default());
    let expected = [
        "value_len",
        "with_slot",
        "push",
        "own reserve",
        "release",
        "reserve_each",
        "visit",
        "look",
        "is_held",
        "prefetch",
        "prefetch_entry",
    ];
    // The last is the trait's default, which does nothing.
    assert_eq!(called(&partly, &partly.0), expected);
}

struct Around(ReferenceStore<i64>);

impl Store for Around {
    type Value = i64;

    adapm_core::delegate_store!(self.0);
}

store_suite!(a_wrapper, |layout| Around(ReferenceStore::new(layout)));
