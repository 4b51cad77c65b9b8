//! A node of a cluster behind a serial line, without `std`: what the microcontroller runs, and both
//! ends of the line.
//!
//! | module | subject |
//! | --- | --- |
//! | [`packet`] | bytes that find their feet again after garbage: COBS and a checksum around what is said |
//! | [`line`] | frames once and in order over such a line: dialing, and the link session of adapm-core |
//! | [`node`] | the loop around an engine and a line, with one worker |
//! | [`task`] | what the two nodes of this example count, and what must come out |
//!
//! Not here: the registers of a chip, and anything of a host.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod line;
pub mod node;
pub mod packet;
pub mod task;
