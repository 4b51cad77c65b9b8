//! Pages about the runtime rather than about one item.

#[doc = include_str!("../docs/plug-in.md")]
pub mod plug_in {}

#[doc = include_str!("../docs/performance.md")]
pub mod performance {}
