//! Bare engines with costs: what a cluster of many nodes would take, without checks.
//!
//! [`Engines`] is a [`SystemUnderTest`](super::SystemUnderTest) of real
//! [`adapm_core::engine::Engine`]s. Values have one element, or a few; their bytes on the wire are
//! scaled to the width that is modelled, heads of frames are encoded and weighed as they are.
//! Workers use the fast path on the node's store, dirtied keys and operations reach the engine as
//! in the threaded runtime.
//!
//! | file | under_test |
//! | --- | --- |
//! | `machine` | what a machine and its network cost |
//! | `store` | copies of one node, in huge sparse layouts |
//! | `totals` | what a run has cost so far |
//! | `member` | one node: engine, workers, dirtied keys |
//! | `under_test` | the nodes together, as the simulator sees them |
//!
//! Not here: what workers do (a [`super::Program`]), and faults.

mod machine;
mod member;
mod store;
mod totals;
mod under_test;

pub use machine::Machine;
pub use store::LightStore;
pub use totals::{Board, Totals};
pub use under_test::{EngineError, Engines, EnginesConfig};
