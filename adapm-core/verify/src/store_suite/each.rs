//! The claim about [`Store::reserve_each`].

use adapm_core::id::Key;
use adapm_core::layout::Layout;
use adapm_core::store::Store;

use super::{Seen, built, fill, keys, look, word_of, zero};

/// `reserve_each` is `reserve` without a delta and then `with_slot`, key by key in the order given:
/// also for keys of several lengths in turns, keys that have a copy already, and a key that comes
/// twice.
pub fn reserve_each_reserves_and_shows_keys_in_order<S: Store<Value: From<i16>>>(
    make: &impl Fn(&Layout) -> S,
) {
    let (layout, store) = built(make);
    keys(&layout).for_each(|key| store.with_slot(key, |slot| *slot.packed = word_of(key)));
    let mut expected: Vec<Seen<S::Value>> = keys(&layout).map(|key| look(&store, key)).collect();
    for (key, seen) in keys(&layout).zip(&mut expected).step_by(3) {
        store.reserve(key, key.0 % 2 == 0);
        *seen = Seen { delta: vec![], ..fill(&store, key, 6) };
    }
    let all: Vec<Key> = keys(&layout).collect();
    let (front, back) = all.split_at(all.len() / 2);
    let mixed = || back.iter().zip(front).flat_map(|(a, b)| [*a, *b]);
    let asked: Vec<Key> = mixed().chain([front[1]]).collect();
    let mut shown = Vec::new();
    store.reserve_each(&asked, |key, slot| {
        let seen = &mut expected[key.0 as usize];
        if seen.value.is_empty() {
            seen.value = vec![zero(); layout.value_len(key).expect("a key of the layout")];
        }
        assert_eq!((*slot.packed, *slot.version), (seen.packed, seen.version), "{key}");
        assert_eq!((&*slot.value, &*slot.delta), (&*seen.value, &[][..]), "{key}");
        slot.value[0] = S::Value::from(shown.len() as i16);
        seen.value[0] = slot.value[0];
        shown.push(key);
    });
    assert_eq!(shown, asked);
    mixed().for_each(|key| assert_eq!(look(&store, key), expected[key.0 as usize], "{key}"));
    store.reserve_each(&[], |key, _| panic!("{key} was not asked for"));
}
