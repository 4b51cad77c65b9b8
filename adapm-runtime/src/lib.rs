//! Threads, workers and clusters around adapm's protocol core.

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
mod node;
mod notice;
mod order;
mod sampling;
mod stats;
mod store;
mod sync;
mod ticket;
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

#[doc(hidden)]
pub mod model {
    //! The parts that the loom suites check.
    pub use crate::clocks::Clocks;
    pub use crate::mailbox::{Mailbox, Urgency};
    pub use crate::order::{CallId, Completions, InFlight};
    pub use crate::ticket::{Promise, Report, Waiter};
}

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
