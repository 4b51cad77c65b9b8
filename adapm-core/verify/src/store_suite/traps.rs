//! Claims about bounds and failures: the largest demand on a store, and the state after a panic.

use std::panic::{self, AssertUnwindSafe};

use adapm_core::layout::Layout;
use adapm_core::slot::PackedState;
use adapm_core::store::Store;

use super::form::Form;
use super::seen::{Seen, agree, fill, look, zero};

/// Checks that all keys can have value and delta at once, whatever was reserved and released
/// before: a node may hold a replica of each.
pub fn all_keys_may_be_replicas_at_once<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    for round in 0..ROUNDS {
        for key in bed.keys() {
            store.reserve(key, (bed.place(key) as u64 + round).is_multiple_of(2));
            store.reserve(key, true);
        }
        let filled: Vec<_> = bed.keys().map(|key| fill(&bed, &store, key, round)).collect();
        for (key, mut filled) in bed.keys().zip(filled) {
            let len = bed.value_len(key);
            filled.value.resize(len, zero());
            filled.delta.resize(len, zero());
            agree(
                &look(&store, key),
                &filled,
                format_args!("{key} in round {round}, all keys being replicas"),
            );
        }
        bed.keys().for_each(|key| store.release(key));
    }
}

/// Checks that a key is usable after a function has panicked in its slot, or in a visit.
pub fn a_panic_in_a_slot_lets_the_latch_go<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    let [key, next] = bed.long();
    store.reserve(key, true);
    let filled = fill(&bed, &store, key, 8);
    // Not by `panic!`: the panic hook shall print nothing.
    let planned = || panic::resume_unwind(Box::new("planned"));
    for name in ["with_slot", "visit"] {
        let panics = || match name {
            "with_slot" => store.with_slot(key, |_| planned()),
            _ => store.visit(key..next, |_, _| planned()),
        };
        let outcome = panic::catch_unwind(AssertUnwindSafe(panics));
        assert!(outcome.is_err(), "{name} keeps a panic of its function to itself");
        agree(&look(&store, key), &filled, format_args!("{key}, after a panic in {name}"));
    }
    store.release(key);
    let expected = Seen::absent(filled.packed);
    agree(&look(&store, key), &expected, format_args!("{key}, released after panics"));
    let panics = || store.with_slot(next, |_| planned());
    assert!(panic::catch_unwind(AssertUnwindSafe(panics)).is_err());
    let expected = Seen::absent(PackedState::EMPTY);
    agree(&look(&store, next), &expected, format_args!("{next}, absent, after a panic"));
}

/// Number of times that all keys are reserved and released.
const ROUNDS: u64 = 3;
