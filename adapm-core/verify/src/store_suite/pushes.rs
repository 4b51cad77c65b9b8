//! The claim about [`Store::push`].

use adapm_core::id::{Counter, NodeId, Version};
use adapm_core::layout::Layout;
use adapm_core::slot::Location;
use adapm_core::store::Store;

use super::form::Form;
use super::seen::{agree, look};

/// Checks that `push` is `with_slot` with a push to the slot: for absent keys, main copies and
/// replicas, and any length of the value.
pub fn pushes_add_as_those_of_slots<S: Store<Value: From<i16>>>(
    form: &Form<impl Fn(&Layout) -> S>,
) {
    let ((bed, store), (_, other)) = (form.built(), form.built());
    for key in bed.keys() {
        let seed = bed.place(key) as u64 * 1_000;
        let update: Vec<S::Value> =
            (0..bed.value_len(key) as u64).map(|i| bed.elements.draw_third(seed + i)).collect();
        let push = || {
            let there = other.with_slot(key, |mut slot| slot.push(&update));
            let pushed = store.push(key, &update);
            assert!(pushed == there, "push to {key} is {pushed:?}, that to its slot {there:?}");
            let (found, expected) = (look(&store, key), look(&other, key));
            agree(&found, &expected, format_args!("{key}, pushed to, as by its slot"));
        };
        push();
        for store in [&store, &other] {
            store.reserve(key, bed.has_delta(key));
            store.with_slot(key, |mut slot| {
                if !bed.has_delta(key) {
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
