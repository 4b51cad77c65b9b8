//! Links: each frame once and in order to a peer, over an unreliable pipe ([`Session`]) or over
//! datagrams ([`Links`]) (protocol, "Links").
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
//! [`Session::handle_up`] may be called while a pipe is up: the new one replaces it, and all that
//! is unacknowledged is written again. It is no sign of life. A packet that leaves a gap is none
//! either: the call fails and changes nothing. Report the bytes of such a packet with
//! [`Session::handle_bytes`] if they are to count.
//!
//! # Datagrams
//!
//! [`Links`] holds the links of one node to all its peers, for transports whose datagrams may be
//! lost, repeated, reordered or cut. It reads and writes their bytes, so that such a transport is
//! a socket, addresses and a clock (`adapm-runtime/examples/plug-in/udp`):
//!
//! ```text
//!   send, handle_wake, close ─┐             ┌──> poll_datagram   bytes, and the peer that they are for
//!            handle_datagram ─┼──>  Links  ─┼──> poll_received   frames, wakes, losses: what `recv` returns
//!             handle_timeout ─┘             └──> deadline        when to call again at the latest
//! ```
//!
//! A packet that leaves a gap is kept until the gap is filled, within the window of the link, and
//! does count as a sign of life. The receiver acknowledges at once what came out of order: each
//! datagram names which of 128 packets it has (a selective acknowledgement). The sender repeats
//! only what is missing: a packet once three that were written later have come, all that has not
//! come once nothing has for a few round trips. It then halves what may be in flight. Both ends
//! name their *lives*, random numbers of their processes, in each datagram, and packets count only
//! once both know each other's: datagrams that a process before sent are harmless. Malformed bytes
//! are errors, after which nothing has changed.
//!
//! [`Reports`] and [`losses_of`] are the parts of it that a transport with pipes can use as well.
//!
//! Deliberately absent: retransmission on a pipe that is up (pipes do not lose packets without
//! breaking), encryption, the handshake that identifies the peer of a pipe, and reconnecting, which
//! are up to the transport. Over datagrams: authentication, and finding the size that passes.

mod config;
mod datagram;
mod failure_detector;
mod links;
mod pace;
mod packet;
mod recovery;
mod reports;
mod retransmit;
mod session;

pub use config::{LinkConfig, PACKET_BYTES_MAX};
pub use datagram::{DATAGRAM_BYTES_MAX, DATAGRAM_HEADER_BYTES};
pub use links::Links;
pub use packet::{Content, Header, Kind, LinkError, SendRefusal, Seq};
pub use reports::{Reports, losses_of};
pub use session::{Arrival, Event, Packet, Session};
