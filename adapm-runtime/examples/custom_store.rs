//! A store of your own: a wrapper of an existing store that counts how often each node's slots are
//! entered.
//!
//! Test a new store with `adapm_verify::store_suite!`. `cargo run -p adapm-runtime --example
//! custom_store`

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adapm_core::slot::{Pushed, Slot};
use adapm_core::store::Store;
use adapm_runtime::prelude::*;
use adapm_store::DenseStore;

/// A dense store with a counter.
struct Counting {
    inner: DenseStore<f32>,
    entered: Arc<AtomicU64>,
}

impl Counting {
    fn count(&self) {
        self.entered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each of the four methods that enter slots counts, and the store inside does everything else.
impl Store for Counting {
    type Value = f32;

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, f32>) -> R) -> R {
        self.count();
        self.inner.with_slot(key, f)
    }

    fn push(&self, key: Key, update: &[f32]) -> Pushed {
        self.count();
        self.inner.push(key, update)
    }

    fn reserve_each(&self, keys: &[Key], mut f: impl FnMut(Key, Slot<'_, f32>)) {
        self.inner.reserve_each(keys, |key, slot| {
            self.count();
            f(key, slot);
        });
    }

    fn visit(&self, keys: Range<Key>, mut f: impl FnMut(Key, Slot<'_, f32>)) {
        self.inner.visit(keys, |key, slot| {
            self.count();
            f(key, slot);
        });
    }

    adapm_core::delegate_store!(self.inner, all but with_slot, push, reserve_each, visit);
}

adapm_verify::store_suite!(counting, |layout| Counting {
    inner: DenseStore::new(layout),
    entered: Arc::default(),
});

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
