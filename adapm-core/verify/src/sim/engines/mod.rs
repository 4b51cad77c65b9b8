//! Bare engines with costs: a model of clusters of many nodes, without checks.
//!
//! [`Engines`] is a [`SystemUnderTest`](super::SystemUnderTest) of real
//! [`adapm_core::engine::Engine`]s. Values have one element, or a few; their bytes on the wire are
//! scaled to the modelled width, heads of frames are encoded and weighed as they are. Workers use
//! the fast path on the node's store; dirtied keys and operations reach the engine as in the
//! threaded runtime.
//!
//! | file | subject |
//! | --- | --- |
//! | `machine` | costs of a machine and its network |
//! | `store` | copies of one node, in huge sparse layouts |
//! | `totals` | costs of a run so far |
//! | `member` | one node: engine, workers, dirtied keys |
//! | `under_test` | the nodes together, as the simulator sees them |
//!
//! Not here: the program of workers ([`super::Program`]), and faults.

mod machine;
mod member;
mod store;
mod totals;
mod under_test;

pub use machine::Machine;
pub use store::LightStore;
pub use totals::{SharedState, Totals};
pub use under_test::{EngineError, Engines, EnginesConfig};
