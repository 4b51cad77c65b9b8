//! A store of your own: a wrapper of an existing store that counts how often each node's slots are
//! entered.
//!
//! Test a new store with `adapm_verify::store_suite!`. `cargo run -p adapm-runtime --example
//! custom_store`

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::slot::Slot;
use adapm_core::store::Store;
use adapm_runtime::prelude::*;
use adapm_store::DenseStore;

/// A dense store with a counter.
struct Counting {
    inner: DenseStore<f32>,
    entered: Arc<AtomicU64>,
}

impl Store for Counting {
    type Value = f32;

    fn value_len(&self, key: Key) -> usize {
        self.inner.value_len(key)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, f32>) -> R) -> R {
        self.entered.fetch_add(1, Ordering::Relaxed);
        self.inner.with_slot(key, f)
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        self.inner.reserve(key, with_delta);
    }

    fn release(&self, key: Key) {
        self.inner.release(key);
    }

    fn visit(&self, keys: Range<Key>, f: impl FnMut(Key, Slot<'_, f32>)) {
        self.inner.visit(keys, f);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let entered = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let counters = entered.clone();
    let builder =
        Builder::<f32>::new(Layout::dense(&[(100, 8)])?).nodes(2).store(move |layout, node| {
            Counting {
                inner: DenseStore::new(layout),
                entered: Arc::clone(&counters[node.index()]),
            }
        });
    builder.build()?.try_run(|mut worker| worker.push(&[Key(1), Key(2)], &[1.0; 16]))?;
    println!("slots entered, by node: {entered:?}");
    Ok(())
}
