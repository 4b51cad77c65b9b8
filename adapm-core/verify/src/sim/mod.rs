//! Whole clusters in one thread and in virtual time: the same seed, the same run.
//!
//! | file | subject |
//! | --- | --- |
//! | [`EventQueue`] | future events, in order |
//! | [`Wire`] | latency, jitter, bandwidth |
//! | [`Links`], [`Perfect`] | the network between the nodes |
//! | [`faults`] | resets, partitions, pauses, slow nodes; links that resume |
//! | [`Program`], [`Script`] | the steps of workers |
//! | [`SystemUnderTest`] | the simulated nodes |
//! | [`engines`] | bare engines with costs, for clusters of many nodes |
//! | [`Simulator`] | the one loop |
//! | `checked` | with the feature `checked`: a cluster with every invariant checked after every step |
//! | [`Coverage`] | counts of faults by the situations that they struck |
//! | [`TraceHash`] | a fingerprint: equal seeds, equal runs |
//!
//! The loop is the same for a cluster with every invariant checked after every step and for one
//! that only counts costs. Any system under test will do:
//!
//! ```
//! use core::convert::Infallible;
//! use core::time::Duration;
//!
//! use adapm_core::transport::Frame;
//! use adapm_core::{Instant, NodeId, WorkerId};
//! use adapm_verify::sim::{
//!     Outcome, Perfect, Script, Sent, Simulator, Step, SystemUnderTest, Turn, NodeWorker, WireConfig,
//! };
//!
//! /// Two nodes: every step of a worker sends ten bytes to the other one, and waits until they are there.
//! #[derive(Default)]
//! struct Post(Vec<Sent>, Vec<NodeWorker>);
//!
//! impl SystemUnderTest for Post {
//!     type Violation = Infallible;
//!     fn nodes(&self) -> usize { 2 }
//!     fn workers(&self) -> usize { 1 }
//!     fn step(&mut self, _: Instant, who: NodeWorker, _: Step) -> Result<Turn, Infallible> {
//!         let to = NodeId(1 - who.0.0);
//!         self.0.push(Sent { from: who.0, to, asks: false, bytes: 10, frame: Frame::default() });
//!         Ok(Turn::free(Outcome::Waits))
//!     }
//!     fn deliver(&mut self, _: Instant, from: NodeId, _: NodeId, _: Frame) -> Result<u64, Infallible> {
//!         self.1.push((from, WorkerId(0)));
//!         Ok(0)
//!     }
//!     fn timeout(&mut self, _: Instant, _: NodeId) -> Result<u64, Infallible> { Ok(0) }
//!     fn poll_sent(&mut self) -> Option<Sent> { self.0.pop() }
//!     fn poll_ready(&mut self) -> Option<NodeWorker> { self.1.pop() }
//!     fn wake_at(&self, _: NodeId) -> Option<Instant> { None }
//!     fn is_at_rest(&self) -> bool { self.0.is_empty() }
//!     fn waiting(&self) -> String { String::new() }
//! }
//!
//! let wire = WireConfig { latency_nanos: 50_000, jitter_nanos: 0, bytes_per_second: 1_000_000 };
//! let mut simulator = Simulator::new(Post::default(), Perfect::new(wire, 2, 0), 0);
//! let mut program = Script::default().with((NodeId(0), WorkerId(0)), [Step::Barrier, Step::Barrier]);
//! let end = simulator.run(&mut program, Duration::from_secs(1)).expect("nothing is wrong");
//! assert_eq!(end, Instant::from_micros(2 * (50 + 10)));
//! ```
//!
//! Not here: the effect of real networks on bytes. The transports' own tests are for that.

#[cfg(feature = "checked")]
pub mod checked;
mod coverage;
pub mod engines;
mod event_queue;
pub mod faults;
mod links;
mod program;
mod simulator;
mod trace;
mod under_test;
mod wire;

pub use coverage::{Coverage, Fact, Facts, FaultKind};
pub use event_queue::EventQueue;
pub use links::{Broken, Effects, Links, Perfect};
pub use program::{NodeWorker, Program, Script, Step, Then};
pub use simulator::{Failure, Simulator};
pub use trace::TraceHash;
pub use under_test::{Outcome, Sent, SystemUnderTest, Turn};
pub use wire::{Wire, WireConfig};
