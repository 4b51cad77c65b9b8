//! The whole store contract, run on every store of the crate.

use adapm_core::store_suite;
use adapm_store::{DenseStore, SparseStore};

store_suite!(dense_f32, DenseStore::<f32>::new);
store_suite!(dense_f64, DenseStore::<f64>::new);
store_suite!(dense_i64, DenseStore::<i64>::new);
store_suite!(sparse_f32, SparseStore::<f32>::new);
store_suite!(sparse_i64, SparseStore::<i64>::new);
