//! Threads, workers and clusters around adapm's protocol core.
//!
//! A [`Builder`] makes a [`Cluster`]; [`Cluster::run`] and [`Cluster::try_run`] give each worker
//! thread its [`Worker`] and return once all workers have ended and everything they sent is applied
//! everywhere. Main copies can then be read ([`Cluster::visit_main`]). Threads of your own that
//! outlive a phase take theirs from [`Cluster::worker`].
//!
//! ```text
//!   your closure ── Worker ──fast path──> store <──────────────┐
//!                     │                                        │
//!   loader thread ─ IntentHandle ──operations, intents──> channel thread: Engine ──frames──> transport
//! ```
//!
//! ```
//! use adapm_runtime::prelude::*;
//!
//! let cluster = Builder::<i64>::new(Layout::dense(&[(100, 1)])?).nodes(2).workers(2).build()?;
//! cluster.try_run(|mut worker| worker.push(&[Key(1), Key(99)], &[1, 10]))?;
//! let mut values = [0; 2];
//! cluster.read(&[Key(1), Key(99)], &mut values)?;
//! assert_eq!(values, [4, 40]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program needs no other crate of adapm: the [`prelude`] exports all it uses, and has a larger
//! example.
//!
//! | file | subject | checked by |
//! | --- | --- | --- |
//! | `builder`, `node_handle`, `node` | from settings to threads | `tests/cluster/{bad_input,apart,two_clusters}.rs` |
//! | `cluster` | from the first worker to the last message | `tests/cluster/workers.rs`, `tests/shutdown.rs` |
//! | `worker` | pull, push, set, update, intent, localize, waiting | `tests/threads` |
//! | `ticket` | calls whose results are awaited later | `tests/cluster/held.rs`, `tests/threads` |
//! | `error`, `failure` | errors, and which of them is reported | `tests/cluster/{peer_lost,workers}.rs` |
//! | `processes` | nodes in processes of their own | `tests/processes` |
//! | `channel`, `link` | the loop around an engine; frames | `tests/threads` |
//! | `order` | the order rule: no access overtakes an operation in flight | `tests/loom_order.rs` |
//! | `mailbox`, `promise` | queues to a channel thread, replies from it | `tests/loom_{mailbox,ticket}.rs` |
//! | [`trace`] | events of selected keys, as a file | `tests/trace` |
//! | [`sampling`] | keys the manager may choose | `tests/sampling` |
//! | `stats` | totals | `tests/threads` |
//!
//! Costs, beside their lower bounds: [`docs::performance`]. To plug in a policy, a store or a
//! transport: [`docs::plug_in`], and in short `examples/custom_{policy,store,transport}.rs`.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `tcp`, on by default | nodes in processes of their own: a group for [`Builder::nodes`] |
//!
//! Without it a cluster lives in one process, or has a transport of your own ([`Nodes::over`],
//! [`Nodes::only`]), and no TCP, cryptography or process group is compiled. Links over tokio and
//! ZeroMQ, and the simulator, are features of `adapm-transport`.
//!
//! # Races
//!
//! All state shared between threads is modelled with loom, which runs every interleaving that the
//! memory model allows: `.ci/run loom` with at most two preemptions, `LOOM_MAX_PREEMPTIONS=3
//! .ci/run loom` with three. The models run the shipped code on loom's primitives (`sync.rs`).
//!
//! | models | claim |
//! | --- | --- |
//! | `adapm-store`: `loom_latch`, `loom_slot` | one thread at a time is in a slot, the next sees what it wrote, no memory is another key's |
//! | `adapm-store`: `loom_fast_path` | a push is counted once or refused while its key leaves, arrives, is promoted or sent |
//! | `loom_worker` | worker, engine and peer together: a worker reads its own pushes while its key leaves |
//! | `loom_order`, `loom_ticket` | no access overtakes an operation in flight; every wait ends, even if no engine serves it |
//! | `loom_mailbox`, `loom_dirty` | nothing is lost or overtaken; threads that sleep or wait for room are woken |
//! | `loom_clocks`, `loom_intent` | a clock seen is work seen; nothing posted by a worker follows its end |
//!
//! Models called `planted_*` run a wrong copy of the code (`tests/support/wrong.rs`: a weaker
//! ordering, a look before the flag instead of after it, a notification left out) and must fail,
//! which shows that the models find mistakes.
//!
//! No model covers code behind a system call or in a second process: the wake-ups of transports
//! (their suite, `transport_suite!`, tests them), starting and joining threads, lost peers
//! (`failure.rs`), the totals, and more than one channel. Three threads that spin for one latch
//! make no progress under loom. Tests on real threads cover these.
//!
//! Deliberately absent: the protocol (`adapm-core`), recovery from a lost node, an asynchronous
//! executor ([`Pull`] and [`Done`] are futures and run on any), pinning of threads to cores.
//!
#![doc = include_str!("../../adapm-core/docs/pages.md")]
#![forbid(unsafe_code)]

mod builder;
mod channel;
#[cfg(feature = "checkpoint")]
pub mod checkpoint;
mod cluster;
#[cfg(all(debug_assertions, not(test)))]
mod compiled;
pub mod docs;
mod error;
mod failure;
mod hot_keys;
mod link;
mod mailbox;
#[doc(hidden)]
pub mod model;
mod node;
mod node_handle;
mod notice;
mod order;
mod pace;
mod populate;
pub mod prelude;
mod processes;
mod promise;
pub mod sampling;
mod stats;
mod status;
mod store;
mod sync;
pub mod tables;
mod ticket;
pub mod trace;
mod worker;

pub use adapm_core::policy::{InvalidSystem, System};
pub use builder::{Builder, InvalidWorkers, Nodes, Workers};
pub use cluster::Cluster;
pub use error::{BuildError, RunError, TryRunError};
pub use notice::Notice;
pub use populate::Populating;
pub use sampling::{
    AliasTable, Random, Sample, Sampling, SamplingError, Scheme, UnknownScheme, Weight, WeightError,
};
pub use stats::{Stats, Traffic};
pub use status::NodeStatus;
pub use store::LayoutStore;
pub use ticket::{Done, Pull};
pub use worker::{IntentHandle, IntentKind, Worker};
pub use {adapm_core, adapm_store, adapm_transport};

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
