//! Messages between nodes and their frames: a postcard head and a raw value block (protocol,
//! "Messages").

mod codec;
mod lists;
pub mod message;
pub mod shape;

pub use codec::{decode, encode, head_bytes};
pub use lists::list;
pub use message::Message;

/// The protocol version, raised whenever the bytes of any frame change; the first byte of every
/// head.
pub const PROTOCOL_VERSION: u8 = 4;

/// Largest frame, head and values together, in bytes: 17 MiB, two of the longest values and 1 MiB
/// for the head. Frames of an engine are bounded by
/// [`NodeConfig::frame_bytes_max`](crate::config::NodeConfig::frame_bytes_max).
pub const FRAME_BYTES_MAX: usize = 17 << 20;

/// Slack of the memory bound, 1 MiB: a frame is refused if it would take more memory than twice its
/// bytes and this. Frames of an engine stay below.
pub const SPARE_BYTES: usize = 1 << 20;
