//! Pages about the command rather than about one item.

#[doc = include_str!("../docs/processes.md")]
pub mod processes {}
