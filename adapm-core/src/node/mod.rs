//! The protocol engine of one channel of one node.

pub mod input;
pub mod output;

pub use input::{Input, Intent, Op, OpBody, OpId};
pub use output::{Event, Output, Reason};
