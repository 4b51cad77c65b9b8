//! Lockstep cluster, scenario runner, oracle, reference store and conformance suites.

mod reference_store;

pub use reference_store::ReferenceStore;
