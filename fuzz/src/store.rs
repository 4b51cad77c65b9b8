//! Target `store`: any sequence of calls leaves every store of the project with the same slots as
//! the reference store.
//!
//! Not here: several threads (the conformance suite and loom), and the release of memory.

use adapm_core::Layout;
use adapm_store::fixed::{FixedStore, elements_of, keys_of};
use adapm_store::{DenseStore, SparseStore};
use adapm_verify::store_fuzz;

/// The largest layout that inputs choose.
const LARGEST: &[(u64, usize)] = &[(9, 4), (7, 70)];

/// Runs the calls that `bytes` choose. Returns true if a copy was held at least once.
pub fn store(bytes: &[u8]) -> bool {
    let dense = store_fuzz(bytes, DenseStore::<f32>::new);
    let sparse = store_fuzz(bytes, SparseStore::<f32>::new);
    let fixed = store_fuzz(bytes, fixed);
    dense && sparse && fixed
}

fn fixed(layout: &Layout) -> FixedStore<f32, { keys_of(LARGEST) }, { elements_of(LARGEST) }> {
    FixedStore::for_layout(layout).expect("there is room for the largest layout")
}
