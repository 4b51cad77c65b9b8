//! Main copies at the start: created once each, with the same values by any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Cluster};

/// Large enough for several blocks, in two lengths.
const EXTENTS: [(u64, usize); 2] = [(3_000, 1_000), (40_000, 25)];
const KEYS: u64 = 43_000;

fn value(key: Key, value: &mut [f32]) {
    for (place, element) in value.iter_mut().enumerate() {
        assert_eq!(*element, 0.0, "zeros before");
        *element = (key.0 * 7 + place as u64) as f32;
    }
}

fn build(nodes: usize, workers: usize, channels: usize, calls: &Arc<AtomicU64>) -> Cluster<f32> {
    let calls = Arc::clone(calls);
    let initial = move |key: Key, slot: &mut [f32]| {
        calls.fetch_add(1, Ordering::Relaxed);
        value(key, slot);
    };
    let layout = Layout::dense(&EXTENTS).expect("a legal layout");
    let builder = Builder::<f32>::new(layout).nodes(nodes).workers(workers).channels(channels);
    let mut before = 0;
    let built = builder.initial(initial).build_telling(&mut |told| {
        assert!(before <= told.done && told.done <= told.keys && told.keys == KEYS);
        before = told.done;
    });
    built.expect("starts")
}

#[test]
fn every_key_has_its_initial_value_once_for_any_number_of_threads_nodes_and_channels() {
    for (nodes, workers, channels) in [(1, 1, 1), (1, 3, 2), (3, 2, 1), (2, 1, 3)] {
        let calls = Arc::new(AtomicU64::new(0));
        let cluster = build(nodes, workers, channels, &calls);
        assert_eq!(calls.load(Ordering::Relaxed), KEYS, "{nodes} x {workers}");
        let keys: Vec<Key> = (0..KEYS).map(Key).collect();
        let len = |key: &Key| if key.0 < EXTENTS[0].0 { EXTENTS[0].1 } else { EXTENTS[1].1 };
        let mut values = vec![0.0; keys.iter().map(len).sum()];
        cluster.read(&keys, &mut values).expect("at rest");
        let mut rest = values.as_slice();
        for key in keys {
            let (read, behind) = rest.split_at(len(&key));
            let mut expected = vec![0.0; read.len()];
            value(key, &mut expected);
            assert!(read == expected, "{key} of {nodes} x {workers}");
            rest = behind;
        }
        cluster.shutdown().expect("no failure");
    }
}

#[test]
fn values_that_are_zero_at_the_start_need_no_function() {
    let layout = Layout::dense(&EXTENTS).expect("a legal layout");
    let cluster = Builder::<f32>::new(layout).nodes(2).workers(2).build().expect("starts");
    let mut values = vec![1.0; EXTENTS[1].1];
    cluster.read(&[Key(KEYS - 1)], &mut values).expect("at rest");
    assert_eq!(values, vec![0.0; EXTENTS[1].1]);
}
