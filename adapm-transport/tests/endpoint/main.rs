//! The guarantees of `Net` beyond the transport contract: handshakes, resumption, losses, goodbyes,
//! and its reports.
#![cfg(feature = "tcp")]

mod cluster;
mod endings;
mod half_dead;
mod losses;
mod opening;
mod refusals;
mod resuming;
mod silence;
mod strangers;
#[path = "../support/mod.rs"]
mod support;
