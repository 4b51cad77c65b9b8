//! Pages about the project rather than about one item.

#[doc = include_str!("../docs/architecture.md")]
pub mod architecture {}

#[doc = include_str!("../docs/protocol.md")]
pub mod protocol {}

#[doc = include_str!("../docs/driving.md")]
pub mod driving {}

#[doc = include_str!("../docs/contributing.md")]
pub mod contributing {}

#[doc = include_str!("../docs/glossary.md")]
pub mod glossary {}

#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/systems.md")]
pub mod systems {}
