//! Tools that prove things about the protocol: usable by whoever plugs in a store, a transport or a policy.
//!
//! | module | subject |
//! | --- | --- |
//! | [`ReferenceStore`] | the simplest store |
//! | [`store_suite`], [`transport_suite`], [`policy_suite`] | the contracts of plug-ins, checked in one line |
//! | [`arb`] | any message, for property tests |
//! | [`cluster`], [`call`], [`member`], [`air`], [`setup`] | whole clusters in lockstep, one thread, virtual time |
//! | [`loss`], `unresponsive` | nodes that vanish, and what is gone with them; nodes that stop answering |
//! | [`lies`] | a node that lies to the others |
//! | [`link`] | two link sessions over a pipe that breaks, judged step by step |
//! | [`oracle`], [`digits`] | values that tell which pushes they contain, and the judge of reads |
//! | [`invariants`], [`check`], [`violation`] | the checkers of the protocol's invariants, by file and by name |
//! | [`random`], [`rng`] | schedules from seeds |
//! | [`script`] | scenarios in text files |
//! | [`silence`] | how long a test waits |
//! | [`flight`] | what a message says, entry by entry |
//! | [`bug`] | planted mistakes |

pub mod air;
pub mod arb;
pub mod bug;
pub mod call;
pub mod check;
pub mod cluster;
pub mod digits;
pub mod flight;
pub mod invariants;
pub mod lies;
pub mod link;
pub mod loss;
pub mod member;
pub mod oracle;
pub mod policy_suite;
pub mod random;
mod random_policy;
mod reference_store;
pub mod rng;
pub mod script;
pub mod setup;
pub mod silence;
pub mod store_suite;
pub mod transport_suite;
mod unresponsive;
mod view;
pub mod violation;

pub use bug::Bug;
pub use check::{Check, Checks};
pub use cluster::Cluster;
pub use reference_store::ReferenceStore;
pub use setup::Setup;
pub use store_suite::store_fuzz;
pub use violation::Violation;
