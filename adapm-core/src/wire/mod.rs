//! Messages between nodes and their frames: a postcard head and a raw value block (protocol, sections 3 and 9).

mod keys;
pub mod message;
pub mod shape;

pub use message::Message;

/// Raised whenever the bytes of any frame change.
pub const PROTOCOL_VERSION: u8 = 1;
