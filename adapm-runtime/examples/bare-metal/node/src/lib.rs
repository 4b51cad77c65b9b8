//! A node that a serial line connects to its cluster, without `std`: the node of the
//! microcontroller, and both ends of the line.
//!
//! | module | subject |
//! | --- | --- |
//! | [`packet`] | packets that survive garbage between them: COBS and a checksum |
//! | [`line`] | frames once and in order over such a line: dialing, and the link session of adapm-core |
//! | [`node`] | the loop around an engine and a line, with one worker |
//! | [`task`] | the counts of the two nodes of this example, and the expected results |
//!
//! Not here: the registers of a chip, and anything of a host.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod line;
pub mod node;
pub mod packet;
pub mod task;
