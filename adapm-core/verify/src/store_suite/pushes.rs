//! The claim about [`Store::push`].

use adapm_core::id::{Counter, NodeId, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::Location;
use adapm_core::store::Store;

use super::{built, has_delta, keys, look};
use crate::rng::mix;

/// `push` is `with_slot` with a push to the slot: to absent keys, main copies and replicas,
/// whatever the length of the value.
pub fn pushes_add_as_those_of_slots<S: Store<Value: From<i16>>>(make: &impl Fn(&Layout) -> S) {
    let ((layout, store), (_, other)) = (built(make), built(make));
    for key in keys(&layout) {
        let len = layout.value_len(key).expect("a key of the layout") as u64;
        let update: Vec<_> =
            (0..len).map(|i| S::Value::from(mix(key.0 * 1_000 + i) as i16)).collect();
        let push = || {
            let there = other.with_slot(key, |mut slot| slot.push(&update));
            assert_eq!(store.push(key, &update), there, "{key}");
            assert_eq!(look(&store, key), look(&other, key), "{key}");
        };
        push();
        for store in [&store, &other] {
            store.reserve(key, has_delta(key));
            store.with_slot(key, |mut slot| {
                if !has_delta(key) {
                    return slot.create_main_copy();
                }
                slot.request();
                slot.install(
                    Version(3),
                    &update,
                    Location { node: NodeId(1), counter: Counter(1) },
                );
            });
        }
        push();
        push();
    }
}
