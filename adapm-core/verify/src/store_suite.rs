//! The contract of [`Store`] as a suite: every claim is a function here and a test in the expansion
//! of [`store_suite!`].
//!
//! Not here: properties beyond the contract, such as returned memory, or speed.
//!
//! [`store_suite!`]: crate::store_suite!

use core::ops::Range;

use adapm_core::id::{Key, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::{PackedState, Pushed};
use adapm_core::store::Store;

use crate::ReferenceStore;
use crate::rng::mix;
use seen::{Seen, agree, agree_on, all, difference_of_visits, fill, look, scribble, word_of, zero};

mod each;
mod form;
mod forms;
mod fuzz;
#[cfg(adapm_loom)]
pub mod models;
mod pushes;
mod seen;
mod threads;
mod traps;

pub use form::Form;

pub use each::reserve_each_reserves_and_shows_keys_in_order;
pub use fuzz::{generated_inputs_find_nothing, store_fuzz};
pub use pushes::pushes_add_as_those_of_slots;
pub use threads::{
    copies_come_and_go_under_a_working_thread, latches_exclude_and_sums_are_exact,
    nobody_enters_a_slot_in_use, reserve_and_release_lose_nothing_written_meanwhile,
    threads_reserve_and_release_different_keys, visits_show_no_key_that_has_left,
};
pub use traps::{a_panic_in_a_slot_lets_the_latch_go, all_keys_may_be_replicas_at_once};

/// Expands to a module of tests that check the whole contract of a store.
///
/// Takes the module's name and the constructor: a function of a [`Layout`] that returns an empty
/// store for use by several threads. Layouts are dense, with keys of several lengths.
///
/// ```
/// adapm_verify::store_suite!(reference_f32, crate::ReferenceStore::<f32>::new);
/// adapm_verify::store_suite!(reference_i64, |layout| crate::ReferenceStore::<i64>::new(layout));
/// # fn main() {}
/// ```
///
/// Words before the name ask for another form, several of them in any order:
///
/// | word | for stores that | what is different |
/// | --- | --- | --- |
/// | `one_thread` | are not `Sync` | claims that need several threads are left out |
/// | `lossy` | keep elements in fewer bits ([`Store`], "Rounding") | all elements are integers below 128 |
/// | `sparse` | are made for sparse layouts | layouts are sparse, with keys all over the range of `u64` |
///
/// ```
/// adapm_verify::store_suite!(lossy sparse reference, crate::ReferenceStore::<f32>::new);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_suite {
    (@form [$($form:tt)*] [$($claims:ident)*] $suite:ident, $make:expr) => {
        $crate::store_suite!(@ $suite, [$($form)*], $make,
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
            all_keys_may_be_replicas_at_once
            a_panic_in_a_slot_lets_the_latch_go
            $($claims)*
        );
    };
    (@form $form:tt $claims:tt one_thread $($rest:tt)+) => {
        $crate::store_suite!(@form $form [] $($rest)+);
    };
    (@form [$($form:tt)*] $claims:tt lossy $($rest:tt)+) => {
        $crate::store_suite!(@form [$($form)* .lossy()] $claims $($rest)+);
    };
    (@form [$($form:tt)*] $claims:tt sparse $($rest:tt)+) => {
        $crate::store_suite!(@form [$($form)* .sparse()] $claims $($rest)+);
    };
    (@ $suite:ident, $form:tt, $make:expr, $($claim:ident)*) => {
        $crate::outside_of_models! {
            #[cfg(test)]
            mod $suite {
                #[allow(unused_imports, reason = "the constructor may name what is imported around it")]
                use super::*;

                $(
                    #[test]
                    fn $claim() {
                        let make = |layout: &$crate::adapm_core::Layout| ($make)(layout);
                        $crate::store_suite::$claim(&$crate::store_suite!(@of make $form));
                    }
                )*
            }
        }
    };
    (@of $make:ident [$($form:tt)*]) => { $crate::store_suite::Form::new($make)$($form)* };
    ($($suite:tt)+) => {
        $crate::store_suite!(@form [] [
            latches_exclude_and_sums_are_exact
            copies_come_and_go_under_a_working_thread
            threads_reserve_and_release_different_keys
            nobody_enters_a_slot_in_use
            reserve_and_release_lose_nothing_written_meanwhile
            visits_show_no_key_that_has_left
        ] $($suite)+);
    };
}

/// Checks a key that was never reserved: empty packed state, version 0, no elements; a packed state
/// that is written stays, a version does not.
pub fn absent_keys_hold_nothing_but_a_word<S: Store>(form: &Form<impl Fn(&Layout) -> S>) {
    let (bed, store) = form.built();
    for key in bed.keys() {
        agree(&look(&store, key), &Seen::absent(PackedState::EMPTY), format_args!("{key}"));
        store.with_slot(key, |slot| {
            *slot.packed = ALL_BITS;
            *slot.version = Version(7);
        });
    }
    for key in bed.keys() {
        agree(&look(&store, key), &Seen::absent(ALL_BITS), format_args!("{key}"));
        store.with_slot(key, |slot| *slot.packed = PackedState::EMPTY);
        agree(&look(&store, key), &Seen::absent(PackedState::EMPTY), format_args!("{key}"));
    }
}

/// Checks that a reserved key has a zero value, version 0, its former packed state, and a delta
/// exactly if requested.
pub fn reserved_keys_are_zero_and_keep_their_word<S: Store>(form: &Form<impl Fn(&Layout) -> S>) {
    let (bed, store) = form.built();
    for key in bed.keys() {
        store.with_slot(key, |slot| *slot.packed = word_of(key));
        store.reserve(key, bed.has_delta(key));
    }
    for key in bed.keys() {
        let len = store.value_len(key);
        let delta = if bed.has_delta(key) { len } else { 0 };
        let expected = Seen {
            value: vec![zero(); len],
            delta: vec![zero(); delta],
            ..Seen::absent(word_of(key))
        };
        agree(&look(&store, key), &expected, format_args!("{key}"));
    }
}

/// Checks that a second `reserve` of the same kind changes nothing.
pub fn reserve_keeps_what_is_held<S: Store<Value: From<i16>>>(form: &Form<impl Fn(&Layout) -> S>) {
    let (bed, store) = form.built();
    for key in bed.keys() {
        store.reserve(key, bed.has_delta(key));
        let filled = fill(&bed, &store, key, 1);
        store.reserve(key, bed.has_delta(key));
        agree(&look(&store, key), &filled, format_args!("{key}"));
    }
}

/// Checks that `reserve` with another choice of delta keeps value, packed state and version; a new
/// delta is zero.
pub fn reserve_adds_and_frees_the_delta_alone<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    for key in bed.keys() {
        store.reserve(key, true);
        let replica = fill(&bed, &store, key, 2);
        store.reserve(key, false);
        agree(
            &look(&store, key),
            &Seen { delta: vec![], ..replica.clone() },
            format_args!("{key} without delta"),
        );
        store.reserve(key, true);
        let delta = vec![zero(); store.value_len(key)];
        agree(
            &look(&store, key),
            &Seen { delta, ..replica },
            format_args!("{key} with a delta again"),
        );
    }
}

/// Checks that after `release` only the packed state is left, also after a second one; a key
/// reserved again is zero, of version 0.
pub fn release_keeps_the_word_alone<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    for key in bed.keys() {
        store.release(key);
        agree(
            &look(&store, key),
            &Seen::absent(PackedState::EMPTY),
            format_args!("{key} was never held"),
        );
        for with_delta in [true, false] {
            store.reserve(key, with_delta);
            let packed = fill(&bed, &store, key, 3).packed;
            store.release(key);
            agree(&look(&store, key), &Seen::absent(packed), format_args!("{key}"));
            store.release(key);
            agree(&look(&store, key), &Seen::absent(packed), format_args!("{key} released twice"));
            store.reserve(key, true);
            let zeros = vec![zero(); store.value_len(key)];
            let expected = Seen { value: zeros.clone(), delta: zeros, ..Seen::absent(packed) };
            agree(&look(&store, key), &expected, format_args!("{key} reserved again"));
        }
    }
}

/// Checks that `value_len` is the layout's, 0 for unknown keys, and that every key has elements of
/// its own, whatever its neighbours do.
pub fn keys_have_their_lengths_and_share_no_element<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let end = bed.layout.keys().end;
    for key in [end, Key(end.0 + 1), Key(u64::MAX)] {
        let found = store.value_len(key);
        assert!(found == 0, "value_len of {key} is {found}, it must be 0: there is no such key");
    }
    bed.keys().for_each(|key| store.reserve(key, bed.has_delta(key)));
    let filled: Vec<_> = bed.keys().map(|key| fill(&bed, &store, key, 4)).collect();
    bed.keys().filter(|key| key.0 % 3 == 0).for_each(|key| store.release(key));
    for (key, filled) in bed.keys().zip(filled) {
        let (found, expected) = (store.value_len(key), bed.value_len(key));
        assert!(found == expected, "value_len of {key} is {found}, it must be {expected}");
        if key.0 % 3 != 0 {
            agree(&look(&store, key), &filled, format_args!("{key}"));
        }
    }
}

/// Checks that `visit` shows the held keys of a range once, ascending, and keeps its writes.
pub fn visit_goes_through_held_keys_in_order<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let end = bed.layout.keys().end.0;
    let held: Vec<Key> = bed.keys().filter(|key| key.0 % 5 < 2).collect();
    bed.keys().for_each(|key| store.with_slot(key, |slot| *slot.packed = word_of(key)));
    held.iter().rev().for_each(|key| store.reserve(*key, bed.has_delta(*key)));
    let reversed = Range { start: bed.key(9), end: bed.key(3) };
    for range in [
        Key(0)..Key(end),
        Key(0)..Key(u64::MAX),
        bed.key(3)..bed.key(23),
        bed.key(5)..Key(bed.key(5).0 + 1),
        bed.key(7)..bed.key(7),
        reversed,
    ] {
        let expected: Vec<Key> = held.iter().copied().filter(|key| range.contains(key)).collect();
        let mut seen = Vec::new();
        store.visit(range.clone(), |key, slot| {
            let len = bed.value_len(key);
            let delta = if bed.has_delta(key) { len } else { 0 };
            let expected = Seen {
                value: vec![zero(); len],
                delta: vec![zero(); delta],
                ..Seen::absent(word_of(key))
            };
            agree(&Seen::of(slot), &expected, format_args!("visit({range:?}), {key}"));
            seen.push(key);
        });
        assert!(seen == expected, "visit({range:?}) shows {seen:?}, it must show {expected:?}");
    }
    store.visit(Key(0)..Key(end), |_, slot| slot.value.fill(S::Value::from(3)));
    for key in held {
        let threes = vec![S::Value::from(3); bed.value_len(key)];
        let when = format_args!("{key}, filled with 3 by a visit");
        agree_on("value", &look(&store, key).value, &threes, when);
    }
}

/// Checks that `prefetch` is a hint, legal for any key.
pub fn prefetch_changes_nothing<S: Store<Value: From<i16>>>(form: &Form<impl Fn(&Layout) -> S>) {
    let (bed, store) = form.built();
    let (absent, held) = (bed.key(0), bed.key(1));
    store.reserve(held, true);
    let filled = fill(&bed, &store, held, 5);
    for key in [absent, held, bed.layout.keys().end, Key(u64::MAX)] {
        store.prefetch_guess(key);
        store.prefetch_entry(key);
        store.prefetch(key);
    }
    agree(&look(&store, absent), &Seen::absent(PackedState::EMPTY), format_args!("{absent}"));
    agree(&look(&store, held), &filled, format_args!("{held}"));
}

/// Checks that thousands of random operations leave the same slots as in [`ReferenceStore`].
pub fn random_operations_agree_with_the_reference<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    for seed in 0..4_u64 {
        let (bed, store) = form.built();
        let reference = ReferenceStore::<S::Value>::new(&bed.layout);
        for step in 0..RANDOM_STEPS {
            let random = mix(seed << 32 | step);
            let at = (random >> 8) as usize % bed.len();
            let key = bed.key(at);
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
                    store.with_slot(key, |slot| scribble(slot, random, bed.elements));
                    reference.with_slot(key, |slot| scribble(slot, random, bed.elements));
                }
                4 => {
                    fill(&bed, &store, key, random);
                    fill(&bed, &reference, key, random);
                }
                _ => {
                    let end = (at + (random >> 40) as usize % 16).min(bed.len() - 1);
                    let range = key..bed.key(end);
                    let (found, expected) =
                        (all(&store, range.clone()), all(&reference, range.clone()));
                    if let Some(what) = difference_of_visits(&range, &found, &expected) {
                        panic!("step {step} of seed {seed}: {what}, as in the ReferenceStore");
                    }
                }
            }
            agree(
                &look(&store, key),
                &look(&reference, key),
                format_args!("step {step} of seed {seed}, {key}"),
            );
        }
        for key in bed.keys() {
            agree(
                &look(&store, key),
                &look(&reference, key),
                format_args!("the end of seed {seed}, {key}"),
            );
        }
    }
}

/// Checks that the transitions of workers and nodes work on the slots of this store.
pub fn slots_work_as_main_copy_and_replica<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let key = bed.key(0);
    let len = bed.value_len(key);
    let mut value = vec![zero(); len];
    let ones = vec![S::Value::from(1); len];
    let pulled = store.with_slot(key, |slot| slot.pull(&mut value));
    assert!(!pulled, "{key}: a pull of a key that is absent is served");
    let pushed = store.with_slot(key, |mut slot| slot.push(&ones));
    assert!(pushed == Pushed::Refused, "{key}: a push to a key that is absent is {pushed:?}");
    store.reserve(key, false);
    store.with_slot(key, |mut slot| slot.create_main_copy());
    let pushed = store.with_slot(key, |mut slot| slot.push(&ones));
    assert!(pushed == Pushed::Done, "{key}: a push to a main copy is {pushed:?}");
    let pulled = store.with_slot(key, |slot| slot.pull(&mut value));
    assert!(pulled, "{key}: a pull of a main copy is refused");
    let expected = Seen {
        packed: PackedState::MAIN_AT_HOME,
        version: Version(1),
        value: ones.clone(),
        delta: vec![],
    };
    agree(&look(&store, key), &expected, format_args!("{key}, after a push of ones"));
    agree_on("value", &value, &ones, format_args!("{key}, pulled after a push of ones"));
}

const ALL_BITS: PackedState = PackedState::from_bits(u64::MAX);
/// Number of operations of each random run.
const RANDOM_STEPS: u64 = if cfg!(miri) { 20 } else { 3_000 };

#[cfg(test)]
mod tests {
    use crate::ReferenceStore;

    crate::store_suite!(reference_f32, ReferenceStore::<f32>::new);
    crate::store_suite!(reference_i64, ReferenceStore::<i64>::new);
    crate::store_suite!(sparse reference_sparse, ReferenceStore::<i64>::new);
    crate::store_suite!(sparse lossy reference_lossy, ReferenceStore::<f32>::new);
}
