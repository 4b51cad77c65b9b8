//! The store of fixed capacity beyond the common contract: its bounds, and calls under the latch.

use adapm_core::config::NodeConfig;
use adapm_core::engine::Engine;
use adapm_core::policy::System;
use adapm_core::store::Store;
use adapm_core::{Key, Layout, NodeId};
use adapm_store::FixedStore;
use adapm_store::fixed::{CapacityError, EXTENTS_MAX, elements_of, keys_of};

const EXTENTS: &[(u64, usize)] = &[(10, 3), (2, 7)];
const KEYS: usize = keys_of(EXTENTS);
const ELEMENTS: usize = elements_of(EXTENTS);

type Exact = FixedStore<i64, KEYS, ELEMENTS>;

fn layout(extents: &[(u64, usize)]) -> Layout {
    Layout::dense(extents).expect("a legal layout")
}

#[test]
fn a_full_store_holds_a_replica_of_every_key() {
    assert_eq!((KEYS, ELEMENTS), (12, 2 * (30 + 14)));
    let layout = layout(EXTENTS);
    let store = Exact::for_layout(&layout).expect("made for it");
    for key in (0..12).map(Key) {
        store.reserve(key, true);
        store.with_slot(key, |slot| {
            slot.value.fill(key.0 as i64);
            slot.delta.fill(-(key.0 as i64));
        });
    }
    store.visit(Key(0)..Key(u64::MAX), |key, slot| {
        let len = layout.value_len(key).expect("a key of the layout");
        assert_eq!(
            (slot.value, slot.delta),
            (&mut vec![key.0 as i64; len][..], &mut vec![-(key.0 as i64); len][..])
        );
    });
    assert!(size_of::<Exact>() <= KEYS * 17 + ELEMENTS * 8 + 320, "{} bytes", size_of::<Exact>());
}

#[test]
fn a_layout_that_is_too_large_is_refused_at_construction() {
    let refused = |extents| Exact::for_layout(&layout(extents)).expect_err("too large");
    assert_eq!(refused(&[(13, 1)]), CapacityError::Keys { needed: 13, room: 12 });
    assert_eq!(refused(&[(u64::MAX, 1 << 20)]), CapacityError::Keys { needed: u64::MAX, room: 12 });
    assert_eq!(refused(&[(10, 3), (2, 8)]), CapacityError::Elements { needed: 92, room: 88 });
    assert_eq!(
        refused(&[(12, Layout::VALUE_LEN_MAX)]),
        CapacityError::Elements { needed: 24 << 20, room: 88 }
    );
    let many = [(1, 1); EXTENTS_MAX + 1];
    assert_eq!(refused(&many), CapacityError::Extents { needed: EXTENTS_MAX + 1 });
    assert!(Exact::for_layout(&layout(&many[1..])).is_ok());
    let text = refused(&[(13, 1)]).to_string();
    assert_eq!(text, "the layout has 13 keys, the store room for 12: raise KEYS");
}

#[test]
fn a_store_that_refused_a_layout_has_no_keys_and_takes_another() {
    let mut store = Exact::new();
    store.lay_out(&layout(EXTENTS)).expect("it fits");
    store.reserve(Key(11), false);
    store.lay_out(&layout(&[(13, 1)])).expect_err("too large");
    assert_eq!(store.value_len(Key(0)), 0);
    store.visit(Key(0)..Key(u64::MAX), |key, _| panic!("{key} is held by a store without keys"));
    store.lay_out(&layout(EXTENTS)).expect("it fits");
    store.with_slot(Key(11), |slot| assert!(slot.value.is_empty(), "what was held is forgotten"));
}

#[test]
#[should_panic(expected = "does not call the store")]
fn calling_the_store_under_the_latch_is_told() {
    let store = Exact::for_layout(&layout(EXTENTS)).expect("it fits");
    store.with_slot(Key(0), |_| store.release(Key(1)));
}

#[test]
#[should_panic(expected = "k12 is no key of the layout")]
fn a_foreign_key_is_told() {
    let store = Exact::for_layout(&layout(EXTENTS)).expect("it fits");
    store.reserve(Key(12), false);
}

#[test]
fn a_node_runs_on_it() {
    let layout = layout(EXTENTS);
    let store = Exact::for_layout(&layout).expect("it fits");
    let initial = std::sync::Arc::new(|key: Key, value: &mut [i64]| value.fill(key.0 as i64));
    let config = NodeConfig::new(NodeId(0), 1, 1);
    let node = Engine::new(config, layout, &store, System::Adapm.policy(1), initial)
        .expect("a legal node");
    node.populate();
    let mut value = [0; 3];
    assert!(store.with_slot(Key(9), |slot| slot.pull(&mut value)));
    assert_eq!(value, [9; 3]);
}
