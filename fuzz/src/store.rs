//! Target `store`: any sequence of calls leaves every store of the project with the same slots as the reference store.
//!
//! Not here: several threads (the conformance suite and loom), and that memory is given back.

use std::ops::Range;

use adapm_core::slot::{Slot, Word};
use adapm_core::store::Store;
use adapm_core::testing::ReferenceStore;
use adapm_core::testing::arb::Choices;
use adapm_core::{Key, Layout, Version};
use adapm_store::{DenseStore, SparseStore};

/// A slot, copied out of a store.
type Seen = (Key, u64, Version, Vec<f32>, Vec<f32>);

/// Runs the calls that `bytes` choose; true if a copy was held at least once.
pub fn store(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let lens = [choices.below(4) as usize + 1, choices.below(70) as usize + 1];
    let layout = Layout::dense(&[(9, lens[0]), (7, lens[1])]).expect("the layout is legal");
    let stores = Stores {
        reference: ReferenceStore::new(&layout),
        dense: DenseStore::new(&layout),
        sparse: SparseStore::new(&layout),
        end: layout.keys().end,
    };
    let mut held = false;
    while !choices.is_exhausted() {
        held |= stores.step(&mut choices);
    }
    stores.compare(Key(0)..stores.end);
    held
}

struct Stores {
    reference: ReferenceStore<f32>,
    dense: DenseStore<f32>,
    sparse: SparseStore<f32>,
    end: Key,
}

impl Stores {
    /// One call to each store, and a look at its key; true if the call made a copy.
    fn step(&self, choices: &mut Choices<'_>) -> bool {
        let key = Key(choices.below(self.end.0));
        let choice = choices.below(8);
        match choice {
            0..2 => {
                let with_delta = choices.flag();
                self.reference.reserve(key, with_delta);
                self.dense.reserve(key, with_delta);
                self.sparse.reserve(key, with_delta);
            }
            2 => {
                self.reference.release(key);
                self.dense.release(key);
                self.sparse.release(key);
            }
            3 => {
                let to = Key(choices.below(self.end.0 + 1));
                self.compare(key.min(to)..key.max(to));
            }
            4 => {
                self.reference.prefetch(key);
                self.dense.prefetch(key);
                self.sparse.prefetch(key);
            }
            _ => {
                let writing = Writing::new(choices);
                self.reference.with_slot(key, |slot| writing.write(slot));
                self.dense.with_slot(key, |slot| writing.write(slot));
                self.sparse.with_slot(key, |slot| writing.write(slot));
            }
        }
        let expected = self.reference.with_slot(key, |slot| seen(key, &slot));
        assert_eq!(self.dense.with_slot(key, |slot| seen(key, &slot)), expected, "dense, call {choice}");
        assert_eq!(self.sparse.with_slot(key, |slot| seen(key, &slot)), expected, "sparse, call {choice}");
        choice < 2
    }

    fn compare(&self, keys: Range<Key>) {
        let expected = visited(&self.reference, keys.clone());
        assert_eq!(visited(&self.dense, keys.clone()), expected, "dense, visit of {keys:?}");
        assert_eq!(visited(&self.sparse, keys.clone()), expected, "sparse, visit of {keys:?}");
    }
}

/// What a caller writes into a slot: the word always, the rest where a copy is held.
struct Writing {
    word: Word,
    version: Version,
    first: f32,
}

impl Writing {
    fn new(choices: &mut Choices<'_>) -> Self {
        let word = Word::from_bits(if choices.flag() { choices.word() } else { 0 });
        Self { word, version: Version(choices.number()), first: choices.below(256) as f32 }
    }

    fn write(&self, slot: Slot<'_, f32>) {
        *slot.word = self.word;
        // The version of an absent copy is not kept by every store.
        if !slot.value.is_empty() {
            *slot.version = self.version;
        }
        for (index, element) in slot.value.iter_mut().chain(slot.delta.iter_mut()).enumerate() {
            *element = self.first + index as f32;
        }
    }
}

fn seen(key: Key, slot: &Slot<'_, f32>) -> Seen {
    (key, slot.word.bits(), *slot.version, slot.value.to_vec(), slot.delta.to_vec())
}

fn visited(store: &impl Store<Value = f32>, keys: Range<Key>) -> Vec<Seen> {
    let mut all = Vec::new();
    store.visit(keys, |key, slot| all.push(seen(key, &slot)));
    all
}
