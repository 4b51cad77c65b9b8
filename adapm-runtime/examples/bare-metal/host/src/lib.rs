//! The host's end of a cluster of two: a node of `adapm-runtime` whose transport is a serial line.
//!
//! Not here: the other end of the line ([`serial_node`]), and how it is started (the program).

#![forbid(unsafe_code)]

pub mod count;
pub mod noise;
pub mod serial;
