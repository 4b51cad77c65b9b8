//! Links between processes.

pub mod hello;
pub mod packet;
