//! The protocol of an adaptive parameter manager, without I/O.
//!
//! Training with sparse access touches few of a model's many values at a time. Workers *signal
//! intent* to access keys in a window of their logical clock; an [`engine::Engine`] decides for
//! each key whether to relocate the main copy or to set up a replica, and learns when to act
//! (AdaPM, CIKM'23; Lapse, VLDB'20).
//!
//! The crate is *sans-IO*: it reads no clock, opens no socket, spawns no thread, never blocks. A
//! [`driver::Driver`] feeds it [`engine::Input`]s and carries out its outputs.
//!
//! Deliberately absent: randomness, hash iteration that can reach an output, unsafe code, any
//! knowledge of transports, stores, runtimes or tasks.
//!
//! | module | subject |
//! | --- | --- |
//! | [`id`], [`clock`], [`time`], [`value`], [`layout`], [`config`], [`error`], [`node_set`] | vocabulary |
//! | [`slot`] | transitions of one local copy |
//! | [`store`], [`transport`], [`observe`] | traits that siblings implement; [`delegate_store!`] for a store around another one |
//! | [`engine`] | the protocol engine of one channel of one node |
//! | [`driver`] | duties of every program around an engine |
//! | [`home`], [`route`] | home and next hop of a key |
//! | [`ticket`] | proof that a node can have answered |
//! | [`policy`] | decisions: technique and action timing |
//! | [`update`] | update rules: the update that is pushed for a gradient |
//! | [`wire`] | messages and frames |
//! | [`link`] | frames once and in order over pipes that break |
//! | [`docs`] | pages: architecture, protocol, systems, words, tests |
//!
#![doc = include_str!("../docs/pages.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod clock;
pub mod config;
mod delegate;
pub mod docs;
pub mod driver;
pub mod engine;
pub mod error;
pub mod home;
pub mod id;
pub mod layout;
pub mod link;
pub mod node_set;
pub mod observe;
pub mod policy;
pub mod route;
pub mod slot;
pub mod stats;
pub mod store;
pub mod ticket;
pub mod time;
pub mod transport;
pub mod update;
pub mod value;
pub mod wire;

pub use clock::Clock;
pub use id::{ChannelId, Counter, Key, NodeId, Ticket, Version, WorkerId};
pub use layout::Layout;
pub use time::Instant;
pub use value::{Block, Value};
