//! The claim about [`Store::reserve_each`].

use adapm_core::id::Key;
use adapm_core::layout::Layout;
use adapm_core::store::Store;

use super::form::Form;
use super::seen::{Seen, agree, fill, look, word_of, zero};

/// Checks that `reserve_each` is `reserve` without a delta and then `with_slot`, key by key in the
/// given order: also for keys of alternating lengths, keys that have a copy already, and a repeated
/// key.
pub fn reserve_each_reserves_and_shows_keys_in_order<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let (bed, store) = form.built();
    bed.keys().for_each(|key| store.with_slot(key, |slot| *slot.packed = word_of(key)));
    let mut expected: Vec<Seen<S::Value>> = bed.keys().map(|key| look(&store, key)).collect();
    for (key, seen) in bed.keys().zip(&mut expected).step_by(3) {
        store.reserve(key, bed.has_delta(key));
        *seen = Seen { delta: vec![], ..fill(&bed, &store, key, 6) };
    }
    let all: Vec<Key> = bed.keys().collect();
    let (front, back) = all.split_at(all.len() / 2);
    let mixed = || back.iter().zip(front).flat_map(|(a, b)| [*a, *b]);
    let asked: Vec<Key> = mixed().chain([front[1]]).collect();
    let mut shown = Vec::new();
    store.reserve_each(&asked, |key, slot| {
        let seen = &mut expected[bed.place(key)];
        if seen.value.is_empty() {
            seen.value = vec![zero(); bed.value_len(key)];
        }
        let first = S::Value::from(shown.len() as i16);
        if let [element, ..] = &mut *slot.value {
            *element = first;
        }
        seen.value[0] = first;
        agree(&Seen::of(slot), seen, format_args!("{key}, shown after {} others", shown.len()));
        shown.push(key);
    });
    assert!(shown == asked, "reserve_each shows {shown:?}, it must show {asked:?}");
    for key in mixed() {
        let expected = &expected[bed.place(key)];
        agree(&look(&store, key), expected, format_args!("{key}, after reserve_each"));
    }
    store.reserve_each(&[], |key, _| panic!("{key} was not asked for"));
}
