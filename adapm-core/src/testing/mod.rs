//! Lockstep cluster, scenario runner, oracle, reference store and conformance suites.

pub mod arb;
pub mod bug;
mod reference_store;
pub mod store_suite;
pub mod transport_suite;

pub use bug::Bug;
pub use reference_store::ReferenceStore;
