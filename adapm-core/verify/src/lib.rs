//! Tools for tests of the protocol and of plug-ins: stores, transports, policies.
//!
//! | module | subject |
//! | --- | --- |
//! | [`ReferenceStore`] | the simplest store |
//! | [`store_suite!`], [`transport_suite!`], [`policy_suite!`] | the contracts of plug-ins, checked in one line |
//! | [`value_suite!`] | the laws of your own element types, checked in one line |
//! | [`Numbered`], [`Shaky`] | decorators of transports: frames that go astray get a name; often full, too early, awake |
//! | [`Faulty`] | a network of datagrams that get lost, repeated, reordered, cut |
//! | [`arb`] | any message, for property tests |
//! | [`cluster`], [`setup`] | whole clusters in lockstep, one thread, virtual time; nodes that vanish or stop answering |
//! | [`picture`], [`member`], [`network`], [`calls`], [`losses`] | the parts of a cluster, and the record of events |
//! | [`lies`] | a node that lies to the others |
//! | [`link`] | two link sessions over a pipe that breaks, and links over datagrams, checked step by step |
//! | [`oracle`], [`digits`] | values that reveal which pushes they contain, and the check of reads |
//! | [`invariants`], [`check`], [`violation`] | the checkers of the protocol's invariants, by file and by name |
//! | [`random`], [`rng`] | schedules from seeds |
//! | [`script`] | scenarios in text files |
//! | [`sim`] | whole clusters in virtual time, over links with delay and faults |
//! | [`silence`] | time-outs of tests |
//! | [`flight`] | messages, entry by entry |
//! | [`planted`] | planted mistakes |
//!
//! Without the feature `checked` there are only the parts that neither inspect engines nor plant
//! mistakes: those that `adapm simulate` is built of.
//!
#![doc = include_str!("../../docs/pages.md")]
#![forbid(unsafe_code)]

/// Re-exported for the macros.
#[doc(hidden)]
pub use adapm_core;

pub mod arb;
#[cfg(feature = "checked")]
pub mod calls;
#[cfg(feature = "checked")]
pub mod check;
#[cfg(feature = "checked")]
pub mod cluster;
#[cfg(feature = "checked")]
mod cut;
mod decorators;
pub mod digits;
mod environment;
#[cfg(feature = "checked")]
pub mod flight;
#[cfg(feature = "checked")]
pub mod invariants;
#[cfg(feature = "checked")]
pub mod lies;
#[cfg(feature = "checked")]
pub mod link;
#[cfg(feature = "checked")]
pub mod losses;
#[cfg(feature = "checked")]
pub mod member;
#[cfg(feature = "checked")]
pub mod network;
#[cfg(feature = "checked")]
pub mod oracle;
#[cfg(feature = "checked")]
pub mod picture;
#[cfg(feature = "checked")]
pub mod planted;
#[cfg(feature = "checked")]
pub mod policy_suite;
#[cfg(feature = "checked")]
pub mod random;
#[cfg(feature = "checked")]
mod random_policy;
mod recorder;
mod reference_store;
pub mod rng;
#[cfg(feature = "checked")]
pub mod script;
#[cfg(feature = "checked")]
pub mod setup;
pub mod silence;
pub mod sim;
pub mod store_suite;
pub mod transport_suite;
pub mod value_suite;
#[cfg(feature = "checked")]
pub mod violation;

#[cfg(feature = "checked")]
pub use check::{Check, Checks};
#[cfg(feature = "checked")]
pub use cluster::Cluster;
pub use decorators::{FaultCounts, FaultRates, Faulty, Numbered, NumberedError, ShakeRates, Shaky};
#[cfg(feature = "checked")]
pub use planted::{Bug, DatagramBug, LinkBug, bug_from_environment};
pub use recorder::Recorder;
pub use reference_store::ReferenceStore;
#[cfg(feature = "checked")]
pub use setup::Setup;
pub use store_suite::store_fuzz;
#[cfg(feature = "checked")]
pub use violation::Violation;
