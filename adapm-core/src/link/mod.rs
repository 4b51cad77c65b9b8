//! The link session: what makes an unreliable pipe to one peer carry each frame once and in order
//! (protocol, "Links").
//!
//! A pipe (a TCP connection, a ZeroMQ socket) breaks at any byte and forgets what was on its way. A
//! [`Session`] outlives its pipes: it cuts frames into numbered packets, keeps them until the peer
//! has acknowledged them, and on a new pipe goes on where the peer stands, be it within a frame.
//! Like the rest of the core it does no I/O:
//!
//! ```text
//!            send ─────────┐                   ┌───────> poll_packet   header and content, to be written to the pipe
//!   handle_up, handle_down ┼──>  Session  ─────┼───────> poll_event    suspect, stuck, dead, left, room, drained
//!  handle_packet, _bytes  ─┤                   ├───────> deliver the frame that is whole with the packet
//!          handle_timeout ─┘                   └───────> deadline      when to call again at the latest
//! ```
//!
//! What a pipe must do: deliver whole packets in the order in which they were written, or break. A
//! gap in the numbers is an error after which the pipe is to be dropped and replaced by a new one;
//! so is anything a sound peer cannot say.
//!
//! | packet | numbered | sent |
//! | --- | --- | --- |
//! | part | yes | for [`LinkConfig::packet_bytes`] of a frame that is larger, but the last of them |
//! | data | yes | for every frame: all of it or the last of its parts |
//! | bye | yes | once, as the last: with the reason of the end |
//! | acknowledgement | no | when a packet asks for it, or [`LinkConfig::ack_delay`] has passed without a packet to carry it; at once on a new pipe |
//! | heartbeat | no | when nothing else was sent for [`LinkConfig::heartbeat`] |
//!
//! The peer is alive as long as bytes of it come, and as long as its acknowledgements move when
//! something waits for them; a pipe that comes up is no sign of either. What is under way is
//! limited so that an acknowledgement waits behind no more than a fraction of
//! [`LinkConfig::dead_after`] of data, however slow the pipe and however much it would take.
//!
//! Deliberately absent: retransmission on a pipe that is up (pipes do not lose packets without
//! breaking), encryption, the handshake that says who the peer is, and reconnecting, which are the
//! transport's.

mod config;
mod failure_detector;
mod pace;
mod packet;
mod retransmit;
mod session;

pub use config::{LinkConfig, PACKET_BYTES_MAX};
pub use packet::{Content, Header, Kind, LinkError, SendRefusal, Seq};
pub use session::{Arrival, Event, Packet, Session};
