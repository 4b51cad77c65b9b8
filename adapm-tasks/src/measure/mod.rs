//! Measuring tools: what the manager costs on this machine, and what the paper's workloads cost on
//! clusters that are not there.
//!
//! Not here: tables, pictures and processes of their own, which are the command line's.

pub mod bench;
pub mod simulate;
