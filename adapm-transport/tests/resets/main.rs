//! Links over connections that are cut, split, delayed and corrupted on the way: every frame
//! arrives once, whole, in order.
//!
//! The faults are counted where they are made, and the tests assert that enough of them hit the
//! sensitive places.

#![cfg(feature = "tcp")]

#[path = "../support/mod.rs"]
mod support;

mod crowd;
mod faults;
