//! Pages about the command rather than about one item.

#[doc = include_str!("../docs/processes.md")]
pub mod processes {}

#[doc = include_str!("../docs/survive.md")]
pub mod survive {}

#[doc = include_str!("../docs/own_task.md")]
pub mod own_task {}

#[doc = include_str!("../docs/files.md")]
pub mod files {}

#[doc = include_str!("../docs/partition.md")]
pub mod partition {}

#[doc = include_str!("../docs/trace.md")]
pub mod trace {}

#[doc = include_str!("../docs/simulate.md")]
pub mod simulate {}

#[doc = include_str!("../docs/compare.md")]
pub mod compare {}

#[doc = include_str!("../docs/choosing.md")]
pub mod choosing {}

#[doc = include_str!("../docs/results.md")]
pub mod results {}
