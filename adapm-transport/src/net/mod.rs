//! Links between processes.

pub mod packet;
