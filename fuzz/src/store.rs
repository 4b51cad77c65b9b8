//! Target `store`: any sequence of calls leaves every store of the project with the same slots as the reference store.
//!
//! Not here: several threads (the conformance suite and loom), and that memory is given back.

use adapm_core::testing::store_fuzz;
use adapm_store::{DenseStore, SparseStore};

/// Runs the calls that `bytes` choose; true if a copy was held at least once.
pub fn store(bytes: &[u8]) -> bool {
    let dense = store_fuzz(bytes, DenseStore::<f32>::new);
    let sparse = store_fuzz(bytes, SparseStore::<f32>::new);
    dense && sparse
}
