//! The whole store contract, run on every store of the crate.

use adapm_core::{Layout, Value};
use adapm_store::{DenseStore, FixedStore, SparseStore};
use adapm_verify::store_suite;

store_suite!(dense_f32, DenseStore::<f32>::new);
store_suite!(dense_f64, DenseStore::<f64>::new);
store_suite!(dense_i64, DenseStore::<i64>::new);
store_suite!(sparse_f32, SparseStore::<f32>::new);
store_suite!(sparse_i64, SparseStore::<i64>::new);
store_suite!(sparse far_apart_i64, SparseStore::<i64>::new);
store_suite!(one_thread fixed_f32, fixed::<f32>);
store_suite!(one_thread fixed_f64, fixed::<f64>);
store_suite!(one_thread fixed_i64, fixed::<i64>);

/// Creates a store exactly as large as the suite's layout.
fn fixed<V: Value>(layout: &Layout) -> FixedStore<V, 82, 3_040> {
    FixedStore::for_layout(layout).expect("the suite has layouts of this size")
}
