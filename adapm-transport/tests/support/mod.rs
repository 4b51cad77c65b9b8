//! Support for tests of links: a network that misbehaves by a plan, and counts its faults.
//!
//! Shared by the tests of several crates (`#[path]`); none of them uses all of it.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of this folder")]

mod bridge;
pub(crate) mod follow;
pub(crate) mod proxy;
mod relay;

pub(crate) use bridge::{from_unix, to_unix};
pub(crate) use proxy::{Counts, Faults, Proxy};
