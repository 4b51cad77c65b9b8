//! The contract of [`Store`] as a suite: every claim is a function here and a test in what
//! [`store_suite!`] expands to.
//!
//! Not here: what the contract does not promise, such as memory that is given back, or speed.
//!
//! [`store_suite!`]: crate::store_suite!

use core::ops::Range;

use adapm_core::id::{Key, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Pushed, Slot};
use adapm_core::store::{Look, Store};
use adapm_core::value::Value;

use crate::ReferenceStore;
use crate::rng::mix;

mod each;
mod forms;
mod fuzz;
#[cfg(adapm_loom)]
pub mod models;
mod pushes;
mod threads;

pub use each::reserve_each_reserves_and_shows_keys_in_order;
pub use fuzz::{generated_inputs_find_nothing, store_fuzz};
pub use pushes::pushes_add_as_those_of_slots;
pub use threads::{
    copies_come_and_go_under_a_working_thread, latches_exclude_and_sums_are_exact,
    nobody_enters_a_slot_in_use, reserve_and_release_lose_nothing_written_meanwhile,
    threads_reserve_and_release_different_keys,
};

/// Expands to a module of tests that check the whole contract of a store.
///
/// Takes the module's name and the constructor: a function of a [`Layout`] that gives a store which
/// holds nothing and can be used by several threads. Layouts are dense, with keys of several
/// lengths.
///
/// ```
/// adapm_verify::store_suite!(reference_f32, crate::ReferenceStore::<f32>::new);
/// adapm_verify::store_suite!(reference_i64, |layout| crate::ReferenceStore::<i64>::new(layout));
/// # fn main() {}
/// ```
///
/// A store that is not `Sync` is for one thread: `store_suite!(one_thread name, make)` leaves out
/// the claims that need several.
#[macro_export]
macro_rules! store_suite {
    ($suite:ident, $make:expr) => {
        $crate::store_suite!(one_thread $suite, $make,
            latches_exclude_and_sums_are_exact
            copies_come_and_go_under_a_working_thread
            threads_reserve_and_release_different_keys
            nobody_enters_a_slot_in_use
            reserve_and_release_lose_nothing_written_meanwhile
        );
    };
    (one_thread $suite:ident, $make:expr $(, $($claim:ident)*)?) => {
        $crate::store_suite!(@ $suite, $make,
            absent_keys_hold_nothing_but_a_word
            reserved_keys_are_zero_and_keep_their_word
            reserve_keeps_what_is_held
            reserve_adds_and_frees_the_delta_alone
            release_keeps_the_word_alone
            reserve_each_reserves_and_shows_keys_in_order
            keys_have_their_lengths_and_share_no_element
            visit_goes_through_held_keys_in_order
            prefetch_changes_nothing
            random_operations_agree_with_the_reference
            slots_work_as_main_copy_and_replica
            pushes_add_as_those_of_slots
            $($($claim)*)?
        );
    };
    (@ $suite:ident, $make:expr, $($claim:ident)*) => {
        $crate::outside_of_models! {
            #[cfg(test)]
            mod $suite {
                #[allow(unused_imports, reason = "the constructor may name what is imported around it")]
                use super::*;

                $(
                    #[test]
                    fn $claim() {
                        $crate::store_suite::$claim(&|layout: &$crate::adapm_core::Layout| ($make)(layout));
                    }
                )*
            }
        }
    };
}

/// A key that was never reserved: empty packed state, version 0, no elements; what is written to
/// the packed state stays, to the version not.
pub fn absent_keys_hold_nothing_but_a_word<S: Store>(make: &impl Fn(&Layout) -> S) {
    let (layout, store) = built(make);
    for key in keys(&layout) {
        assert_eq!(look(&store, key), Seen::absent(PackedState::EMPTY), "{key}");
        store.with_slot(key, |slot| {
            *slot.packed = ALL_BITS;
            *slot.version = Version(7);
        });
    }
    for key in keys(&layout) {
        assert_eq!(look(&store, key), Seen::absent(ALL_BITS), "{key}");
        store.with_slot(key, |slot| *slot.packed = PackedState::EMPTY);
        assert_eq!(look(&store, key), Seen::absent(PackedState::EMPTY), "{key}");
    }
}

/// A reserved key has a zero value, version 0, the packed state it had, and a delta exactly if
/// asked for.
pub fn reserved_keys_are_zero_and_keep_their_word<S: Store>(make: &impl Fn(&Layout) -> S) {
    let (layout, store) = built(make);
    for key in keys(&layout) {
        store.with_slot(key, |slot| *slot.packed = word_of(key));
        store.reserve(key, has_delta(key));
    }
    for key in keys(&layout) {
        let len = store.value_len(key);
        let delta = if has_delta(key) { len } else { 0 };
        let expected = Seen {
            value: vec![zero(); len],
            delta: vec![zero(); delta],
            ..Seen::absent(word_of(key))
        };
        assert_eq!(look(&store, key), expected, "{key}");
    }
}

/// A second `reserve` of the same kind changes nothing.
pub fn reserve_keeps_what_is_held<S: Store<Value: From<i16>>>(make: &impl Fn(&Layout) -> S) {
    let (layout, store) = built(make);
    for key in keys(&layout) {
        store.reserve(key, has_delta(key));
        let filled = fill(&store, key, 1);
        store.reserve(key, has_delta(key));
        assert_eq!(look(&store, key), filled, "{key}");
    }
}

/// `reserve` with another wish for the delta keeps value, packed state and version; a delta that
/// comes is zero.
pub fn reserve_adds_and_frees_the_delta_alone<S: Store<Value: From<i16>>>(
    make: &impl Fn(&Layout) -> S,
) {
    let (layout, store) = built(make);
    for key in keys(&layout) {
        store.reserve(key, true);
        let replica = fill(&store, key, 2);
        store.reserve(key, false);
        assert_eq!(
            look(&store, key),
            Seen { delta: vec![], ..replica.clone() },
            "{key} without delta"
        );
        store.reserve(key, true);
        let delta = vec![zero(); store.value_len(key)];
        assert_eq!(look(&store, key), Seen { delta, ..replica }, "{key} with a delta again");
    }
}

/// After `release` only the packed state is left, also after a second one; what is reserved again
/// is zero, of version 0.
pub fn release_keeps_the_word_alone<S: Store<Value: From<i16>>>(make: &impl Fn(&Layout) -> S) {
    let (layout, store) = built(make);
    for key in keys(&layout) {
        store.release(key);
        assert_eq!(look(&store, key), Seen::absent(PackedState::EMPTY), "{key} was never held");
        for with_delta in [true, false] {
            store.reserve(key, with_delta);
            let packed = fill(&store, key, 3).packed;
            store.release(key);
            assert_eq!(look(&store, key), Seen::absent(packed), "{key}");
            store.release(key);
            assert_eq!(look(&store, key), Seen::absent(packed), "{key} released twice");
            store.reserve(key, true);
            let zeros = vec![zero(); store.value_len(key)];
            let expected = Seen { value: zeros.clone(), delta: zeros, ..Seen::absent(packed) };
            assert_eq!(look(&store, key), expected, "{key} reserved again");
        }
    }
}

/// `value_len` is the layout's, 0 for keys it has not; every key keeps elements of its own,
/// whatever its neighbours do.
pub fn keys_have_their_lengths_and_share_no_element<S: Store<Value: From<i16>>>(
    make: &impl Fn(&Layout) -> S,
) {
    let (layout, store) = built(make);
    let end = layout.keys().end;
    assert_eq!([end, Key(end.0 + 1), Key(u64::MAX)].map(|key| store.value_len(key)), [0; 3]);
    keys(&layout).for_each(|key| store.reserve(key, has_delta(key)));
    let filled: Vec<_> = keys(&layout).map(|key| fill(&store, key, 4)).collect();
    keys(&layout).filter(|key| key.0 % 3 == 0).for_each(|key| store.release(key));
    for (key, filled) in keys(&layout).zip(filled) {
        assert_eq!(Some(store.value_len(key)), layout.value_len(key), "{key}");
        if key.0 % 3 != 0 {
            assert_eq!(filled.value.len(), store.value_len(key), "{key}");
            assert_eq!(look(&store, key), filled, "{key}");
        }
    }
}

/// `visit` shows the held keys of a range once, ascending, and what it writes stays.
pub fn visit_goes_through_held_keys_in_order<S: Store<Value: From<i16>>>(
    make: &impl Fn(&Layout) -> S,
) {
    let (layout, store) = built(make);
    let end = layout.keys().end.0;
    let held: Vec<Key> = keys(&layout).filter(|key| key.0 % 5 < 2).collect();
    keys(&layout).for_each(|key| store.with_slot(key, |slot| *slot.packed = word_of(key)));
    held.iter().rev().for_each(|key| store.reserve(*key, has_delta(*key)));
    let reversed = Range { start: Key(9), end: Key(3) };
    for range in [
        Key(0)..Key(end),
        Key(0)..Key(u64::MAX),
        Key(3)..Key(23),
        Key(5)..Key(6),
        Key(7)..Key(7),
        reversed,
    ] {
        let expected: Vec<Key> = held.iter().copied().filter(|key| range.contains(key)).collect();
        let mut seen = Vec::new();
        store.visit(range.clone(), |key, slot| {
            assert_eq!(*slot.packed, word_of(key));
            assert_eq!(slot.value.len(), layout.value_len(key).expect("a key of the layout"));
            assert_eq!(!slot.delta.is_empty(), has_delta(key));
            seen.push(key);
        });
        assert_eq!(seen, expected, "{range:?}");
    }
    store.visit(Key(0)..Key(end), |_, slot| slot.value.fill(S::Value::from(3)));
    for key in held {
        assert!(
            look(&store, key).value.iter().all(|element| *element == S::Value::from(3)),
            "{key}"
        );
    }
}

/// `prefetch` is a hint, legal for any key.
pub fn prefetch_changes_nothing<S: Store<Value: From<i16>>>(make: &impl Fn(&Layout) -> S) {
    let (layout, store) = built(make);
    store.reserve(Key(1), true);
    let filled = fill(&store, Key(1), 5);
    for key in [Key(0), Key(1), layout.keys().end, Key(u64::MAX)] {
        store.prefetch_guess(key);
        store.prefetch_entry(key);
        store.prefetch(key);
    }
    assert_eq!(look(&store, Key(0)), Seen::absent(PackedState::EMPTY));
    assert_eq!(look(&store, Key(1)), filled);
}

/// Thousands of random operations leave the same slots as in [`ReferenceStore`].
pub fn random_operations_agree_with_the_reference<S: Store<Value: From<i16>>>(
    make: &impl Fn(&Layout) -> S,
) {
    for seed in 0..4_u64 {
        let (layout, store) = built(make);
        let reference = ReferenceStore::<S::Value>::new(&layout);
        for step in 0..RANDOM_STEPS {
            let random = mix(seed << 32 | step);
            let key = Key((random >> 8) % layout.keys().end.0);
            let with_delta = random & 128 != 0;
            match random % 6 {
                0 | 1 => {
                    store.reserve(key, with_delta);
                    reference.reserve(key, with_delta);
                }
                2 => {
                    store.release(key);
                    reference.release(key);
                }
                3 => {
                    store.with_slot(key, |slot| scribble(slot, random));
                    reference.with_slot(key, |slot| scribble(slot, random));
                }
                4 => {
                    fill(&store, key, random);
                    fill(&reference, key, random);
                }
                _ => {
                    let range = key..Key(key.0 + (random >> 40) % 16);
                    assert_eq!(
                        all(&store, range.clone()),
                        all(&reference, range),
                        "seed {seed}, step {step}"
                    );
                }
            }
            assert_eq!(look(&store, key), look(&reference, key), "{key}, seed {seed}, step {step}");
        }
        for key in keys(&layout) {
            assert_eq!(look(&store, key), look(&reference, key), "{key} in the end, seed {seed}");
        }
    }
}

/// The transitions that workers and nodes make find what they need in the slots of this store.
pub fn slots_work_as_main_copy_and_replica<S: Store<Value: From<i16>>>(
    make: &impl Fn(&Layout) -> S,
) {
    let (_, store) = built(make);
    let (key, one) = (Key(0), S::Value::from(1));
    let mut value = vec![zero(); store.value_len(key)];
    let ones = vec![one; value.len()];
    assert!(!store.with_slot(key, |slot| slot.pull(&mut value)));
    assert_eq!(store.with_slot(key, |mut slot| slot.push(&ones)), Pushed::Refused);
    store.reserve(key, false);
    store.with_slot(key, |mut slot| slot.create_main_copy());
    assert_eq!(store.with_slot(key, |mut slot| slot.push(&ones)), Pushed::Done);
    assert!(store.with_slot(key, |slot| slot.pull(&mut value)));
    assert_eq!((value, look(&store, key).version), (ones, Version(1)));
}

/// What a slot had at one moment.
#[derive(Clone, PartialEq, Debug)]
struct Seen<V> {
    packed: PackedState,
    version: Version,
    value: Vec<V>,
    delta: Vec<V>,
}

impl<V: Value> Seen<V> {
    fn absent(packed: PackedState) -> Self {
        Self { packed, version: Version(0), value: vec![], delta: vec![] }
    }

    fn of(slot: Slot<'_, V>) -> Self {
        Self {
            packed: *slot.packed,
            version: *slot.version,
            value: slot.value.to_vec(),
            delta: slot.delta.to_vec(),
        }
    }
}

fn built<S: Store>(make: impl Fn(&Layout) -> S) -> (Layout, S) {
    // An interpreter takes seconds for each claim on a thousand elements.
    let (middle, long) = if cfg!(miri) { (4, 17) } else { (16, 131) };
    let layout =
        Layout::dense(&[(20, 3), (7, 1), (40, middle), (6, long), (9, 3)]).expect("a legal layout");
    let store = make(&layout);
    (layout, store)
}

fn keys(layout: &Layout) -> impl Iterator<Item = Key> + use<> {
    (layout.keys().start.0..layout.keys().end.0).map(Key)
}

fn look<S: Store>(store: &S, key: Key) -> Seen<S::Value> {
    let seen = store.with_slot(key, Seen::of);
    let with_latch = if seen.value.is_empty() {
        Look::Absent(seen.packed)
    } else {
        Look::Held { with_delta: !seen.delta.is_empty() }
    };
    let without = store.look(key);
    assert!(
        [with_latch, Look::Unknown].contains(&without),
        "{key}: {without:?} by a look, {with_latch:?} with the latch"
    );
    // Nobody else is at the key.
    assert_eq!(store.is_held(key), !seen.value.is_empty(), "{key}: whether it is held");
    seen
}

fn all<S: Store>(store: &S, keys: Range<Key>) -> Vec<(Key, Seen<S::Value>)> {
    let mut all = Vec::new();
    store.visit(keys, |key, slot| all.push((key, Seen::of(slot))));
    all
}

/// Writes to everything a slot has, and returns what it is then.
fn fill<S: Store<Value: From<i16>>>(store: &S, key: Key, seed: u64) -> Seen<S::Value> {
    store.with_slot(key, |slot| scribble(slot, mix(seed ^ key.0)));
    look(store, key)
}

fn scribble<V: Value + From<i16>>(slot: Slot<'_, V>, random: u64) {
    *slot.packed = PackedState::from_bits(mix(random));
    *slot.version = Version(mix(random ^ 1));
    for (i, element) in slot.value.iter_mut().chain(slot.delta).enumerate() {
        *element = V::from(mix(random.wrapping_add(i as u64)) as i16);
    }
}

fn word_of(key: Key) -> PackedState {
    PackedState::from_bits(mix(key.0))
}

fn has_delta(key: Key) -> bool {
    key.0.is_multiple_of(2)
}

fn zero<V: Value>() -> V {
    V::default()
}

const ALL_BITS: PackedState = PackedState::from_bits(u64::MAX);
/// Operations of each random run.
const RANDOM_STEPS: u64 = if cfg!(miri) { 20 } else { 3_000 };

#[cfg(test)]
mod tests {
    use crate::ReferenceStore;

    crate::store_suite!(reference_f32, ReferenceStore::<f32>::new);
    crate::store_suite!(reference_i64, ReferenceStore::<i64>::new);
}
