//! The content of a slot at one moment, and the difference of two.

use core::fmt::Display;
use core::ops::Range;

use adapm_core::id::{Key, Version};
use adapm_core::slot::{PackedState, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::value::Value;

use super::form::{Bed, Elements};
use crate::rng::mix;

/// The content of a slot at one moment.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Seen<V> {
    pub(super) packed: PackedState,
    pub(super) version: Version,
    pub(super) value: Vec<V>,
    pub(super) delta: Vec<V>,
}

impl<V: Value> Seen<V> {
    pub(super) fn absent(packed: PackedState) -> Self {
        Self { packed, version: Version(0), value: vec![], delta: vec![] }
    }

    pub(super) fn of(slot: Slot<'_, V>) -> Self {
        Self {
            packed: *slot.packed,
            version: *slot.version,
            value: slot.value.to_vec(),
            delta: slot.delta.to_vec(),
        }
    }

    /// Returns the first difference from `expected`; `None` if they are equal.
    pub(super) fn difference(&self, expected: &Self) -> Option<String> {
        if self.packed != expected.packed {
            return Some(format!(
                "the packed state {:?}, it must be {:?}",
                self.packed, expected.packed
            ));
        }
        if self.version != expected.version {
            return Some(format!("version {}, it must be {}", self.version, expected.version));
        }
        let value = difference_of("value", &self.value, &expected.value);
        value.or_else(|| difference_of("delta", &self.delta, &expected.delta))
    }
}

/// Returns the first difference of two lists of elements.
pub(super) fn difference_of<V: Value>(name: &str, found: &[V], expected: &[V]) -> Option<String> {
    if found.len() != expected.len() {
        let (found, expected) = (found.len(), expected.len());
        return Some(format!("a {name} of {found} elements, it must have {expected}"));
    }
    let at = found.iter().zip(expected).position(|(found, expected)| found != expected)?;
    Some(format!("{name}[{at}] = {:?}, it must be {:?}", found[at], expected[at]))
}

/// Fails with the first difference if the store's slot is not as expected.
#[track_caller]
pub(super) fn agree<V: Value>(found: &Seen<V>, expected: &Seen<V>, when: impl Display) {
    if let Some(difference) = found.difference(expected) {
        panic!("{when}: the store has {difference}");
    }
}

/// Does what [`agree`] does, for elements.
#[track_caller]
pub(super) fn agree_on<V: Value>(name: &str, found: &[V], expected: &[V], when: impl Display) {
    if let Some(difference) = difference_of(name, found, expected) {
        panic!("{when}: the store has {difference}");
    }
}

pub(super) fn look<S: Store>(store: &S, key: Key) -> Seen<S::Value> {
    let seen = store.with_slot(key, Seen::of);
    let with_latch = if seen.value.is_empty() {
        Look::Absent(seen.packed)
    } else {
        Look::Held { with_delta: !seen.delta.is_empty() }
    };
    let without = store.look(key);
    assert!(
        [with_latch, Look::Unknown].contains(&without),
        "{key}: `look` tells {without:?}, the slot has {with_latch:?}"
    );
    // No other thread is at the key.
    let (told, is_held) = (store.is_held(key), !seen.value.is_empty());
    assert!(told == is_held, "{key}: `is_held` tells {told}, of the slot it is {is_held}");
    seen
}

pub(super) fn all<S: Store>(store: &S, keys: Range<Key>) -> Vec<(Key, Seen<S::Value>)> {
    let mut all = Vec::new();
    store.visit(keys, |key, slot| all.push((key, Seen::of(slot))));
    all
}

/// Returns the fault of a visit of `keys`, given all that it has shown; `None` if there is none.
pub(super) fn difference_of_visits<V: Value>(
    keys: &Range<Key>,
    found: &[(Key, Seen<V>)],
    expected: &[(Key, Seen<V>)],
) -> Option<String> {
    let names = |all: &[(Key, Seen<V>)]| all.iter().map(|(key, _)| *key).collect::<Vec<_>>();
    if names(found) != names(expected) {
        let (found, expected) = (names(found), names(expected));
        return Some(format!("visit({keys:?}) shows {found:?}, it must show {expected:?}"));
    }
    found.iter().zip(expected).find_map(|((key, found), (_, expected))| {
        let difference = found.difference(expected)?;
        Some(format!("visit({keys:?}) shows {key} with {difference}"))
    })
}

/// Writes to all parts of a slot. Returns its new content.
pub(super) fn fill<S: Store<Value: From<i16>>>(
    bed: &Bed,
    store: &S,
    key: Key,
    seed: u64,
) -> Seen<S::Value> {
    store.with_slot(key, |slot| scribble(slot, mix(seed ^ key.0), bed.elements));
    look(store, key)
}

pub(super) fn scribble<V: Value + From<i16>>(slot: Slot<'_, V>, random: u64, elements: Elements) {
    *slot.packed = PackedState::from_bits(mix(random));
    *slot.version = Version(mix(random ^ 1));
    for (i, element) in slot.value.iter_mut().chain(slot.delta).enumerate() {
        *element = elements.draw(mix(random.wrapping_add(i as u64)));
    }
}

pub(super) fn word_of(key: Key) -> PackedState {
    PackedState::from_bits(mix(key.0))
}

pub(super) fn zero<V: Value>() -> V {
    V::default()
}
