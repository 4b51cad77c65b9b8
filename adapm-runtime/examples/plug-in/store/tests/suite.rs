//! The whole contract of a store, in three lines: claims, any sequence of calls, and models of two
//! threads.
//!
//! `cargo test` runs the first two, `RUSTFLAGS="--cfg adapm_loom" cargo test --release --test
//! suite` the third.

use plug_in_store::MutexStore;

adapm_verify::store_suite!(mutex_store, MutexStore::<f32>::new);
adapm_verify::store_fuzz!(any_calls, MutexStore::<f32>::new);
adapm_verify::store_suite_loom!(models, MutexStore::<f32>::new);
