//! The link session: carries each frame once and in order over an unreliable pipe to one peer
//! (protocol, "Links").
//!
//! A pipe (a TCP connection, a ZeroMQ socket) breaks at any byte and loses data in flight. A
//! [`Session`] outlives its pipes: it cuts frames into numbered packets, keeps them until the peer
//! has acknowledged them, and on a new pipe resumes at the peer's position, even within a frame.
//! Like the rest of the core it does no I/O:
//!
//! ```text
//!            send ─────────┐                   ┌───────> poll_packet   header and content, to be written to the pipe
//!   handle_up, handle_down ┼──>  Session  ─────┼───────> poll_event    suspect, stuck, dead, left, room, drained
//!  handle_packet, _bytes  ─┤                   ├───────> deliver the frame that is whole with the packet
//!          handle_timeout ─┘                   └───────> deadline      when to call again at the latest
//! ```
//!
//! Obligations of a pipe: deliver whole packets in the order in which they were written, or break.
//! A gap in the numbers is an error after which the pipe is dropped and replaced by a new one; so
//! is any packet that a sound peer cannot send.
//!
//! | packet | numbered | sent |
//! | --- | --- | --- |
//! | part | yes | for each [`LinkConfig::packet_bytes`] of a larger frame, except the last |
//! | data | yes | for every frame: all of it or the last of its parts |
//! | bye | yes | once, as the last: with the close reason |
//! | acknowledgement | no | when a packet asks for it, or [`LinkConfig::ack_delay`] has passed without a packet to carry it; at once on a new pipe |
//! | heartbeat | no | when nothing else was sent for [`LinkConfig::heartbeat`] |
//!
//! The peer is alive as long as bytes of it come, and as long as its acknowledgements make progress
//! when some are pending; a new pipe is no sign of either. Data in flight is limited so that an
//! acknowledgement waits behind no more than a fraction of [`LinkConfig::dead_after`] of data,
//! however slow the pipe and however deep its buffers.
//!
//! Deliberately absent: retransmission on a pipe that is up (pipes do not lose packets without
//! breaking), encryption, the handshake that identifies the peer, and reconnecting, which are up to
//! the transport.

mod config;
mod failure_detector;
mod pace;
mod packet;
mod retransmit;
mod session;

pub use config::{LinkConfig, PACKET_BYTES_MAX};
pub use packet::{Content, Header, Kind, LinkError, SendRefusal, Seq};
pub use session::{Arrival, Event, Packet, Session};
