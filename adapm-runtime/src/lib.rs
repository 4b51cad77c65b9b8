//! Threads, workers and clusters around adapm's protocol core.
//!
//! A [`Builder`] makes a [`Cluster`]; [`Cluster::run`] and [`Cluster::try_run`] hand each worker
//! thread its [`Worker`], and return when all workers have ended and everything they sent is
//! applied everywhere. Main copies can then be read: [`Cluster::visit_main`]. Threads of your own,
//! which go on from one phase to the next, get theirs from [`Cluster::worker`].
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
//! A program needs no other crate of adapm: the [`prelude`] has what it uses, and a larger example.
//!
//! | file | subject | checked by |
//! | --- | --- | --- |
//! | `builder`, `manager`, `node` | from settings to threads | `tests/{bad_input,apart,two_clusters}.rs` |
//! | `cluster` | from the first worker to the last message | `tests/{workers,shutdown}.rs` |
//! | `worker` | pull, push, set, intent, localize, waiting | `tests/threads` |
//! | `ticket` | calls that are not waited for at once | `tests/held.rs`, `tests/threads` |
//! | `error`, `failure` | what goes wrong, and what of it is told | `tests/{peer_lost,workers}.rs` |
//! | `processes` | nodes in processes of their own | `tests/processes` |
//! | `channel`, `link` | the loop around an engine; frames | `tests/threads` |
//! | `order` | the order rule: no access overtakes an operation in flight | `tests/loom_order.rs` |
//! | `mailbox`, `promise` | ways to a channel thread and back | `tests/loom_{mailbox,ticket}.rs` |
//! | [`trace`] | what happens to some keys, as a file | `tests/trace` |
//! | [`sampling`] | keys the manager may choose | `tests/sampling` |
//! | `stats` | totals | `tests/threads` |
//!
//! What it costs, beside what is possible: [`docs::performance`]. Plug in a policy, a store or a
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
//! Whatever two threads share is modelled with loom, which runs every interleaving that the memory
//! model allows: `.ci/run loom` with at most two preemptions, `LOOM_MAX_PREEMPTIONS=3 .ci/run loom`
//! with three. The models run the code that is shipped, on loom's primitives (`sync.rs`).
//!
//! | models | claim |
//! | --- | --- |
//! | `adapm-store`: `loom_latch`, `loom_slot` | one thread at a time is in a slot, the next sees what it wrote, no memory is another key's |
//! | `adapm-store`: `loom_fast_path` | a push is counted once or refused while its key leaves, arrives, is promoted or sent |
//! | `loom_worker` | worker, engine and peer together: a worker reads its own pushes while its key leaves |
//! | `loom_order`, `loom_ticket` | no access overtakes an operation in flight; every wait ends, also if nobody serves |
//! | `loom_mailbox`, `loom_dirty` | nothing is lost or overtaken, who sleeps or waits for room is woken |
//! | `loom_clocks`, `loom_intent` | a clock seen is work seen; nothing of a worker follows its end |
//!
//! Models called `planted_*` run a wrong copy of the code (`tests/support/wrong.rs`: a weaker
//! ordering, a look before the flag instead of after it, a notification left out) and must fail: a
//! suite that finds nothing has looked.
//!
//! No model covers what lies behind a system call or a second process: the bells of transports (a
//! wake that meets a sleep; their suite, `transport_suite!`, tests it), starting and joining
//! threads, lost peers (`failure.rs`), the totals, and more than one channel. Three threads that
//! spin for one latch make no progress under loom. For these there are the tests on real threads.
//!
//! Deliberately absent: the protocol (`adapm-core`), recovery from a lost node, an asynchronous
//! executor ([`Pull`] and [`Done`] are futures and run on any), pinning of threads to cores.
//!
#![doc = include_str!("../../adapm-core/docs/pages.md")]
#![forbid(unsafe_code)]

mod builder;
mod channel;
mod cluster;
pub mod docs;
mod error;
mod failure;
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
mod store;
mod sync;
mod ticket;
pub mod trace;
mod worker;

pub use adapm_core::policy::{System, UnknownSystem};
pub use builder::{Builder, Nodes};
pub use cluster::Cluster;
pub use error::{BuildError, RunError, TryRunError};
pub use notice::Notice;
pub use populate::Populating;
pub use sampling::{
    AliasTable, Random, Sample, Sampling, SamplingError, Scheme, UnknownScheme, Weight, WeightError,
};
pub use stats::{Stats, Traffic};
pub use store::LayoutStore;
pub use ticket::{Done, Pull};
pub use worker::{IntentHandle, IntentKind, Worker};
pub use {adapm_core, adapm_store, adapm_transport};

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
