//! Pages about the transports rather than about one item.

#[doc = include_str!("../docs/security.md")]
pub mod security {}
