//! Scheme `local` over a store whose hints are wrong: samples still end, and pulled values are
//! right.

use std::collections::BTreeSet;
use std::ops::Range;

use adapm_core::slot::Slot;
use adapm_core::store::Store;
use adapm_core::{Key, Layout};
use adapm_runtime::{Builder, Sampling, Scheme, System};
use adapm_store::DenseStore;

use crate::{KEYS, WINDOW};

/// A dense store that gives the same hint for every key.
struct Stubborn {
    inner: DenseStore<i64>,
    says: bool,
}

impl Store for Stubborn {
    type Value = i64;

    fn value_len(&self, key: Key) -> usize {
        self.inner.value_len(key)
    }

    fn with_slot<R>(&self, key: Key, f: impl FnOnce(Slot<'_, i64>) -> R) -> R {
        self.inner.with_slot(key, f)
    }

    fn reserve(&self, key: Key, with_delta: bool) {
        self.inner.reserve(key, with_delta);
    }

    fn release(&self, key: Key) {
        self.inner.release(key);
    }

    fn visit(&self, keys: Range<Key>, f: impl FnMut(Key, Slot<'_, i64>)) {
        self.inner.visit(keys, f);
    }

    fn is_held(&self, _: Key) -> bool {
        self.says
    }
}

#[test]
fn wrong_hints_cost_looks_and_nothing_else() {
    for (says, with_replacement) in [(true, true), (true, false), (false, true), (false, false)] {
        let sampling = Sampling::uniform(Scheme::Local, Key(0)..Key(KEYS), 4);
        let sampling = if with_replacement { sampling } else { sampling.without_replacement() };
        let layout = Layout::dense(&[(KEYS, 1)]).expect("a valid layout");
        let cluster = Builder::<i64>::new(layout)
            .nodes(2)
            .system(System::Classic)
            .sampling(sampling)
            .initial(|key, value| value[0] = key.0 as i64)
            .store(move |layout, _| Stubborn { inner: DenseStore::new(layout), says })
            .build()
            .expect("a valid cluster");
        let n = KEYS as usize;
        let pulled = cluster.run(|mut worker| {
            let mut sample = worker.prepare_sample(n, WINDOW)?;
            let (mut keys, mut values) = (vec![Key(0); n], vec![0; n]);
            for (keys, values) in keys.chunks_mut(7).zip(values.chunks_mut(7)) {
                worker.pull_sample(&mut sample, keys, values)?;
            }
            assert!(keys.iter().zip(&values).all(|(key, value)| key.0 as i64 == *value));
            Ok::<_, adapm_core::error::OpError>(keys)
        });
        for keys in pulled.expect("no failure") {
            let keys = keys.expect("all keys of the sample are pulled");
            let different = keys.iter().collect::<BTreeSet<_>>().len();
            assert_eq!(different == n, !with_replacement, "{different} different keys of {n}");
        }
        let stats = cluster.stats();
        assert_eq!(stats.sampled, 2 * KEYS);
        // The pull finds out, and draws others; without replacement, all keys of the range are the
        // sample, half of them elsewhere.
        assert_eq!(stats.sampled_local, if with_replacement { 2 * KEYS } else { KEYS });
    }
}
