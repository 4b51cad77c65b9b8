//! Loom: the models of the store suite, on every store of the crate that several threads may share.
//!
//! `RUSTFLAGS="--cfg adapm_loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p adapm-store --test
//! 'loom_*'`
#![cfg(adapm_loom)]

use adapm_store::{DenseStore, SparseStore};
use adapm_verify::store_suite_loom;

store_suite_loom!(dense, DenseStore::<i64>::new);
store_suite_loom!(sparse, SparseStore::<i64>::new);
