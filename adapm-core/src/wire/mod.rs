//! Messages between nodes and their frames: a postcard head and a raw value block (protocol,
//! "Messages").

mod codec;
mod lists;
pub mod message;
pub mod shape;

pub use codec::{decode, encode, head_bytes};
pub use lists::list;
pub use message::Message;

/// Raised whenever the bytes of any frame change; the first byte of every head.
pub const PROTOCOL_VERSION: u8 = 3;

/// Largest frame, head and values together, in bytes: 17 MiB, two of the longest values and 1 MiB
/// for the head. What an engine sends is bounded by
/// [`NodeConfig::frame_bytes_max`](crate::config::NodeConfig::frame_bytes_max).
pub const FRAME_BYTES_MAX: usize = 17 << 20;

/// A frame that would take more than twice its bytes of memory, and this, is refused: 1 MiB. What
/// an engine sends keeps within it.
pub const SPARE_BYTES: usize = 1 << 20;
