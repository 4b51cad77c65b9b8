//! Threads, workers and clusters around adapm's protocol core.
//!
//! A [`Builder`] makes a [`Cluster`]; [`Cluster::run`] hands each worker thread its [`Worker`], and returns when all workers
//! have ended and everything they sent is applied everywhere. Main copies can then be read: [`Cluster::visit_main`].
//!
//! ```text
//!   your closure ── Worker ──fast path──> store <──────────────┐
//!                     │                                        │
//!   loader thread ─ IntentHandle ──operations, intents──> channel thread: Node ──frames──> transport
//! ```
//!
//! ```
//! use adapm_core::{Key, Layout};
//! use adapm_runtime::Builder;
//!
//! let cluster = Builder::<i64>::new(Layout::dense(&[(100, 1)])?).nodes(2).workers(2).build()?;
//! cluster.run(|mut worker| worker.push(&[Key(1), Key(99)], &[1, 10]))?;
//! let mut values = [0; 2];
//! cluster.read(&[Key(1), Key(99)], &mut values)?;
//! assert_eq!(values, [4, 40]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | subject | checked by |
//! | --- | --- | --- |
//! | `builder`, `cluster`, `manager`, `node` | from settings to threads and back | `tests/{shutdown,bad_input,two_clusters}.rs` |
//! | `worker` | pull, push, set, intent, localize, waiting | `tests/threads` |
//! | `processes` | nodes in processes of their own | `tests/processes` |
//! | `channel`, `link` | the loop around an engine; frames | `tests/threads` |
//! | `order` | the order rule: no access overtakes an operation in flight | `tests/loom_order.rs` |
//! | `mailbox`, `ticket` | ways to a channel thread and back | `tests/loom_{mailbox,ticket}.rs` |
//! | [`trace`] | what happens to some keys, as a file | `tests/trace` |
//! | `sampling`, `stats`, `clocks` | keys the manager may choose; totals; logical time | `tests/threads` |
//!
//! Plug in a policy, a store or a transport: `examples/custom_{policy,store,transport}.rs`.
//!
//! Deliberately absent: the protocol (`adapm-core`), recovery from a lost node, an asynchronous
//! executor ([`Ticket`] is a future and runs on any), pinning of threads to cores.

#![forbid(unsafe_code)]

mod builder;
mod channel;
mod clocks;
mod cluster;
mod error;
mod failure;
mod link;
mod mailbox;
mod manager;
#[doc(hidden)]
pub mod model;
mod node;
mod notice;
mod order;
mod processes;
mod sampling;
mod stats;
mod store;
mod sync;
mod ticket;
pub mod trace;
mod worker;

pub use adapm_core::policy::{System, UnknownSystem};
pub use builder::Builder;
pub use cluster::Cluster;
pub use error::{BuildError, RunError};
pub use notice::Notice;
pub use sampling::{Random, Sample, Sampling, Scheme};
pub use stats::{Stats, Traffic};
pub use store::LayoutStore;
pub use ticket::Ticket;
pub use worker::{IntentHandle, IntentKind, Worker};

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
